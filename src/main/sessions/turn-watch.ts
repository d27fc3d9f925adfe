/**
 * Counts the running turns of each thread and has the watchdog watch exactly the threads that have some.
 */
import type { ThreadLane } from '../threads/thread-lane.ts';
import type { Watchdog } from '../threads/watchdog.ts';

export class TurnWatch {
  readonly #watchdog: Watchdog;
  readonly #running = new Map<ThreadLane, number>();

  constructor(watchdog: Watchdog) {
    this.#watchdog = watchdog;
  }

  started(lane: ThreadLane): void {
    this.#running.set(lane, (this.#running.get(lane) ?? 0) + 1);
    this.#watchdog.watch(lane);
  }

  /** Whether turns run there. */
  isRunning(lane: ThreadLane): boolean {
    return this.#running.has(lane);
  }

  /** Whether no more than one turn runs there. */
  isAlone(lane: ThreadLane): boolean {
    return (this.#running.get(lane) ?? 0) <= 1;
  }

  ended(lane: ThreadLane): void {
    const left = (this.#running.get(lane) ?? 1) - 1;
    if (left > 0) {
      this.#running.set(lane, left);
      return;
    }
    this.#running.delete(lane);
    this.#watchdog.unwatch(lane);
  }
}
