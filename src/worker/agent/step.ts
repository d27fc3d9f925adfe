/**
 * One step of a turn: a model call and the tools it asked for. Everything is logged before it is acted on.
 */
import type { EventData } from '../../shared/events.ts';
import { ModelFailure, type ModelFinish } from '../model/model-adapter.ts';
import type { AgentContext } from './agent-context.ts';
import type { PartialAnswer } from './answer-stream.ts';
import { isLastStep, outputTokensLeft } from './budget.ts';
import { fitContext, recoverContext } from './compaction.ts';
import { errorReason } from './end-reason.ts';
import { callModel, type ModelOutcome } from './model-call.ts';
import { type RequestEnvelope, recordHeader, requestEnvelope } from './request-envelope.ts';
import { planCalls, truncatedCalls, uniqueCalls } from './tool-calls.ts';
import { runCalls } from './tool-scheduler.ts';
import type { TurnScope } from './turn-scope.ts';

const lastStepNotice =
  'This is the last step of this turn: no tool call after it will be answered by you. Say now what is done and what is not.';

/**
 * Runs the next step. Afterwards either the turn has a reason to end, or it goes on.
 *
 * @throws ServerError LOG_WRITE_FAILED; the turn has then ended with it
 */
export async function runStep(context: AgentContext, scope: TurnScope): Promise<void> {
  if (isLastStep(context.settings.budget, scope.usage)) context.inbox.addNotice(lastStepNotice);
  recordClaimed(context, scope);
  const step = scope.usage.steps + 1;
  scope.step = step;
  const envelope = requestEnvelope(context);
  await fitContext(context, scope, envelope);
  if (scope.ended) return;
  recordHeader(context, scope, envelope);
  scope.record({ type: 'step/start', data: { turn: scope.turn, step } });
  scope.usage.steps = step;
  await takeAnswer(context, scope, envelope);
  // A step that was cut short may have calls without results; the turn's end closes these first.
  if (!scope.ended) scope.record({ type: 'step/end', data: { turn: scope.turn, step } });
}

/** Logs what waits in the inbox, so that the next request contains it. */
function recordClaimed(context: AgentContext, scope: TurnScope): void {
  for (const { source, content } of context.inbox.claim()) {
    scope.record({ type: 'user/message', data: { turn: scope.turn, messageId: context.newId(), source, content } });
  }
}

async function takeAnswer(context: AgentContext, scope: TurnScope, envelope: RequestEnvelope): Promise<void> {
  let outcome = await ask(context, scope, envelope);
  if (isContextFailure(outcome) && (await recoverContext(context, scope, envelope))) outcome = await ask(context, scope, envelope);
  if (outcome === undefined) return;
  if (outcome.kind === 'answer') {
    await takeFinished(context, scope, envelope, outcome);
    return;
  }
  // First the reason: when keeping the text fails too, the turn still ended for the failure.
  if (outcome.kind === 'failed') scope.end(errorReason(outcome.failure));
  keepPartial(scope, outcome.partial, outcome.kind === 'stopped' ? outcome.finish : undefined);
}

/** `undefined` when the turn ended before the model was called. */
async function ask(context: AgentContext, scope: TurnScope, envelope: RequestEnvelope): Promise<ModelOutcome | undefined> {
  await scope.barrier();
  if (scope.ended) return undefined;
  const { system, tools } = envelope;
  const maxOutputTokens = outputTokensLeft(context.settings.budget, scope.usage);
  const request = { system, tools, messages: context.history.messages(), ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }) };
  return callModel(context, scope, { request, step: scope.step, shown: true });
}

function isContextFailure(outcome: ModelOutcome | undefined): boolean {
  return outcome?.kind === 'failed' && outcome.failure instanceof ModelFailure && outcome.failure.code === 'CONTEXT_WINDOW';
}

async function takeFinished(
  context: AgentContext,
  scope: TurnScope,
  envelope: RequestEnvelope,
  { partial, finish }: Extract<ModelOutcome, { kind: 'answer' }>,
): Promise<void> {
  countTokens(context, scope, envelope, partial, finish);
  const { step } = scope;
  const toolCalls = finish.reason === 'refusal' ? [] : uniqueCalls(context, scope, finish.toolCalls);
  scope.record({
    type: 'assistant/message',
    data: { ...answerData(scope, partial, finish), toolCalls, finish: finishOf(finish, toolCalls.length) },
  });
  if (finish.reason === 'length') {
    await runCalls(context, scope, step, truncatedCalls(toolCalls));
    scope.end({ kind: 'max-tokens' });
  } else if (finish.reason === 'refusal') {
    scope.end({ kind: 'refusal' });
  } else if (toolCalls.length > 0) {
    await runCalls(context, scope, step, planCalls(context, scope, toolCalls));
  } else if (!context.inbox.hasSteers) {
    scope.end({ kind: 'completed' });
  }
}

function finishOf(finish: ModelFinish, calls: number): EventData['assistant/message']['finish'] {
  if (finish.reason === 'length' || finish.reason === 'refusal') return finish.reason;
  return calls > 0 ? 'tool-calls' : 'stop';
}

/** The provider's own count corrects the estimate; without one, the budget goes by the estimate. */
function countTokens(
  context: AgentContext,
  scope: TurnScope,
  envelope: RequestEnvelope,
  partial: PartialAnswer,
  { usage, toolCalls }: ModelFinish,
): void {
  const { history } = context;
  if (usage !== undefined) history.calibrate(envelope.chars, usage.inputTokens + usage.cacheReadTokens);
  const callChars = toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  const answered = history.tokensOf(partial.text.length + partial.reasoning.length + callChars);
  scope.usage.addModelCall(usage, history.estimateTokens(envelope.chars) + answered);
}

/** Keeps what the person saw of an answer that was cut short. Calls are left out: they may be incomplete. */
function keepPartial(scope: TurnScope, partial: PartialAnswer, finish: ModelFinish | undefined): void {
  if (finish?.usage !== undefined) scope.usage.addModelCall(finish.usage, 0);
  if (partial.text === '' && partial.reasoning === '') return;
  scope.record({ type: 'assistant/message', data: { ...answerData(scope, partial, finish), toolCalls: [], finish: 'interrupted' } });
}

function answerData(scope: TurnScope, partial: PartialAnswer, finish: ModelFinish | undefined) {
  return {
    turn: scope.turn,
    step: scope.step,
    ...partial,
    ...(finish?.usage === undefined ? {} : { usage: finish.usage }),
    ...(finish?.model === undefined ? {} : { model: finish.model }),
  };
}
