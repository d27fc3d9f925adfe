/**
 * The last bytes of a stream, in a buffer of fixed size. Copies what it takes, so that a thousand one-byte chunks cost
 * no more than one of a thousand bytes.
 */
export class ByteRing {
  readonly #capacity: number;
  #buffer: Buffer = Buffer.alloc(0);
  #total = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Bytes ever pushed. */
  get total(): number {
    return this.#total;
  }

  push(bytes: Buffer): void {
    const from = this.#total;
    this.#total += bytes.length;
    this.#grow();
    const kept = bytes.length > this.#capacity ? bytes.subarray(bytes.length - this.#capacity) : bytes;
    if (kept.length === 0) return;
    const at = (from + bytes.length - kept.length) % this.#capacity;
    const first = kept.subarray(0, this.#capacity - at);
    first.copy(this.#buffer, at);
    kept.copy(this.#buffer, 0, first.length);
  }

  /** A copy of what stands from `offset` of the stream on; what has left the ring is left out. */
  since(offset: number): Buffer {
    const from = Math.max(offset, this.#total - this.#capacity, 0);
    if (from >= this.#total) return Buffer.alloc(0);
    const start = from % this.#capacity;
    const length = this.#total - from;
    const first = this.#buffer.subarray(start, Math.min(start + length, this.#capacity));
    return Buffer.concat([first, this.#buffer.subarray(0, length - first.length)]);
  }

  /** Doubling up to the capacity: most outputs are short. Until then nothing has wrapped, so offsets stay as they are. */
  #grow(): void {
    const needed = Math.min(this.#total, this.#capacity);
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.min(this.#capacity, Math.max(needed, this.#buffer.length * 2, 1024)));
    this.#buffer.copy(larger);
    this.#buffer = larger;
  }
}
