/**
 * Writes a small file among thousands: kept in memory and written at once when it is whole; only a large one is written in pieces, and has
 * its name when it is whole. Synchronous, since a trip through the thread pool for each step costs many times the step itself.
 */
import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const flushChars = 1024 * 1024;

export class PageSink {
  readonly #path: string;
  readonly #partial: string;
  #pieces: string[] = [];
  #chars = 0;
  #begun = false;
  /** Characters so far. */
  written = 0;

  constructor(path: string) {
    this.#path = path;
    this.#partial = `${path}.partial`;
  }

  /** @throws the system's error */
  write(text: string): void {
    this.#pieces.push(text);
    this.#chars += text.length;
    this.written += text.length;
    if (this.#chars >= flushChars) this.#flush();
  }

  /** @throws the system's error */
  close(): void {
    this.#flush();
    renameSync(this.#partial, this.#path);
  }

  /** Leaves no part of the file behind. */
  abandon(): void {
    if (this.#begun) rmSync(this.#partial, { force: true });
  }

  #flush(): void {
    const text = this.#pieces.join('');
    if (this.#begun) appendFileSync(this.#partial, text);
    else writeFileSync(this.#partial, text);
    this.#begun = true;
    this.#pieces = [];
    this.#chars = 0;
  }
}
