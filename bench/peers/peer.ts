/** What a file of this folder says of an agent that others wrote: what to install, and how it is made to talk to the local model. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { AgentCommand } from './acp-client.ts';

export interface PeerPlace {
  /** The `node_modules` of its own folder. */
  readonly modules: string;
  /** A folder with a newer Node in it, to be put before the PATH. */
  readonly nodeBin: string;
  /** Empty, and its own. */
  readonly home: string;
  /** The model server, without a path. */
  readonly origin: string;
}

export interface Peer {
  readonly name: string;
  /** What npm is to install, at which versions; the first one is the agent's. */
  readonly packages: Readonly<Record<string, string>>;
  readonly runtime: string;
  /** Needs the Node of {@link PeerPlace.nodeBin}. */
  readonly newerNode: boolean;
  /** More would not fit into the memory of a small machine. */
  readonly mostSessions?: number;
  /** Writes its settings; how it is started then. */
  setUp(place: PeerPlace): AgentCommand;
}

/** Writes a settings file below the home. */
export function writeSettings(home: string, path: string, content: object | string): void {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, undefined, 1), { mode: 0o600 });
}

/** The PATH with a newer Node, and further folders, before everything else. */
export function pathWith(...folders: readonly string[]): string {
  return [...folders, process.env['PATH'] ?? ''].join(':');
}
