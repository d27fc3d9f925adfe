/**
 * The order in which waiting model calls get their places, as a queue class for p-queue: by priority, then fair between
 * sessions ({@link SessionShares}).
 *
 * Aging: a priority of which no call went for a second counts as one higher, after two seconds as two higher, until one
 * goes. So the lowest waits at most 200 seconds for its next call, whatever else comes.
 */
import type { Queue, QueueAddOptions } from 'p-queue';
import { SessionShares, type WaitingCall } from './session-shares.ts';

export type RunCall = () => Promise<unknown>;

export interface FairOptions extends QueueAddOptions {
  readonly sessionId?: string;
  /** When it was asked for, by the clock of the queue. */
  readonly since?: number;
}

export interface QueuedSession {
  readonly sessionId: string;
  readonly since: number;
}

/** Milliseconds for which a priority waits to count as one higher. */
export const agingMs = 1000;

interface PriorityClass {
  readonly shares: SessionShares<RunCall>;
  /** When its last call went, or its first one came. */
  servedAt: number;
}

interface Waiting {
  readonly priority: number;
  readonly since: number;
  readonly call: WaitingCall<RunCall>;
}

export class FairQueue implements Queue<RunCall, FairOptions> {
  readonly #now: () => number;
  /** Only those with waiting calls. */
  readonly #classes = new Map<number, PriorityClass>();
  readonly #byId = new Map<string, Waiting>();
  readonly #ids = new WeakMap<RunCall, string>();

  constructor(now: () => number) {
    this.#now = now;
  }

  get size(): number {
    return this.#byId.size;
  }

  enqueue(run: RunCall, options: Partial<FairOptions> = {}): void {
    const { priority = 0, sessionId = '', id = '', since = this.#now() } = options;
    let found = this.#classes.get(priority);
    if (found === undefined) this.#classes.set(priority, (found = { shares: new SessionShares(), servedAt: this.#now() }));
    this.#byId.set(id, { priority, since, call: found.shares.add(sessionId, run) });
    this.#ids.set(run, id);
  }

  dequeue(): RunCall | undefined {
    const priority = this.#nextPriority();
    const found = priority === undefined ? undefined : this.#classes.get(priority);
    const run = found?.shares.take();
    if (priority === undefined || found === undefined || run === undefined) return undefined;
    found.servedAt = this.#now();
    if (found.shares.size === 0) this.#classes.delete(priority);
    this.#byId.delete(this.#ids.get(run) ?? '');
    return run;
  }

  remove(id: string): void {
    const waiting = this.#byId.get(id);
    if (waiting === undefined) return;
    this.#byId.delete(id);
    const found = this.#classes.get(waiting.priority);
    found?.shares.remove(waiting.call);
    if (found?.shares.size === 0) this.#classes.delete(waiting.priority);
  }

  /** Waiting calls of this priority and of higher ones: those that stand before a call that comes now. */
  countFrom(priority: number): number {
    let count = 0;
    for (const [one, { shares }] of this.#classes) if (one >= priority) count += shares.size;
    return count;
  }

  filter({ priority = 0 }: Readonly<Partial<FairOptions>>): RunCall[] {
    return [...(this.#classes.get(priority)?.shares.items ?? [])];
  }

  setPriority(id: string, priority: number): void {
    const waiting = this.#byId.get(id);
    if (waiting === undefined) throw new ReferenceError('no waiting call has this id');
    this.remove(id);
    this.enqueue(waiting.call.item, { id, priority, sessionId: waiting.call.sessionId, since: waiting.since });
  }

  /** The next `limit` calls in the order in which they go if no other comes and none ages. */
  next(limit: number): QueuedSession[] {
    const calls: QueuedSession[] = [];
    for (const { shares } of this.#inOrder()) {
      for (const { sessionId, item } of shares.next(limit - calls.length)) {
        calls.push({ sessionId, since: this.#byId.get(this.#ids.get(item) ?? '')?.since ?? this.#now() });
      }
    }
    return calls;
  }

  #inOrder(): PriorityClass[] {
    const now = this.#now();
    const classes = [...this.#classes].map(([priority, found]) => ({ ...found, level: levelOf(priority, found, now) }));
    return classes.sort((a, b) => b.level - a.level || a.servedAt - b.servedAt);
  }

  /** Among equals after aging, the one that has waited longer. */
  #nextPriority(): number | undefined {
    const now = this.#now();
    let best: { readonly priority: number; readonly level: number; readonly servedAt: number } | undefined;
    for (const [priority, found] of this.#classes) {
      const { servedAt } = found;
      const level = levelOf(priority, found, now);
      if (best === undefined || level > best.level || (level === best.level && servedAt < best.servedAt)) {
        best = { priority, level, servedAt };
      }
    }
    return best?.priority;
  }
}

function levelOf(priority: number, { servedAt }: PriorityClass, now: number): number {
  return priority + Math.floor((now - servedAt) / agingMs);
}
