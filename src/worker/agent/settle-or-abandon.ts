/**
 * Waits for work that was asked to stop, but not for ever: a body that ignores its signal must not hold up a cancel.
 */
import type { Sleep } from './abortable-sleep.ts';

export const abandoned = Symbol('abandoned');

/** How long work may go on after its signal has aborted, in milliseconds. */
export const stopGraceMs = 1000;

/**
 * Settles as `work` does. Once `signal` has aborted it waits at most {@link stopGraceMs} more and then fulfils with
 * {@link abandoned}; whatever the work does later is dropped, a rejection included.
 */
export async function settleOrAbandon<T>(work: Promise<T>, signal: AbortSignal, sleep: Sleep): Promise<T | typeof abandoned> {
  const done = new AbortController();
  work.catch(() => {}); // The race below reports it; this only covers a rejection that comes after the race is lost.
  try {
    return await Promise.race([work, graceAfterAbort(signal, done.signal, sleep)]);
  } finally {
    done.abort();
  }
}

async function graceAfterAbort(signal: AbortSignal, done: AbortSignal, sleep: Sleep): Promise<typeof abandoned> {
  await firstAbort(signal, done);
  await sleep(stopGraceMs, done);
  return abandoned;
}

function firstAbort(signal: AbortSignal, done: AbortSignal): Promise<void> {
  if (signal.aborted || done.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      signal.removeEventListener('abort', finish);
      done.removeEventListener('abort', finish);
      resolve();
    };
    signal.addEventListener('abort', finish);
    done.addEventListener('abort', finish);
  });
}
