/**
 * One step of a turn: a model call and the tools it asked for. Everything is logged before it is acted on.
 */
import type { EventData, TurnEndReason } from '../../shared/events.ts';
import { ModelFailure, type ModelFinish } from '../model/model-adapter.ts';
import { fitMemory } from '../memory/history-memory.ts';
import type { AgentContext } from './agent-context.ts';
import type { PartialAnswer } from './answer-stream.ts';
import { type OutputCap, reasonOf } from './budget.ts';
import { fitContext, recoverContext } from './compaction.ts';
import { contextUse } from './context-use.ts';
import { errorReason } from './end-reason.ts';
import { callModel, type ModelOutcome } from './model-call.ts';
import { recordMessage } from './record-message.ts';
import { type RequestEnvelope, recordHeader, requestEnvelope } from './request-envelope.ts';
import { complete, takeFinalAnswer } from './required-answer.ts';
import { planCalls, truncatedCalls, uniqueCalls } from './tool-calls.ts';
import { runCalls } from './tool-scheduler.ts';
import type { TurnScope } from './turn-scope.ts';

/**
 * Runs the next step. Afterwards either the turn has a reason to end, or it goes on.
 *
 * @throws ServerError LOG_WRITE_FAILED; the turn has then ended with it
 */
export async function runStep(context: AgentContext, scope: TurnScope): Promise<void> {
  for (const notice of [context.stepNotice?.(), scope.notices.next()]) {
    if (notice !== undefined) context.inbox.addNotice(notice);
  }
  recordClaimed(context, scope);
  const step = scope.usage.steps + 1;
  scope.step = step;
  context.model.takeChoice?.();
  fitMemory(context, scope);
  const envelope = requestEnvelope(context);
  await fitContext(context, scope, envelope);
  if (scope.ended) return;
  recordHeader(context, scope, envelope);
  scope.record({ type: 'step/start', data: { turn: scope.turn, step } });
  scope.usage.steps = step;
  await takeAnswer(context, scope, envelope);
  // A step that was cut short may have calls without results; the turn's end closes these first.
  if (!scope.ended) scope.record({ type: 'step/end', data: { turn: scope.turn, step, context: contextUse(context) } });
}

/** Logs what waits in the inbox, so that the next request contains it. */
function recordClaimed(context: AgentContext, scope: TurnScope): void {
  context.inbox.claim((message) => recordMessage(context, scope, message));
}

async function takeAnswer(context: AgentContext, scope: TurnScope, envelope: RequestEnvelope): Promise<void> {
  let asked = await ask(context, scope, envelope);
  if (isContextFailure(asked) && (await recoverContext(context, scope, envelope))) asked = await ask(context, scope, envelope);
  const { outcome, cap } = asked;
  if (outcome.kind === 'answer') {
    await takeFinished(context, scope, envelope, { ...outcome, cap });
    return;
  }
  // First the reason: when keeping the text fails too, the turn still ended for the failure.
  if (outcome.kind === 'failed') scope.end(errorReason(outcome.failure));
  keepPartial(scope, outcome.partial, outcome.kind === 'stopped' ? outcome.finish : undefined);
}

interface Asked {
  readonly outcome: ModelOutcome;
  /** What a budget left for the answer. */
  readonly cap: OutputCap | undefined;
}

async function ask(context: AgentContext, scope: TurnScope, envelope: RequestEnvelope): Promise<Asked> {
  // A question changes nothing outside, so it does not wait for the disk: each barrier costs a first token its time. What is done
  // with the answer stands behind a barrier of its own.
  context.journal.syncSoon();
  const { system, tools } = envelope;
  const inputTokens = context.history.estimateTokens(envelope.chars);
  const cap = scope.limits.outputCap(inputTokens);
  const messages = context.history.messages();
  const request = { system, tools, messages, ...(cap === undefined ? {} : { maxOutputTokens: cap.maxTokens }) };
  return { outcome: await callModel(context, scope, { request, step: scope.step, shown: true, inputTokens }), cap };
}

function isContextFailure({ outcome }: Asked): boolean {
  return outcome.kind === 'failed' && outcome.failure instanceof ModelFailure && outcome.failure.code === 'CONTEXT_WINDOW';
}

async function takeFinished(
  context: AgentContext,
  scope: TurnScope,
  envelope: RequestEnvelope,
  { partial, finish, cap }: Extract<ModelOutcome, { kind: 'answer' }> & Pick<Asked, 'cap'>,
): Promise<void> {
  const { usage } = finish;
  // The provider's own count corrects the estimate.
  if (usage !== undefined) context.history.calibrate(envelope.chars, usage.inputTokens + usage.cacheReadTokens);
  const { step } = scope;
  const toolCalls = finish.reason === 'refusal' ? [] : uniqueCalls(context, scope, finish.toolCalls, partial.shownCalls);
  scope.record({
    type: 'assistant/message',
    data: { ...answerData(scope, partial, finish), toolCalls, finish: finishOf(finish, toolCalls.length) },
  });
  if (finish.reason === 'length') {
    await runCalls(context, scope, step, truncatedCalls(toolCalls));
    scope.end(cutBy(context, cap, partial, finish));
  } else if (finish.reason === 'refusal') {
    scope.end({ kind: 'refusal' });
  } else if (toolCalls.length > 0) {
    const planned = planCalls(context, scope, toolCalls);
    await runCalls(context, scope, step, planned);
    takeFinalAnswer(context, scope, planned);
  } else if (!context.inbox.hasSteers) {
    complete(context, scope);
  }
}

function finishOf(finish: ModelFinish, calls: number): EventData['assistant/message']['finish'] {
  if (finish.reason === 'length' || finish.reason === 'refusal') return finish.reason;
  return calls > 0 ? 'tool-calls' : 'stop';
}

/**
 * Why an answer is too short: a budget of ours capped it, or the model has a limit of its own. A provider that counts
 * nothing leaves a guess, which may be half of the truth.
 */
function cutBy(context: AgentContext, cap: OutputCap | undefined, partial: PartialAnswer, { usage }: ModelFinish): TurnEndReason {
  const output = usage?.outputTokens ?? 2 * context.history.tokensOf(partial.text.length + partial.reasoning.length);
  return cap !== undefined && output >= cap.maxTokens ? reasonOf(cap.limit) : { kind: 'max-tokens' };
}

/** Keeps what the person saw of an answer that was cut short. Calls are left out: they may be incomplete. */
function keepPartial(scope: TurnScope, partial: PartialAnswer, finish: ModelFinish | undefined): void {
  if (partial.text === '' && partial.reasoning === '') return;
  scope.record({ type: 'assistant/message', data: { ...answerData(scope, partial, finish), toolCalls: [], finish: 'interrupted' } });
}

function answerData(scope: TurnScope, { messageId, text, reasoning }: PartialAnswer, finish: ModelFinish | undefined) {
  return {
    turn: scope.turn,
    step: scope.step,
    messageId,
    text,
    reasoning,
    ...(finish?.usage === undefined ? {} : { usage: finish.usage }),
    ...(finish?.model === undefined ? {} : { model: finish.model }),
  };
}
