/**
 * One timer for many periodic streams: each keeps its own phase, and a tick serves all that are due.
 *
 * 200 streams at 5 ms would otherwise be 200 timers and 40,000 timer callbacks a second.
 */

export interface Periodic {
  readonly periodMs: number;
  /** Called once per elapsed period; `false` ends it. */
  fire(): boolean;
}

interface Entry {
  readonly periodic: Periodic;
  due: number;
}

export class TickWheel {
  readonly #slots = new Map<number, Entry[]>();
  #timer: NodeJS.Timeout | undefined;
  #at = 0;
  #size = 0;

  /** Begins one period from now. */
  add(periodic: Periodic): void {
    const now = performance.now();
    if (this.#timer === undefined) {
      this.#at = Math.floor(now);
      this.#timer = setInterval(() => this.#tick(), 1);
    }
    this.#size += 1;
    this.#put({ periodic, due: now + periodic.periodMs });
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#slots.clear();
    this.#size = 0;
  }

  #put(entry: Entry): void {
    const slot = Math.max(Math.floor(entry.due), this.#at + 1);
    const entries = this.#slots.get(slot);
    if (entries === undefined) this.#slots.set(slot, [entry]);
    else entries.push(entry);
  }

  #tick(): void {
    const now = Math.floor(performance.now());
    for (; this.#at < now; this.#at += 1) {
      const entries = this.#slots.get(this.#at + 1);
      if (entries === undefined) continue;
      this.#slots.delete(this.#at + 1);
      for (const entry of entries) {
        if (entry.periodic.fire()) {
          // From the planned time, not from now: a late tick must not slow the stream.
          entry.due += entry.periodic.periodMs;
          this.#put(entry);
        } else this.#size -= 1;
      }
    }
    if (this.#size === 0) this.close();
  }
}
