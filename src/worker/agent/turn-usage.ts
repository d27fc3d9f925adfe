/**
 * What a turn has used: what providers reported, and, for the token budget only, guesses where they reported nothing.
 */
import { noUsage, type TokenUsage, type TurnUsage } from '../../shared/events.ts';

/** Of a turn that never started. */
export const noTurnUsage: TurnUsage = { ...noUsage, steps: 0, toolCalls: 0, elapsedMs: 0 };

export class UsageMeter {
  readonly #startedAt: number;
  readonly #now: () => number;
  #reported: TokenUsage = noUsage;
  #guessed = 0;
  steps = 0;
  toolCalls = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.#startedAt = now();
  }

  get elapsedMs(): number {
    return Math.max(0, this.#now() - this.#startedAt);
  }

  /** Input and output of all model calls so far, guesses included. */
  get spentTokens(): number {
    const { inputTokens, outputTokens, cacheReadTokens } = this.#reported;
    return inputTokens + outputTokens + cacheReadTokens + this.#guessed;
  }

  /** `guess` counts when the provider reported nothing. */
  addModelCall(usage: TokenUsage | undefined, guess: number): void {
    if (usage === undefined) {
      this.#guessed += guess;
      return;
    }
    this.#reported = {
      inputTokens: this.#reported.inputTokens + usage.inputTokens,
      outputTokens: this.#reported.outputTokens + usage.outputTokens,
      cacheReadTokens: this.#reported.cacheReadTokens + usage.cacheReadTokens,
      reasoningTokens: this.#reported.reasoningTokens + usage.reasoningTokens,
    };
  }

  /** Reported tokens only. */
  total(): TurnUsage {
    return { ...this.#reported, steps: this.steps, toolCalls: this.toolCalls, elapsedMs: Math.round(this.elapsedMs) };
  }
}
