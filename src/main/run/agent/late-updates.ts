/**
 * Waits for updates that come behind the answer they belong to, as many agents send them: until none has come for a while.
 */
import { setTimeout as delay } from 'node:timers/promises';

const quietMs = 100;
const longestMs = 2_000;

export class LateUpdates {
  #lastAt = 0;

  /** An update has come. */
  seen(): void {
    this.#lastAt = performance.now();
  }

  async settle(): Promise<void> {
    const start = performance.now();
    const end = start + longestMs;
    for (let now = start; now < end; now = performance.now()) {
      const left = Math.max(this.#lastAt, start) + quietMs - now;
      if (left <= 0) return;
      await delay(Math.min(left, end - now));
    }
  }
}
