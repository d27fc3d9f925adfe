/**
 * Waiting that ends early when it is no longer wanted. The loop waits through this type only, so tests own the clock.
 */
import { setTimeout as delay } from 'node:timers/promises';

/** Fulfils after `ms`, or as soon as `signal` aborts. Never rejects. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** Longer waits would overflow Node's timer and fire at once. */
const longestWaitMs = 2 ** 31 - 1;

export const abortableSleep: Sleep = async (ms, signal) => {
  try {
    await delay(Math.min(ms, longestWaitMs), undefined, { signal });
  } catch {
    // The only rejection is the abort, which is how an unneeded wait ends.
  }
};
