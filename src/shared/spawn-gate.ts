/**
 * What every start of a child process goes through, in memory that two threads share: main closes it before it kills all children at once.
 *
 * Without it a child that is just being started escapes: it has no group yet that main was told of and, before it has become its program,
 * no mark by which it could be found. Such children were left in 4 of 120 hard ends in the midst of 30 starting commands.
 */

/** Words of the memory: whether the gate is closed, and how many starts are under way. */
const closed = 0;
const inside = 1;

export class SpawnGate {
  readonly #words: Int32Array;

  /** @param memory of {@link makeSpawnGateMemory} */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  /** Runs the start, which must be over when it returns; `undefined` without running it once the gate is closed. */
  pass<Started>(start: () => Started): Started | undefined {
    Atomics.add(this.#words, inside, 1);
    try {
      // Looked at behind the count: whoever closes the gate either sees this start, or is seen by it.
      return Atomics.load(this.#words, closed) === 1 ? undefined : start();
    } finally {
      Atomics.sub(this.#words, inside, 1);
      Atomics.notify(this.#words, inside);
    }
  }

  /** Nothing passes any more. Blocks until what is under way is over, for at most `limitMs`; false when it is not. */
  close(limitMs: number): boolean {
    Atomics.store(this.#words, closed, 1);
    const end = performance.now() + limitMs;
    for (let count = Atomics.load(this.#words, inside); count > 0; count = Atomics.load(this.#words, inside)) {
      const left = end - performance.now();
      if (left <= 0) return false;
      Atomics.wait(this.#words, inside, count, left);
    }
    return true;
  }
}

export function makeSpawnGateMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
}
