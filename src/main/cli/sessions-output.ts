/** Where the output of a command goes: piece by piece, no faster than it is taken, and no further once nobody reads it. */
import type { Writable } from 'node:stream';

export class CommandOutput {
  readonly #stream: Writable;
  /** Nobody reads any more: `dsh-acp sessions show … | head` closes the pipe early, which is no failure. */
  closed = false;

  constructor(stream: Writable) {
    this.#stream = stream;
    stream.on('error', () => (this.closed = true));
  }

  /** Fulfils when more may be written. Never rejects. */
  async write(text: string | Uint8Array): Promise<void> {
    if (this.closed || text.length === 0 || this.#stream.write(text)) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        for (const event of ['drain', 'error', 'close']) this.#stream.off(event, done);
        resolve();
      };
      for (const event of ['drain', 'error', 'close']) this.#stream.on(event, done);
    });
  }
}
