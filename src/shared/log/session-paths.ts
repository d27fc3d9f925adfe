/**
 * Where a session's files lie below the state directory: `sessions/<id>.jsonl` (the log), `<id>.lock` (its one writer),
 * `<id>.d/` (outputs too large for a result); `<id>.deleted` (the log of one whose deletion was cut short) and `<id>.part` (one
 * that is still being made from another).
 *
 * An id becomes part of a path only after {@link isSessionId}; nothing else may build these paths. Making a session's log
 * stands here too, since the modes belong to the layout.
 */
import { chmodSync, closeSync, constants, fchmodSync, mkdirSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { ServerError } from '../errors.ts';
import type { SessionHeader } from '../events.ts';
import { sealLine } from './line-seal.ts';
import { errorCode, logWriteFailed } from './log-faults.ts';

const sessionIdPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Greatest length of the header line, LF included; most have a few hundred bytes. */
export const headerLimitBytes = 512 * 1024;
const logSuffix = '.jsonl';
const deletedSuffix = '.deleted';
const unfinishedSuffix = '.part';
const privateDir = 0o700;
const privateFile = 0o600;
const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** In the `.d` of a session: what its contained commands have as `/tmp`. Of no worth once the session has left its thread. */
export const commandTmpName = 'tmp';
/** In the `.d` of a session: files that its commands made without anybody having been asked, and that other programs would have trusted. */
export const quarantineName = 'quarantine';

export interface SessionPaths {
  readonly log: string;
  readonly lock: string;
  /** Made when first needed, by whoever writes there. */
  readonly spillDir: string;
}

/** Whether `id` is a lower-case UUID, the only form of a session id. */
export function isSessionId(id: unknown): id is string {
  return typeof id === 'string' && sessionIdPattern.test(id);
}

export function sessionsDir(stateDir: string): string {
  return join(stateDir, 'sessions');
}

/**
 * The files of one session. Touches no disk.
 *
 * @throws ServerError SESSION_NOT_FOUND when `id` cannot be a session's id
 */
export function sessionPaths(stateDir: string, id: string): SessionPaths {
  if (!isSessionId(id)) {
    throw new ServerError('SESSION_NOT_FOUND', 'There is no such session: an id is a lower-case UUID.');
  }
  const base = join(sessionsDir(stateDir), id);
  return { log: `${base}${logSuffix}`, lock: `${base}.lock`, spillDir: `${base}.d` };
}

/** Where the log stands while its session is being deleted. @throws ServerError SESSION_NOT_FOUND as {@link sessionPaths} */
export function deletedLogPath(stateDir: string, id: string): string {
  return `${sessionPaths(stateDir, id).log.slice(0, -logSuffix.length)}${deletedSuffix}`;
}

/** The session that was being deleted when its log got this file name. */
export function sessionIdOfDeletedLog(fileName: string): string | undefined {
  return idBefore(fileName, deletedSuffix);
}

/** The session that is being made, or was to be, when its log has this file name. */
export function sessionIdOfUnfinishedLog(fileName: string): string | undefined {
  return idBefore(fileName, unfinishedSuffix);
}

function idBefore(fileName: string, suffix: string): string | undefined {
  const id = fileName.endsWith(suffix) ? fileName.slice(0, -suffix.length) : undefined;
  return isSessionId(id) ? id : undefined;
}

/** Where a log is made that is not to be seen before it is whole. @throws ServerError SESSION_NOT_FOUND as {@link sessionPaths} */
export function unfinishedLogPath(stateDir: string, id: string): string {
  return `${sessionPaths(stateDir, id).log.slice(0, -logSuffix.length)}${unfinishedSuffix}`;
}

/** @throws ServerError SESSION_NOT_FOUND when `id` cannot be a session's id */
export function sessionLogPath(stateDir: string, id: string): string {
  return sessionPaths(stateDir, id).log;
}

/** The session whose log has this file name, if it is the name of a log. */
export function sessionIdOfLog(fileName: string): string | undefined {
  return idBefore(fileName, logSuffix);
}

/**
 * Creates the session's log with its header; directories get mode 0700 and the file 0600, whatever the umask.
 *
 * Synchronous, since a few system calls cost main less than one trip through the thread pool, which every session's
 * fdatasync shares. Makes nothing durable: the first barrier of the session's log does, for the file and for its directory,
 * before anything is asked of a model.
 *
 * @throws ServerError SESSION_NOT_FOUND for an id that is no UUID; LOG_WRITE_FAILED when the disk refuses, or when anything,
 *   also a dangling symbolic link, already has the file's name
 */
export function createSessionFile(stateDir: string, header: SessionHeader): SessionPaths {
  const paths = sessionPaths(stateDir, header.id);
  const line = sealLine(JSON.stringify(header));
  if (line.length > headerLimitBytes) {
    throw logWriteFailed(paths.log, 'the header is longer than 512 KB');
  }
  try {
    writeNewFile(paths.log, line);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') {
      throw logWriteFailed(paths.log, error);
    }
    // Only the first session of a state directory comes here.
    try {
      makeSessionsDir(stateDir);
      writeNewFile(paths.log, line);
    } catch (second) {
      throw logWriteFailed(paths.log, second);
    }
  }
  return paths;
}

/**
 * Makes the state directory and its `sessions` directory, mode 0700. A state directory that exists keeps its mode; `sessions`
 * below it is ours and is made private again. For the start of the server; the first session makes up for it.
 *
 * @throws the system's error
 */
export function makeSessionsDir(stateDir: string): void {
  // mkdir's mode is cut by the umask, which may even take the owner's bits: chmod states the mode outright.
  if (mkdirSync(stateDir, { recursive: true, mode: privateDir }) !== undefined) {
    chmodSync(stateDir, privateDir);
  }
  const dir = sessionsDir(stateDir);
  try {
    mkdirSync(dir, { mode: privateDir });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') {
      throw error;
    }
  }
  chmodSync(dir, privateDir);
}

function writeNewFile(path: string, line: Buffer): void {
  const fd = openSync(path, flags, privateFile);
  try {
    fchmodSync(fd, privateFile);
    for (let written = 0; written < line.length; ) {
      written += writeSync(fd, line, written, line.length - written);
    }
  } catch (error) {
    // A log without a whole header is no session: leave nothing behind.
    unlinkSync(path);
    throw error;
  } finally {
    closeSync(fd);
  }
}
