/**
 * Waiting that ends early when it is no longer wanted. The loop waits through this type only, so tests own the clock.
 */
/** Fulfils after `ms`, or as soon as `signal` aborts. Never rejects. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** Longer waits would overflow Node's timer and fire at once. */
const longestWaitMs = 2 ** 31 - 1;

/** Made of a plain timer: Node's promised one builds an error, stack and all, for each wait that is not needed any more. */
export const abortableSleep: Sleep = (ms, signal) => {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, Math.min(ms, longestWaitMs));
    signal.addEventListener('abort', finish);
  });
};
