/**
 * Choices from a seed: the same seed gives the same choices, on every machine. Each part of a simulation draws from a source of its
 * own, so that leaving out an action does not change what the other parts draw.
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    // Mixed, so that neighbouring seeds have nothing in common.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul((seed / 2 ** 32) | 0, 0xc2b2ae35);
    for (let i = 0; i < 4; i += 1) this.next();
  }

  /** From 0 up to, not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `from` to `to`, both included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly T[]): T {
    const one = from[Math.floor(this.next() * from.length)];
    if (one === undefined && from.length === 0) throw new Error('nothing to pick from');
    return one as T;
  }
}
