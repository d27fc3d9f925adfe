/**
 * Lists the sessions of a state directory, newest first, in pages. Read-only; needs no lock.
 *
 * Runs on main: the work is synchronous in slices of a few milliseconds, with a turn of the event loop between them, so
 * that frames go on flowing and the thread pool stays free for fdatasync.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ServerError } from '../errors.ts';
import { compareNewestFirst, decodeCursor, encodeCursor, type ListPlace } from './list-cursor.ts';
import { errorCode } from './log-faults.ts';
import { parseHeader } from './parse-header.ts';
import { headerLimitBytes, sessionIdOfLog, sessionPaths, sessionsDir } from './session-paths.ts';
import { sessionTitle } from './session-title.ts';

const defaultPageSize = 50;
const sliceMs = 4;
/** Read of each log; more only where the header alone is longer. */
const headBytes = 64 * 1024;
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface SessionSummary {
  readonly id: string;
  readonly cwd: string;
  /** ISO 8601, UTC, as `updatedAt`. */
  readonly createdAt: string;
  readonly updatedAt: string;
  /** From the first message of the user, if it lies in the first 64 KB of the log, or close behind a longer header. */
  readonly title: string | undefined;
}

export interface SessionPage {
  readonly sessions: readonly SessionSummary[];
  /** Absent on the last page. */
  readonly nextCursor: string | undefined;
  /** Logs met on the way to this page that could not be read: damaged, foreign, of a later version. */
  readonly skipped: number;
}

export interface ListOptions {
  /** Only sessions with exactly this working directory. */
  readonly cwd?: string | undefined;
  readonly cursor?: string | undefined;
  readonly pageSize?: number;
}

/**
 * One page of the sessions that were not delegated to, newest change first.
 *
 * A session that changes between two pages moves to the front and may be missed; none is listed twice unless it changed.
 *
 * @throws ServerError INVALID_PARAMS for a cursor that is not ours
 */
export async function listSessions(stateDir: string, options: ListOptions = {}): Promise<SessionPage> {
  const after = options.cursor === undefined ? undefined : decodeCursor(options.cursor);
  const pageSize = options.pageSize ?? defaultPageSize;
  const pause = pauser();
  const places = await findLogs(stateDir, after, pause);
  const head = Buffer.allocUnsafe(headerLimitBytes);
  const sessions: SessionSummary[] = [];
  let skipped = 0;
  for (const place of places) {
    await pause();
    const found = readSummary(sessionPaths(stateDir, place.id).log, place, { head, cwd: options.cwd });
    if (found === 'unreadable') {
      skipped += 1;
    } else if (found !== 'other') {
      const last = sessions.at(-1);
      if (sessions.length === pageSize && last !== undefined) {
        return { sessions, nextCursor: encodeCursor({ updatedAt: Date.parse(last.updatedAt), id: last.id }), skipped };
      }
      sessions.push(found);
    }
  }
  return { sessions, nextCursor: undefined, skipped };
}

async function findLogs(stateDir: string, after: ListPlace | undefined, pause: () => Promise<void>): Promise<ListPlace[]> {
  const dir = sessionsDir(stateDir);
  const places: ListPlace[] = [];
  for (const name of await readNames(dir)) {
    const id = sessionIdOfLog(name);
    if (id === undefined) {
      continue;
    }
    await pause();
    const stat = lstatSync(join(dir, name), { throwIfNoEntry: false });
    if (stat?.isFile() === true) {
      const place = { updatedAt: Math.floor(stat.mtimeMs), id };
      if (after === undefined || compareNewestFirst(after, place) < 0) {
        places.push(place);
      }
    }
  }
  return places.sort(compareNewestFirst);
}

async function readNames(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') {
      return [];
    }
    throw new ServerError('INTERNAL', `The sessions cannot be listed: the directory cannot be read (${errorCode(error)}).`, {
      cause: error,
    });
  }
}

interface ReadPlan {
  /** Reused for every log of a list. */
  readonly head: Buffer;
  readonly cwd: string | undefined;
}

function readSummary(path: string, place: ListPlace, plan: ReadPlan): SessionSummary | 'other' | 'unreadable' {
  let fd: number | undefined;
  try {
    fd = openSync(path, flags);
    if (!fstatSync(fd).isFile()) {
      return 'unreadable';
    }
    let length = readSync(fd, plan.head, 0, headBytes, 0);
    let end = plan.head.subarray(0, length).indexOf(10);
    if (end < 0 && length === headBytes) {
      length += readSync(fd, plan.head, length, plan.head.length - length, length);
      end = plan.head.subarray(0, length).indexOf(10);
    }
    if (end < 0) {
      return 'unreadable';
    }
    const header = parseHeader(path, plan.head, 0, end);
    // A session that was delegated to belongs to the one that did, and stands in that one's log.
    const isDelegated = (header.options?.depth ?? 0) > 0;
    if (isDelegated || (plan.cwd !== undefined && header.cwd !== plan.cwd)) {
      return 'other';
    }
    const title = findTitle(plan.head, end + 1, length);
    return { id: header.id, cwd: header.cwd, createdAt: header.createdAt, updatedAt: new Date(place.updatedAt).toISOString(), title };
  } catch (error) {
    // Deleted meanwhile: no fault. Anything else is counted, never fatal: one bad log must not hide the others.
    return errorCode(error) === 'ENOENT' ? 'other' : 'unreadable';
  } finally {
    if (fd !== undefined) {
      closeSync(fd);
    }
  }
}

function findTitle(head: Buffer, from: number, length: number): string | undefined {
  for (let start = from; start < length; ) {
    const end = head.subarray(0, length).indexOf(10, start);
    if (end < 0) {
      return undefined;
    }
    const line = head.toString('utf8', start, end);
    if (line.includes('"user/message"')) {
      const title = titleOfLine(line);
      if (title !== undefined) {
        return title;
      }
    }
    start = end + 1;
  }
  return undefined;
}

function titleOfLine(line: string): string | undefined {
  try {
    const event = JSON.parse(line) as { type?: unknown; data?: { content?: { type?: unknown; text?: unknown }[] } };
    const texts = event.type === 'user/message' ? (event.data?.content ?? []) : [];
    const text = texts.find((block) => block.type === 'text')?.text;
    return typeof text === 'string' ? sessionTitle(text) : undefined;
  } catch {
    // A damaged line has no title; loading the session is what reports the damage.
    return undefined;
  }
}

/** Gives the event loop a turn once a slice of work is used up. */
function pauser(): () => Promise<void> {
  let started = performance.now();
  return async () => {
    if (performance.now() - started >= sliceMs) {
      await nextTurn();
      started = performance.now();
    }
  };
}
