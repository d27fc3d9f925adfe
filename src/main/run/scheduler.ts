/**
 * Which attempt runs when: so many at once, in the given order, until all are done or the run is stopped. An attempt that waits for another try keeps
 * its place: a model server or an agent in trouble slows the whole run down.
 */
import PQueue from 'p-queue';
import type { CostMeter } from './cost-meter.ts';
import type { RunStop } from './run-stop.ts';

export interface Schedule {
  readonly order: Iterable<number>;
  readonly concurrency: number;
  readonly stop: RunStop;
  readonly cost: CostMeter;
  /** Runs one attempt to its end; fulfils with its cost, as far as that is known. Must not reject. */
  readonly run: (index: number) => Promise<number | undefined>;
}

/** Fulfils when nothing runs any more. */
export async function runSchedule({ order, concurrency, stop, cost, run }: Schedule): Promise<void> {
  const queue = new PQueue({ concurrency });
  stop.drainSignal.addEventListener('abort', () => cost.release(), { once: true });
  const one = async (index: number): Promise<void> => {
    if (stop.isDraining) return;
    await cost.begin();
    let costUsd: number | undefined;
    try {
      if (!stop.isDraining) costUsd = await run(index);
    } finally {
      cost.end(costUsd);
    }
  };
  for (const index of order) {
    // One waits at a time, so that a million attempts are not a million promises.
    await queue.onSizeLessThan(1);
    if (stop.isDraining) break;
    void queue.add(async () => await one(index));
  }
  await queue.onIdle();
}
