/**
 * The one way out to the client: whole lines of every session and of the agent app, in the order they were handed in.
 *
 * It joins what waits into few large writes and tells when bytes have left, which is what byte credits are made of. It
 * must never interleave two texts, never throw at a caller, and never leave anybody waiting once the client is gone.
 */
import type { Writable } from 'node:stream';

/** Why nothing can be written any more: the reader is gone or the write failed; or it has read nothing for the deadline. */
export type BrokenReason = 'closed' | 'stalled';

export interface FrameWriterOptions {
  /** A write that makes no progress for this long, or up to half as long again, breaks the output. */
  readonly stalledReaderMs: number;
  /** Called once, synchronously from where the break was noticed. */
  readonly onBroken: (reason: BrokenReason, error?: Error) => void;
  /** Most characters joined into one write; a single longer text goes alone. */
  readonly joinChars?: number;
}

const JOIN_CHARS = 1024 * 1024;
/** How often, within the deadline, a write under way is looked at. */
const LOOKS_PER_DEADLINE = 4;

type Written = (() => void) | undefined;

/**
 * Writes texts to a stream in call order, one write under way at a time.
 *
 * Texts of one event-loop turn, and all that come while a write is under way, are joined. After a break every text is
 * dropped and its callback still runs, so credits come back and nobody waits for ever.
 */
export class FrameWriter {
  readonly #out: Writable;
  readonly #stalledReaderMs: number;
  readonly #joinChars: number;
  readonly #onBroken: (reason: BrokenReason, error?: Error) => void;

  #texts: string[] = [];
  #written: Written[] = [];
  #flying: Written[] = [];
  #flyingBytes = 0;
  #waitingBytes = 0;
  #scheduled = false;
  #writing = false;
  #broken = false;
  #idleWaiters: (() => void)[] = [];
  #watch: NodeJS.Timeout | undefined;
  #idleLooks = 0;
  #lastUnsent: number | undefined;

  constructor(out: Writable, options: FrameWriterOptions) {
    this.#out = out;
    this.#stalledReaderMs = options.stalledReaderMs;
    this.#joinChars = options.joinChars ?? JOIN_CHARS;
    this.#onBroken = options.onBroken;
    out.on('error', (error: Error) => this.#break('closed', error));
    out.on('close', () => this.#break('closed'));
  }

  /** Bytes handed in and not yet handed over to the operating system. */
  get queuedBytes(): number {
    return this.#waitingBytes + this.#flyingBytes;
  }

  /** True once nothing can be written any more. */
  get broken(): boolean {
    return this.#broken;
  }

  /**
   * Queues a text, which must hold whole lines with their `\n`. `onWritten` runs, in call order and never from within
   * this call, when the bytes of this text and of all before it have been handed over. An empty text is a fence: nothing
   * is written, its callback still waits for its turn.
   */
  write(text: string, onWritten?: () => void): void {
    if (this.#broken) {
      if (onWritten !== undefined) queueMicrotask(onWritten);
      return;
    }
    this.#texts.push(text);
    this.#written.push(onWritten);
    this.#waitingBytes += Buffer.byteLength(text);
    if (this.#writing || this.#scheduled) return;
    this.#scheduled = true;
    // The end of the turn, not now: ports of several threads deliver in one turn, and one write carries them all.
    setImmediate(this.#startScheduled);
  }

  /** Resolves when nothing waits and nothing is under way, or the output is broken. */
  idle(): Promise<void> {
    if (this.#broken || (this.#texts.length === 0 && !this.#writing)) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  readonly #startScheduled = (): void => {
    this.#scheduled = false;
    if (!this.#writing) this.#startWrite();
  };

  #startWrite(): void {
    if (this.#broken) return;
    if (this.#texts.length === 0) {
      for (const resolve of this.#idleWaiters.splice(0)) resolve();
      return;
    }
    const joined = this.#takeJoined();
    this.#writing = true;
    if (joined === '') {
      queueMicrotask(this.#finishWrite);
      return;
    }
    this.#flyingBytes = this.#takenBytes(joined);
    this.#idleLooks = 0;
    this.#watch ??= setInterval(this.#look, Math.max(1, this.#stalledReaderMs / LOOKS_PER_DEADLINE)).unref();
    this.#out.write(joined, 'utf8', this.#finishWrite);
  }

  #takeJoined(): string {
    let chars = 0;
    let count = 0;
    for (const text of this.#texts) {
      if (count > 0 && chars + text.length > this.#joinChars) break;
      chars += text.length;
      count += 1;
    }
    if (count === this.#texts.length) {
      const joined = count === 1 ? (this.#texts[0] ?? '') : this.#texts.join('');
      this.#flying = this.#written;
      this.#texts = [];
      this.#written = [];
      return joined;
    }
    this.#flying = this.#written.splice(0, count);
    return this.#texts.splice(0, count).join('');
  }

  #takenBytes(joined: string): number {
    const bytes = this.#texts.length === 0 ? this.#waitingBytes : Buffer.byteLength(joined);
    this.#waitingBytes -= bytes;
    return bytes;
  }

  readonly #finishWrite = (error?: Error | null): void => {
    if (this.#broken) return;
    if (error) {
      this.#break('closed', error);
      return;
    }
    const done = this.#flying;
    this.#flying = [];
    this.#flyingBytes = 0;
    for (const written of done) written?.();
    // Only now: what the callbacks wrote joins the next write.
    this.#writing = false;
    this.#startWrite();
  };

  readonly #look = (): void => {
    if (!this.#writing) {
      clearInterval(this.#watch);
      this.#watch = undefined;
      return;
    }
    // Looks are counted, not milliseconds: after a blocked event loop the reader gets its chance before the next look.
    const unsent = unsentBytes(this.#out);
    this.#idleLooks = unsent === this.#lastUnsent ? this.#idleLooks + 1 : 0;
    this.#lastUnsent = unsent;
    if (this.#idleLooks > LOOKS_PER_DEADLINE) this.#break('stalled');
  };

  #break(reason: BrokenReason, error?: Error): void {
    if (this.#broken) return;
    this.#broken = true;
    clearInterval(this.#watch);
    const dropped = [...this.#flying, ...this.#written];
    this.#texts = [];
    this.#written = [];
    this.#flying = [];
    this.#flyingBytes = 0;
    this.#waitingBytes = 0;
    this.#writing = false;
    this.#onBroken(reason, error);
    for (const written of dropped) written?.();
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}

/**
 * How much of the write under way the reader has not taken. Node keeps this count for its own socket time-outs; where it
 * is missing, only the write's callback counts as progress. Without it a reader that takes one page a second of a
 * megabyte would look dead.
 */
function unsentBytes(out: Writable): number | undefined {
  const handle = (out as { _handle?: { writeQueueSize?: unknown } | null })._handle;
  const size = handle?.writeQueueSize;
  return typeof size === 'number' ? size : undefined;
}
