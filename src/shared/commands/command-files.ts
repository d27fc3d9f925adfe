/**
 * Slash commands as Markdown files: where they lie, which ones count, and what they say. Main reads them to advertise them, the
 * session thread to run them. A file only makes the text of a prompt; nothing of it is ever executed.
 *
 * The workspace is not trusted: its links are not followed, names and sizes are bounded, and what it says of a command is cleaned.
 */
import { constants, type Dirent } from 'node:fs';
import { type FileHandle, lstat, open, opendir, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { type CommandWords, isBuiltInCommand } from './command-words.ts';
import { type CommandText, parseCommandText } from './command-text.ts';

export interface CommandPlaces {
  /** Canonical. */
  readonly cwd: string;
  /** The person's own commands, for every workspace; absolute. */
  readonly userDirectory?: string | undefined;
}

export interface CommandFile extends CommandWords {
  readonly origin: 'user' | 'workspace';
  /** Canonical. */
  readonly path: string;
  /** Changes when the file does. */
  readonly signature: string;
  /** What follows the front matter. */
  readonly body: string;
}

/** Below the working directory; the second is what other agents read, too. */
const workspaceDirectories = [join('.dsh-acp', 'commands'), join('.claude', 'commands')];

const namePattern = /^[a-z0-9][a-z0-9_-]*(?::[a-z0-9][a-z0-9_-]*)*$/;
const longestName = 64;
const mostFiles = 100;
const mostEntries = 1000;
const mostDepth = 4;
const mostFileBytes = 64 * 1024;

/**
 * Sorted by name, one for each; the person's own go before those of the workspace, and none takes the name of a built-in one. What
 * cannot be read is left out. Never rejects.
 *
 * @param known what was found before: a file that has not changed is not read again
 */
export async function findCommandFiles({ cwd, userDirectory }: CommandPlaces, known: readonly CommandFile[] = []): Promise<CommandFile[]> {
  const earlier = new Map(known.map((file) => [file.path, file]));
  const found = new Map<string, CommandFile>();
  const directories = [
    ...(userDirectory === undefined ? [] : [{ directory: userDirectory, origin: 'user' as const }]),
    ...workspaceDirectories.map((name) => ({ directory: join(cwd, name), origin: 'workspace' as const })),
  ];
  for (const { directory, origin } of directories) {
    for (const { name, path } of await findPaths(directory, origin)) {
      if (found.size >= mostFiles) break;
      if (found.has(name)) continue;
      const file = await readCommandFile(path, { name, origin, earlier });
      if (file !== undefined) found.set(name, file);
    }
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

interface FoundPath {
  readonly name: string;
  readonly path: string;
}

/** Names that could be commands; those of one directory in the order of the alphabet. */
async function findPaths(directory: string, origin: CommandFile['origin']): Promise<FoundPath[]> {
  const root = await realpath(directory).catch(() => undefined);
  // A workspace whose directory leads elsewhere has no commands; the person's own may lie wherever they like.
  if (root === undefined || (origin === 'workspace' && root !== directory)) return [];
  const found: FoundPath[] = [];
  let entries = 0;
  const waiting: { readonly path: string; readonly prefix: string; readonly depth: number }[] = [{ path: root, prefix: '', depth: 1 }];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    for (const entry of await namesIn(next.path)) {
      entries += 1;
      if (entries > mostEntries || found.length >= mostFiles) return found;
      const path = join(next.path, entry.name);
      if (entry.isDirectory() && next.depth < mostDepth) {
        waiting.push({ path, prefix: `${next.prefix}${entry.name}:`, depth: next.depth + 1 });
      } else if (entry.name.endsWith('.md') && (entry.isFile() || (origin === 'user' && entry.isSymbolicLink()))) {
        const name = `${next.prefix}${entry.name.slice(0, -'.md'.length)}`;
        if (isUsable(name)) found.push({ name, path });
      }
    }
  }
  return found;
}

/** As many as are looked at: a directory may hold a million. */
async function namesIn(directory: string): Promise<Dirent[]> {
  const entries: Dirent[] = [];
  try {
    for await (const entry of await opendir(directory)) {
      entries.push(entry);
      if (entries.length > mostEntries) break;
    }
  } catch {
    // Not there, or not for this user to read.
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function isUsable(name: string): boolean {
  return name.length <= longestName && namePattern.test(name) && !isBuiltInCommand(name);
}

interface Reading {
  readonly name: string;
  readonly origin: CommandFile['origin'];
  readonly earlier: ReadonlyMap<string, CommandFile>;
}

async function readCommandFile(named: string, { name, origin, earlier }: Reading): Promise<CommandFile | undefined> {
  try {
    const path = origin === 'user' ? await realpath(named) : named;
    const stats = await lstat(path);
    if (!stats.isFile() || stats.size > mostFileBytes) return undefined;
    const signature = `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}`;
    const before = earlier.get(path);
    if (before?.signature === signature && before.name === name) return before;
    const text = await readText(path, `${stats.dev}:${stats.ino}`);
    return text === undefined ? undefined : { name, origin, path, signature, ...wordsOf(text, origin) };
  } catch {
    // Gone meanwhile, or not for this user to read.
    return undefined;
  }
}

function wordsOf(
  { description, hint, body }: CommandText,
  origin: CommandFile['origin'],
): Omit<CommandFile, 'name' | 'origin' | 'path' | 'signature'> {
  return { description: `${description} (${origin})`, body, ...(hint === undefined ? {} : { hint }) };
}

/** `undefined` when it is not the file that was looked at, or no text. */
async function readText(path: string, identity: string): Promise<CommandText | undefined> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    // A directory on the way could have been swapped for a link since.
    const isSame = stats.isFile() && `${stats.dev}:${stats.ino}` === identity && (await realpath(path)) === path;
    if (!isSame) return undefined;
    const bytes = await readAtMost(handle, mostFileBytes);
    return bytes.includes(0) ? undefined : parseCommandText(bytes.toString('utf8'), path.slice(path.lastIndexOf(sep) + 1));
  } finally {
    await handle.close();
  }
}

async function readAtMost(handle: FileHandle, most: number): Promise<Buffer> {
  const buffer = Buffer.alloc(most);
  let filled = 0;
  for (let count = 1; count > 0 && filled < most; filled += count) {
    count = (await handle.read(buffer, filled, most - filled, filled)).bytesRead;
  }
  return buffer.subarray(0, filled);
}
