/**
 * Reads what an agent answers, without trusting its form: this server's `_meta["dsh-acp"]`, and what other agents say about tokens and costs.
 */
import type { JsonValue } from '../../../shared/errors.ts';
import type { TokenUsage } from '../../../shared/events.ts';
import type { JobUsage } from '../job-result.ts';

export const extensionName = 'dsh-acp';

type Members = Readonly<Record<string, unknown>>;

export function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : {};
}

/** What the agent said under this server's name. */
export function extensionOf(answer: unknown): Members | undefined {
  const said = membersOf(membersOf(answer)['_meta'])[extensionName];
  return typeof said === 'object' && said !== null && !Array.isArray(said) ? (said as Members) : undefined;
}

/** What one turn used and said. */
export interface TurnAnswer {
  readonly stopReason: string | undefined;
  readonly usage: JobUsage | undefined;
  readonly costUsd: number | undefined;
  readonly text: string | undefined;
  readonly structured: JsonValue | undefined;
}

export function readTurnAnswer(answer: unknown): TurnAnswer {
  const { stopReason, usage: plainUsage } = membersOf(answer);
  const said = extensionOf(answer);
  const own = membersOf(said?.['usage']);
  return {
    stopReason: typeof stopReason === 'string' ? stopReason : undefined,
    usage: said?.['usage'] === undefined ? readPlainUsage(plainUsage) : readUsage(own),
    costUsd: amount(own['costUsd']) ?? amount(said?.['costUsd']),
    text: typeof said?.['text'] === 'string' ? said['text'] : undefined,
    structured: said?.['structured'] as JsonValue | undefined,
  };
}

/** What an error of this server says about the turn that it ended. */
export function readErrorUsage(data: unknown): Pick<TurnAnswer, 'usage' | 'costUsd'> {
  const { usage } = membersOf(data);
  if (usage === undefined) return { usage: undefined, costUsd: undefined };
  return { usage: readUsage(membersOf(usage)), costUsd: amount(membersOf(usage)['costUsd']) };
}

function readUsage(said: Members): JobUsage {
  const guessedTokens = count(said['guessedTokens']);
  const { subagents } = said;
  return {
    ...readTokens(said),
    steps: count(said['steps']),
    toolCalls: count(said['toolCalls']),
    ...(guessedTokens === 0 ? {} : { guessedTokens }),
    ...(subagents === undefined ? {} : { subagents: readTokens(membersOf(subagents)) }),
  };
}

function readTokens(said: Members): TokenUsage {
  return {
    inputTokens: count(said['inputTokens']),
    outputTokens: count(said['outputTokens']),
    cacheReadTokens: count(said['cacheReadTokens']),
    reasoningTokens: count(said['reasoningTokens']),
  };
}

/** ACP's own usage of a turn, which only some agents send. */
function readPlainUsage(value: unknown): JobUsage | undefined {
  if (value === undefined || value === null) return undefined;
  const said = membersOf(value);
  return {
    inputTokens: count(said['inputTokens']),
    outputTokens: count(said['outputTokens']),
    cacheReadTokens: count(said['cachedReadTokens']),
    reasoningTokens: count(said['thoughtTokens']),
    steps: 0,
    toolCalls: 0,
  };
}

export function count(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0;
}

function amount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** The model that a new session begins with, which some agents say. */
export function modelOfSession(opened: unknown): string | undefined {
  const { currentModelId } = membersOf(membersOf(opened)['models']);
  return typeof currentModelId === 'string' && currentModelId !== '' ? currentModelId.slice(0, 200) : undefined;
}

/** The cost so far, of a `usage_update` that names one in dollars. */
export function costOfUpdate(update: Members): number | undefined {
  const cost = membersOf(update['cost']);
  return cost['currency'] === 'USD' ? amount(cost['amount']) : undefined;
}

export function addUsage(a: JobUsage | undefined, b: JobUsage | undefined): JobUsage | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const guessedTokens = (a.guessedTokens ?? 0) + (b.guessedTokens ?? 0);
  const subagents =
    a.subagents === undefined || b.subagents === undefined ? (a.subagents ?? b.subagents) : addTokens(a.subagents, b.subagents);
  return {
    ...addTokens(a, b),
    steps: a.steps + b.steps,
    toolCalls: a.toolCalls + b.toolCalls,
    ...(guessedTokens === 0 ? {} : { guessedTokens }),
    ...(subagents === undefined ? {} : { subagents }),
  };
}

function addTokens(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
  };
}

export function addCost(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : a + b;
}
