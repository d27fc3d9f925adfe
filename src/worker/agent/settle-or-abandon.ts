/**
 * Waits for work that was asked to stop, but not for ever: a body that ignores its signal must not hold up a cancel.
 */
import type { Sleep } from './abortable-sleep.ts';

export const abandoned = Symbol('abandoned');

/**
 * How long work may go on after its signal has aborted, in milliseconds. A command that ignores TERM is killed after 300, and
 * main answers `cancelled` after 900 in any case: between the two the turn can still end in order.
 */
export const stopGraceMs = 650;

/**
 * Settles as `work` does. Once `signal` has aborted it waits at most {@link stopGraceMs} more and then fulfils with
 * {@link abandoned}; whatever the work does later is dropped, a rejection included.
 */
export function settleOrAbandon<T>(work: Promise<T>, signal: AbortSignal, sleep: Sleep): Promise<T | typeof abandoned> {
  return new Promise((resolve, reject) => {
    // Made only when the signal aborts: this function stands on the way of every model call and every tool.
    let grace: AbortController | undefined;
    const waitOnlyForGrace = (): void => {
      grace = new AbortController();
      void sleep(stopGraceMs, grace.signal).then(() => resolve(abandoned));
    };
    const finish = (): void => {
      signal.removeEventListener('abort', waitOnlyForGrace);
      grace?.abort();
    };
    work.then(
      (value) => {
        finish();
        resolve(value);
      },
      (error: unknown) => {
        finish();
        reject(error instanceof Error ? error : new Error('The work failed without an error.', { cause: error }));
      },
    );
    if (signal.aborted) waitOnlyForGrace();
    else signal.addEventListener('abort', waitOnlyForGrace, { once: true });
  });
}
