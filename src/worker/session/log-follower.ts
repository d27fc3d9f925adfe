/**
 * Reads a session's log from its start, and then what is added to it, for somebody who only looks. Takes no lock, writes
 * nothing, and so works on a log that another process is writing, or that a killed one has left.
 *
 * Only whole lines are taken. A last line that is cut short is left alone until it is whole, or until the next writer cuts
 * it off.
 */
import { closeSync, constants, type FSWatcher, fstatSync, openSync, watch } from 'node:fs';
import { ServerError } from '../../shared/errors.ts';
import { logCorrupt } from '../../shared/log/log-faults.ts';
import { openFailed } from '../../shared/log/read-header.ts';
import { type EventSink, type LogPosition, readLog, readLogFrom } from '../log/log-reader.ts';

/** For file systems that do not tell of changes. */
const lookEveryMs = 1000;
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class LogFollower {
  readonly #path: string;
  readonly #fd: number;
  readonly #onEvent: EventSink;
  #position: LogPosition = { offset: 0, line: 1, seq: 0 };
  #watcher: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<void> = Promise.resolve();
  #waiting = false;
  #closed = false;

  /** @throws ServerError SESSION_NOT_FOUND, LOG_CORRUPT for what is no regular file or cannot be read */
  constructor(path: string, onEvent: EventSink) {
    this.#path = path;
    this.#onEvent = onEvent;
    this.#fd = openForReading(path);
  }

  /** Hands over every event of now, in order. Once, and first. @throws ServerError LOG_CORRUPT, LOG_VERSION */
  async readAll(): Promise<void> {
    const size = fstatSync(this.#fd).size;
    const { eventCount, torn } = await readLog({ fd: this.#fd, path: this.#path, size }, this.#onEvent);
    this.#position = { offset: torn?.offset ?? size, line: eventCount + 2, seq: eventCount };
  }

  /** From now on hands over what is added. `onEnd` is called once when the log can be followed no longer. */
  follow(onEnd: (why: string) => void): void {
    if (this.#closed) return;
    const look = (): void => this.#lookSoon(onEnd);
    try {
      this.#watcher = watch(this.#path, look).on('error', () => undefined);
    } catch {
      // No watches left, or none on this file system: the timer looks.
    }
    this.#timer = setInterval(look, lookEveryMs).unref();
    look();
  }

  /** Hands nothing over any more. Fulfils when the file is closed. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#watcher?.close();
    clearInterval(this.#timer);
    await this.#reading;
    closeSync(this.#fd);
  }

  /** At most one reading runs and one waits behind it. */
  #lookSoon(onEnd: (why: string) => void): void {
    if (this.#waiting || this.#closed) return;
    this.#waiting = true;
    this.#reading = this.#reading.then(async () => {
      this.#waiting = false;
      const why = this.#closed ? undefined : await this.#readOn();
      if (why === undefined || this.#closed) return;
      this.#watcher?.close();
      clearInterval(this.#timer);
      this.#waiting = true;
      onEnd(why);
    });
  }

  /** Why there is nothing more to follow; `undefined` while there may be. */
  async #readOn(): Promise<string | undefined> {
    const { size, nlink } = fstatSync(this.#fd);
    if (nlink === 0) return 'the log was deleted or replaced';
    if (size < this.#position.offset) return 'the log has become shorter';
    if (size === this.#position.offset) return undefined;
    try {
      const { eventCount, torn } = await readLogFrom({ fd: this.#fd, path: this.#path, size }, this.#position, this.#onEvent);
      const read = eventCount - this.#position.seq;
      this.#position = { offset: torn?.offset ?? size, line: this.#position.line + read, seq: eventCount };
      return undefined;
    } catch (error) {
      // A new writer has cut the torn end off while it was being read: the next look finds what stands there now.
      if (fstatSync(this.#fd).size < size) return undefined;
      return error instanceof ServerError ? error.message : 'it could not be read';
    }
  }
}

function openForReading(path: string): number {
  let fd: number | undefined;
  try {
    fd = openSync(path, flags);
    if (!fstatSync(fd).isFile()) throw logCorrupt(path, undefined, 'expected a regular file');
    return fd;
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    throw error instanceof ServerError ? error : openFailed(path, error);
  }
}
