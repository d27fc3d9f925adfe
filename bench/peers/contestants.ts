/** Everything that is compared: ours in several set-ups, the floor agent, and the agents of others that are installed. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgentCommand } from './acp-client.ts';
import { allPeers } from './all-peers.ts';
import { bundleOneThread } from './one-thread/bundle-one-thread.ts';
import type { Peer } from './peer.ts';
import { modulesOf, nodeBin } from './peers-folder.ts';
import { type AgentFolders, type RunningAgent, startAgent, startProcessPerSession } from './running-agent.ts';

export interface Contestant {
  readonly agent: string;
  readonly version: string;
  readonly runtime: string;
  readonly mostSessions: number;
  readonly canCancel: boolean;
  /** Shows text while it comes, and not only once it is whole. */
  readonly streams: boolean;
  start(): Promise<RunningAgent>;
}

export interface Surroundings {
  /** The folders of all agents are made in it. */
  readonly scratch: string;
  /** The model server, without a path. */
  readonly origin: string;
}

const root = fileURLToPath(new URL('../../../', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
const node = `Node ${process.versions.node.split('.')[0]}`;

/** What is measured without anything of others, beside `ours`; all of them fit into one round. */
export const ownNames = ['floor', 'one-thread', 'ours-dedicated', 'ours-automation', 'process-per-session'] as const;
export type OwnName = (typeof ownNames)[number];

export const allNames: readonly string[] = [...ownNames, ...allPeers.map(({ name }) => name)];

/** Shared threads, all text streamed: what the others are measured against. */
export function ours(place: Surroundings): Contestant {
  return ownServer('ours', ['--isolation', 'shared'], place);
}

/** @throws Error when the server with one thread cannot be bundled */
export async function ownContestant(name: OwnName, place: Surroundings): Promise<Contestant> {
  switch (name) {
    case 'floor': {
      const command = [process.execPath, join(root, 'build/bench/load/floor-agent.js'), `${place.origin}/v1/chat/completions`];
      return { ...described(name, '–'), canCancel: false, start: () => startAgent({ command, env: {} }, foldersOf(name, place)) };
    }
    case 'one-thread': {
      const program = await bundleOneThread();
      return ownServer(name, ['--isolation', 'shared', '--max-threads', '1'], place, program);
    }
    case 'ours-dedicated':
      return ownServer(name, [], place);
    case 'ours-automation':
      return { ...ownServer(name, ['--profile', 'automation'], place), streams: false };
    case 'process-per-session':
    default: {
      // Two hundred processes that all start a thread at the same moment keep two cores busy for longer than a server waits for its thread.
      const patient = ['--attach-timeout-ms', '120000', '--stuck-thread-ms', '120000'];
      const flags = ['--isolation', 'shared', '--max-threads', '1', ...patient];
      const command = serverCommand(name, flags, place);
      return { ...described(name), start: () => startProcessPerSession(command, foldersOf(name, place)) };
    }
  }
}

export function peerContestant(peer: Peer, place: Surroundings): Contestant {
  const folders = foldersOf(peer.name, place);
  const command = peer.setUp({ modules: modulesOf(peer), nodeBin: nodeBin(), home: folders.home, origin: place.origin });
  return {
    agent: peer.name,
    version: Object.values(peer.packages).join(' + '),
    runtime: peer.runtime,
    mostSessions: peer.mostSessions ?? Number.POSITIVE_INFINITY,
    canCancel: true,
    streams: true,
    start: () => startAgent(command, folders),
  };
}

function ownServer(agent: string, flags: readonly string[], place: Surroundings, program?: string): Contestant {
  const command = serverCommand(agent, flags, place, program);
  return { ...described(agent), start: () => startAgent(command, foldersOf(agent, place)) };
}

function described(agent: string, of: string = version): Omit<Contestant, 'start'> {
  return { agent, version: of, runtime: node, mostSessions: Number.POSITIVE_INFINITY, canCancel: true, streams: true };
}

function serverCommand(
  agent: string,
  flags: readonly string[],
  place: Surroundings,
  program: string = join(root, 'dist/main/cli.js'),
): AgentCommand {
  const { home } = foldersOf(agent, place);
  const always = ['--state-dir', join(home, 'state'), '--base-url', `${place.origin}/v1`, '--model', 'local-model'];
  return { command: [process.execPath, program, ...always, ...flags], env: {} };
}

/** Each agent has a home of its own, empty at first and kept for all its starts. */
function foldersOf(agent: string, { scratch }: Surroundings): AgentFolders {
  const folders = { home: join(scratch, agent, 'home'), work: join(scratch, agent, 'work') };
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true });
  return folders;
}
