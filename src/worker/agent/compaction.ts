/**
 * Makes room when the model's window fills: first large old results are cut, then the oldest whole units give way to a
 * summary that the model writes. The log keeps every original. A person may ask for the summary at any time, too.
 *
 * One attempt a turn. It must shrink the history, else the turn ends with an honest error where it no longer fits.
 */
import type { TurnEndReason } from '../../shared/events.ts';
import type { AgentContext } from './agent-context.ts';
import { contextUse } from './context-use.ts';
import { type HistoryPrefix, prunableCalls, prunableImages } from './history-cuts.ts';
import { summaryUnit, unitChars } from './history-unit.ts';
import { callModel, type ModelOutcome } from './model-call.ts';
import { recordHeader, type RequestEnvelope, requestEnvelope } from './request-envelope.ts';
import { takeInstructions } from './take-instructions.ts';
import type { TurnScope } from './turn-scope.ts';

/** Shares of the window: where compaction starts, and how much of the newest history stays as it is. */
const startAt = 0.8;
const keepRecent = 0.16;

const pruneOverChars = 8192;
/** Four fifths head, one fifth tail. */
const pruneKeepChars = 5120;
const pruneKeepAnswers = 2;
const summaryMaxTokens = 8192;
/** Base64 that a request may carry as images, whatever room the window has: providers bound the bytes of a request, too. */
const mostImageChars = 32 * 1024 * 1024;

const summaryInstruction = `Write a summary of the conversation up to here. It will replace the conversation, so whoever goes on has only this text.
Keep: what the person asked for, in their words where they matter; what was decided and why; files read or changed, with paths; commands run and what they showed; what is done, what is not, and the next step.
Leave out what no longer matters. Do not call tools. Answer with the summary alone.`;

/** Of a summary that a person asked for. */
const mostInstructionChars = 4000;

/** What a summary that a person asked for has come to. */
export type Compaction =
  /** Estimated tokens of a request with the history before and after. */
  { readonly kind: 'done'; readonly before: number; readonly after: number } | { readonly kind: 'failed'; readonly why: string };

/** Why no room could be made. */
type Failure = Extract<TurnEndReason, { kind: 'error' }>;

/** `undefined` when the turn has ended. */
type Summary = { readonly kind: 'done' } | { readonly kind: 'failed'; readonly why: string } | undefined;

/**
 * Before a step: makes room if the next request would fill most of the window. Ends the turn when it would not fit at all.
 *
 * @throws ServerError LOG_WRITE_FAILED
 */
export async function fitContext(context: AgentContext, scope: TurnScope, envelope: RequestEnvelope): Promise<void> {
  const { contextWindow } = context.model;
  if (context.history.imageChars > mostImageChars) pruneImages(context, scope);
  if (fill(context, envelope) < startAt || scope.compactionFailed) return;
  prune(context, scope, pruneKeepAnswers);
  if (fill(context, envelope) < startAt) return;
  const failure = await makeRoom(context, scope, envelope);
  if (failure === undefined || scope.ended) return;
  scope.compactionFailed = true;
  // The estimate is rough: between the mark and the full window the provider has the last word.
  if (context.history.estimateTokens(envelope.chars) >= contextWindow) scope.end(failure);
}

/**
 * After the provider refused a request as too large: makes room whatever the estimate says. Says whether the request is
 * worth sending again; if not, the turn has ended.
 *
 * @throws ServerError LOG_WRITE_FAILED
 */
export async function recoverContext(context: AgentContext, scope: TurnScope, envelope: RequestEnvelope): Promise<boolean> {
  const before = context.history.estimateTokens(envelope.chars);
  prune(context, scope, 0);
  // Results that were cut to half the request are room enough; else the refused text itself has to be summarized.
  if (context.history.estimateTokens(envelope.chars) <= before / 2) return true;
  const failure = scope.compactionFailed ? noRoom : await makeRoom(context, scope, envelope);
  if (scope.ended) return false;
  if (failure !== undefined) scope.end(failure);
  return failure === undefined;
}

/**
 * The body of a turn that replaces the whole conversation by a summary, which keeps what `instructions` ask for. Ends the turn;
 * `undefined` when something else has ended it before.
 *
 * @throws ServerError LOG_WRITE_FAILED
 */
export async function compactNow(context: AgentContext, scope: TurnScope, instructions: string): Promise<Compaction | undefined> {
  context.model.takeChoice?.();
  // The system text must be the one of the next prompt, too: providers cache it.
  if (context.history.prefix(0) !== undefined) await takeInstructions(context, scope);
  if (scope.ended) return undefined;
  const envelope = requestEnvelope(context);
  const before = context.history.estimateTokens(envelope.chars);
  // The request for the summary has to fit, too.
  if (fill(context, envelope) >= startAt) prune(context, scope, 0);
  const prefix = context.history.prefix(0);
  if (prefix !== undefined) recordHeader(context, scope, envelope);
  const asked = instructions.slice(0, mostInstructionChars);
  const summary = prefix === undefined ? nothingToSummarize : await summarize(context, scope, { envelope, prefix, instructions: asked });
  if (summary === undefined || !scope.end({ kind: 'completed' })) return undefined;
  return summary.kind === 'failed' ? summary : { ...summary, before, after: context.history.estimateTokens(envelope.chars) };
}

function fill(context: AgentContext, envelope: RequestEnvelope): number {
  return context.history.estimateTokens(envelope.chars) / context.model.contextWindow;
}

function prune(context: AgentContext, scope: TurnScope, keepAnswers: number): void {
  const callIds = prunableCalls(context.history.units, pruneOverChars, keepAnswers);
  const messageIds = context.history.imageChars > 0 ? prunableImages(context.history.units, context.history.turn) : [];
  if (callIds.length + messageIds.length > 0) recordPruned(scope, callIds, messageIds);
}

function pruneImages(context: AgentContext, scope: TurnScope): void {
  const messageIds = prunableImages(context.history.units, context.history.turn);
  if (messageIds.length > 0) recordPruned(scope, [], messageIds);
}

function recordPruned(scope: TurnScope, callIds: readonly string[], messageIds: readonly string[]): void {
  const images = messageIds.length === 0 ? {} : { messageIds };
  scope.record({ type: 'history/pruned', data: { callIds, keepChars: pruneKeepChars, ...images } });
}

/** `undefined` where there is room now, or where the turn has ended. */
async function makeRoom(context: AgentContext, scope: TurnScope, envelope: RequestEnvelope): Promise<Failure | undefined> {
  const prefix = choosePrefix(context, scope);
  if (prefix === undefined) return noRoom;
  const summary = await summarize(context, scope, { envelope, prefix });
  if (summary?.kind !== 'failed') return undefined;
  const message = `The conversation no longer fits the model's context window, and it could not be summarized: ${summary.why}. Start a new session.`;
  return { kind: 'error', code: 'CONTEXT_WINDOW', message };
}

interface SummaryOrder {
  readonly envelope: RequestEnvelope;
  readonly prefix: HistoryPrefix;
  /** A person's words. */
  readonly instructions?: string;
}

async function summarize(context: AgentContext, scope: TurnScope, order: SummaryOrder): Promise<Summary> {
  const { prefix } = order;
  await scope.barrier();
  if (scope.ended) return undefined;
  const outcome = await askForSummary(context, scope, order);
  if (outcome.kind === 'stopped') return undefined;
  if (outcome.kind === 'failed') return summaryFailed('the model did not answer');
  const { finish, partial } = outcome;
  if (finish.reason === 'refusal') return summaryFailed('the model refused');
  const summary = finish.reason === 'length' ? `${partial.text.trim()}\n[The summary was cut off here]` : partial.text.trim();
  if (partial.text.trim() === '') return summaryFailed('the model wrote none');
  const size = context.history.tokensOf(unitChars(summaryUnit(prefix.throughSeq, summary)));
  if (size >= prefix.tokens) return summaryFailed('the summary was not shorter');
  const usage = finish.usage === undefined ? {} : { usage: finish.usage };
  const use = contextUse(context, { tokens: size - prefix.tokens });
  scope.record({ type: 'history/compacted', data: { throughSeq: prefix.throughSeq, summary, ...usage, context: use } });
  return { kind: 'done' };
}

/** Where the newest results alone fill too much, keeping them whole would leave no room to summarize into. */
function choosePrefix(context: AgentContext, scope: TurnScope): HistoryPrefix | undefined {
  const total = context.history.estimateTokens(0);
  // A window that is smaller than configured shows as a refusal of a short history: then a share of the history counts.
  const keepTokens = Math.min(context.model.contextWindow, total) * keepRecent;
  const prefix = context.history.prefix(keepTokens);
  const keptTokens = total - (prefix?.tokens ?? 0);
  if (keptTokens <= context.model.contextWindow / 2) return prefix;
  prune(context, scope, 0);
  return context.history.prefix(keepTokens);
}

/** The same system text and tools as ever, so that providers find the beginning of the request in their cache. */
function askForSummary(
  context: AgentContext,
  scope: TurnScope,
  { envelope, prefix, instructions = '' }: SummaryOrder,
): Promise<ModelOutcome> {
  const { system, tools } = envelope;
  const text = instructions === '' ? summaryInstruction : `${summaryInstruction}\nThe person asks to keep in particular:\n${instructions}`;
  const messages = [...prefix.messages, { role: 'user' as const, text }];
  const inputTokens = prefix.tokens + context.history.tokensOf(envelope.chars);
  const maxOutputTokens = Math.min(summaryMaxTokens, scope.limits.outputCap(inputTokens)?.maxTokens ?? Infinity);
  const request = { system, tools, messages, maxOutputTokens };
  return callModel(context, scope, { request, step: scope.step, shown: false, inputTokens });
}

const noRoom: Failure = {
  kind: 'error',
  code: 'CONTEXT_WINDOW',
  message: "The conversation no longer fits the model's context window, and nothing of it can be summarized. Start a new session.",
};

const nothingToSummarize = { kind: 'failed', why: 'there is nothing to summarize' } as const;

function summaryFailed(why: string): Summary {
  return { kind: 'failed', why };
}
