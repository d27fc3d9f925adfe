/**
 * Moves one pipe of a child into a sink, no faster than the sink takes it.
 */
import type { Readable } from 'node:stream';

/** A promise means: hold the source until it fulfils. */
export type ByteSink = (chunk: Buffer) => Promise<void> | undefined;

export class StreamPump {
  /** The pipe is at its end or was destroyed. Never rejects. */
  readonly ended: Promise<void>;
  readonly #stream: Readable;
  #lastActivity = performance.now();
  #held = false;

  constructor(stream: Readable, sink: ByteSink) {
    this.#stream = stream;
    this.ended = new Promise((resolve) => stream.once('close', resolve));
    // A broken pipe is an end like any other; 'close' follows.
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => {
      this.#lastActivity = performance.now();
      const taken = sink(chunk);
      if (taken === undefined) return;
      this.#held = true;
      stream.pause();
      void taken.finally(() => {
        this.#held = false;
        this.#lastActivity = performance.now();
        stream.resume();
      });
    });
  }

  /** When bytes last moved, on the clock of `performance.now()`; now, while the sink holds the pipe up. */
  get lastActivity(): number {
    return this.#held ? performance.now() : this.#lastActivity;
  }

  /** Gives up on whoever still holds the other end. */
  destroy(): void {
    this.#stream.destroy();
  }
}
