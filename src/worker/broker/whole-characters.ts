/**
 * Holds back the start of a character until its rest comes, so that two streams can share one buffer.
 */
import type { ByteSink } from './stream-pump.ts';
import { unfinishedTail } from './utf8-cut.ts';

export class WholeCharacters {
  readonly #sink: ByteSink;
  #held: Buffer = Buffer.alloc(0);

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  readonly write = (chunk: Buffer): Promise<void> | undefined => {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const whole = bytes.length - unfinishedTail(bytes);
    this.#held = Buffer.from(bytes.subarray(whole));
    return whole === 0 ? undefined : this.#sink(bytes.subarray(0, whole));
  };

  /** No rest will come. */
  flush(): void {
    if (this.#held.length > 0) void this.#sink(this.#held);
    this.#held = Buffer.alloc(0);
  }
}
