/**
 * The wall-time budget of a turn: ends the turn when its time is up. Costs nothing where there is no such budget.
 */
import type { AgentContext } from './agent-context.ts';
import type { TurnScope } from './turn-scope.ts';

export class WallTime {
  readonly #context: AgentContext;
  readonly #scope: TurnScope;
  #closed: AbortController | undefined;

  constructor(context: AgentContext, scope: TurnScope) {
    this.#context = context;
    this.#scope = scope;
  }

  start(): void {
    const { maxWallMs } = this.#context.settings.budget;
    if (maxWallMs === 0) return;
    const closed = new AbortController();
    this.#closed = closed;
    void this.#context.sleep(maxWallMs, closed.signal).then(() => {
      if (!closed.signal.aborted) this.#scope.end({ kind: 'max-turn-requests', budget: 'wall-time' });
    });
  }

  stop(): void {
    this.#closed?.abort('the turn has ended');
  }
}
