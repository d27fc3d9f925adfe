/**
 * What a turn has used: what providers reported, what subagents did, and guesses where a provider reported nothing.
 * Budgets go by all of it.
 */
import { noUsage, type TokenUsage, type TurnUsage } from '../../shared/events.ts';
import { pricesAt } from '../../shared/prices/price-hours.ts';
import type { Prices } from '../../shared/session-options.ts';
import type { SubagentUsage } from '../../shared/subagent-protocol.ts';
import { costOf, exactUsd } from './cost.ts';
import { addSubagentUsage } from './subagent-usage.ts';

/** Of a turn that never started. */
export const noTurnUsage: TurnUsage = { ...noUsage, steps: 0, toolCalls: 0, elapsedMs: 0 };

/** What a model call is taken to have used when its provider does not say. */
export type UsageGuess = Pick<TokenUsage, 'inputTokens' | 'outputTokens'>;

/** When things cost what. */
export interface PriceClock {
  /** Of the model that is asked now; `undefined` while nobody said what it costs. */
  readonly prices: () => Prices | undefined;
  /** Epoch milliseconds: some prices hang on the hour. */
  readonly wallClock: () => number;
}

export class UsageMeter {
  readonly #startedAt: number;
  readonly #now: () => number;
  readonly #clock: PriceClock;
  /** US dollars of our own calls, guesses included. */
  #ownUsd = 0;
  #reported: TokenUsage = noUsage;
  #guess: UsageGuess = noUsage;
  #subagents: SubagentUsage | undefined;
  #firstTokenMs: number | undefined;
  steps = 0;
  toolCalls = 0;

  constructor(now: () => number, clock: PriceClock) {
    this.#now = now;
    this.#clock = clock;
    this.#startedAt = now();
  }

  get elapsedMs(): number {
    return Math.max(0, this.#now() - this.#startedAt);
  }

  /** Input and output of all model calls so far, guesses and subagents included. */
  get spentTokens(): number {
    return tokensOf(this.#reported) + this.#guessedTokens + (this.#subagents === undefined ? 0 : tokensOf(this.#subagents));
  }

  /** US dollars, guesses and subagents included; without prices only what subagents said themselves. */
  get costUsd(): number {
    return exactUsd(this.#ownUsd + (this.#subagents?.costUsd ?? 0));
  }

  /**
   * `guess` counts when the provider reported nothing.
   *
   * @param startedAt epoch milliseconds at which the call began, where the time makes a difference to its price
   */
  addModelCall(usage: TokenUsage | undefined, guess: UsageGuess, startedAt?: number): void {
    this.#addCost(usage ?? { ...guess, cacheReadTokens: 0 }, startedAt);
    if (usage === undefined) {
      this.#guess = {
        inputTokens: this.#guess.inputTokens + guess.inputTokens,
        outputTokens: this.#guess.outputTokens + guess.outputTokens,
      };
      return;
    }
    this.#reported = {
      inputTokens: this.#reported.inputTokens + usage.inputTokens,
      outputTokens: this.#reported.outputTokens + usage.outputTokens,
      cacheReadTokens: this.#reported.cacheReadTokens + usage.cacheReadTokens,
      reasoningTokens: this.#reported.reasoningTokens + usage.reasoningTokens,
    };
  }

  /** @param usage checked */
  addSubagent(usage: SubagentUsage): void {
    this.#subagents = addSubagentUsage(this.#subagents, usage);
  }

  /** A delta was shown: the first one sets the time to the first token. */
  noteShown(): void {
    if (this.#firstTokenMs === undefined) this.#firstTokenMs = this.elapsedMs;
  }

  total(): TurnUsage {
    const guessedTokens = this.#guessedTokens;
    return {
      ...this.#reported,
      steps: this.steps,
      toolCalls: this.toolCalls,
      elapsedMs: Math.round(this.elapsedMs),
      ...(guessedTokens === 0 ? {} : { guessedTokens }),
      ...(this.#clock.prices() === undefined ? {} : { costUsd: this.costUsd }),
      ...(this.#firstTokenMs === undefined ? {} : { firstTokenMs: Math.round(this.#firstTokenMs) }),
      ...(this.#subagents === undefined ? {} : { subagents: this.#subagents }),
    };
  }

  #addCost(tokens: Omit<TokenUsage, 'reasoningTokens'>, startedAt: number | undefined): void {
    const prices = this.#clock.prices();
    if (prices === undefined) return;
    const now = this.#clock.wallClock();
    this.#ownUsd = exactUsd(this.#ownUsd + costOf(pricesAt(prices, startedAt ?? now, now), tokens));
  }

  get #guessedTokens(): number {
    return this.#guess.inputTokens + this.#guess.outputTokens;
  }
}

/** Input, cache reads included, and output. */
export function tokensOf({ inputTokens, outputTokens, cacheReadTokens }: TokenUsage): number {
  return inputTokens + outputTokens + cacheReadTokens;
}
