/**
 * One question to the model, with its retries. Shows deltas as they come, and hands the whole answer back as a value.
 *
 * Every attempt stands behind the budgets and a place at the provider, and is counted, whatever becomes of it. Retrying is
 * safe here because no tool of this answer has run yet. Logs nothing but waits and retries: what becomes of the answer is
 * the step's business.
 */
import { ModelFailure, type ModelFinish, type ModelRequest } from '../model/model-adapter.ts';
import type { AgentContext } from './agent-context.ts';
import { AnswerStream, type PartialAnswer } from './answer-stream.ts';
import { slotReport, takePlace } from './model-place.ts';
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
  /** Estimated size of the request, for a provider that reports none. */
  readonly inputTokens: number;
}

const longestFailureMessage = 2000;
const nothingSaid: PartialAnswer = { messageId: '', text: '', reasoning: '', shownCalls: new Map() };

/**
 * Never rejects for what the model did. A spent budget ends the turn instead of the next attempt.
 *
 * @throws ServerError LOG_WRITE_FAILED when a wait or a retry cannot be logged and put on the disk, or what the slots throw
 */
export async function callModel(context: AgentContext, scope: TurnScope, question: ModelQuestion): Promise<ModelOutcome> {
  let partial = nothingSaid;
  for (let attempt = 1; ; attempt += 1) {
    const stream = await tryOnce(context, scope, question);
    // There was no such attempt, so what the person saw of the one before is what there is.
    if (stream === undefined) return { kind: 'stopped', partial, finish: undefined };
    const { settled } = stream;
    partial = stream.partial;
    if (!(settled instanceof Error)) return { kind: scope.ended ? 'stopped' : 'answer', partial, finish: settled };
    if (scope.ended) return { kind: 'stopped', partial, finish: undefined };
    if (!(await waitForRetry(context, scope, { attempt, step: question.step, failure: settled }))) {
      return { kind: 'failed', partial, failure: settled };
    }
    if (scope.ended) return { kind: 'stopped', partial, finish: undefined };
  }
}

interface Attempt {
  readonly partial: PartialAnswer;
  readonly settled: ModelFinish | Error;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

/** `undefined` when the turn ended before the model was called. */
async function tryOnce(context: AgentContext, scope: TurnScope, question: ModelQuestion): Promise<Attempt | undefined> {
  if (scope.endSpentInStep()) return undefined;
  const place = await takePlace(context, scope, question.step);
  if (place === undefined) return undefined;
  const startedAt = context.wallClock();
  const stream = new AnswerStream(context, scope, question);
  const settled = await stream.run();
  place.release(slotReport(settled));
  const partial = stream.partial();
  count(context, scope, question, { partial, settled, startedAt });
  return { partial, settled, startedAt };
}

/** A call that failed before it said a word is taken to have cost nothing. */
function count(context: AgentContext, scope: TurnScope, { inputTokens }: ModelQuestion, { partial, settled, startedAt }: Attempt): void {
  const said = partial.text.length + partial.reasoning.length;
  if (settled instanceof Error && said === 0) return;
  const finish = settled instanceof Error ? undefined : settled;
  const callChars = (finish?.toolCalls ?? []).reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  const outputTokens = context.history.tokensOf(said + callChars);
  scope.usage.addModelCall(finish?.usage, { inputTokens, outputTokens }, startedAt);
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
