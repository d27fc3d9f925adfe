/**
 * A clock that stands still between events, and the one queue of all that is going to happen: timers, messages, the ends of calls to
 * the disk. The next event is the earliest; delays come from the seed, so the seed decides what overtakes what.
 *
 * Each event belongs to a realm: main, or one simulated thread. What a realm posts after its end has no effect, and none of its events
 * runs any more, so a thread can die between any two of its calls to the outside.
 */
import { Random } from './random.ts';
import { realImmediate } from './surroundings.ts';

export class Realm {
  readonly name: string;
  dead = false;
  /** Dies after so many more calls to the outside; undefined lives on. */
  fuse: number | undefined;
  onDeath: () => void = () => undefined;

  constructor(name: string) {
    this.name = name;
  }
}

export interface Pending {
  readonly due: number;
  readonly order: number;
  readonly realm: Realm;
  readonly kind: string;
  readonly run: () => void;
  /** A timer that would not keep a process alive. */
  unref: boolean;
  cancelled: boolean;
  /** The call of the program that started this timer, where the world tells origins. */
  readonly origin: string | undefined;
}

/** Epoch milliseconds at the start. */
const epoch = 1_700_000_000_000;
/** More is a loop that does not end. */
const mostEvents = 150_000;

export class World {
  now = 0;
  realm: Realm;
  readonly main = new Realm('main');
  readonly random: Random;
  /** Faults of the simulated program that nobody caught. */
  readonly faults: string[] = [];
  events = 0;
  /** Whether timers say who started them: slow, so only for a seed that is looked at. */
  readonly tellsOrigins: boolean;
  readonly #heap: Pending[] = [];
  #order = 0;
  readonly #lastDue = new Map<object, number>();

  constructor(seed: number, tellsOrigins = false) {
    this.realm = this.main;
    this.random = new Random(seed);
    this.tellsOrigins = tellsOrigins;
  }

  get wallClock(): number {
    return epoch + Math.floor(this.now);
  }

  /** A call of the running realm to the outside: says whether it has an effect. */
  touch(): boolean {
    const { realm } = this;
    if (realm.dead) return false;
    if (realm.fuse === undefined) return true;
    realm.fuse -= 1;
    if (realm.fuse > 0) return true;
    this.kill(realm);
    return false;
  }

  kill(realm: Realm): void {
    if (realm.dead) return;
    realm.dead = true;
    realm.onDeath();
  }

  /** Runs once, `delay` ms from now, in the realm. Those of one `line` keep their order. */
  after(
    delay: number,
    run: () => void,
    options: { realm?: Realm; kind?: string; line?: object; origin?: string | undefined } = {},
  ): Pending {
    let due = this.now + delay;
    if (options.line !== undefined) {
      due = Math.max(due, this.#lastDue.get(options.line) ?? 0);
      this.#lastDue.set(options.line, due);
    }
    this.#order += 1;
    const pending: Pending = {
      due,
      order: this.#order,
      realm: options.realm ?? this.realm,
      kind: options.kind ?? 'event',
      run,
      unref: false,
      cancelled: false,
      origin: options.origin,
    };
    this.#push(pending);
    return pending;
  }

  /** How long something short takes: mostly nothing, now and then long enough for much to overtake it. */
  latency(): number {
    const { random } = this;
    if (random.chance(0.02)) return random.next() * 40;
    return random.chance(0.2) ? random.next() * 3 : random.next() * 0.2;
  }

  /** Runs events until `until`, or until nothing is left that would keep a process alive. Says whether `until` came. */
  async run(until: () => boolean, untilTime = Number.POSITIVE_INFINITY): Promise<boolean> {
    for (;;) {
      await new Promise<void>((resolve) => realImmediate(resolve));
      this.realm = this.main;
      if (until()) return true;
      const next = this.#pop();
      if (next === undefined) return false;
      if (next.cancelled || next.realm.dead) continue;
      if (next.due > untilTime) {
        this.#push(next);
        return false;
      }
      this.events += 1;
      if (this.events > mostEvents) {
        this.faults.push(`more than ${mostEvents} events: something goes round in circles`);
        return false;
      }
      this.now = Math.max(this.now, next.due);
      this.realm = next.realm;
      try {
        next.run();
      } catch (error) {
        this.uncaught(error);
      }
    }
  }

  uncaught(error: unknown): void {
    if (this.realm.dead) return;
    this.faults.push(`uncaught in ${this.realm.name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }

  /** What is still going to happen. */
  pending(): Pending[] {
    return this.#heap.filter((one) => !one.cancelled && !one.realm.dead);
  }

  #push(pending: Pending): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(pending);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(pending, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = pending;
  }

  #pop(): Pending | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1;
      if (!before(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function before(a: Pending, b: Pending): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order);
}
