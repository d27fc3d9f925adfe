/**
 * A run over wall time, in a bounded number of slots that grow wider as the run grows longer: how many attempts were at work, how many
 * tokens came out, how many attempts ended.
 */
import type { JobUsage } from '../job-result.ts';
import type { RunEvent, RunObserver } from '../run-event.ts';

/** Doubles when it is full, so a run of any length has between half of this and all of it. */
const mostSlots = 240;
const firstSlotMs = 250;

export interface Slot {
  /** Attempts at work, averaged over the slot. */
  readonly atWork: number;
  /** Per second. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly ended: number;
}

export class TimeLine implements RunObserver {
  startedAt: number | undefined;
  endedAt = 0;
  agent = '';
  concurrency = 0;
  hasUsage = false;
  #slotMs = firstSlotMs;
  #workMs = new Float64Array(mostSlots);
  #input = new Float64Array(mostSlots);
  #output = new Float64Array(mostSlots);
  #ends = new Float64Array(mostSlots);
  /** When each attempt at work began, or its last turn ended. */
  readonly #since = new Map<string, number>();
  #countedAt = 0;

  get slotMs(): number {
    return this.#slotMs;
  }

  onEvent(event: RunEvent): void {
    if (event.type === 'run/start') {
      this.startedAt ??= event.time;
      this.#countedAt = event.time;
      this.agent = event.agent;
      this.concurrency = event.concurrency;
    }
    if (this.startedAt === undefined) return;
    this.#reach(event.time);
    switch (event.type) {
      case 'job/state':
        if (event.state === 'waiting' || event.state === 'ended') this.#since.delete(event.key);
        else if (!this.#since.has(event.key)) this.#since.set(event.key, event.time);
        return;
      case 'job/turn':
        if (event.usage !== undefined) this.#addUsage(this.#since.get(event.key) ?? event.time, event.time, event.usage);
        if (this.#since.has(event.key)) this.#since.set(event.key, event.time);
        return;
      case 'job/retry':
        this.#since.delete(event.key);
        return;
      case 'job/end': {
        this.#since.delete(event.result.key);
        const slot = this.#slotOf(event.time);
        this.#ends[slot] = (this.#ends[slot] ?? 0) + 1;
        return;
      }
      case 'run/start':
      case 'job/progress':
      case 'run/draining':
      case 'run/end':
        return;
    }
  }

  /** Empty when nothing was seen. */
  slots(): Slot[] {
    if (this.startedAt === undefined || this.endedAt <= this.startedAt) return [];
    const span = this.endedAt - this.startedAt;
    const count = Math.min(mostSlots, Math.ceil(span / this.#slotMs));
    return Array.from({ length: count }, (_, slot) => {
      // The last slot is not full yet.
      const lengthMs = Math.min(this.#slotMs, span - slot * this.#slotMs);
      return {
        atWork: (this.#workMs[slot] ?? 0) / lengthMs,
        inputTokens: ((this.#input[slot] ?? 0) * 1000) / lengthMs,
        outputTokens: ((this.#output[slot] ?? 0) * 1000) / lengthMs,
        ended: this.#ends[slot] ?? 0,
      };
    });
  }

  /** Counts the time up to `time` for what was at work, and widens the slots until it fits. A clock that was set back is passed over. */
  #reach(time: number): void {
    if (time <= this.#countedAt) return;
    const started = this.startedAt ?? time;
    while (time - started > this.#slotMs * mostSlots) this.#widen();
    this.#spread(this.#workMs, this.#countedAt, time, this.#since.size * (time - this.#countedAt));
    this.#countedAt = time;
    this.endedAt = time;
  }

  #addUsage(from: number, to: number, usage: JobUsage): void {
    this.hasUsage = true;
    this.#spread(this.#input, from, to, usage.inputTokens + usage.cacheReadTokens);
    this.#spread(this.#output, from, to, usage.outputTokens);
  }

  /** Over the slots of `[from, to)`, each by its share: a turn's tokens came all along the turn. */
  #spread(amounts: Float64Array, from: number, to: number, amount: number): void {
    if (amount === 0) return;
    const first = this.#slotOf(from);
    const last = this.#slotOf(to);
    if (first === last || to <= from) {
      amounts[last] = (amounts[last] ?? 0) + amount;
      return;
    }
    const started = this.startedAt ?? from;
    for (let slot = first; slot <= last; slot += 1) {
      const begin = Math.max(from, started + slot * this.#slotMs);
      const end = Math.min(to, started + (slot + 1) * this.#slotMs);
      amounts[slot] = (amounts[slot] ?? 0) + (amount * Math.max(0, end - begin)) / (to - from);
    }
  }

  #slotOf(time: number): number {
    const slot = Math.floor((time - (this.startedAt ?? time)) / this.#slotMs);
    return Math.min(mostSlots - 1, Math.max(0, slot));
  }

  #widen(): void {
    this.#slotMs *= 2;
    this.#workMs = halved(this.#workMs);
    this.#input = halved(this.#input);
    this.#output = halved(this.#output);
    this.#ends = halved(this.#ends);
  }
}

/** Each two neighbours in one. */
function halved(amounts: Float64Array): Float64Array<ArrayBuffer> {
  const half = new Float64Array(mostSlots);
  for (let slot = 0; slot < mostSlots / 2; slot += 1) half[slot] = (amounts[slot * 2] ?? 0) + (amounts[slot * 2 + 1] ?? 0);
  return half;
}
