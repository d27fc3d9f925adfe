/**
 * Bytes in, whole lines out: the first thing that touches what a peer sends.
 *
 * Pure: no stream, no clock. It splits at 0x0A while the data is still bytes and decodes whole lines only, because a
 * chunk may end inside a character. It must never keep more than one unfinished line, and never more than the limit.
 */

/** One line without its ending, or the news that a line passed the limit of `oversized` bytes and is being skipped. */
export type DecodedFrame = { readonly line: string } | { readonly oversized: number };

export interface FrameDecoderOptions {
  /** Longest line in bytes, its `\r` counted and its `\n` not. */
  readonly maxFrameBytes: number;
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const FIRST_CAPACITY = 4096;
/** A held buffer above this is let go with its line, so that one large frame does not stay in memory for good. */
const KEPT_CAPACITY = 256 * 1024;

/**
 * Splits a byte stream into lines.
 *
 * Lines reach the sink in order and during `push`. One `\r` before the `\n` is dropped; lines of white space only are
 * skipped; invalid UTF-8 becomes U+FFFD. A line over the limit gives exactly one `oversized` notice, at the moment it
 * passes the limit, and the rest of it is dropped; the next line is whole again. The result does not depend on how the
 * bytes were cut into chunks. Every byte is scanned once, and copied only when its line spans chunks.
 */
export class FrameDecoder {
  readonly #sink: (frame: DecodedFrame) => void;
  readonly #maxFrameBytes: number;
  #held = Buffer.allocUnsafe(FIRST_CAPACITY);
  #heldBytes = 0;
  #skipping = false;

  constructor(options: FrameDecoderOptions, sink: (frame: DecodedFrame) => void) {
    this.#maxFrameBytes = options.maxFrameBytes;
    this.#sink = sink;
  }

  /** Bytes of the unfinished line kept until its newline comes; at most the limit. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Takes the next bytes. The chunk is not kept: the caller may reuse it afterwards. */
  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      this.#finishLine(chunk, start, end);
      start = end + 1;
    }
    if (start < chunk.length) this.#hold(chunk, start, chunk.length);
  }

  /** The stream has ended: an unfinished line is given out as it stands, and the decoder is empty again. */
  end(): void {
    if (this.#heldBytes > 0) this.#emit(this.#held, 0, this.#heldBytes);
    this.#forget();
    this.#skipping = false;
  }

  #finishLine(chunk: Buffer, start: number, end: number): void {
    if (this.#heldBytes === 0 && !this.#skipping && end - start <= this.#maxFrameBytes) {
      this.#emit(chunk, start, end);
      return;
    }
    this.#hold(chunk, start, end);
    if (!this.#skipping) this.#emit(this.#held, 0, this.#heldBytes);
    this.#forget();
    this.#skipping = false;
  }

  #hold(chunk: Buffer, start: number, end: number): void {
    if (this.#skipping) return;
    const bytes = this.#heldBytes + (end - start);
    if (bytes > this.#maxFrameBytes) {
      this.#forget();
      this.#skipping = true;
      this.#sink({ oversized: this.#maxFrameBytes });
      return;
    }
    if (bytes > this.#held.length) this.#grow(bytes);
    chunk.copy(this.#held, this.#heldBytes, start, end);
    this.#heldBytes = bytes;
  }

  /** Doubling keeps the copying linear even when the line comes one byte at a time; a list of chunks would not stay small. */
  #grow(needed: number): void {
    const capacity = Math.max(needed, Math.min(this.#held.length * 2, this.#maxFrameBytes));
    const grown = Buffer.allocUnsafe(capacity);
    this.#held.copy(grown, 0, 0, this.#heldBytes);
    this.#held = grown;
  }

  #forget(): void {
    this.#heldBytes = 0;
    if (this.#held.length > KEPT_CAPACITY) this.#held = Buffer.allocUnsafe(FIRST_CAPACITY);
  }

  #emit(bytes: Buffer, start: number, end: number): void {
    const last = end > start && bytes[end - 1] === CR ? end - 1 : end;
    if (last === start) return;
    const line = bytes.toString('utf8', start, last);
    // Only a line that starts with white space can be blank, so the usual frame pays one comparison.
    if ((bytes[start] ?? 0) <= SPACE && line.trim() === '') return;
    this.#sink({ line });
  }
}
