/**
 * Appends whole lines to an open log file and makes them durable.
 *
 * `write` is synchronous: some microseconds, where a trip through the thread pool would queue behind every session's
 * fdatasync. What one call writes is in the file wholly or not at all. Must never write to a file that another writer has taken over.
 */
import { closeSync, fdatasync, fsync, fstatSync, ftruncateSync, futimesSync, openSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { ServerError } from '../../shared/errors.ts';
import { logWriteFailed } from '../../shared/log/log-faults.ts';
import { lineLimitBytes } from './log-reader.ts';

export interface LogWriterOptions {
  /** Open for appending; closed by {@link LogWriter.close}. */
  readonly fd: number;
  readonly path: string;
  /** Directory whose entry for the file the first barrier makes durable. */
  readonly dir: string;
  /** Length of the file: whole lines only. */
  readonly size: number;
  /** Whether this process may still write. Asked at every barrier, and at a write when `checkEveryMs` have passed. */
  readonly isOwner: () => boolean;
  /** Asked before every write: the look at the lock may be as old as `checkEveryMs`. */
  readonly isGivenUp?: (() => boolean) | undefined;
  /**
   * How long a look at the lock and the file holds good for writes. Two system calls per write cost more than the write;
   * a process that was stopped long enough to lose its lock has let this time pass. Default 500.
   */
  readonly checkEveryMs?: number | undefined;
  /** fdatasync, replaceable to test its failure. */
  readonly sync?: ((fd: number) => Promise<void>) | undefined;
}

interface RunningSync {
  /** Length of the file that it covers. */
  readonly covers: number;
  readonly done: Promise<void>;
}

const soonMs = 100;

const fdatasyncOf = promisify(fdatasync);
const fsyncOf = promisify(fsync);

export class LogWriter {
  readonly #fd: number;
  readonly #path: string;
  readonly #dir: string;
  readonly #isOwner: () => boolean;
  readonly #isGivenUp: (() => boolean) | undefined;
  readonly #sync: (fd: number) => Promise<void>;
  readonly #checkEveryMs: number;
  /** When the lock and the file were last looked at, in monotonic milliseconds. */
  #checkedAt = Number.NEGATIVE_INFINITY;
  #size: number;
  /** When the file was last changed before it was opened. */
  readonly #openedTime: Date;
  /** Length known to be durable. -1 at first: an earlier process may have died before its barrier. */
  #durable = -1;
  #isDirDurable = false;
  /** A failed write left bytes behind that could not be cut off yet. */
  #hasRemains = false;
  #running: RunningSync | undefined;
  #waiting: Promise<void> | undefined;
  #soon: NodeJS.Timeout | undefined;
  #syncFault: ServerError | undefined;
  #isClosed = false;

  constructor(options: LogWriterOptions) {
    this.#fd = options.fd;
    this.#path = options.path;
    this.#dir = options.dir;
    this.#size = options.size;
    this.#openedTime = fstatSync(options.fd).mtime;
    this.#isOwner = options.isOwner;
    this.#isGivenUp = options.isGivenUp;
    this.#checkEveryMs = options.checkEveryMs ?? 500;
    this.#sync = options.sync ?? fdatasyncOf;
  }

  /** Length of the file in bytes, whole lines only. */
  get size(): number {
    return this.#size;
  }

  /**
   * Appends lines, by one system call. On failure the file keeps its earlier length, so the next try finds it whole.
   *
   * @throws ServerError LOG_WRITE_FAILED
   */
  write(lines: readonly Buffer[]): void {
    this.#assertUsable();
    if (this.#isGivenUp?.() === true) throw logWriteFailed(this.#path, 'another thread has taken the session over');
    if (performance.now() - this.#checkedAt >= this.#checkEveryMs) this.#assertInPlace();
    for (const { length } of lines) {
      if (length > lineLimitBytes) {
        throw logWriteFailed(this.#path, `an event of ${length} bytes is longer than a line may be (64 MB)`);
      }
    }
    const [first] = lines;
    const bytes = lines.length === 1 && first !== undefined ? first : Buffer.concat(lines);
    try {
      // A short write is no error; the next one names the cause, if there is one.
      for (let written = 0; written < bytes.length; ) {
        written += writeSync(this.#fd, bytes, written, bytes.length - written);
      }
    } catch (error) {
      this.#hasRemains = true;
      this.#cutRemains();
      throw logWriteFailed(this.#path, error);
    }
    this.#size += bytes.length;
  }

  /** Gives the file the time back that it had when it was opened: what was written since is no news. */
  keepTime(): void {
    try {
      futimesSync(this.#fd, this.#openedTime, this.#openedTime);
    } catch {
      // Only the order of a list hangs on it.
    }
  }

  /**
   * Fulfils when all that was written before the call is on the disk. Concurrent callers share one fdatasync; with nothing
   * new it fulfils at once. After a failed one the kernel has forgotten which pages were not written, so this and every
   * later barrier and write rejects until the log is opened again.
   *
   * @throws ServerError LOG_WRITE_FAILED
   */
  async barrier(): Promise<void> {
    this.#assertUsable();
    if (this.#durable < this.#size) {
      await this.#syncCovering(this.#size);
    }
    // Afterwards: a process that was stopped meanwhile must not go on as if the log were still its own.
    this.#assertInPlace();
  }

  /**
   * Starts an fdatasync at the latest 100 ms later, for which nobody waits: one that comes until then for another reason does as well.
   * Its failure closes the log as that of a barrier does.
   */
  syncSoon(): void {
    if (this.#isClosed || this.#durable >= this.#size) return;
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      // Who writes or waits next meets its failure.
      this.#syncCovering(this.#size).catch(() => undefined);
    }, soonMs);
  }

  /** Waits for a running fdatasync, then closes the descriptor. Makes nothing durable by itself; idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) {
      return;
    }
    this.#isClosed = true;
    this.#stopSoon();
    // Their callers get the failure; here only the descriptor matters, which must not be closed under a running call.
    await Promise.allSettled([this.#running?.done, this.#waiting]);
    closeSync(this.#fd);
  }

  #syncCovering(size: number): Promise<void> {
    const running = this.#running;
    if (running !== undefined && running.covers >= size) {
      return running.done;
    }
    if (this.#waiting !== undefined) {
      return this.#waiting;
    }
    if (running === undefined) {
      return this.#startSync();
    }
    // The one after the running one covers all that is written until it starts.
    this.#waiting = running.done.then(() => this.#startSync());
    return this.#waiting;
  }

  #startSync(): Promise<void> {
    this.#waiting = undefined;
    this.#stopSoon();
    const covers = this.#size;
    const done = this.#syncNow(covers);
    this.#running = { covers, done };
    return done;
  }

  #stopSoon(): void {
    clearTimeout(this.#soon);
    this.#soon = undefined;
  }

  async #syncNow(covers: number): Promise<void> {
    try {
      await this.#sync(this.#fd);
      await this.#syncDirOnce();
      this.#durable = Math.max(this.#durable, covers);
    } catch (error) {
      this.#syncFault ??= logWriteFailed(this.#path, error);
      throw this.#syncFault;
    } finally {
      this.#running = undefined;
    }
  }

  async #syncDirOnce(): Promise<void> {
    if (this.#isDirDurable) {
      return;
    }
    const fd = openSync(this.#dir, 'r');
    try {
      await fsyncOf(fd);
      this.#isDirDurable = true;
    } finally {
      closeSync(fd);
    }
  }

  #assertOwner(): void {
    if (!this.#isOwner()) {
      throw logWriteFailed(this.#path, 'another writer has taken the log over, or its lock is gone');
    }
  }

  #assertUsable(): void {
    if (this.#isClosed) {
      throw logWriteFailed(this.#path, 'the log is closed');
    }
    if (this.#syncFault !== undefined) {
      throw this.#syncFault;
    }
    if (this.#hasRemains) {
      this.#cutRemains();
      this.#checkedAt = Number.NEGATIVE_INFINITY;
    }
  }

  /** The lock is still ours, and the file is there and as this writer left it. */
  #assertInPlace(): void {
    this.#assertOwner();
    const { nlink, size } = fstatSync(this.#fd);
    if (nlink === 0) {
      throw logWriteFailed(this.#path, 'the file was deleted');
    }
    if (size !== this.#size) {
      throw logWriteFailed(this.#path, this.#hasRemains ? 'a failed write could not be undone' : 'the file was changed by another program');
    }
    this.#checkedAt = performance.now();
  }

  #cutRemains(): void {
    try {
      ftruncateSync(this.#fd, this.#size);
      this.#hasRemains = false;
    } catch {
      // Tried again before the next write, which is refused as long as this fails.
    }
  }
}
