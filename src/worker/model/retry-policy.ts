/**
 * When a failed model call is worth another try, and how long to wait before it. Pure: the caller waits, logs and counts.
 */
import type { ModelFailure, ModelFailureCode } from './model-adapter.ts';

const baseDelayMs = 500;
const maxDelayMs = 10_000;

const retryable: ReadonlySet<ModelFailureCode> = new Set([
  'RATE_LIMIT',
  'SERVER',
  'TIMEOUT',
  'TRANSPORT',
  'STREAM_CLOSED',
  'MALFORMED_RESPONSE',
  'EMPTY_RESPONSE',
]);

/**
 * Milliseconds to wait after attempt number `attempt` (from 1) has failed, or `undefined` to give up. How many attempts there may
 * be is the caller's to know.
 *
 * Without a provider's wish: full jitter over a ceiling that doubles from 500 ms to 10 s, so that many sessions that failed
 * together do not return together. With one: never earlier than asked, plus up to 500 ms of jitter; a wish above
 * `maxRetryAfterMs` gives up.
 *
 * @param random uniform in [0, 1)
 */
export function nextDelay(attempt: number, failure: ModelFailure, random: () => number, maxRetryAfterMs: number): number | undefined {
  if (!retryable.has(failure.code)) return undefined;
  if (failure.retryAfterMs !== undefined) {
    if (failure.retryAfterMs > maxRetryAfterMs) return undefined;
    return failure.retryAfterMs + Math.floor(random() * baseDelayMs);
  }
  const ceiling = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.max(0, attempt - 1));
  return Math.floor(random() * ceiling);
}
