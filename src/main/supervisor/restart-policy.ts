/**
 * Whether a server that died is started once more, and when. Pure: the clock is handed in.
 */

/** Deaths within this time count together. */
const windowMs = 60_000;
const firstDelayMs = 50;
const longestDelayMs = 5_000;

export class RestartPolicy {
  readonly #maxRestarts: number;
  #deaths: number[] = [];
  /** Processes in a row that came to nothing. */
  #failed = 0;

  /** @param maxRestarts within a minute */
  constructor(maxRestarts: number) {
    this.#maxRestarts = maxRestarts;
  }

  /**
   * Counts a death. Milliseconds until the next start; `undefined` gives up. After a process that has served it is at once, since
   * somebody waits for an answer; each one in a row that has not doubles the time.
   */
  next(nowMs: number, served: boolean): number | undefined {
    this.#deaths = this.#deaths.filter((time) => nowMs - time < windowMs);
    this.#deaths.push(nowMs);
    this.#failed = served ? 0 : this.#failed + 1;
    if (this.#deaths.length > this.#maxRestarts) return undefined;
    return this.#failed === 0 ? 0 : Math.min(longestDelayMs, firstDelayMs * 2 ** (this.#failed - 1));
  }
}
