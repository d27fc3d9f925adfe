/** Keeps the beginning and the end of an output, and says how much is missing between them. */

const keptBytes = 32 * 1024;

export class BoundedOutput {
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #dropped = 0;

  push(chunk: Buffer): void {
    const room = keptBytes - this.#headBytes;
    const first = chunk.subarray(0, Math.max(0, room));
    if (first.length > 0) {
      this.#head.push(Buffer.from(first));
      this.#headBytes += first.length;
    }
    const rest = chunk.subarray(first.length);
    if (rest.length === 0) return;
    this.#tail.push(Buffer.from(rest));
    this.#tailBytes += rest.length;
    // Joined only now and then, so that the work stays linear.
    if (this.#tailBytes > 2 * keptBytes) this.#cutTail();
  }

  text(): string {
    this.#cutTail();
    // Joined before they are decoded: a character may lie across the seam.
    if (this.#dropped === 0) return Buffer.concat([...this.#head, ...this.#tail]).toString('utf8');
    const head = Buffer.concat(this.#head).toString('utf8');
    return `${head}\n[${this.#dropped} bytes left out]\n${Buffer.concat(this.#tail).toString('utf8')}`;
  }

  #cutTail(): void {
    if (this.#tailBytes <= keptBytes) return;
    const whole = Buffer.concat(this.#tail);
    this.#dropped += whole.length - keptBytes;
    this.#tail = [Buffer.from(whole.subarray(-keptBytes))];
    this.#tailBytes = keptBytes;
  }
}
