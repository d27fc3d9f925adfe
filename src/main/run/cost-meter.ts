/**
 * What a run costs, and whether another attempt may start under `--max-cost`. What a running attempt will cost is taken to be what the ended ones
 * cost on average, so that a wide run does not shoot over its limit by everything that is in flight.
 */

export class CostMeter {
  readonly #limitUsd: number | undefined;
  readonly #onReached: (why: string) => void;
  #knownUsd = 0;
  #running = 0;
  #ended = 0;
  #endedUsd = 0;
  #waiting: (() => void)[] = [];
  #released = false;

  /** @param onReached called when the limit is reached, or cannot be kept; perhaps more than once */
  constructor(limitUsd: number | undefined, onReached: (why: string) => void) {
    this.#limitUsd = limitUsd;
    this.#onReached = onReached;
  }

  /** Something was spent, now or by earlier runs of the same file. */
  add(costUsd: number): void {
    this.#knownUsd += costUsd;
    if (this.#limitUsd !== undefined && this.#knownUsd >= this.#limitUsd) {
      this.#onReached(`the limit of ${this.#limitUsd} US dollars is reached`);
    }
  }

  /** Fulfils when an attempt may start. Whoever waits must look at the run's stop behind it. */
  async begin(): Promise<void> {
    while (!this.#hasRoom()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
  }

  /** An attempt that began has ended. @param costUsd of it alone; `undefined` when its agent does not say */
  end(costUsd: number | undefined): void {
    this.#running -= 1;
    this.#ended += 1;
    this.#endedUsd += costUsd ?? 0;
    this.#wake();
  }

  /** An attempt came to its end and nobody knows what it cost. */
  unknown(): void {
    if (this.#limitUsd !== undefined) this.#onReached('the agent does not say what its turns cost, so --max-cost cannot be kept');
  }

  /** The run stops: nobody waits any longer. */
  release(): void {
    this.#released = true;
    this.#wake();
  }

  #hasRoom(): boolean {
    if (this.#limitUsd === undefined || this.#released || this.#running === 0) return true;
    const mean = this.#ended === 0 ? 0 : this.#endedUsd / this.#ended;
    return this.#knownUsd + this.#running * mean < this.#limitUsd;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}
