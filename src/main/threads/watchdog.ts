/**
 * The watchdog: finds threads whose event loop stands still while they have turns.
 *
 * A thread bumps its heartbeat while it has turns; a busy loop, a catastrophic regular expression or a blocking call stops
 * it. `terminate()` ends even a busy loop within milliseconds.
 */
import type { ThreadLane } from './thread-lane.ts';

interface Seen {
  beat: number;
  at: number;
}

export class Watchdog {
  readonly #stuckAfterMs: number;
  readonly #onStuck: (lane: ThreadLane) => void;
  readonly #now: () => number;
  readonly #seen = new Map<ThreadLane, Seen>();
  #timer: NodeJS.Timeout | undefined;
  #lastCheck = 0;

  constructor(stuckAfterMs: number, onStuck: (lane: ThreadLane) => void, now: () => number = () => performance.now()) {
    this.#stuckAfterMs = stuckAfterMs;
    this.#onStuck = onStuck;
    this.#now = now;
  }

  /** Watches a thread from the start of a turn; call {@link unwatch} when its last turn has ended. */
  watch(lane: ThreadLane): void {
    if (!this.#seen.has(lane)) this.#seen.set(lane, { beat: lane.heartbeat, at: this.#now() });
    if (this.#timer !== undefined) return;
    this.#lastCheck = this.#now();
    this.#timer = setInterval(() => this.check(), Math.max(50, this.#stuckAfterMs / 5)).unref();
  }

  unwatch(lane: ThreadLane): void {
    this.#seen.delete(lane);
    if (this.#seen.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** One round; public for tests that hold the clock. */
  check(): void {
    const now = this.#now();
    // When main itself was late, the machine is overloaded: a missing beat proves nothing then.
    const late = now - this.#lastCheck > this.#stuckAfterMs / 2;
    this.#lastCheck = now;
    for (const [lane, seen] of this.#seen) {
      const beat = lane.heartbeat;
      if (late || beat !== seen.beat) {
        seen.beat = beat;
        seen.at = now;
      } else if (now - seen.at >= this.#stuckAfterMs) {
        this.#seen.delete(lane);
        this.#onStuck(lane);
      }
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#seen.clear();
  }
}
