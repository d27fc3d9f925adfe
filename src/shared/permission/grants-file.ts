/**
 * The lasting answers of a person about one workspace: `grants/<hash>.jsonl` in the state directory, a line for each answer.
 *
 * Lines are only ever added, in one write, so that any number of servers may add to one file without a lock; of two lines with
 * one key the later counts. Fails closed: a file that is not wholly understood allows nothing, and is added to by nobody.
 */
import { createHash } from 'node:crypto';
import { chmodSync, closeSync, constants, fstatSync, mkdirSync, openSync, readFileSync, type Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode } from '../log/log-faults.ts';

const suffix = '.jsonl';
const fileVersion = 1;
const privateDir = 0o700;
const privateFile = 0o600;
const othersMayWrite = 0o022;
/** A file of this size takes no further answer; what takes one back still fits. */
const fullBytes = 1024 * 1024;
const mostBytes = 4 * fullBytes;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const appendFlags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export type LastingAnswer = 'allow' | 'reject';

export interface LastingEntry {
  readonly key: string;
  readonly answer: LastingAnswer;
  /** ISO 8601, UTC. */
  readonly at: string;
}

export interface GrantsFile {
  /** Canonical working directory; `undefined` when no line says it. */
  readonly workspace: string | undefined;
  /** By key. What was taken back is not among them. */
  readonly entries: ReadonlyMap<string, LastingEntry>;
  /** Why nothing in it may be relied on to allow; for people. */
  readonly fault: string | undefined;
}

/** One line to be added. `forget` takes an earlier answer back. `words` are for whoever reads the file. */
export interface GrantLine {
  readonly workspace: string;
  readonly answer: LastingAnswer | 'forget';
  readonly words: string;
  readonly key: string;
  readonly at: string;
}

export const noGrants: GrantsFile = { workspace: undefined, entries: new Map(), fault: undefined };

export function grantsDir(stateDir: string): string {
  return join(stateDir, 'grants');
}

/** @param workspace canonical */
export function grantsPath(stateDir: string, workspace: string): string {
  return join(grantsDir(stateDir), `${createHash('sha256').update(workspace).digest('hex').slice(0, 32)}${suffix}`);
}

/** Reads one file. Never throws: what cannot be read is a fault, and no file is {@link noGrants}. */
export function readGrants(path: string): GrantsFile {
  let fd: number;
  try {
    fd = openSync(path, readFlags);
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? noGrants : faulty(`it cannot be opened (${errorCode(error)})`);
  }
  try {
    const reason = distrust(fstatSync(fd));
    return reason === undefined ? parseGrants(readFileSync(fd, 'utf8')) : faulty(reason);
  } catch (error) {
    return faulty(`it cannot be read (${errorCode(error)})`);
  } finally {
    closeSync(fd);
  }
}

/**
 * Adds one line and waits for the disk. The directory and the file are made as needed, for this user alone.
 *
 * @throws Error with a sentence for people when the file is full, not this user's own, or the system refuses
 */
export async function appendGrant(path: string, line: GrantLine): Promise<void> {
  makePrivateDir(dirname(path));
  const handle = await open(path, appendFlags, privateFile);
  try {
    const stats = await handle.stat();
    const reason = distrust(stats);
    if (reason !== undefined) throw new Error(reason);
    const text = `${JSON.stringify({ version: fileVersion, ...line })}\n`;
    const limit = line.answer === 'forget' ? mostBytes : fullBytes;
    if (stats.size + Buffer.byteLength(text) > limit) throw new Error('it is full');
    // The umask may have taken even the owner's bits.
    if (stats.size === 0) await handle.chmod(privateFile);
    // After a torn line (a full disk) this one must not become a part of it.
    const last = Buffer.alloc(1);
    if (stats.size > 0) await handle.read(last, 0, 1, stats.size - 1);
    await handle.appendFile(stats.size > 0 && last[0] !== lineFeed ? `\n${text}` : text);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

const lineFeed = 10;

/** Why a file is none to believe; `undefined` for a plain file that only this user can write. */
function distrust(stats: Stats): string | undefined {
  if (!stats.isFile()) return 'it is not a plain file';
  if (process.getuid !== undefined && stats.uid !== process.getuid()) return 'it belongs to another user';
  if ((stats.mode & othersMayWrite) !== 0) return 'other users may write it';
  return stats.size > mostBytes ? 'it is too large' : undefined;
}

function faulty(fault: string): GrantsFile {
  return { ...noGrants, fault };
}

function makePrivateDir(dir: string): void {
  // mkdir's mode is cut by the umask, which may even take the owner's bits: chmod states the mode outright.
  if (mkdirSync(dir, { recursive: true, mode: privateDir }) !== undefined) chmodSync(dir, privateDir);
}

function parseGrants(text: string): GrantsFile {
  const entries = new Map<string, LastingEntry>();
  let workspace: string | undefined;
  let fault: string | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    if (line === '') continue;
    const read = parseLine(line);
    if (read === undefined || (workspace !== undefined && read.workspace !== workspace)) {
      fault ??= `line ${index + 1} is not understood`;
      continue;
    }
    workspace = read.workspace;
    entries.delete(read.key);
    if (read.answer !== 'forget') entries.set(read.key, { key: read.key, answer: read.answer, at: read.at });
  }
  return { workspace, entries, fault };
}

function parseLine(line: string): GrantLine | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // Torn or damaged: the caller says so.
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { version, workspace, answer, words, key, at } = value as Record<string, unknown>;
  if (version !== fileVersion || (answer !== 'allow' && answer !== 'reject' && answer !== 'forget')) return undefined;
  if (typeof workspace !== 'string' || typeof key !== 'string' || typeof at !== 'string' || typeof words !== 'string') return undefined;
  return { workspace, answer, words, key, at };
}
