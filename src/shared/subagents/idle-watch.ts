/**
 * Tells when a child has said nothing for too long. Time in which the child itself waits for an answer does not count.
 */

export class IdleWatch {
  /** Fulfils when the time is over; never when there is no limit. */
  readonly expired: Promise<void>;
  readonly #limitMs: number;
  readonly #isExcused: () => boolean;
  #expire: () => void = () => undefined;
  #lastSign = performance.now();
  #timer: NodeJS.Timeout | undefined;

  /** `limitMs` of `0` is no limit. */
  constructor(limitMs: number, isExcused: () => boolean) {
    this.#limitMs = limitMs;
    this.#isExcused = isExcused;
    this.expired = new Promise((resolve) => {
      this.#expire = resolve;
    });
    // Longer than a timer can count means no limit; setTimeout would take it for 1 ms.
    if (limitMs > 0 && limitMs < 2 ** 31) this.#arm(limitMs);
  }

  /** The child said something, or got an answer. */
  sign(): void {
    this.#lastSign = performance.now();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => this.#look(), ms);
  }

  #look(): void {
    if (this.#isExcused()) this.sign();
    const left = this.#lastSign + this.#limitMs - performance.now();
    if (left > 0) this.#arm(left);
    else this.#expire();
  }
}
