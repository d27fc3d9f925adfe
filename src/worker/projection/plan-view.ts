/**
 * The plan as a client is shown it, always the whole list.
 *
 * A plan says what is being worked on only while a turn runs. When one ends, however it ends, what was in progress is
 * pending again, and a plan that was done is taken away when the next turn begins: it was that one's.
 */
import type { PlanEntry, SessionUpdate } from '@agentclientprotocol/sdk';
import type { EventData, EventInput, TodoEntry } from '../../shared/events.ts';
import { cleanLine } from '../../shared/clean-line.ts';
import { sliceWhole } from '../display/title-line.ts';
import { ContentBudget } from './size-caps.ts';

const maxEntries = 256;
const maxEntryLength = 2048;

export class PlanView {
  #entries: readonly TodoEntry[] = [];
  /** The client may still be shown a plan that no longer holds: the end of its turn was written by repair, for nobody to see. */
  #isStale = false;

  /** Takes in an event of the stored log, which the client has seen, or has not asked to see. */
  learn(event: EventInput): void {
    if (event.type === 'todo/write') this.write(event.data);
    else if (event.type === 'turn/start') this.startTurn();
    else if (event.type === 'turn/end') this.#isStale = this.endTurn().length > 0 && event.data.reason.kind === 'interrupted';
  }

  write({ todos }: EventData['todo/write']): SessionUpdate[] {
    this.#entries = todos;
    this.#isStale = false;
    return [this.#update()];
  }

  startTurn(): SessionUpdate[] {
    const isDone = this.#entries.length > 0 && this.#entries.every(({ status }) => status === 'completed');
    if (isDone) this.#entries = [];
    if (!isDone && !this.#isStale) return [];
    this.#isStale = false;
    return [this.#update()];
  }

  endTurn(): SessionUpdate[] {
    if (!this.#entries.some(({ status }) => status === 'in_progress')) return [];
    this.#entries = this.#entries.map((entry) => (entry.status === 'in_progress' ? { ...entry, status: 'pending' } : entry));
    return [this.#update()];
  }

  #update(): SessionUpdate {
    const budget = new ContentBudget();
    const entries = this.#entries.slice(0, maxEntries).map(({ content, status, priority = 'medium' }): PlanEntry => {
      return { content: budget.take(cleanLine(sliceWhole(content, maxEntryLength)) || '(no text)'), priority, status };
    });
    return { sessionUpdate: 'plan', entries };
  }
}
