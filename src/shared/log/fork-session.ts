/**
 * Makes a new session with the history of another one: its log up to now, whole turns only, under a header of its own.
 *
 * Reads the log as it stands, so its session may run meanwhile. The copy is put in place when it is whole; what it refers to in
 * the directory of the other session becomes part of its own, so that either may be deleted.
 */
import { constants, linkSync, rmSync } from 'node:fs';
import { copyFile, type FileHandle, link, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ServerError } from '../errors.ts';
import type { SessionHeader } from '../events.ts';
import { sealLine, unsealLine } from './line-seal.ts';
import { errorCode, logCorrupt, logWriteFailed } from './log-faults.ts';
import { openFailed } from './read-header.ts';
import { commandTmpName, type SessionPaths, sessionPaths, unfinishedLogPath } from './session-paths.ts';
import { lineAt, wholeLines } from './whole-lines.ts';

export interface ForkRequest {
  readonly stateDir: string;
  readonly sourceId: string;
  /** Of the new session; what it begins with is added. */
  readonly header: Omit<SessionHeader, 'forkedFrom'>;
}

const lineFeed = 10;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const writeFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** What a session keeps is in its directory and in folders of that. */
const deepestFolder = 4;

/**
 * Fulfils with the files of the new session. On failure nothing of it is left.
 *
 * @throws ServerError SESSION_NOT_FOUND for a source that there is not; LOG_CORRUPT for one that is no log; LOG_WRITE_FAILED
 */
export async function forkSession(request: ForkRequest): Promise<SessionPaths> {
  const source = sessionPaths(request.stateDir, request.sourceId);
  const target = sessionPaths(request.stateDir, request.header.id);
  const unfinished = unfinishedLogPath(request.stateDir, request.header.id);
  const file = await open(source.log, readFlags).catch((error: unknown) => {
    throw openFailed(source.log, error);
  });
  try {
    const past = await findPast(file, source.log);
    await writeCopy(file, past, { ...request, unfinished });
    await adopt(source.spillDir, target.spillDir, 0);
    // Unlike a rename this replaces nothing.
    linkSync(unfinished, target.log);
    return target;
  } catch (error) {
    await rm(target.spillDir, { recursive: true, force: true }).catch(() => undefined);
    throw error instanceof ServerError ? error : logWriteFailed(target.log, error);
  } finally {
    rmSync(unfinished, { force: true });
    await file.close();
  }
}

/** The part of a log that a fork takes over. */
interface Past {
  /** Behind the header. */
  readonly start: number;
  readonly end: number;
  /** Of the last event in it, -1 for none. */
  readonly seq: number;
}

/** Everything up to the first turn that has no end. */
async function findPast(file: FileHandle, path: string): Promise<Past> {
  const stat = await file.stat();
  if (!stat.isFile()) throw logCorrupt(path, undefined, 'expected a regular file');
  const turns = new OpenTurn();
  let start = 0;
  let end = 0;
  let lines = 0;
  for await (const { bytes, offset } of wholeLines({ file, path, size: stat.size })) {
    if (offset === 0) start = bytes.indexOf(lineFeed) + 1;
    turns.scan(bytes, offset, lines);
    lines += countLines(bytes);
    end = offset + bytes.length;
  }
  if (start === 0) throw logCorrupt(path, 1, 'expected a whole header line');
  const open = turns.opened;
  return open === undefined ? { start, end, seq: lines - 2 } : { start, end: open.offset, seq: open.line - 2 };
}

/** Where the turn begins that is open so far. */
class OpenTurn {
  opened: { readonly offset: number; readonly line: number } | undefined;

  /** @param lines how many stand before the block */
  scan(bytes: Buffer, offset: number, lines: number): void {
    let counted = 0;
    let line = lines;
    for (let at = bytes.indexOf(turnMark); at >= 0; at = bytes.indexOf(turnMark, at + 1)) {
      const { type } = (lineAt(bytes, at) ?? {}) as { readonly type?: unknown };
      if (type === 'turn/end') this.opened = undefined;
      if (type !== 'turn/start' || this.opened !== undefined) continue;
      const lineStart = bytes.lastIndexOf(lineFeed, at) + 1;
      line += countLines(bytes.subarray(counted, lineStart));
      counted = lineStart;
      this.opened = { offset: offset + lineStart, line };
    }
  }
}

/** Begins the names of a turn's first and last event; cannot stand inside of a text, since JSON escapes the mark. */
const turnMark = '"turn/';

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) count += 1;
  return count;
}

async function writeCopy(file: FileHandle, past: Past, request: ForkRequest & { readonly unfinished: string }): Promise<void> {
  const { header, sourceId, unfinished } = request;
  const forked: SessionHeader = { ...header, forkedFrom: { sessionId: sourceId, seq: past.seq } };
  const copy = await open(unfinished, writeFlags, 0o600);
  try {
    await copy.chmod(0o600);
    await copy.write(sealLine(JSON.stringify(forked)));
    for await (const { bytes, offset } of wholeLines({ file, path: unfinished, size: past.end })) {
      const events = offset < past.start ? bytes.subarray(past.start - offset) : bytes;
      for (const part of withOwnDirectory(events, sourceId, header.id)) await writeWhole(copy, part);
    }
    // Together with the directory's entry it is made durable by the first barrier of the new session.
  } finally {
    await copy.close();
  }
}

async function writeWhole(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    written += (await file.write(bytes, written, bytes.length - written)).bytesWritten;
  }
}

/** The lines, with paths into the directory of the old session turned into those of the new one. Most lines are left as they are. */
function* withOwnDirectory(bytes: Buffer, oldId: string, newId: string): Generator<Buffer> {
  const mark = `${oldId}.d/`;
  let done = 0;
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, done)) {
    const start = bytes.lastIndexOf(lineFeed, at) + 1;
    const end = bytes.indexOf(lineFeed, at);
    yield bytes.subarray(done, start);
    const line = Buffer.from(bytes.subarray(start, end + 1));
    const json = unsealLine(line, 0, end - start);
    // A damaged line stays as it is: whoever opens the copy has to find the damage.
    yield json === undefined ? bytes.subarray(start, end + 1) : sealLine(json.replaceAll(mark, `${newId}.d/`));
    done = end + 1;
  }
  yield bytes.subarray(done);
}

/** Gives every file of a directory a second name below another one. Links and whatever is no file are left out. */
async function adopt(from: string, to: string, depth: number): Promise<void> {
  const entries = await readdir(from, { withFileTypes: true }).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });
  if (entries.length === 0) return;
  await mkdir(to, { mode: 0o700 });
  for (const entry of entries) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (depth === 0 && entry.name === commandTmpName) continue;
    if (entry.isDirectory() && depth < deepestFolder) await adopt(source, target, depth + 1);
    else if (entry.isFile()) await shareFile(source, target);
  }
}

/** Whoever writes there replaces files as a whole, so two names of one file do not get into each other's way. */
async function shareFile(source: string, target: string): Promise<void> {
  try {
    await link(source, target);
  } catch (error) {
    // Removed meanwhile, as a draft is that has become something else.
    if (errorCode(error) === 'ENOENT') return;
    await copyFile(source, target, constants.COPYFILE_EXCL);
  }
}
