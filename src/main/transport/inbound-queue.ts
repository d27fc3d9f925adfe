/**
 * Feeds messages to the SDK no faster than it can keep their order.
 *
 * The SDK starts every message at once and takes one `await` per registered handler to find the right one, so of two
 * messages that arrive together the later may reach its handler first. All those awaits end within the event-loop turn
 * in which the message was handed over. So messages that concern each other are handed over in different turns, and the
 * rest may share one.
 */
import type { AnyMessage } from '@agentclientprotocol/sdk';

/**
 * What a message must keep its order against. `session`: one a turn for each session. `method`: any number of the same
 * method, but no other method without a session. `alone`: a turn of its own.
 */
export type Lane =
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'method'; readonly name: string }
  | { readonly kind: 'alone' };

interface WaitingMessage {
  readonly message: AnyMessage;
  readonly lane: Lane;
  readonly size: number;
}

export interface InboundQueueOptions {
  /** Hands a message over. True stops the queue until {@link InboundQueue.release}. */
  readonly deliver: (message: AnyMessage) => boolean;
  /** Called after a turn that took messages out. */
  readonly onTaken: () => void;
}

/** First in, first out over all sessions; no message is skipped for another. A message that need not wait goes at once. */
export class InboundQueue {
  readonly #deliver: (message: AnyMessage) => boolean;
  readonly #onTaken: () => void;
  #waiting: WaitingMessage[] = [];
  #head = 0;
  #waitingSize = 0;
  #held = false;
  #stopped = false;
  #drained: (() => void) | undefined;

  /** The lanes taken in the present turn. */
  readonly #sessions = new Set<string>();
  #method: string | undefined;
  #alone = false;
  #turnEnd: NodeJS.Immediate | undefined;

  constructor(options: InboundQueueOptions) {
    this.#deliver = options.deliver;
    this.#onTaken = options.onTaken;
  }

  /** Messages that wait. */
  get length(): number {
    return this.#waiting.length - this.#head;
  }

  /** Sum of the sizes, as given to {@link push}, of the messages that wait. */
  get waitingSize(): number {
    return this.#waitingSize;
  }

  push(message: AnyMessage, lane: Lane, size: number): void {
    if (this.#stopped) return;
    this.#waiting.push({ message, lane, size });
    this.#waitingSize += size;
    if (!this.#held && this.length === 1) this.#feed();
  }

  /** Goes on after a `deliver` that stopped the queue; the next message goes in a new turn. */
  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#alone = true;
    this.#endTurnSoon();
  }

  /** Calls back once, in a later turn, when every message before this call has been handed over. */
  whenDrained(callback: () => void): void {
    this.#drained = callback;
    if (this.length === 0 && !this.#held) this.#endTurnSoon();
  }

  /** Drops what waits and hands nothing over any more. */
  stop(): void {
    this.#stopped = true;
    this.#waiting = [];
    this.#head = 0;
    this.#waitingSize = 0;
    this.#drained = undefined;
    if (this.#turnEnd !== undefined) clearImmediate(this.#turnEnd);
  }

  #feed(): void {
    while (!this.#held && !this.#stopped) {
      const next = this.#waiting[this.#head];
      if (next === undefined || !this.#admit(next.lane)) break;
      this.#head += 1;
      this.#waitingSize -= next.size;
      this.#endTurnSoon();
      this.#held = this.#deliver(next.message);
    }
    this.#compact();
  }

  /** Whether the present turn has room for this lane; if so, it is taken. */
  #admit(lane: Lane): boolean {
    if (this.#alone) return false;
    if (lane.kind === 'session') {
      if (this.#sessions.has(lane.id)) return false;
      this.#sessions.add(lane.id);
      return true;
    }
    if (lane.kind === 'method') {
      if (this.#method !== undefined && this.#method !== lane.name) return false;
      this.#method = lane.name;
      return true;
    }
    if (this.#sessions.size > 0 || this.#method !== undefined) return false;
    this.#alone = true;
    return true;
  }

  #endTurnSoon(): void {
    this.#turnEnd ??= setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#turnEnd = undefined;
    this.#sessions.clear();
    this.#method = undefined;
    this.#alone = false;
    this.#feed();
    this.#onTaken();
    if (this.#drained === undefined || this.length > 0 || this.#held || this.#turnEnd !== undefined) return;
    const drained = this.#drained;
    this.#drained = undefined;
    drained();
  };

  #compact(): void {
    if (this.#head === this.#waiting.length) {
      this.#waiting.length = 0;
      this.#head = 0;
    } else if (this.#head > 512 && this.#head * 2 > this.#waiting.length) {
      this.#waiting.splice(0, this.#head);
      this.#head = 0;
    }
  }
}
