/**
 * The limits that hold for one turn: the server's, the client's for the turn, and the client's for all turns of the
 * session together. Whichever is reached first ends it.
 *
 * Asked before every model call and every tool call; limits of time also have a timer, since a step can hang.
 */
import type { TurnBudget } from '../../shared/config.ts';
import type { BudgetName, TurnEndReason } from '../../shared/events.ts';
import { pricesAt } from '../../shared/prices/price-hours.ts';
import type { Budget, Prices } from '../../shared/session-options.ts';
import type { BudgetLeft } from '../tools/tool.ts';
import { exactUsd } from './cost.ts';
import type { SessionLedger, SessionSums } from './session-ledger.ts';
import type { UsageMeter } from './turn-usage.ts';

export type LimitScope = 'turn' | 'session';

export interface Limit {
  readonly name: BudgetName;
  readonly scope: LimitScope;
  /** Whether a client gave it; else it is the server's own. */
  readonly byClient: boolean;
  /** Steps, calls, tokens, dollars, or milliseconds. */
  readonly max: number;
  /** In the same unit, from 0; may pass `max`. */
  readonly used: () => number;
}

export interface OutputCap {
  readonly maxTokens: number;
  /** What an answer that is cut by this cap ran into. */
  readonly limit: Limit;
}

export interface TurnLimitsOptions {
  readonly server: TurnBudget;
  readonly turn: Budget | undefined;
  readonly session: Budget | undefined;
  /** Of the model that is asked now. */
  readonly prices: () => Prices | undefined;
  readonly usage: Pick<UsageMeter, 'steps' | 'toolCalls' | 'spentTokens' | 'costUsd' | 'elapsedMs'>;
  readonly ledger: SessionLedger;
  /** Epoch milliseconds. */
  readonly wallClock: () => number;
}

/** An answer is given this much room where the budget has it, in tokens: one of a few words would help nobody. */
const usefulAnswer = 256;

export class TurnLimits {
  /** The session's first: where two are reached at once, the one that also ends later turns is named. */
  readonly all: readonly Limit[];
  readonly #prices: () => Prices | undefined;
  readonly #wallClock: () => number;
  /** Epoch milliseconds. */
  readonly #startedAt: number;

  constructor({ server, turn, session, prices, usage, ledger, wallClock }: TurnLimitsOptions) {
    this.#prices = prices;
    this.#wallClock = wallClock;
    const turnSums = (): SessionSums => {
      const { steps, toolCalls, spentTokens, costUsd, elapsedMs } = usage;
      return { steps, toolCalls, tokens: spentTokens, costUsd, elapsedMs };
    };
    const startedAt = wallClock();
    this.#startedAt = startedAt;
    this.all = [
      ...limitsOf(session, { scope: 'session', byClient: true, sums: () => ledger.sums(), wallClock, startedAt }),
      ...limitsOf(turn, { scope: 'turn', byClient: true, sums: turnSums, wallClock, startedAt }),
      ...limitsOf(server, { scope: 'turn', byClient: false, sums: turnSums, wallClock, startedAt }),
    ];
  }

  /** The limit that leaves no room for another step. */
  spent(): Limit | undefined {
    return this.all.find(isSpent);
  }

  /** The limit that leaves no room for a model call or a tool call of the step that runs, which itself is paid for. */
  spentInStep(): Limit | undefined {
    return this.all.find((limit) => limit.name !== 'steps' && limit.name !== 'tool-calls' && isSpent(limit));
  }

  /** The limit that leaves no room for counting another tool call. */
  spentToolCalls(): Limit | undefined {
    return this.all.find((limit) => limit.name === 'tool-calls' && isSpent(limit));
  }

  spentTime(): Limit | undefined {
    return this.all.find((limit) => isTime(limit) && isSpent(limit));
  }

  /** Milliseconds until the first limit of time is reached; infinite without one. */
  timeLeftMs(): number {
    return this.all.reduce((least, limit) => (isTime(limit) ? Math.min(least, limit.max - limit.used()) : least), Infinity);
  }

  /**
   * The tightest cap that a budget puts on the next answer; `undefined` without one.
   *
   * @param inputTokens estimate of what the request itself will use
   */
  outputCap(inputTokens: number): OutputCap | undefined {
    let cap: OutputCap | undefined;
    for (const limit of this.all) {
      const left = this.#outputTokensLeft(limit, inputTokens);
      if (left !== undefined && (cap === undefined || left < cap.maxTokens)) cap = { maxTokens: left, limit };
    }
    return cap;
  }

  /** What is left of the budgets that the client gave, the tighter of turn and session, nothing below zero; `undefined` without any. */
  remaining(): Budget | undefined {
    const limits = this.all.filter((limit) => limit.byClient);
    if (limits.length === 0) return undefined;
    const left = {
      deadline: this.#deadline(limits),
      maxWallMs: leastLeft(limits, 'wall-time'),
      maxSteps: leastLeft(limits, 'steps'),
      maxToolCalls: leastLeft(limits, 'tool-calls'),
      maxTokens: leastLeft(limits, 'tokens'),
      maxCostUsd: leastLeft(limits, 'cost'),
    };
    return Object.fromEntries(Object.entries(left).filter(([, value]) => value !== undefined));
  }

  /** What a delegated part of the work may use at most. */
  forDelegation(): BudgetLeft {
    const timeLeft = this.timeLeftMs();
    const maxTokens = leastLeft(this.all, 'tokens');
    const maxCostUsd = leastLeft(this.all, 'cost');
    // The server's own hold for each turn anew, there, too.
    const byClient = this.all.filter((limit) => limit.byClient);
    const maxSteps = leastLeft(byClient, 'steps');
    const maxToolCalls = leastLeft(byClient, 'tool-calls');
    return {
      ...(timeLeft === Infinity ? {} : { deadline: Math.round(this.#wallClock() + Math.max(0, timeLeft)) }),
      ...(maxTokens === undefined ? {} : { maxTokens }),
      ...(maxCostUsd === undefined ? {} : { maxCostUsd }),
      ...(maxSteps === undefined ? {} : { maxSteps }),
      ...(maxToolCalls === undefined ? {} : { maxToolCalls }),
    };
  }

  #deadline(limits: readonly Limit[]): number | undefined {
    const deadlines = limits.filter((limit) => limit.name === 'deadline').map((limit) => this.#startedAt + limit.max);
    return deadlines.length === 0 ? undefined : Math.min(...deadlines);
  }

  /** Money is turned into tokens as if all input came from the cache: what the input really costs shows in the next check. */
  #outputTokensLeft(limit: Limit, inputTokens: number): number | undefined {
    const left = limit.max - limit.used();
    if (limit.name === 'tokens') return roomOf(left, inputTokens);
    const prices = limit.name === 'cost' ? this.#prices() : undefined;
    if (prices === undefined) return undefined;
    const { output, cacheRead } = pricesAt(prices, this.#wallClock());
    if (output === 0) return undefined;
    const perToken = output / 1e6;
    return roomOf(Math.floor(left / perToken), Math.ceil((inputTokens * cacheRead) / output));
  }
}

/** How people call what is limited. */
export const limitWords: Record<BudgetName, string> = {
  steps: 'steps',
  'tool-calls': 'tool calls',
  'wall-time': 'time',
  deadline: 'time',
  tokens: 'tokens',
  cost: 'cost',
};

export function isTime({ name }: Limit): boolean {
  return name === 'wall-time' || name === 'deadline';
}

export function reasonOf(limit: Limit): TurnEndReason {
  return { kind: 'max-turn-requests', budget: limit.name, ...(limit.scope === 'session' ? { scope: limit.scope } : {}) };
}

function isSpent(limit: Limit): boolean {
  return limit.used() >= limit.max;
}

/** The tokens of an answer; never more than `left`, and a useful amount as long as `left` has it. */
function roomOf(left: number, inputTokens: number): number {
  return Math.max(1, left - inputTokens, Math.min(left, usefulAnswer));
}

const noLimits: readonly Limit[] = [];

interface LimitSource extends Pick<Limit, 'scope' | 'byClient'> {
  readonly sums: () => SessionSums;
  readonly wallClock: () => number;
  readonly startedAt: number;
}

/** Made for each turn, so only of what is limited. `0` in the server's budget means no limit. */
function limitsOf(budget: Budget | undefined, { scope, byClient, sums, wallClock, startedAt }: LimitSource): readonly Limit[] {
  if (budget === undefined) return noLimits;
  const limits: Limit[] = [];
  const limit = (name: BudgetName, max: number | undefined, used: () => number): void => {
    if (max !== undefined && (byClient || max > 0)) limits.push({ name, scope, byClient, max, used });
  };
  const { deadline } = budget;
  limit('steps', budget.maxSteps, () => sums().steps);
  limit('tool-calls', budget.maxToolCalls, () => sums().toolCalls);
  limit('wall-time', budget.maxWallMs, () => sums().elapsedMs);
  limit('deadline', deadline === undefined ? undefined : deadline - startedAt, () => wallClock() - startedAt);
  limit('tokens', budget.maxTokens, () => sums().tokens);
  limit('cost', budget.maxCostUsd, () => sums().costUsd);
  return limits;
}

/** In the limit's unit, whole but for money; `undefined` when nothing limits it. */
function leastLeft(limits: readonly Limit[], name: BudgetName): number | undefined {
  const left = limits.filter((limit) => limit.name === name).map((limit) => Math.max(0, limit.max - limit.used()));
  if (left.length === 0) return undefined;
  return name === 'cost' ? exactUsd(Math.min(...left)) : Math.round(Math.min(...left));
}
