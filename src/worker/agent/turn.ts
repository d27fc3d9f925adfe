/**
 * One turn, from its prompt to its end. Whatever happens, it ends exactly once, with every call answered and every step
 * closed in the log as far as the log can be written.
 */
import type { JsonValue } from '../../shared/errors.ts';
import type { EventData, EventInput, PromptBlock, TurnEndReason, TurnUsage } from '../../shared/events.ts';
import type { Budget } from '../../shared/session-options.ts';
import { fitMemory, fitsMemory } from '../memory/history-memory.ts';
import type { AgentContext } from './agent-context.ts';
import { contextUse, sessionCost } from './context-use.ts';
import { errorReason } from './end-reason.ts';
import type { DecidedEnd } from './open-records.ts';
import { recordMessage } from './record-message.ts';
import { runStep } from './step.ts';
import { takeInstructions } from './take-instructions.ts';
import { TimeLimit } from './time-limit.ts';
import type { TurnScope } from './turn-scope.ts';

export interface TurnEnd {
  /** `0` when the turn ended before it started. */
  readonly turn: number;
  readonly reason: TurnEndReason;
  readonly usage: TurnUsage;
  /** What is left of the budgets that the client gave, the tighter of turn and session; absent when it gave none. */
  readonly left?: Budget;
  /** The last text that the turn has committed. */
  readonly text?: string;
  /** The answer that met the session's output schema; only where the turn completed. */
  readonly structured?: JsonValue;
}

/** What a turn is for. */
export interface TurnWork {
  /** What the model is told; absent where the turn is about the conversation itself. */
  readonly prompt?: { readonly content: readonly PromptBlock[]; readonly shown?: readonly PromptBlock[] };
  /** Runs until the turn has ended. */
  readonly run: (context: AgentContext, scope: TurnScope) => Promise<void>;
}

/** The steps of the loop, for a prompt. */
export async function runSteps(context: AgentContext, scope: TurnScope): Promise<void> {
  // First the tools: the system text names them, and the instruction files stand in it.
  await context.tools.settling(scope.signal);
  await takeInstructions(context, scope);
  while (!scope.endSpent()) {
    await runStep(context, scope);
    await takeInstructions(context, scope);
  }
}

/** Never rejects: an error is a reason. The log has the turn's end, on the disk, before this fulfils. */
export async function runTurn(context: AgentContext, scope: TurnScope, work: TurnWork): Promise<TurnEnd> {
  const timeLimit = new TimeLimit(context, scope);
  try {
    closeEarlierTurn(context, scope);
    recordStart(context, scope, work);
    // Only now may the turn end by time: what is logged above must come first.
    timeLimit.start();
    await work.run(context, scope);
  } catch (error) {
    scope.end(errorReason(error));
  }
  timeLimit.stop();
  return closeTurn(context, scope);
}

/** A conversation that is too large is cut between the start and the prompt: what the person says now is not to be cut with it. */
function recordStart(context: AgentContext, scope: TurnScope, { prompt }: TurnWork): void {
  const start: EventInput = { type: 'turn/start', data: startOf(scope) };
  const data = { turn: scope.turn, messageId: scope.options.messageId ?? context.newId(), source: 'prompt' as const };
  const said: EventInput[] = prompt === undefined ? [] : [{ type: 'user/message', data: { ...data, ...prompt } }];
  if (fitsMemory(context)) {
    scope.noteFit();
    scope.recordAll([start, ...said]);
    return;
  }
  scope.record(start);
  fitMemory(context, scope);
  scope.noteFit();
  scope.recordAll(said);
}

/** What the client gave with the prompt, and nothing else. */
function startOf({ turn, options }: TurnScope): EventData['turn/start'] {
  const { key, budget, traceparent } = options;
  return {
    turn,
    ...(key === undefined ? {} : { key: key.id, payload: key.payload }),
    ...(budget === undefined ? {} : { budget }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

/** An earlier turn whose end could not be written, or that a replayed log left open. */
function closeEarlierTurn(context: AgentContext, scope: TurnScope): void {
  scope.recordAll([...context.open.closers(), ...context.open.turnCloser()]);
}

async function closeTurn(context: AgentContext, scope: TurnScope): Promise<TurnEnd> {
  const usage = scope.usage.total();
  const left = scope.limits.remaining();
  const costUsd = sessionCost(context);
  context.ledger.sealTurn();
  try {
    context.open.decideEnd(scope.turn, endOf(scope, usage));
    const closers = context.open.closers();
    scope.recordAll(closers.filter(({ type }) => type !== 'step/end'));
    const ends = closers.filter(({ type }) => type === 'step/end').map((event) => withContext(event, context, costUsd));
    if (context.inbox.hasSteers) {
      scope.recordAll(ends.splice(0));
      // What was sent into the turn too late for a step still belongs to the conversation.
      context.inbox.claimSteers((message) => recordMessage(context, scope, message));
    }
    scope.recordAll([...ends, ...context.open.turnCloser()]);
    await scope.barrier();
  } catch (error) {
    scope.replaceNaturalEnd(errorReason(error));
    context.open.decideEnd(scope.turn, endOf(scope, usage));
  }
  return {
    turn: scope.turn,
    ...endOf(scope, usage),
    ...(left === undefined ? {} : { left }),
    ...(scope.text === undefined ? {} : { text: scope.text }),
  };
}

/** The last step of a turn is closed here: its end says how full the window is, as every step's does. */
function withContext(event: EventInput, context: AgentContext, costUsd: number | undefined): EventInput {
  if (event.type !== 'step/end') return event;
  return { type: 'step/end', data: { ...event.data, context: contextUse(context, costUsd === undefined ? {} : { costUsd }) } };
}

function endOf(scope: TurnScope, usage: TurnUsage): DecidedEnd {
  const reason = scope.reason ?? errorReason(undefined);
  const { structured } = scope;
  return { reason, usage, ...(structured === undefined || reason.kind !== 'completed' ? {} : { structured: structured.value }) };
}
