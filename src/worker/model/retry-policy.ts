/**
 * When a failed model call is worth another try, and how long to wait before it. Pure: the caller waits, logs and counts.
 */
import type { ModelConfig } from '../../shared/config.ts';
import type { ModelFailure, ModelFailureCode } from './model-adapter.ts';

const baseDelayMs = 500;
const maxDelayMs = 10_000;
const maxRetryAfterMs = 60_000;

const retryable: ReadonlySet<ModelFailureCode> = new Set([
  'RATE_LIMIT',
  'SERVER',
  'TIMEOUT',
  'TRANSPORT',
  'STREAM_CLOSED',
  'MALFORMED_RESPONSE',
  'EMPTY_RESPONSE',
]);

/** Whether the same request may succeed later. Says nothing about how often it was tried. */
export function isRetryable(code: ModelFailureCode): boolean {
  return retryable.has(code);
}

/** Attempts that a model call may take where nothing else is configured, the first included. */
export const maxAttempts = 6;

/**
 * Milliseconds to wait after attempt number `attempt` (from 1) has failed, or `undefined` to give up.
 *
 * Without a provider's wish: full jitter over a ceiling that doubles from 500 ms to 10 s, so that many sessions that failed
 * together do not return together. With one: never earlier than asked, plus up to 500 ms of jitter; a wish above 60 s gives up.
 *
 * @param random uniform in [0, 1)
 * @param attempts gives up once that many have failed
 */
export function nextDelay(
  attempt: number,
  failure: ModelFailure,
  random: () => number,
  attempts: number = maxAttempts,
): number | undefined {
  if (attempt >= attempts || !isRetryable(failure.code)) return undefined;
  if (failure.retryAfterMs !== undefined) {
    if (failure.retryAfterMs > maxRetryAfterMs) return undefined;
    return failure.retryAfterMs + Math.floor(random() * baseDelayMs);
  }
  const ceiling = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.max(0, attempt - 1));
  return Math.floor(random() * ceiling);
}

export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly nextDelay: (attempt: number, failure: ModelFailure, random: () => number) => number | undefined;
}

/** The policy that a model's configuration asks for. */
export function retryPolicyFor(config: ModelConfig): RetryPolicy {
  const attempts = config.kind === 'openai-compatible' ? config.maxRetries + 1 : maxAttempts;
  return { maxAttempts: attempts, nextDelay: (attempt, failure, random) => nextDelay(attempt, failure, random, attempts) };
}
