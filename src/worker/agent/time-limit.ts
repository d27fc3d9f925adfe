/**
 * Ends the turn when its time is up, by a deadline or by a limit of its length. Costs nothing where there is neither.
 */
import type { AgentContext } from './agent-context.ts';
import { isTime } from './budget.ts';
import type { TurnScope } from './turn-scope.ts';

export class TimeLimit {
  readonly #context: AgentContext;
  readonly #scope: TurnScope;
  /** Made only where there is a limit of time: each turn passes here. */
  #closed: AbortController | undefined;

  constructor(context: AgentContext, scope: TurnScope) {
    this.#context = context;
    this.#scope = scope;
  }

  start(): void {
    if (!this.#scope.limits.all.some(isTime)) return;
    this.#closed = new AbortController();
    void this.#watch(this.#closed.signal);
  }

  stop(): void {
    this.#closed?.abort('the turn has ended');
  }

  /** Looks again after each wait: a timer cannot wait for ever, and the clock on the wall may have been set. */
  async #watch(closed: AbortSignal): Promise<void> {
    const { limits } = this.#scope;
    while (!closed.aborted && !this.#scope.ended) {
      const left = limits.timeLeftMs();
      if (left > 0) await this.#context.sleep(Math.ceil(left), closed);
      else this.#scope.endSpentTime();
    }
  }
}
