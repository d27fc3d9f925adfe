/**
 * How many calls may run at once, learnt from what the provider says. Pure: it counts and knows the time, and never waits.
 *
 * - It starts at `slowStart`. A success allows one more, up to `max`, while at least half of what is allowed is in use.
 * - An overload halves what was running, or the limit if that is lower, to 1 at least. The calls in flight then were made
 *   under the old limit: what they say of overload halves nothing more.
 * - For a minute after that, one more is allowed per round of successes (as many as the limit), not per success: the
 *   limit has been found, and each step over it costs a refusal.
 */

export interface CallLimitOptions {
  readonly max: number;
  readonly slowStart: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

const carefulMs = 60_000;

export class CallLimit {
  readonly max: number;
  readonly #now: () => number;
  /** With the fraction that a careful growth has gathered. */
  #exact: number;
  #overloadedAt = Number.NEGATIVE_INFINITY;
  /** Leases up to this one were given out under a limit that was halved since. */
  #roundEnd = 0;

  constructor({ max, slowStart, now }: CallLimitOptions) {
    this.max = Math.max(1, max);
    this.#exact = Math.min(this.max, Math.max(1, slowStart));
    this.#now = now;
  }

  get value(): number {
    return Math.floor(this.#exact);
  }

  /** @param running calls in flight, this one included */
  succeeded(running: number): void {
    if (running * 2 < this.value) return;
    const careful = this.#now() - this.#overloadedAt < carefulMs;
    this.#exact = Math.min(this.max, this.#exact + (careful ? 1 / this.value : 1));
  }

  /**
   * @param leaseId of the call that was refused
   * @param running calls in flight, this one included
   * @param lastLeaseId the newest lease there is
   */
  overloaded(leaseId: number, running: number, lastLeaseId: number): void {
    this.#overloadedAt = this.#now();
    if (leaseId <= this.#roundEnd) return;
    this.#roundEnd = lastLeaseId;
    this.#exact = Math.max(1, Math.floor(Math.min(this.value, running) / 2));
  }
}
