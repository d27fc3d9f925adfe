/**
 * Runs one target: first every kept input, then made ones until the time or the number is up. A failing input is made smaller
 * and kept, so that every later run tries it again.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FuzzTarget } from './fuzz-target.ts';
import { mutate } from './mutate.ts';
import { Random } from './random.ts';

const corpusRoot = fileURLToPath(new URL('../../../test/fuzz/corpus/', import.meta.url));
const slowestMs = 10_000;
const mostShrinkRuns = 400;
const longestShrinkMs = 20_000;

export interface CampaignOptions {
  readonly seed: number;
  /** Of made inputs; kept ones are always all tried. */
  readonly seconds: number;
  readonly maxRuns?: number;
  /** Whether a failing input is written into the corpus. */
  readonly keep: boolean;
}

export interface FuzzFailure {
  readonly reason: string;
  readonly input: Buffer;
  /** Where it is kept, or the name of the kept input. */
  readonly path: string | undefined;
}

export interface CampaignResult {
  readonly kept: number;
  readonly runs: number;
  readonly seconds: number;
  readonly failure: FuzzFailure | undefined;
}

/** Ends with the first failure. */
export async function runCampaign(target: FuzzTarget, options: CampaignOptions): Promise<CampaignResult> {
  const strays: unknown[] = [];
  const onStray = (error: unknown): void => void strays.push(error);
  process.on('unhandledRejection', onStray).on('uncaughtException', onStray);
  try {
    return await new Campaign(target, options, strays).run();
  } finally {
    await target.close?.();
    process.off('unhandledRejection', onStray).off('uncaughtException', onStray);
  }
}

class Campaign {
  readonly #target: FuzzTarget;
  readonly #options: CampaignOptions;
  /** Errors that nobody awaited. */
  readonly #strays: unknown[];
  readonly #prototypes = prototypeNames();

  constructor(target: FuzzTarget, options: CampaignOptions, strays: unknown[]) {
    this.#target = target;
    this.#options = options;
    this.#strays = strays;
  }

  async run(): Promise<CampaignResult> {
    const kept = keptInputs(this.#target.name);
    for (const { path, input } of kept) {
      const reason = await this.#try(input);
      if (reason !== undefined) return { kept: kept.length, runs: 0, seconds: 0, failure: { reason, input, path } };
    }
    const pool = [...kept.map(({ input }) => input), ...this.#target.seeds];
    for (const input of this.#target.seeds) {
      const reason = await this.#try(input);
      if (reason !== undefined) return { kept: kept.length, runs: 0, seconds: 0, failure: { reason, input, path: undefined } };
    }
    const random = new Random(this.#options.seed);
    const start = performance.now();
    const elapsed = (): number => (performance.now() - start) / 1000;
    let runs = 0;
    while (elapsed() < this.#options.seconds && runs < (this.#options.maxRuns ?? Number.POSITIVE_INFINITY)) {
      const input = this.#make(random, pool);
      runs += 1;
      const reason = await this.#try(input);
      if (reason !== undefined) return { kept: kept.length, runs, seconds: elapsed(), failure: await this.#report(input, reason) };
    }
    return { kept: kept.length, runs, seconds: elapsed(), failure: undefined };
  }

  #make(random: Random, pool: readonly Buffer[]): Buffer {
    const { maxInputBytes } = this.#target;
    const made = (): Buffer => this.#target.generate(random);
    const from = (): Buffer => (pool.length === 0 || random.chance(3) ? made() : random.pick(pool));
    const input = random.chance(2) ? made() : mutate(random, from(), from(), maxInputBytes);
    return Buffer.from(input.subarray(0, maxInputBytes));
  }

  /** What is wrong with how the input is taken. */
  async #try(input: Buffer): Promise<string | undefined> {
    const start = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const hung = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`it was not done within ${slowestMs} ms`)), slowestMs);
    });
    try {
      const digest = createHash('sha256').update(input).digest().readUInt32LE(0);
      await Promise.race([this.#target.check(Buffer.from(input), new Random(digest)), hung]);
    } catch (error) {
      return error instanceof Error ? (error.stack ?? error.message) : String(error);
    } finally {
      clearTimeout(timer);
    }
    if (performance.now() - start > slowestMs) return `it took longer than ${slowestMs} ms`;
    if (this.#strays.length > 0) return `an error that nobody awaited: ${String(this.#strays.splice(0)[0])}`;
    if (prototypeNames() !== this.#prototypes) return 'a prototype of the language was changed';
    return undefined;
  }

  async #report(input: Buffer, reason: string): Promise<FuzzFailure> {
    const small = await this.#shrink(input, reason);
    if (!this.#options.keep) return { ...small, path: undefined };
    const folder = join(corpusRoot, this.#target.name);
    mkdirSync(folder, { recursive: true });
    const digest = createHash('sha256').update(small.input).digest('hex').slice(0, 12);
    const path = join(folder, `seed-${this.#options.seed}-${digest}.bin`);
    writeFileSync(path, small.input);
    return { ...small, path };
  }

  /** Leaves out ever smaller pieces as long as the input fails in the same way. */
  async #shrink(input: Buffer, reason: string): Promise<{ input: Buffer; reason: string }> {
    let best = { input, reason };
    let runs = 0;
    const end = performance.now() + longestShrinkMs;
    for (let size = Math.ceil(input.length / 2); size >= 1 && runs < mostShrinkRuns; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let at = 0; at < best.input.length && runs < mostShrinkRuns && performance.now() < end; ) {
        const shorter = Buffer.concat([best.input.subarray(0, at), best.input.subarray(at + size)]);
        runs += 1;
        const again = await this.#try(shorter);
        if (again !== undefined && kindOf(again) === kindOf(reason)) best = { input: shorter, reason: again };
        else at += size;
      }
    }
    return best;
  }
}

/** The first words of a reason: what comes behind them differs with the input. */
function kindOf(reason: string): string {
  return reason.slice(0, 30);
}

function prototypeNames(): string {
  const names = [Object.prototype, Array.prototype, Function.prototype, String.prototype].map((one) => Reflect.ownKeys(one).length);
  return names.join(' ');
}

function keptInputs(name: string): { readonly path: string; readonly input: Buffer }[] {
  const folder = join(corpusRoot, name);
  let files: string[];
  try {
    files = readdirSync(folder).sort();
  } catch {
    // A target without a kept input yet.
    return [];
  }
  return files.map((file) => ({ path: join(folder, file), input: readFileSync(join(folder, file)) }));
}
