/**
 * One question to the model, with its retries. Shows deltas as they come, and hands the whole answer back as a value.
 *
 * Retrying is safe here because no tool of this answer has run yet. Logs nothing but retries: what becomes of the answer
 * is the step's business.
 */
import { ModelFailure, type ModelFinish, type ModelRequest } from '../model/model-adapter.ts';
import type { AgentContext } from './agent-context.ts';
import { AnswerStream, type PartialAnswer } from './answer-stream.ts';
import type { TurnScope } from './turn-scope.ts';

export type ModelOutcome =
  | { readonly kind: 'answer'; readonly partial: PartialAnswer; readonly finish: ModelFinish }
  /** The turn has ended. `finish` is there when the answer was complete at the same moment. */
  | { readonly kind: 'stopped'; readonly partial: PartialAnswer; readonly finish: ModelFinish | undefined }
  /** A ModelFailure that is not to be retried, or a fault of the adapter. */
  | { readonly kind: 'failed'; readonly partial: PartialAnswer; readonly failure: Error };

export interface ModelQuestion {
  readonly request: ModelRequest;
  readonly step: number;
  /** Whether the client sees the deltas. */
  readonly shown: boolean;
}

const longestFailureMessage = 2000;

/**
 * Never rejects for what the model did.
 *
 * @throws ServerError LOG_WRITE_FAILED when a retry cannot be logged and put on the disk
 */
export async function callModel(context: AgentContext, scope: TurnScope, question: ModelQuestion): Promise<ModelOutcome> {
  for (let attempt = 1; ; attempt += 1) {
    const stream = new AnswerStream(context, scope, question);
    const settled = await stream.run();
    const partial = stream.partial();
    if (!(settled instanceof Error)) return { kind: scope.ended ? 'stopped' : 'answer', partial, finish: settled };
    if (scope.ended) return { kind: 'stopped', partial, finish: undefined };
    if (!(await waitForRetry(context, scope, { attempt, step: question.step, failure: settled }))) {
      return { kind: 'failed', partial, failure: settled };
    }
    // The retry never happened, so what the person saw of this attempt is what there is.
    if (scope.ended) return { kind: 'stopped', partial, finish: undefined };
  }
}

interface FailedAttempt {
  /** From 1. */
  readonly attempt: number;
  readonly step: number;
  readonly failure: Error;
}

/** Says whether there is to be another attempt, after waiting for it. An oversized request is never sent again as it is. */
async function waitForRetry(context: AgentContext, scope: TurnScope, { attempt, step, failure }: FailedAttempt): Promise<boolean> {
  if (!(failure instanceof ModelFailure) || failure.code === 'CONTEXT_WINDOW') return false;
  const delayMs = context.nextDelay(attempt, failure, context.random);
  if (delayMs === undefined) return false;
  const { maxAttempts } = context;
  const message = failure.message.slice(0, longestFailureMessage);
  scope.record({ type: 'llm/retry', data: { turn: scope.turn, step, attempt, maxAttempts, delayMs, code: failure.code, message } });
  await scope.barrier();
  await context.sleep(delayMs, scope.signal);
  return true;
}
