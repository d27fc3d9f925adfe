/**
 * Under which ids the calls of one answer are shown while the model writes them.
 *
 * A client knows a call by its id for the rest of the session, also when the answer was then discarded and the call never
 * logged. So an id that was shown once is not given to another call, and the call that is logged keeps the one it was shown
 * under.
 */
import type { AgentContext } from './agent-context.ts';
import type { TurnScope } from './turn-scope.ts';

const longestCallId = 128;

export class CallNames {
  readonly #context: AgentContext;
  readonly #scope: TurnScope;
  readonly #shown = new Map<string, string>();

  constructor(context: AgentContext, scope: TurnScope) {
    this.#context = context;
    this.#scope = scope;
  }

  /** Shown ids by those of the model. */
  get shown(): ReadonlyMap<string, string> {
    return this.#shown;
  }

  /** The id to show a call under from now on; `undefined` for a second call of the same id, which is not shown in advance. */
  name(modelCallId: string): string | undefined {
    if (this.#shown.has(modelCallId)) return undefined;
    const { history, shownCalls } = this.#context;
    const isTaken = (id: string): boolean => history.hasCall(id) || shownCalls.has(id);
    const callId = freeCallId(modelCallId, inventedId(this.#scope, this.#shown.size), isTaken);
    this.#shown.set(modelCallId, callId);
    shownCalls.add(callId);
    return callId;
  }
}

/** Made of the turn, the step and the place in the answer. */
export function inventedId({ turn, step }: TurnScope, index: number): string {
  return `t${turn}s${step}c${index + 1}`;
}

/** The wanted id, or else one that begins as the invented one does. A re-used, empty or overlong id is not taken. */
export function freeCallId(wanted: string, invented: string, isTaken: (id: string) => boolean): string {
  const usable = wanted !== '' && wanted.length <= longestCallId;
  let callId = usable && !isTaken(wanted) ? wanted : invented;
  while (isTaken(callId)) callId += 'x';
  return callId;
}
