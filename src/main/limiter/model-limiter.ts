/**
 * Places at one model provider for the whole process: its calls share one account, and threads cannot see each other. A
 * server has one base URL and one key, so it has one of these.
 *
 * p-queue holds the places: a place is a task that runs until its lease is given back. The order of those that wait is
 * {@link FairQueue}'s, the number of places {@link CallLimit}'s. Every lease has an owner, and ends with it at the latest.
 */
import PQueue from 'p-queue';
import { ServerError } from '../../shared/errors.ts';
import type { LimiterStatus, ModelSlot, ModelSlotReport, ModelSlotRequest, QueuedCall } from '../../shared/model-slots.ts';
import { CallLimit } from './call-limit.ts';
import { type FairOptions, FairQueue } from './fair-queue.ts';
import { ProviderPause } from './provider-pause.ts';
import { type LimiterClock, systemClock } from './limiter-clock.ts';

export interface ModelLimiterOptions {
  readonly maxConcurrency: number;
  readonly slowStart: number;
  /** The longest `Retry-After` that is waited for. */
  readonly maxPauseMs: number;
  readonly clock?: LimiterClock;
  /** In [0, 1). */
  readonly random?: () => number;
}

/** A thread, to the limiter: only its identity counts. */
export type SlotOwner = object;

interface Asked {
  readonly owner: SlotOwner;
  readonly request: ModelSlotRequest;
  readonly at: number;
  readonly position: number;
  /** Takes it out of the queue; only while it may be in there. */
  readonly leaveQueue: AbortController | undefined;
  readonly grant: (slot: ModelSlot) => void;
  readonly refuse: (error: ServerError) => void;
  /** Gives the place back that it holds without a lease yet: its moment after a pause has not come. */
  free?: () => void;
  stopTimer?: () => void;
}

interface Lease {
  readonly owner: SlotOwner;
  readonly sessionId: string;
  readonly free: () => void;
}

/** Of the queue, in the status. */
const mostShown = 100;

const ignore = (): void => undefined;

export class ModelLimiter {
  readonly #clock: LimiterClock;
  readonly #limit: CallLimit;
  readonly #pause: ProviderPause;
  readonly #order: FairQueue;
  readonly #queue: PQueue<FairQueue, FairOptions>;
  /** Asked for and not granted. At most one a running turn, so the cap on turns bounds it. */
  readonly #asked = new Map<SlotOwner, Map<string, Asked>>();
  readonly #leases = new Map<number, Lease>();
  #waiting = 0;
  #lastLease = 0;
  #unused = 0;
  #overloads = 0;
  #closed = false;

  constructor({ maxConcurrency, slowStart, maxPauseMs, clock = systemClock, random = Math.random }: ModelLimiterOptions) {
    this.#clock = clock;
    this.#limit = new CallLimit({ max: maxConcurrency, slowStart, now: clock.now });
    this.#order = new FairQueue(clock.now);
    this.#queue = new PQueue({ concurrency: this.#limit.value, queueClass: classOf(this.#order) });
    this.#pause = new ProviderPause({
      clock,
      longestMs: maxPauseMs,
      random,
      hold: () => this.#queue.pause(),
      goOn: () => this.#queue.start(),
    });
  }

  /**
   * Fulfils with a lease when the call may be made.
   *
   * @throws ServerError REQUEST_CANCELLED when it was withdrawn, THREAD_LOST when its thread is gone, SHUTTING_DOWN
   */
  acquire(owner: SlotOwner, request: ModelSlotRequest): Promise<ModelSlot> {
    if (this.#closed) return Promise.reject(shuttingDown());
    return new Promise((grant, refuse) => this.#enqueue(owner, request, grant, refuse));
  }

  /** A lease at once, or `undefined` where one would have to wait for it. */
  acquireNow(owner: SlotOwner, request: ModelSlotRequest): ModelSlot | undefined {
    if (this.#closed || this.#isFull || this.#pause.delayMs() > 0) return undefined;
    let slot: ModelSlot | undefined;
    const asked = this.#enqueue(owner, request, (granted) => (slot = granted), ignore);
    // p-queue starts a task for which there is room within add(); what did not start must not start later, for nobody.
    if (slot === undefined) this.#drop(asked, new ServerError('REQUEST_CANCELLED', 'There was no place at the model just now.'));
    return slot;
  }

  /** Gives a place back; a lease that is not (or no longer) the owner's is left alone. */
  release(owner: SlotOwner, leaseId: number, report: ModelSlotReport): void {
    const lease = this.#leases.get(leaseId);
    if (lease?.owner !== owner) return;
    if (report.outcome === 'unused') this.#unused += 1;
    this.#learn(leaseId, report);
    this.#leases.delete(leaseId);
    lease.free();
  }

  /** A request that waits leaves at once. One that was granted meanwhile is the owner's to release. */
  withdraw(owner: SlotOwner, sessionId: string, requestKey: string): void {
    const asked = this.#asked.get(owner)?.get(keyOf({ sessionId, requestKey }));
    if (asked !== undefined) this.#drop(asked, new ServerError('REQUEST_CANCELLED', 'The request for a place at the model was withdrawn.'));
  }

  /** The thread is gone: what it asked for and what it holds ends with it. */
  releaseOwner(owner: SlotOwner): void {
    const gone = new ServerError('THREAD_LOST', 'The thread that asked for a place at the model is gone.');
    for (const asked of this.#asked.get(owner)?.values() ?? []) this.#drop(asked, gone);
    for (const [leaseId, lease] of this.#leases) if (lease.owner === owner) this.release(owner, leaseId, { outcome: 'other' });
  }

  /** The session has left its thread: it gives back before, so there is something only after a fault. */
  releaseSession(sessionId: string): void {
    for (const [leaseId, lease] of this.#leases)
      if (lease.sessionId === sessionId) this.release(lease.owner, leaseId, { outcome: 'other' });
  }

  status(): LimiterStatus {
    return {
      limit: this.#limit.value,
      max: this.#limit.max,
      running: this.#leases.size,
      waiting: this.#waiting,
      pausedMs: Math.ceil(this.#pause.leftMs),
      calls: this.#lastLease - this.#unused,
      overloads: this.#overloads,
      queue: this.#waitingCalls(),
    };
  }

  /** Whoever has a place, and waits for its moment behind a pause, goes before all others. */
  #waitingCalls(): QueuedCall[] {
    const now = this.#clock.now();
    const held = [...this.#asked.values()].flatMap((ofOwner) => [...ofOwner.values()].filter(({ free }) => free !== undefined));
    const calls = [...held.map(({ request: { sessionId }, at }) => ({ sessionId, since: at })), ...this.#order.next(mostShown)];
    return calls
      .slice(0, mostShown)
      .map(({ sessionId, since }, index) => ({ sessionId, position: index + 1, waitedMs: Math.round(now - since) }));
  }

  /** Refuses whoever waits and stops the timers. */
  close(): void {
    this.#closed = true;
    this.#pause.stop();
    for (const ofOwner of this.#asked.values()) for (const asked of ofOwner.values()) this.#drop(asked, shuttingDown());
  }

  get #isFull(): boolean {
    return this.#queue.isPaused || this.#queue.size > 0 || this.#queue.pending >= this.#queue.concurrency;
  }

  #enqueue(owner: SlotOwner, request: ModelSlotRequest, grant: Asked['grant'], refuse: Asked['refuse']): Asked {
    const priority = withinBounds(request.priority);
    const waits = this.#isFull;
    const asked: Asked = {
      owner,
      request,
      at: this.#clock.now(),
      position: waits ? this.#order.countFrom(priority) + 1 : 0,
      // Who finds a free place is never in the queue, and most do: an AbortController costs more than all the rest.
      leaveQueue: waits ? new AbortController() : undefined,
      grant,
      refuse,
    };
    this.#remember(asked);
    const signal = asked.leaveQueue?.signal;
    const options = { priority, sessionId: request.sessionId, since: asked.at, ...(signal && { signal }) };
    this.#queue.add(() => this.#hold(asked), options).catch(ignore);
    return asked;
  }

  /** Runs as a task of the queue: the place is taken until the promise fulfils. */
  #hold(asked: Asked): Promise<void> {
    return new Promise((free) => {
      asked.free = free;
      this.#grantInTime(asked, free);
    });
  }

  /** At once, or at a moment of its own when many were held back until now. The provider may ask for another pause meanwhile. */
  #grantInTime(asked: Asked, free: () => void): void {
    const delayMs = this.#pause.delayMs();
    if (delayMs === 0) {
      this.#grant(asked, free);
      return;
    }
    asked.stopTimer = this.#clock.after(delayMs, () => {
      if (this.#pause.leftMs > 0) this.#grantInTime(asked, free);
      else this.#grant(asked, free);
    });
  }

  #grant(asked: Asked, free: () => void): void {
    this.#forget(asked);
    this.#lastLease += 1;
    this.#leases.set(this.#lastLease, { owner: asked.owner, sessionId: asked.request.sessionId, free });
    const waitedMs = Math.round(this.#clock.now() - asked.at);
    asked.grant({ leaseId: this.#lastLease, waitedMs, position: asked.position });
  }

  #learn(leaseId: number, report: ModelSlotReport): void {
    if (report.outcome === 'other' || report.outcome === 'unused') return;
    if (report.outcome === 'ok') {
      this.#limit.succeeded(this.#leases.size);
    } else {
      this.#overloads += 1;
      this.#limit.overloaded(leaseId, this.#leases.size, this.#lastLease);
      if (report.retryAfterMs !== undefined) this.#pause.begin(report.retryAfterMs);
    }
    if (this.#queue.concurrency !== this.#limit.value) this.#queue.concurrency = this.#limit.value;
  }

  #drop(asked: Asked, error: ServerError): void {
    this.#forget(asked);
    asked.stopTimer?.();
    asked.refuse(error);
    if (asked.free === undefined) asked.leaveQueue?.abort();
    else asked.free();
  }

  #remember(asked: Asked): void {
    let ofOwner = this.#asked.get(asked.owner);
    if (ofOwner === undefined) this.#asked.set(asked.owner, (ofOwner = new Map()));
    ofOwner.set(keyOf(asked.request), asked);
    this.#waiting += 1;
  }

  #forget(asked: Asked): void {
    const ofOwner = this.#asked.get(asked.owner);
    if (ofOwner?.delete(keyOf(asked.request)) !== true) return;
    this.#waiting -= 1;
    if (ofOwner.size === 0) this.#asked.delete(asked.owner);
  }
}

function keyOf({ sessionId, requestKey }: Pick<ModelSlotRequest, 'sessionId' | 'requestKey'>): string {
  return `${sessionId}/${requestKey}`;
}

/** Priorities are whole numbers from -100 to 100: each makes a queue of its own. */
function withinBounds(priority: number): number {
  return Math.max(-100, Math.min(100, Math.round(priority)));
}

/** p-queue makes its queue itself; the one it gets is ours, which can be asked for more than p-queue asks. */
function classOf(queue: FairQueue): new () => FairQueue {
  return function ours() {
    return queue;
  } as unknown as new () => FairQueue;
}

function shuttingDown(): ServerError {
  return new ServerError('SHUTTING_DOWN', 'The server is shutting down and makes no new model calls.');
}
