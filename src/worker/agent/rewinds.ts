/**
 * The rewinds of a session's log, and whether the history in memory is still what they left.
 */
import type { Rewind } from './alive-events.ts';

export class Rewinds {
  readonly #list: Rewind[] = [];
  /** Where older units were last cut or replaced: what they were before stands in the log alone. */
  #changedAt = -1;
  #stale = false;

  /** In log order. */
  get list(): readonly Rewind[] {
    return this.#list;
  }

  /** One of them went to a moment that is no longer in memory: the history must be made anew from the log before it is used. */
  get isStale(): boolean {
    return this.#stale;
  }

  /** The event `seq` changed units that were there before it. */
  noteChange(seq: number): void {
    this.#changedAt = seq;
  }

  /** Whether leaving the newest units out gives the history of right before event `base`. */
  isInMemory(base: number): boolean {
    return !this.#stale && base > this.#changedAt && !this.#list.some((rewind) => rewind.base < base && base < rewind.seq);
  }

  /** Says whether it can be done by leaving the newest units out. */
  add(rewind: Rewind): boolean {
    const inMemory = this.isInMemory(rewind.base);
    this.#list.push(rewind);
    if (!inMemory) this.#stale = true;
    return inMemory;
  }

  /** The history was made anew. */
  madeAnew(): void {
    this.#stale = false;
  }
}
