/**
 * One output stream of a command: its head and its tail in memory, the whole of it on disk once it outgrows them.
 *
 * Memory is bounded by `keepBytes`, however much comes. Never decodes before the end, so a character that falls on a
 * border between chunks stays whole.
 */
import type { CapturedOutput } from '../../shared/broker-protocol.ts';
import { ByteRing } from './byte-ring.ts';
import type { SpillFile } from './spill-file.ts';
import { orphanedHead, unfinishedTail } from './utf8-cut.ts';

export class OutputCapture {
  readonly #keepBytes: number;
  readonly #spill: SpillFile | undefined;
  /** The head never wraps: nothing is pushed past its capacity. */
  readonly #head: ByteRing;
  readonly #tail: ByteRing;
  #headRoom: number;
  #total = 0;

  /** `keepBytes` counts head and tail together. Without `spill` the middle of a long output is lost. */
  constructor(keepBytes: number, spill: SpillFile | undefined) {
    this.#keepBytes = Math.max(2, keepBytes);
    this.#headRoom = Math.floor(this.#keepBytes / 2);
    this.#head = new ByteRing(this.#headRoom);
    this.#tail = new ByteRing(this.#keepBytes - this.#headRoom);
    this.#spill = spill;
  }

  /** Takes a chunk. A promise means: give no more until it fulfils. */
  write(chunk: Buffer): Promise<void> | undefined {
    const before = this.#total;
    this.#total += chunk.length;
    // The chunk that overflows takes everything before it along: at that moment head and tail still hold it all.
    const early = before <= this.#keepBytes && this.#total > this.#keepBytes ? this.#everything() : undefined;
    const toHead = chunk.subarray(0, this.#headRoom);
    this.#headRoom -= toHead.length;
    this.#head.push(toHead);
    this.#tail.push(chunk.subarray(toHead.length));
    if (this.#spill === undefined || this.#total <= this.#keepBytes) return undefined;
    if (early !== undefined && early.length > 0) void this.#spill.write(early);
    return this.#spill.write(chunk);
  }

  /** Bytes ever written. */
  get total(): number {
    return this.#total;
  }

  /** What stands from `offset` of the stream on, with a mark for what is no longer there. Cut only between whole characters. */
  textSince(offset: number): string {
    const inHead = this.#head.total;
    const head = this.#head.since(Math.min(offset, inHead));
    const tail = this.#tail.since(Math.max(0, offset - inHead));
    const missing = this.#total - offset - head.length - tail.length;
    return missing > 0 ? joined(head, tail, missing) : Buffer.concat([head, tail]).toString('utf8');
  }

  /** The end: waits for the spill file. */
  async finish(): Promise<CapturedOutput> {
    await this.#spill?.close();
    const totalBytes = this.#total;
    if (totalBytes <= this.#keepBytes) return { text: this.#everything().toString('utf8'), totalBytes, truncated: false };
    const head = this.#head.since(0);
    const tail = this.#tail.since(0);
    const spillPath = this.#spill?.path;
    return {
      text: joined(head, tail, totalBytes - head.length - tail.length),
      totalBytes,
      truncated: true,
      ...(spillPath === undefined ? {} : { spillPath }),
    };
  }

  #everything(): Buffer {
    return Buffer.concat([this.#head.since(0), this.#tail.since(0)]);
  }
}

/** Head and tail around a mark that says how much is missing between them, characters that were cut included. */
function joined(headBytes: Buffer, tailBytes: Buffer, missingBytes: number): string {
  const head = headBytes.subarray(0, headBytes.length - unfinishedTail(headBytes));
  const tail = tailBytes.subarray(orphanedHead(tailBytes));
  const missing = missingBytes + (headBytes.length - head.length) + (tailBytes.length - tail.length);
  return `${head.toString('utf8')}\n[... ${missing} bytes left out ...]\n${tail.toString('utf8')}`;
}
