/**
 * How much a child may write to its stdout: a large burst, and a steady rate on top. A long run never notices it; a child
 * that floods is told from one that works.
 */

const burstBytes = 64 * 1024 * 1024;
const bytesPerMs = 1024;

export class ByteAllowance {
  #left = burstBytes;
  #at = performance.now();

  /** Takes the bytes; false once more came than is allowed. */
  take(bytes: number): boolean {
    const now = performance.now();
    this.#left = Math.min(burstBytes, this.#left + (now - this.#at) * bytesPerMs);
    this.#at = now;
    this.#left -= bytes;
    return this.#left >= 0;
  }
}
