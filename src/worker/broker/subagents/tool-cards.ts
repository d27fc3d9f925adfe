/**
 * The cards of a child's tool calls, so that an update which says only what changed can be told as a whole.
 */
import type { SubagentActivity } from '../../../shared/subagent-protocol.ts';
import type { ToolCardPart } from './read-update.ts';

/** Cards remembered; the oldest go first. */
const maxCards = 500;

export class ToolCards {
  readonly #cards = new Map<string, Required<ToolCardPart>>();
  readonly #working = new Set<string>();

  /** True while a call that is remembered is in progress. */
  get isWorking(): boolean {
    return this.#working.size > 0;
  }

  get(callId: string): ToolCardPart | undefined {
    return this.#cards.get(callId);
  }

  /** What to tell of the update; `undefined` when nothing that is shown has changed. */
  update(callId: string, part: ToolCardPart): SubagentActivity | undefined {
    const before = this.#cards.get(callId);
    const card = { title: 'tool call', toolKind: 'other', status: 'pending', ...before, ...part } as const;
    if (before !== undefined && before.title === card.title && before.toolKind === card.toolKind && before.status === card.status) {
      return undefined;
    }
    this.#cards.set(callId, card);
    if (card.status === 'in_progress') this.#working.add(callId);
    else this.#working.delete(callId);
    if (this.#cards.size > maxCards) this.#forgetOldest();
    return { kind: 'tool', childCallId: callId, ...card };
  }

  #forgetOldest(): void {
    const [oldest] = this.#cards.keys();
    if (oldest === undefined) return;
    this.#cards.delete(oldest);
    this.#working.delete(oldest);
  }
}
