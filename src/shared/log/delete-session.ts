/**
 * Deletes a session with all that belongs to it: its log, its directory, its lock, and the logs of the sessions that it
 * delegated to, which nobody could find any more.
 *
 * The log is put out of sight first, in one step: a deletion that is cut short leaves no session that is listed or can be
 * opened, and the next try, or the next deletion of any session, goes on where it stopped.
 */
import { constants, existsSync, lstatSync, renameSync, rmSync } from 'node:fs';
import { open, readdir, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { errorCode, logWriteFailed } from './log-faults.ts';
import { readSessionHeader } from './read-header.ts';
import { SessionLock } from './session-lock.ts';
import {
  deletedLogPath,
  sessionIdOfDeletedLog,
  sessionIdOfLog,
  sessionIdOfUnfinishedLog,
  type SessionPaths,
  sessionPaths,
  sessionsDir,
  unfinishedLogPath,
} from './session-paths.ts';
import { lineAt, wholeLines } from './whole-lines.ts';

/** O_NONBLOCK: opening a planted FIFO must not wait for a writer. */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface DeleteRequest {
  readonly stateDir: string;
  readonly id: string;
  /** Of this server: its own lock, left by a thread that died, is no obstacle. */
  readonly serverNonce: string;
  /** Called with each session whose server was killed, before anything of it is removed. */
  readonly onOrphaned: (id: string) => void;
}

/**
 * Idempotent: fulfils for a session that there is not. No session of this server may be attached under the id.
 *
 * @throws ServerError SESSION_NOT_FOUND when `id` cannot be a session's id; SESSION_LOCKED while another server has it open;
 *   LOG_WRITE_FAILED when the disk refuses
 */
export async function deleteSession(request: DeleteRequest): Promise<void> {
  await deleteOne(request);
  await finishOthers(request);
}

async function deleteOne(request: DeleteRequest): Promise<void> {
  const { stateDir, id, serverNonce, onOrphaned } = request;
  const paths = sessionPaths(stateDir, id);
  const gone = deletedLogPath(stateDir, id);
  const wasLocked = existsSync(paths.lock);
  if (!wasLocked && ![paths.log, gone, paths.spillDir].some((path) => existsSync(path))) return;
  const lock = await SessionLock.acquire({ lockPath: paths.lock, serverNonce, threadId: 0 });
  try {
    if (wasLocked) onOrphaned(id);
    await hide(paths, gone);
    for (const child of await childrenOf(stateDir, paths.log, gone)) await deleteChild({ ...request, id: child });
    await rm(paths.spillDir, { recursive: true, force: true });
    // Last: as long as it is there, the deletion can be gone on with.
    rmSync(gone, { force: true });
  } catch (error) {
    throw logWriteFailed(paths.log, error);
  } finally {
    lock.release();
  }
}

async function hide({ log }: SessionPaths, gone: string): Promise<void> {
  try {
    renameSync(log, gone);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return;
    throw error;
  }
  const directory = await open(dirname(log), 'r');
  try {
    // A power cut must not bring the log back without what is removed next.
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Ids of the sessions that this one delegated to itself; those of the session that it was forked from are that one's. */
async function childrenOf(stateDir: string, log: string, gone: string): Promise<ReadonlySet<string>> {
  const children = new Set<string>();
  const file = await open(gone, readFlags).catch(() => undefined);
  if (file === undefined) return children;
  try {
    let inherited = -1;
    for await (const { bytes, offset } of wholeLines({ file, path: log, size: (await file.stat()).size })) {
      if (offset === 0) inherited = inheritedThrough(lineAt(bytes, 0));
      for (let at = bytes.indexOf(logPathMark); at >= 0; at = bytes.indexOf(logPathMark, at + 1)) {
        const child = childOf(lineAt(bytes, at), inherited);
        if (child !== undefined && child !== sessionIdOfLog(basename(log)) && isDelegated(stateDir, child)) children.add(child);
      }
    }
  } finally {
    await file.close();
  }
  return children;
}

/** These marks cannot stand inside of a text: JSON escapes them there. */
const logPathMark = '"logPath":"';

interface LoggedLine {
  readonly type?: unknown;
  readonly seq?: unknown;
  readonly forkedFrom?: { readonly seq?: unknown };
  readonly data?: { readonly logPath?: unknown };
}

function inheritedThrough(header: unknown): number {
  const seq = (header as LoggedLine | undefined)?.forkedFrom?.seq;
  return typeof seq === 'number' ? seq : -1;
}

function childOf(line: unknown, inherited: number): string | undefined {
  const { type, seq, data } = (line ?? {}) as LoggedLine;
  if (type !== 'subagent/start' && type !== 'subagent/end') return undefined;
  if (typeof seq !== 'number' || seq <= inherited || typeof data?.logPath !== 'string') return undefined;
  return sessionIdOfLog(basename(data.logPath));
}

/** Whatever a log may say: no session that a client made itself goes with another one. */
function isDelegated(stateDir: string, id: string): boolean {
  try {
    return (readSessionHeader(stateDir, id).options?.depth ?? 0) > 0;
  } catch {
    // Not there any more, or not to be read.
    return false;
  }
}

/** One that is open somewhere stays. */
async function deleteChild(request: DeleteRequest): Promise<void> {
  await deleteOne(request).catch(() => undefined);
}

/** What a crash has left: deletions that were cut short, and copies that were never finished. Never throws: nobody asked for it. */
async function finishOthers(request: DeleteRequest): Promise<void> {
  const { stateDir } = request;
  for (const name of await readdir(sessionsDir(stateDir)).catch((): string[] => [])) {
    const id = sessionIdOfDeletedLog(name) ?? abandonedCopy(stateDir, name);
    if (id !== undefined) await deleteChild({ ...request, id });
  }
}

function abandonedCopy(stateDir: string, name: string): string | undefined {
  const id = sessionIdOfUnfinishedLog(name);
  if (id === undefined) return undefined;
  const path = unfinishedLogPath(stateDir, id);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  // Somebody may still be writing it, in another server, too.
  if (stat === undefined || Date.now() - stat.mtimeMs < abandonedMs) return undefined;
  rmSync(path, { force: true });
  return existsSync(sessionPaths(stateDir, id).log) ? undefined : id;
}

const abandonedMs = 24 * 3_600_000;
