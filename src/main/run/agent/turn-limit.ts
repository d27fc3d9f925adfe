/**
 * Time limits of a job as the runner keeps them: exactly for an agent that knows nothing of budgets, and with some patience for one that does,
 * should it hang.
 */
import type { Budget } from '../../../shared/session-options.ts';

const patienceMs = 60_000;
/** What a timer of Node takes. */
const longestTimerMs = 2_147_483_647;

export class TurnLimit {
  readonly #over = new AbortController();
  readonly #timer: NodeJS.Timeout | undefined;

  /** Counts from now. @param keptByAgent whether the agent knows the budget */
  constructor(budget: Budget | undefined, keptByAgent: boolean) {
    const { maxWallMs = Infinity, deadline = Infinity } = budget ?? {};
    const limitMs = Math.min(maxWallMs, deadline - Date.now()) + (keptByAgent ? patienceMs : 0);
    if (limitMs <= longestTimerMs) this.#timer = setTimeout(() => this.#over.abort(), Math.max(0, limitMs));
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
