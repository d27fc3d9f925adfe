/**
 * Writes a small file among thousands: kept in memory and written at once when it is whole; only a large one is written in pieces.
 * Synchronous, since a trip through the thread pool for each step costs many times the step itself.
 */
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';

const flushChars = 1024 * 1024;

export class PageSink {
  readonly #path: string;
  #pieces: string[] = [];
  #chars = 0;
  #begun = false;
  /** Characters so far. */
  written = 0;

  constructor(path: string) {
    this.#path = path;
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
  }

  /** Leaves no part of the file behind. */
  abandon(): void {
    if (this.#begun) rmSync(this.#path, { force: true });
  }

  #flush(): void {
    const text = this.#pieces.join('');
    if (this.#begun) appendFileSync(this.#path, text);
    else writeFileSync(this.#path, text);
    this.#begun = true;
    this.#pieces = [];
    this.#chars = 0;
  }
}
