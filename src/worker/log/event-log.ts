/**
 * The durable log of one session, open for its one writer: the truth from which the session is rebuilt.
 *
 * Opening takes the lock, reads every event, drops a torn tail and closes an interrupted turn. After that: `append`, and
 * `barrier` where something must not happen before the log says why. Knows the events' envelope, never their meaning.
 */
import { closeSync, constants, fchmodSync, fstatSync, ftruncateSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { ServerError } from '../../shared/errors.ts';
import type { EventInput, LogEvent, SessionHeader } from '../../shared/events.ts';
import { sealLine } from '../../shared/log/line-seal.ts';
import { errorCode, logCorrupt, logWriteFailed } from '../../shared/log/log-faults.ts';
import { openFailed } from '../../shared/log/read-header.ts';
import { type EventSink, type LogReading, readLog, type TornTail } from './log-reader.ts';
import { LogWriter } from './log-writer.ts';
import { OpenTurnTracker } from './open-turn-tracker.ts';
import { closingEvents } from './repair.ts';
import { noSecrets, type SecretValues } from '../../shared/secret-values.ts';
import { SessionLock } from '../../shared/log/session-lock.ts';

export interface EventLogOptions {
  /** The session's log, which exists: main makes it. */
  readonly path: string;
  readonly lockPath: string;
  readonly serverNonce: string;
  readonly threadId: number;
  /** True once another thread of this server may have the log: nothing is written any more. */
  readonly isGivenUp?: () => boolean;
  /** Gets each event of the log in order, repairs included, while it is opened; never what is appended later. */
  readonly onEvent: EventSink;
  /** Values that must never be in the file. */
  readonly secrets?: SecretValues;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  /** fdatasync, replaceable to test its failure. */
  readonly sync?: (fd: number) => Promise<void>;
  /** How long a look at lock and file holds good for appends; barriers always look. See {@link LogWriter}. */
  readonly checkEveryMs?: number;
}

/** What opening found and mended. */
export interface OpenReport {
  /** A last line that was cut off. */
  readonly torn: TornTail | undefined;
  /** Events that were appended to close an interrupted turn. */
  readonly repaired: number;
}

interface EventLogState {
  readonly header: SessionHeader;
  readonly report: OpenReport;
  readonly epoch: number;
  readonly nextSeq: number;
}

const flags = constants.O_RDWR | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class EventLog {
  readonly header: SessionHeader;
  readonly report: OpenReport;
  /** For `thread/attached`: greater than every epoch in the log and in the locks it had. */
  readonly epoch: number;
  readonly #options: EventLogOptions;
  readonly #secrets: SecretValues;
  readonly #lock: SessionLock;
  readonly #writer: LogWriter;
  #nextSeq: number;
  #closing: Promise<void> | undefined;

  private constructor(options: EventLogOptions, opened: OpenedFile, state: EventLogState) {
    this.header = state.header;
    this.report = state.report;
    this.epoch = state.epoch;
    this.#nextSeq = state.nextSeq;
    this.#options = options;
    this.#secrets = options.secrets ?? noSecrets;
    this.#lock = opened.lock;
    this.#writer = opened.writer;
  }

  /**
   * Opens a session's log for writing. On failure the lock is free again; the file is untouched unless it was being mended.
   *
   * @throws ServerError SESSION_NOT_FOUND, SESSION_LOCKED, LOG_CORRUPT, LOG_VERSION, LOG_WRITE_FAILED; what `onEvent` throws
   */
  static async open(options: EventLogOptions): Promise<EventLog> {
    const fd = openFile(options.path);
    let lock: SessionLock | undefined;
    try {
      lock = await SessionLock.acquire(options);
      return await openLocked(options, fd, lock, (opened, state) => new EventLog(options, opened, state));
    } catch (error) {
      closeSync(fd);
      lock?.release();
      throw error;
    }
  }

  /** Events in the log, header not counted: the next event's `seq`. */
  get eventCount(): number {
    return this.#nextSeq;
  }

  /**
   * Appends events and returns them as logged, known secrets taken out. All of them are in the file then, by one system call, and
   * on the disk after the next {@link barrier}.
   *
   * @throws ServerError LOG_WRITE_FAILED; the log is as before then, none of them in it, and a later append may succeed
   */
  appendAll(inputs: readonly EventInput[]): LogEvent[] {
    const lines: Buffer[] = [];
    const events = inputs.map((input, index) => {
      const made = makeEvent(input, this.#nextSeq + index, this.#options.now);
      const json = JSON.stringify(made);
      // Who reads the log again must get what is told now: so the event itself goes on without it.
      const event = this.#secrets.mayBeIn(json) ? this.#secrets.inData(made) : made;
      lines.push(sealLine(event === made ? json : JSON.stringify(event)));
      return event;
    });
    this.#writer.write(lines);
    // A list is in the order of what was said: opening a session says nothing.
    if (inputs[0]?.type === 'thread/attached' && this.#nextSeq > 0) this.#writer.keepTime();
    this.#nextSeq += events.length;
    return events;
  }

  /** {@link appendAll} for one event. */
  append(input: EventInput): LogEvent {
    return this.appendAll([input])[0]!;
  }

  /**
   * Fulfils when everything appended before the call is on the disk.
   *
   * @throws ServerError LOG_WRITE_FAILED: nothing may be done that the log was to say first. After a failed fdatasync the log
   *   stays closed to writing until it is opened again
   * @see LogWriter.barrier
   */
  barrier(): Promise<void> {
    return this.#writer.barrier();
  }

  /** @see LogWriter.syncSoon */
  syncSoon(): void {
    this.#writer.syncSoon();
  }

  /**
   * Reads what the log holds now, from its start; what is appended meanwhile is not part of it. `onEvent` may return a
   * promise to hold the reading back.
   *
   * @throws ServerError LOG_CORRUPT; what `onEvent` throws
   */
  async replay(onEvent: EventSink): Promise<void> {
    const { path } = this.#options;
    // A descriptor of its own: close() may come while the reading is held back.
    const fd = openFile(path);
    try {
      const { torn } = await readLog({ fd, path, size: this.#writer.size }, onEvent);
      if (torn !== undefined) {
        throw logCorrupt(path, torn.line, 'the line was damaged while the log was open');
      }
    } finally {
      closeSync(fd);
    }
  }

  /**
   * Makes the log durable, closes the file and frees the lock. Idempotent: every call returns the same promise.
   *
   * @throws ServerError LOG_WRITE_FAILED when the last barrier failed; file and lock are free all the same
   */
  close(): Promise<void> {
    this.#closing ??= this.#closeOnce();
    return this.#closing;
  }

  async #closeOnce(): Promise<void> {
    try {
      await this.#writer.barrier();
    } finally {
      await this.#writer.close();
      this.#lock.release();
    }
  }
}

interface OpenedFile {
  readonly lock: SessionLock;
  readonly writer: LogWriter;
}

async function openLocked<T>(
  options: EventLogOptions,
  fd: number,
  lock: SessionLock,
  make: (opened: OpenedFile, state: EventLogState) => T,
): Promise<T> {
  const { path, onEvent } = options;
  const tracker = new OpenTurnTracker();
  let epoch = lock.epoch;
  const reading = await readLog({ fd, path, size: fstatSync(fd).size }, (event) => {
    feed(tracker, event, path);
    epoch = Math.max(epoch, epochBehind(event, path));
    return onEvent(event);
  });
  const size = cutTornTail(path, fd, reading, lock);
  const writer = new LogWriter({
    fd,
    path,
    dir: dirname(path),
    size,
    isOwner: () => lock.stillOwner(),
    sync: options.sync,
    checkEveryMs: options.checkEveryMs,
    isGivenUp: options.isGivenUp,
  });
  const openTurn = tracker.openTurn();
  let nextSeq = reading.eventCount;
  for (const input of openTurn === undefined ? [] : closingEvents(openTurn)) {
    const event = makeEvent(input, nextSeq, options.now);
    writer.write([sealLine(JSON.stringify(event))]);
    nextSeq += 1;
    await onEvent(event);
  }
  const report = { torn: reading.torn, repaired: nextSeq - reading.eventCount };
  return make({ lock, writer }, { header: reading.header, report, epoch, nextSeq });
}

function feed(tracker: OpenTurnTracker, event: LogEvent, path: string): void {
  try {
    tracker.feed(event);
  } catch (error) {
    throw wrongData(path, event, error instanceof Error ? error.name : 'fault');
  }
}

/** The first epoch that is free behind the event, as far as it tells. */
function epochBehind(event: LogEvent, path: string): number {
  if (event.type !== 'thread/attached') return 0;
  const { epoch } = event.data;
  if (!Number.isSafeInteger(epoch) || epoch < 0) throw wrongData(path, event, 'its epoch is no whole number');
  return epoch + 1;
}

/** Only a line made by hand gets here: its envelope is right, its data is not. */
function wrongData(path: string, { seq, type }: LogEvent, why: string): ServerError {
  return logCorrupt(path, seq + 2, `the data is not that of ${type} (${why})`);
}

function makeEvent(input: EventInput, seq: number, now: () => number = Date.now): LogEvent {
  return { type: input.type, seq, time: now(), data: input.data } as LogEvent;
}

function openFile(path: string): number {
  let fd: number | undefined;
  try {
    fd = openSync(path, flags);
    const stat = fstatSync(fd);
    if (!stat.isFile()) {
      throw logCorrupt(path, undefined, 'expected a regular file');
    }
    if ((stat.mode & 0o777) !== 0o600) {
      // Copied or restored with wider rights: a log holds what its user said.
      fchmodSync(fd, 0o600);
    }
    return fd;
  } catch (error) {
    if (fd !== undefined) {
      closeSync(fd);
    }
    if (error instanceof ServerError) {
      throw error;
    }
    const code = errorCode(error);
    throw code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP' ? openFailed(path, error) : logWriteFailed(path, error);
  }
}

function cutTornTail(path: string, fd: number, { torn }: LogReading, lock: SessionLock): number {
  try {
    if (torn === undefined) {
      return fstatSync(fd).size;
    }
    if (!lock.stillOwner()) {
      throw logWriteFailed(path, 'another writer has taken the log over, or its lock is gone');
    }
    ftruncateSync(fd, torn.offset);
    return torn.offset;
  } catch (error) {
    throw error instanceof ServerError ? error : logWriteFailed(path, error);
  }
}
