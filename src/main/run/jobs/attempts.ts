/**
 * All attempts of a run as numbers, and the order in which they start. Attempt `index` is repeat `index % repeats` of job
 * `index / repeats`, so the order of results is that of the file.
 */
import type { Attempt } from '../job.ts';
import type { JobSource } from './job-source.ts';

const repeatKey = /^(.*)#(\d{1,6})$/s;

export class Attempts {
  readonly count: number;
  readonly #jobs: JobSource;
  readonly #repeats: number;

  constructor(jobs: JobSource, repeats: number) {
    this.#jobs = jobs;
    this.#repeats = repeats;
    this.count = jobs.count * repeats;
  }

  key(index: number): string {
    const [id, repeat] = [this.#jobs.id(this.#jobIndex(index)), index % this.#repeats];
    return repeat === 0 ? id : `${id}#${repeat}`;
  }

  hash(index: number): string {
    return this.#jobs.hash(this.#jobIndex(index));
  }

  /** The attempt with this key; `undefined` when the jobs and repeats of now have none. */
  indexOf(key: string): number | undefined {
    const match = repeatKey.exec(key);
    const repeat = match === null ? 0 : Number(match[2]);
    const job = this.#jobs.indexOf(match?.[1] ?? key);
    // `id#0` is no key, and an id never ends like one.
    if (job === undefined || repeat >= this.#repeats || (match !== null && repeat === 0)) return undefined;
    return job * this.#repeats + repeat;
  }

  /** @throws WrongLine when the jobs file has changed */
  async attempt(index: number): Promise<Attempt> {
    const job = await this.#jobs.job(this.#jobIndex(index));
    const repeat = index % this.#repeats;
    const seed = job.seed + repeat;
    return { job, repeat, key: this.key(index), seed, modelSeed: this.#repeats > 1 || job.hasSeed ? seed : undefined };
  }

  /**
   * The attempts that are not done, in the order in which they start: that of the file, or shuffled (the same for the same seed), and higher
   * priorities before lower ones.
   */
  order(done: (index: number) => boolean, shuffleSeed: number | undefined): Uint32Array {
    const order = new Uint32Array(this.count);
    let length = 0;
    let prioritised = false;
    for (let index = 0; index < this.count; index += 1) {
      if (done(index)) continue;
      order[length] = index;
      length += 1;
      prioritised ||= this.#jobs.priority(this.#jobIndex(index)) !== 0;
    }
    const pending = order.subarray(0, length);
    if (shuffleSeed !== undefined) shuffle(pending, shuffleSeed);
    if (!prioritised) return pending;
    const priority = (index: number) => this.#jobs.priority(this.#jobIndex(index));
    // A typed array's sort is not stable by itself.
    const sorted = Array.from(pending, (index, at) => ({ index, at }));
    sorted.sort((a, b) => priority(b.index) - priority(a.index) || a.at - b.at);
    return Uint32Array.from(sorted, ({ index }) => index);
  }

  #jobIndex(index: number): number {
    return Math.floor(index / this.#repeats);
  }
}

/** Fisher and Yates, with a generator that depends on nothing but the seed. */
function shuffle(items: Uint32Array, seed: number): void {
  const random = mulberry32(seed);
  for (let last = items.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [items[last], items[other]] = [items[other] ?? 0, items[last] ?? 0];
  }
}

function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
