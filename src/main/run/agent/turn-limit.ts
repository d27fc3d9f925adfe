/**
 * Time limits of a job as the runner keeps them: all of them for an agent that knows nothing of budgets. One that does keeps them by itself, and
 * counts no time in which a turn waits for its place; should it hang, its deadline ends it all the same, with some patience.
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
    const leftMs = deadline - Date.now();
    const limitMs = keptByAgent ? leftMs + patienceMs : Math.min(maxWallMs, leftMs);
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
