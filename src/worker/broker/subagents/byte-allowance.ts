/**
 * How much a child may write to its stdout: a large burst, and a steady rate on top. A long run never notices it; a child
 * that floods is told from one that works.
 */

const defaultBurstBytes = 64 * 1024 * 1024;
const bytesPerMs = 1024;

export class ByteAllowance {
  readonly #burstBytes: number;
  #left: number;
  #at = performance.now();

  constructor(burstBytes = defaultBurstBytes) {
    this.#burstBytes = burstBytes;
    this.#left = burstBytes;
  }

  /** Takes the bytes; false once more came than is allowed. */
  take(bytes: number): boolean {
    const now = performance.now();
    this.#left = Math.min(this.#burstBytes, this.#left + (now - this.#at) * bytesPerMs);
    this.#at = now;
    this.#left -= bytes;
    return this.#left >= 0;
  }
}
