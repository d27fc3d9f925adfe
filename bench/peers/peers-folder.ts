/** Where the agents of others are installed: a folder of the user, one folder in it for each, never this project. */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { allPeers } from './all-peers.ts';
import type { Peer } from './peer.ts';

/** The Node for those agents that need a newer one than this project. */
export const newerNode = { name: 'node', packages: { node: '24.21.0' } } as const;

/** What is installed into a folder of its own. */
export interface Installed {
  readonly name: string;
  readonly packages: Readonly<Record<string, string>>;
}

export const allInstalled: readonly Installed[] = [newerNode, ...allPeers];

export function peersFolder(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return process.env['DSH_ACP_BENCH_PEERS'] ?? join(cache, 'dsh-acp-bench-peers');
}

export function modulesOf({ name }: Installed): string {
  return join(peersFolder(), name, 'node_modules');
}

export function nodeBin(): string {
  return join(modulesOf(newerNode), 'node', 'bin');
}

/** Why it cannot be run; `undefined` when it can. */
export function missing(peer: Peer): string | undefined {
  const why = missingPackage(peer);
  return why ?? (peer.newerNode ? missingPackage(newerNode) : undefined);
}

/** The first package that is not there, or is there in another version. */
export function missingPackage(one: Installed): string | undefined {
  for (const [name, version] of Object.entries(one.packages)) {
    const found = versionIn(join(modulesOf(one), name));
    if (found !== version) return `${name} ${version} is not installed${found === undefined ? '' : ` (${found} is)`}`;
  }
  if (one.name === newerNode.name && !existsSync(join(nodeBin(), 'node'))) return 'the package node came without its binary';
  return undefined;
}

function versionIn(folder: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly version: string }).version;
  } catch {
    return undefined;
  }
}
