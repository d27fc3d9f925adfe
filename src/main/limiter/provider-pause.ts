/**
 * The time for which a provider wants to be left alone (`Retry-After`). It holds for every call, not just for the one that
 * heard it; and those held back do not start in one millisecond when it is over.
 */
import type { LimiterClock } from './limiter-clock.ts';

export interface ProviderPauseParts {
  readonly clock: LimiterClock;
  /** A provider that wants longer gets refused calls instead: a turn must not stand still for ever. */
  readonly longestMs: number;
  /** In [0, 1). */
  readonly random: () => number;
  readonly hold: () => void;
  readonly goOn: () => void;
}

/** Calls that start within this time of a pause's end start at random moments of it. */
export const spreadMs = 250;

export class ProviderPause {
  readonly #parts: ProviderPauseParts;
  #until = Number.NEGATIVE_INFINITY;
  #stopTimer: (() => void) | undefined;

  constructor(parts: ProviderPauseParts) {
    this.#parts = parts;
  }

  get leftMs(): number {
    return Math.max(0, this.#until - this.#parts.clock.now());
  }

  /** Milliseconds that a call which has its place still waits; `0` when it may go. Random for some time after a pause. */
  delayMs(): number {
    const { clock, random } = this.#parts;
    const windowMs = this.#until + spreadMs - clock.now();
    if (windowMs <= 0) return 0;
    return this.leftMs + random() * Math.min(windowMs, spreadMs);
  }

  /** Begins a pause, or makes the present one longer, never shorter. */
  begin(ms: number): void {
    const { clock, hold, longestMs } = this.#parts;
    const until = clock.now() + Math.min(ms, longestMs);
    if (ms <= 0 || until <= this.#until) return;
    this.#until = until;
    hold();
    this.#wait();
  }

  stop(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  /** Timers may come early by less than a millisecond. */
  #wait(): void {
    this.stop();
    this.#stopTimer = this.#parts.clock.after(this.leftMs, () => {
      if (this.leftMs > 0) this.#wait();
      else this.#parts.goOn();
    });
  }
}
