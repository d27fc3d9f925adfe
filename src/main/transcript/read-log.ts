/**
 * Reads a session's log for people: what can be read is shown, and what cannot is counted. Recovery has its own strict reader in the
 * session thread; this one never refuses a log for a damaged line, and never writes.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { LogEvent, SessionHeader } from '../../shared/events.ts';
import { unsealLine } from '../../shared/log/line-seal.ts';
import { errorCode } from '../../shared/log/log-faults.ts';
import { parseHeader } from '../../shared/log/parse-header.ts';
import { scanLines } from '../run/line-scan.ts';

export interface LogSink {
  onHeader(header: SessionHeader): void | Promise<void>;
  /** In order. Types of later releases are handed on too. */
  onEvent(event: LogEvent): void | Promise<void>;
}

export interface LogReading {
  /** Lines that could not be read: damaged, cut short, too long. */
  readonly damaged: number;
  /** Why nothing, or no more, could be read. */
  readonly problem?: string;
}

/** As long as a writer makes them. */
const longestLine = 64 * 1024 * 1024;
/** O_NONBLOCK: opening a planted FIFO must not wait for a writer. */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Flat memory; gives the event loop a turn with each chunk. Rejects only with what the sink throws. */
export async function readSessionLog(path: string, sink: LogSink): Promise<LogReading> {
  const items = readItems(path);
  let damaged = 0;
  try {
    for (;;) {
      const step = await nextOf(items);
      if (typeof step === 'string') return { damaged, problem: step };
      if (step.done === true) return { damaged };
      const { header, event } = step.value;
      if (header !== undefined) await sink.onHeader(header);
      else if (event !== undefined) await sink.onEvent(event);
      else damaged += 1;
    }
  } finally {
    await items.return(undefined);
  }
}

/** The next item, or why there is none. */
async function nextOf(items: AsyncGenerator<LogItem>): Promise<IteratorResult<LogItem> | string> {
  try {
    return await items.next();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return 'the log is not there any more';
    return error instanceof Error ? error.message : String(error);
  }
}

/** Neither for a line that could not be read. */
interface LogItem {
  readonly header?: SessionHeader;
  readonly event?: LogEvent | undefined;
}

async function* readItems(path: string): AsyncGenerator<LogItem> {
  const file = await open(path, flags);
  try {
    if (!(await file.stat()).isFile()) throw new Error('expected a regular file');
    for await (const { number, bytes, tooLong } of scanLines(file, longestLine)) {
      if (number === 1) yield { header: parseHeader(path, bytes, 0, bytes.length) };
      else if (bytes.length > 0 || tooLong) yield { event: parseEvent(unsealLine(bytes, 0, bytes.length)) };
    }
  } finally {
    await file.close();
  }
}

/** `undefined` for what is no event at all. */
function parseEvent(text: string | undefined): LogEvent | undefined {
  if (text === undefined) return undefined;
  let raw: Partial<LogEvent> | null;
  try {
    raw = JSON.parse(text) as Partial<LogEvent> | null;
  } catch {
    return undefined; // The caller counts it.
  }
  if (typeof raw !== 'object' || raw === null || typeof raw.type !== 'string') return undefined;
  return typeof raw.time === 'number' && typeof raw.data === 'object' && raw.data !== null ? (raw as LogEvent) : undefined;
}
