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

  /** @param maxRestarts within a minute */
  constructor(maxRestarts: number) {
    this.#maxRestarts = maxRestarts;
  }

  /** Counts a death. Milliseconds until the next start, doubling with each death of the last minute; `undefined` gives up. */
  next(nowMs: number): number | undefined {
    this.#deaths = this.#deaths.filter((time) => nowMs - time < windowMs);
    this.#deaths.push(nowMs);
    if (this.#deaths.length > this.#maxRestarts) return undefined;
    // The first one at once: somebody waits for an answer.
    return this.#deaths.length === 1 ? 0 : Math.min(longestDelayMs, firstDelayMs * 2 ** (this.#deaths.length - 2));
  }
}
