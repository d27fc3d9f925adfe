/**
 * Counts how often a session ended its thread, so that one that does it each time is not revived for ever.
 */
const windowMs = 60_000;
const limit = 3;

export class CrashCounter {
  readonly #now: () => number;
  #times: number[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  add(): void {
    this.#times.push(this.#now());
    if (this.#times.length > limit) this.#times.shift();
  }

  /** Three or more within a minute. */
  get tooMany(): boolean {
    const first = this.#times.at(-limit);
    return first !== undefined && this.#now() - first < windowMs;
  }
}
