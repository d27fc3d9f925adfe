/**
 * What a command writes, both streams in order of arrival, for somebody who looks on while it runs and afterwards.
 *
 * Bounded by what it keeps, however slowly it is read: whoever falls behind finds a mark in place of what is gone.
 */
import type { CapturedOutput, RunOutput } from '../../shared/broker-protocol.ts';
import { OutputCapture } from './output-capture.ts';
import { WholeCharacters } from './whole-characters.ts';

export class ShownOutput {
  readonly #both: OutputCapture;
  readonly #streams: readonly [WholeCharacters, WholeCharacters];
  #read = 0;
  #isRead = false;
  #over = false;
  #wake: (() => void)[] = [];

  constructor(keepBytes: number) {
    this.#both = new OutputCapture(keepBytes, undefined);
    this.#streams = [new WholeCharacters((bytes) => this.#take(bytes)), new WholeCharacters((bytes) => this.#take(bytes))];
  }

  stdout(chunk: Buffer): void {
    void this.#streams[0].write(chunk);
  }

  stderr(chunk: Buffer): void {
    void this.#streams[1].write(chunk);
  }

  /** What came since the last read. Waits up to `waitMs` for more, or for the end. */
  async read(waitMs: number): Promise<RunOutput> {
    this.#isRead = true;
    if (waitMs > 0) await this.#news(waitMs);
    return { text: this.#unread(), over: this.#over };
  }

  /** The end: all of it, and what was not read if somebody has read. Those that wait are told. */
  async finish(): Promise<{ readonly shown: CapturedOutput; readonly unread?: string }> {
    for (const stream of this.#streams) stream.flush();
    this.#over = true;
    const shown = await this.#both.finish();
    const unread = this.#isRead ? { unread: this.#unread() } : {};
    this.#wakeReaders();
    return { shown, ...unread };
  }

  #unread(): string {
    const text = this.#both.textSince(this.#read);
    this.#read = this.#both.total;
    return text;
  }

  #take(bytes: Buffer): undefined {
    void this.#both.write(bytes);
    this.#wakeReaders();
    return undefined;
  }

  async #news(waitMs: number): Promise<void> {
    if (this.#over || this.#both.total > this.#read) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#wake.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #wakeReaders(): void {
    const readers = this.#wake;
    this.#wake = [];
    for (const wake of readers) wake();
  }
}
