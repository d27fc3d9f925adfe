/**
 * How much came in over the last while, in slots of equal length: adding and asking cost the same at any rate.
 */

const slotCount = 20;

export class RateWindow {
  readonly #slotMs: number;
  readonly #amounts = new Float64Array(slotCount);
  /** Number of the newest slot since the epoch; `-1` before anything came. */
  #newest = -1;
  #firstAt: number | undefined;

  /** @param windowMs how far back the rate looks */
  constructor(windowMs: number) {
    this.#slotMs = windowMs / slotCount;
  }

  /** `time` in epoch milliseconds; a time that lies back counts for the newest slot. */
  add(time: number, amount: number): void {
    this.#firstAt ??= time;
    const slot = this.#advance(time) % slotCount;
    this.#amounts[slot] = (this.#amounts[slot] ?? 0) + amount;
  }

  /** Per second over the window, or over the time since the first amount while that is shorter, but at least one second. */
  perSecond(now: number): number {
    if (this.#firstAt === undefined) return 0;
    this.#advance(now);
    const sum = this.#amounts.reduce((total, amount) => total + amount, 0);
    const span = Math.min(Math.max(now - this.#firstAt, 1000), this.#slotMs * slotCount);
    return (sum * 1000) / span;
  }

  #advance(time: number): number {
    const slot = Math.floor(time / this.#slotMs);
    if (slot <= this.#newest) return this.#newest;
    const from = Math.max(this.#newest + 1, slot - slotCount + 1);
    for (let each = from; each <= slot; each += 1) this.#amounts[each % slotCount] = 0;
    this.#newest = slot;
    return slot;
  }
}
