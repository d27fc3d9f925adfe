/**
 * What a turn has used: what providers reported, what subagents did, and guesses where a provider reported nothing.
 * Budgets go by all of it.
 */
import { noUsage, type TokenUsage, type TurnUsage } from '../../shared/events.ts';
import type { Prices } from '../../shared/session-options.ts';
import type { SubagentUsage } from '../../shared/subagent-protocol.ts';
import { costOf, exactUsd } from './cost.ts';
import { addSubagentUsage } from './subagent-usage.ts';

/** Of a turn that never started. */
export const noTurnUsage: TurnUsage = { ...noUsage, steps: 0, toolCalls: 0, elapsedMs: 0 };

/** What a model call is taken to have used when its provider does not say. */
export type UsageGuess = Pick<TokenUsage, 'inputTokens' | 'outputTokens'>;

export class UsageMeter {
  readonly #startedAt: number;
  readonly #now: () => number;
  readonly #prices: Prices | undefined;
  #reported: TokenUsage = noUsage;
  #guess: UsageGuess = noUsage;
  #subagents: SubagentUsage | undefined;
  #firstTokenMs: number | undefined;
  steps = 0;
  toolCalls = 0;

  constructor(now: () => number, prices: Prices | undefined) {
    this.#now = now;
    this.#prices = prices;
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
    const subagents = this.#subagents?.costUsd ?? 0;
    if (this.#prices === undefined) return subagents;
    const { inputTokens, outputTokens, cacheReadTokens } = this.#reported;
    const own = costOf(this.#prices, {
      inputTokens: inputTokens + this.#guess.inputTokens,
      outputTokens: outputTokens + this.#guess.outputTokens,
      cacheReadTokens,
    });
    return exactUsd(own + subagents);
  }

  /** `guess` counts when the provider reported nothing. */
  addModelCall(usage: TokenUsage | undefined, guess: UsageGuess): void {
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
      ...(this.#prices === undefined ? {} : { costUsd: this.costUsd }),
      ...(this.#firstTokenMs === undefined ? {} : { firstTokenMs: Math.round(this.#firstTokenMs) }),
      ...(this.#subagents === undefined ? {} : { subagents: this.#subagents }),
    };
  }

  get #guessedTokens(): number {
    return this.#guess.inputTokens + this.#guess.outputTokens;
  }
}

/** Input, cache reads included, and output. */
export function tokensOf({ inputTokens, outputTokens, cacheReadTokens }: TokenUsage): number {
  return inputTokens + outputTokens + cacheReadTokens;
}
