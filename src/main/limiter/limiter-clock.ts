/** Time as the limiter sees it, so that a test can hold it. */

export interface LimiterClock {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Runs `run` after `ms`; the answer stops it. Does not keep the process alive. */
  readonly after: (ms: number, run: () => void) => () => void;
}

export const systemClock: LimiterClock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  },
};
