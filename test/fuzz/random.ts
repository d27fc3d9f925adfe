/**
 * Random choices that a seed gives again: the same seed makes the same inputs on every machine and in every release of Node.
 */

/** xoshiro128**, seeded by splitmix32. */
export class Random {
  readonly #state: [number, number, number, number];

  constructor(seed: number) {
    let x = seed >>> 0;
    const next = (): number => {
      x = (x + 0x9e3779b9) >>> 0;
      let z = x ^ (x >>> 16);
      z = Math.imul(z, 0x21f0aaad);
      z ^= z >>> 15;
      z = Math.imul(z, 0x735a2d97);
      return (z ^ (z >>> 15)) >>> 0;
    };
    this.#state = [next(), next(), next(), next() | 1];
  }

  /** 32 bits. */
  bits(): number {
    const state = this.#state;
    const mixed = Math.imul(rotate(Math.imul(state[1], 5), 7), 9) >>> 0;
    const shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 11);
    return mixed;
  }

  /** A whole number from 0 to `below` - 1; 0 where there is none. */
  below(below: number): number {
    return below <= 0 ? 0 : this.bits() % below;
  }

  chance(oneIn: number): boolean {
    return this.below(oneIn) === 0;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined && items.length === 0) throw new RangeError('nothing to pick from');
    return item as Item;
  }

  list<Item>(most: number, make: () => Item): Item[] {
    return Array.from({ length: this.below(most + 1) }, make);
  }
}

function rotate(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by));
}
