/**
 * Who goes next among calls of one priority: start-time fair queueing over sessions.
 *
 * Each call gets a start tag: the virtual time now, or one behind the session's last tag, whichever is later. The smallest
 * tag goes first, so a session that has had least in this crowd does. Virtual time moves on by one while each waiting session
 * could have had one call: newcomers, however many, pass a session that waits only so often. Knows nothing of limits.
 */

export interface WaitingCall<T> {
  readonly item: T;
  readonly sessionId: string;
  readonly start: number;
  /** Order of arrival, among equal tags. */
  readonly order: number;
}

/** Sessions that are remembered beyond those that wait, before the list is swept. */
const remembered = 512;

export class SessionShares<T> {
  /** The next call last: it is taken from the end. */
  readonly #waiting: WaitingCall<T>[] = [];
  /** The tag that the session's next call has at least. */
  readonly #next = new Map<string, number>();
  #virtual = 0;
  #arrivals = 0;

  get size(): number {
    return this.#waiting.length;
  }

  get items(): readonly T[] {
    return this.#waiting.map(({ item }) => item);
  }

  /** The next `limit` calls, as it stands now. */
  next(limit: number): WaitingCall<T>[] {
    return limit <= 0 ? [] : this.#waiting.slice(-limit).toReversed();
  }

  add(sessionId: string, item: T): WaitingCall<T> {
    const start = Math.max(this.#virtual, this.#next.get(sessionId) ?? 0);
    const call = { item, sessionId, start, order: this.#arrivals++ };
    this.#next.set(sessionId, start + 1);
    this.#waiting.splice(this.#place(call), 0, call);
    return call;
  }

  /** Takes the call that goes next. */
  take(): T | undefined {
    const call = this.#waiting.pop();
    if (call === undefined) return undefined;
    this.#virtual = Math.max(this.#virtual, call.start) + 1 / (this.#waiting.length + 1);
    this.#forget();
    return call.item;
  }

  /** Takes a call out that will not be made; its session has had nothing. Says whether it waited. */
  remove(call: WaitingCall<T>): boolean {
    const place = this.#place(call);
    if (this.#waiting[place] !== call) return false;
    this.#waiting.splice(place, 1);
    if (this.#next.get(call.sessionId) === call.start + 1) this.#next.set(call.sessionId, call.start);
    this.#forget();
    return true;
  }

  /** Index of the call, or the one where it belongs. */
  #place(call: WaitingCall<T>): number {
    let low = 0;
    let high = this.#waiting.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#waiting[middle];
      if (other !== undefined && goesBefore(call, other)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Without a crowd there is nothing to be fair about; in one, tags that virtual time has passed say nothing. */
  #forget(): void {
    if (this.#waiting.length === 0) {
      this.#next.clear();
    } else if (this.#next.size > 2 * (this.#waiting.length + remembered)) {
      for (const [sessionId, next] of this.#next) if (next <= this.#virtual) this.#next.delete(sessionId);
    }
  }
}

function goesBefore(a: WaitingCall<unknown>, b: WaitingCall<unknown>): boolean {
  return a.start < b.start || (a.start === b.start && a.order < b.order);
}
