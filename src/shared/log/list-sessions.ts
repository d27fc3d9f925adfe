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
import { headerLimitBytes, sessionIdOfLog, type SessionPaths, sessionPaths, sessionsDir } from './session-paths.ts';
import { promptTitle, sessionTitle } from './session-title.ts';
import { readTitleFile } from './title-file.ts';

const defaultPageSize = 50;
const sliceMs = 4;
const lineFeed = 10;
/** Read of each log; more only where the header alone is longer. */
const headBytes = 64 * 1024;
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface SessionSummary {
  readonly id: string;
  readonly cwd: string;
  /** ISO 8601, UTC, as `updatedAt`. */
  readonly createdAt: string;
  readonly updatedAt: string;
  /**
   * The last one that the session was given, of its own file or in the first 64 KB of the log (more where its header is long);
   * else made of the first message of the user there.
   */
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
  /** `false` leaves titles out. */
  readonly titles?: boolean | undefined;
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
    const found = readSummary(sessionPaths(stateDir, place.id), place, { head, cwd: options.cwd, titles: options.titles ?? true });
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
  readonly titles: boolean;
}

function readSummary({ log: path, spillDir }: SessionPaths, place: ListPlace, plan: ReadPlan): SessionSummary | 'other' | 'unreadable' {
  let fd: number | undefined;
  try {
    fd = openSync(path, flags);
    if (!fstatSync(fd).isFile()) {
      return 'unreadable';
    }
    let length = readSync(fd, plan.head, 0, headBytes, 0);
    let end = plan.head.subarray(0, length).indexOf(lineFeed);
    if (end < 0 && length === headBytes) {
      length += readSync(fd, plan.head, length, plan.head.length - length, length);
      end = plan.head.subarray(0, length).indexOf(lineFeed);
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
    const title = plan.titles ? (readTitleFile(spillDir) ?? findTitle(plan.head, end + 1, length)) : undefined;
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

/** A title that was logged goes over what can be made of the prompt. */
function findTitle(head: Buffer, from: number, length: number): string | undefined {
  const lines = head.subarray(0, length);
  return lastLogged(lines, from) ?? ofFirstPrompt(lines, from);
}

/** These words cannot stand inside of a text: JSON escapes the marks around them. */
const titleMark = '"session/title"';
const messageMark = '"user/message"';

function lastLogged(lines: Buffer, from: number): string | undefined {
  for (let at = lines.lastIndexOf(titleMark); at >= from; at = lines.lastIndexOf(titleMark, at - 1)) {
    const event = parseLine(lines, lines.lastIndexOf(lineFeed, at) + 1);
    const title = event?.type === 'session/title' ? event.data?.title : undefined;
    if (typeof title === 'string') return sessionTitle(title);
  }
  return undefined;
}

function ofFirstPrompt(lines: Buffer, from: number): string | undefined {
  for (let at = lines.indexOf(messageMark, from); at >= 0; at = lines.indexOf(messageMark, at + 1)) {
    const event = parseLine(lines, lines.lastIndexOf(lineFeed, at) + 1);
    const isPrompt = event?.type === 'user/message' && event.data?.source !== 'notice';
    const title = isPrompt ? promptTitle(event.data?.shown ?? event.data?.content) : undefined;
    if (title !== undefined) return title;
  }
  return undefined;
}

interface LoggedLine {
  readonly type?: unknown;
  readonly data?: { readonly title?: unknown; readonly source?: unknown; readonly content?: unknown; readonly shown?: unknown };
}

/** `undefined` for a line that is cut or damaged: it has no title, and loading the session is what reports the damage. */
function parseLine(lines: Buffer, start: number): LoggedLine | undefined {
  const end = lines.indexOf(lineFeed, start);
  try {
    return end < 0 ? undefined : (JSON.parse(lines.toString('utf8', start, end)) as LoggedLine);
  } catch {
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
