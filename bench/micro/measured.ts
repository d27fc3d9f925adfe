/**
 * Measures small pieces of work, each warm and as often as its spread needs, and prints a {@link MicroRow} as a line of JSON for each.
 */
import { Bench } from 'tinybench';
import type { MicroRow } from '../run.ts';

export interface MicroWork {
  readonly what: string;
  readonly unit: string;
  /** Units that one run does. */
  readonly count: number;
  /** Of one unit. */
  readonly bytes?: number;
  readonly run: () => unknown;
}

const repeats = 5;
/** Of one repeat, in milliseconds; what takes long runs a few times all the same. */
const repeatOptions = { time: 150, warmupTime: 50, iterations: 8, warmupIterations: 3, throws: true };

/** One after another. A repeat is the median of its runs. */
export async function measureAll(group: string, works: readonly MicroWork[]): Promise<void> {
  for (const work of works) {
    const nanoseconds: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat += 1) nanoseconds.push((await medianMs(work)) * (1e6 / work.count));
    const { what, unit, bytes } = work;
    const row: MicroRow = { group, what, unit, nanoseconds, ...(bytes === undefined ? {} : { bytes }) };
    process.stdout.write(`${JSON.stringify(row)}\n`);
  }
}

async function medianMs({ what, run }: MicroWork): Promise<number> {
  const bench = new Bench(repeatOptions);
  bench.add(what, run);
  await bench.run();
  const result = bench.tasks[0]?.result;
  const p50 = result !== undefined && 'latency' in result ? result.latency.p50 : undefined;
  if (p50 === undefined) throw new Error(`No figures for ${what}.`);
  return p50;
}
