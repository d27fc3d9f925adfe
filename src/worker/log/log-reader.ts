/**
 * Streams the events of a log with flat memory: 1 MB reads, `indexOf(LF)`, one `JSON.parse` a line.
 *
 * Refuses what it cannot vouch for and names the line; the only damage it passes over is a torn last line, which it
 * reports. Reads through a descriptor and never writes: who truncates is decided elsewhere.
 */
import { readSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LogEvent, SessionHeader } from '../../shared/events.ts';
import { beginsWithSealedLine, unsealLine } from '../../shared/log/line-seal.ts';
import { logCorrupt } from '../../shared/log/log-faults.ts';
import { parseHeader } from '../../shared/log/parse-header.ts';
import { headerLimitBytes } from '../../shared/log/session-paths.ts';
import { checkEvent } from './check-event.ts';

const chunkBytes = 1024 * 1024;
/** Greatest length of one line, LF included: a writer makes none that is longer. */
export const lineLimitBytes = 64 * 1024 * 1024;
const lineFeed = 10;

export interface LogSource {
  readonly fd: number;
  /** Names the log in errors; its last part must be the session's file name. */
  readonly path: string;
  /** Bytes to read: the file's size when reading began. */
  readonly size: number;
}

/** A last line that never became a record: cut short, or not readable as one. */
export interface TornTail {
  /** Where the line begins: the length of the log without it. */
  readonly offset: number;
  readonly bytes: number;
  readonly line: number;
}

/** How far a log was read. */
export interface EventsReading {
  /** Records in the log, ignorable ones counted: the next `seq`. */
  readonly eventCount: number;
  readonly torn: TornTail | undefined;
}

export interface LogReading extends EventsReading {
  readonly header: SessionHeader;
}

/** Where a line begins. */
export interface LogPosition {
  readonly offset: number;
  /** Counts from 1, the header's line. */
  readonly line: number;
  /** Of the event that stands there. */
  readonly seq: number;
}

/** May return a promise, to hold the reading back. */
export type EventSink = (event: LogEvent) => void | Promise<void>;

/**
 * Calls `onEvent` with each event in order, then says what the log was.
 *
 * Gives the event loop a turn after each megabyte, so that other sessions of the thread go on. Events of unknown type that
 * are marked ignorable are counted and passed over.
 *
 * @throws ServerError LOG_CORRUPT naming file and line; LOG_VERSION; what `onEvent` throws
 */
export async function readLog(source: LogSource, onEvent: EventSink): Promise<LogReading> {
  const scan = new LineScan(source, 0);
  if (!scan.next()) {
    throw logCorrupt(source.path, 1, 'expected a whole header line');
  }
  if (scan.end - scan.start >= headerLimitBytes) {
    throw logCorrupt(source.path, 1, 'expected a header of at most 512 KB');
  }
  const header = parseHeader(source.path, scan.bytes, scan.start, scan.end);
  return { header, ...(await readEvents(scan, source, { line: 2, seq: 0 }, onEvent)) };
}

/**
 * Goes on from a whole line that an earlier reading came to: `source.size` is the size of now.
 *
 * @throws ServerError LOG_CORRUPT naming file and line; what `onEvent` throws
 */
export function readLogFrom(source: LogSource, from: LogPosition, onEvent: EventSink): Promise<EventsReading> {
  return readEvents(new LineScan(source, from.offset), source, from, onEvent);
}

async function readEvents(
  scan: LineScan,
  source: LogSource,
  from: Pick<LogPosition, 'line' | 'seq'>,
  onEvent: EventSink,
): Promise<EventsReading> {
  let { seq } = from;
  for (let { line } = from; ; line += 1) {
    if (scan.mustLoad()) {
      await nextTurn();
    }
    if (!scan.next()) {
      const bytes = source.size - scan.offset;
      return { eventCount: seq, torn: bytes === 0 ? undefined : { offset: scan.offset, bytes, line } };
    }
    const event = scan.parse(line);
    if (event === undefined) {
      const offset = scan.lineOffset;
      return { eventCount: seq, torn: { offset, bytes: source.size - offset, line } };
    }
    if (checkEvent(event, { path: source.path, line, seq })) {
      const held = onEvent(event);
      if (held !== undefined) {
        await held;
      }
    }
    seq += 1;
  }
}

/** A window on the file that moves line by line. After `next()` the line is `bytes[start, end)`. */
class LineScan {
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  end = 0;
  readonly #source: LogSource;
  /** Valid bytes in the window, and where the window begins in the file. */
  #length = 0;
  #base = 0;
  /** First byte in the window behind the current line. */
  #next = 0;
  /** Where the next LF is, if it is known. */
  #feed = -1;

  constructor(source: LogSource, offset: number) {
    this.#source = source;
    this.#base = offset;
  }

  /** File offset of the current line, and of what follows it. */
  get lineOffset(): number {
    return this.#base + this.start;
  }

  get offset(): number {
    return this.#base + this.#next;
  }

  /** Whether the next line is not wholly in the window yet. */
  mustLoad(): boolean {
    this.#feed = this.#find(this.#next);
    return this.#feed < 0;
  }

  /** Moves to the next whole line; false at the end, or before a last line without LF. */
  next(): boolean {
    if (this.#feed < 0) {
      this.#feed = this.#find(this.#next);
    }
    while (this.#feed < 0) {
      const from = this.#length - this.#next;
      if (!this.#load()) {
        return false;
      }
      this.#feed = this.#find(from);
    }
    this.start = this.#next;
    this.end = this.#feed;
    this.#next = this.#feed + 1;
    this.#feed = -1;
    return true;
  }

  /**
   * The current line as JSON; undefined when it is unreadable and the last one.
   *
   * @throws ServerError LOG_CORRUPT when it is unreadable and others follow
   */
  parse(line: number): LogEvent | undefined {
    const text = unsealLine(this.bytes, this.start, this.end);
    let why = 'the checksum does not fit the line';
    if (text !== undefined) {
      try {
        return JSON.parse(text) as LogEvent;
      } catch {
        // The parser's text would quote the log's content.
        why = 'expected a JSON object';
      }
    }
    // A torn write leaves no whole record at the start of its line; a damaged LF does.
    if (this.offset === this.#source.size && !beginsWithSealedLine(this.bytes, this.start, this.end)) {
      return undefined;
    }
    throw logCorrupt(this.#source.path, line, why);
  }

  #find(from: number): number {
    const at = this.bytes.indexOf(lineFeed, from);
    return at < this.#length ? at : -1;
  }

  /** Moves the rest of the window to its front and reads on behind it. */
  #load(): boolean {
    const rest = this.#length - this.#next;
    const position = this.#base + this.#length;
    if (position >= this.#source.size) {
      return false;
    }
    this.#makeRoom(rest);
    this.#base += this.#next;
    this.#next = 0;
    const want = Math.min(this.bytes.length - rest, this.#source.size - position);
    const read = readSync(this.#source.fd, this.bytes, rest, want, position);
    if (read === 0) {
      throw logCorrupt(this.#source.path, undefined, 'the file became shorter while it was read');
    }
    this.#length = rest + read;
    return true;
  }

  #makeRoom(rest: number): void {
    if (rest >= lineLimitBytes) {
      throw logCorrupt(this.#source.path, undefined, 'a line is longer than 64 MB');
    }
    // Twice the rest while a line is long, one chunk again after it; no more than the file still holds.
    const window = rest < chunkBytes / 2 ? chunkBytes : Math.min(rest * 2, lineLimitBytes);
    const size = Math.min(window, rest + this.#source.size - this.#base - this.#length);
    const fits = this.bytes.length >= size && this.bytes.length <= window;
    const target = fits ? this.bytes : Buffer.allocUnsafe(size);
    this.bytes.copy(target, 0, this.#next, this.#length);
    this.bytes = target;
  }
}
