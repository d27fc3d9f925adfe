/** A clock that stands still until a test moves it; its timers run in the order in which they are due. */
import type { LimiterClock } from '../../../../src/main/limiter/limiter-clock.ts';

export class HeldClock implements LimiterClock {
  #now = 0;
  #timers: { readonly at: number; readonly run: () => void }[] = [];

  readonly now = (): number => this.#now;

  readonly after = (ms: number, run: () => void): (() => void) => {
    const timer = { at: this.#now + ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  };

  get timers(): number {
    return this.#timers.length;
  }

  /** Moves the time on, timer by timer, and lets promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((one) => one !== due);
      this.#now = Math.max(this.#now, due.at);
      due.run();
      await settled();
    }
    this.#now = end;
    await settled();
  }
}

/** Fulfils when every promise that could settle has. */
export async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
