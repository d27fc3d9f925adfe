/**
 * The plan as a client is shown it, always the whole list.
 *
 * A plan says what is being worked on only while a turn runs. When one ends, however it ends, what was in progress is
 * pending again, and a plan that was done is taken away when the next turn begins: it was that one's. A rewind brings back
 * the plan of the moment that it goes to.
 */
import type { PlanEntry, SessionUpdate } from '@agentclientprotocol/sdk';
import type { EventInput, TodoEntry } from '../../shared/events.ts';
import { cleanLine } from '../../shared/clean-line.ts';
import { sliceWhole } from '../display/title-line.ts';
import { ContentBudget } from './size-caps.ts';

const maxEntries = 256;
const maxEntryLength = 2048;
/** Of earlier states: a rewind beyond them shows no plan. */
const mostStates = 32;

interface PlanState {
  /** Of the event since which it holds. */
  readonly seq: number;
  readonly entries: readonly TodoEntry[];
}

const noPlan: readonly TodoEntry[] = [];

export class PlanView {
  /** The last one holds now. */
  readonly #states: PlanState[] = [];
  /** The client may still be shown a plan that no longer holds: the end of its turn was written by repair, for nobody to see. */
  #isStale = false;

  /** Takes in an event of the stored log, which the client has seen, or has not asked to see. */
  learn(event: EventInput): void {
    const changed = this.take(event).length > 0;
    if (changed) this.#isStale = event.type === 'turn/end' && event.data.reason.kind === 'interrupted';
  }

  /** What an event changes of the plan that is shown. */
  take(event: EventInput): SessionUpdate[] {
    const seq = 'seq' in event && typeof event.seq === 'number' ? event.seq : 0;
    if (event.type === 'todo/write') return this.#set(event.data.todos, seq);
    if (event.type === 'turn/start') return this.#startTurn(seq);
    if (event.type === 'turn/end') return this.#endTurn(seq);
    return event.type === 'history/rewound' ? this.#goBack(event.data.base, seq) : [];
  }

  #startTurn(seq: number): SessionUpdate[] {
    const entries = this.#entries;
    const isDone = entries.length > 0 && entries.every(({ status }) => status === 'completed');
    return isDone || this.#isStale ? this.#set(isDone ? noPlan : entries, seq) : [];
  }

  #endTurn(seq: number): SessionUpdate[] {
    if (!this.#entries.some(({ status }) => status === 'in_progress')) return [];
    const entries = this.#entries.map((entry): TodoEntry => (entry.status === 'in_progress' ? { ...entry, status: 'pending' } : entry));
    return this.#set(entries, seq);
  }

  #goBack(base: number, seq: number): SessionUpdate[] {
    const entries = this.#states.findLast((state) => state.seq < base)?.entries ?? noPlan;
    return entries === this.#entries ? [] : this.#set(entries, seq);
  }

  get #entries(): readonly TodoEntry[] {
    return this.#states.at(-1)?.entries ?? noPlan;
  }

  #set(entries: readonly TodoEntry[], seq: number): SessionUpdate[] {
    this.#isStale = false;
    this.#states.push({ seq, entries });
    if (this.#states.length > mostStates) this.#states.shift();
    const budget = new ContentBudget();
    const shown = entries.slice(0, maxEntries).map(({ content, status, priority = 'medium' }): PlanEntry => {
      return { content: budget.take(cleanLine(sliceWhole(content, maxEntryLength)) || '(no text)'), priority, status };
    });
    return [{ sessionUpdate: 'plan', entries: shown }];
  }
}
