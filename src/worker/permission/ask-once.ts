/**
 * One question with an end: the answer, an abort or the time limit, whichever comes first. The others are then dropped.
 */
import type { PermissionAnswer } from '../../shared/thread-protocol.ts';

export type AskOutcome<Answer = PermissionAnswer> =
  | { readonly kind: 'answered'; readonly answer: Answer }
  /** The question could not be asked, or its answer got lost. */
  | { readonly kind: 'failed' }
  | { readonly kind: 'aborted' }
  | { readonly kind: 'timeout' };

export interface AskLimits {
  readonly signal: AbortSignal;
  /** `0` sets no limit. */
  readonly timeoutMs: number;
}

/** Asks, and never rejects. An answer that comes after the end changes nothing. */
export function askOnce<Answer>(ask: () => Promise<Answer>, limits: AskLimits): Promise<AskOutcome<Answer>> {
  return new Promise((resolve) => {
    const end = (outcome: AskOutcome<Answer>): void => {
      clearTimeout(timer);
      limits.signal.removeEventListener('abort', onAbort);
      resolve(outcome);
    };
    const onAbort = (): void => end({ kind: 'aborted' });
    limits.signal.addEventListener('abort', onAbort, { once: true });
    const timer = limits.timeoutMs > 0 ? setTimeout(() => end({ kind: 'timeout' }), limits.timeoutMs) : undefined;
    if (limits.signal.aborted) return onAbort();
    // Started in a microtask, so that even a synchronous throw is a failed question.
    void Promise.resolve()
      .then(ask)
      .then(
        (answer) => end({ kind: 'answered', answer }),
        () => end({ kind: 'failed' }),
      );
  });
}
