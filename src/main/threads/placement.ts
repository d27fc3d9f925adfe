/**
 * Placement: which thread takes the next session. Pure policy, called by piscina as its load balancer.
 *
 * Piscina's own balancer fills one thread before it starts another; ours spreads. Answering `null` makes piscina start
 * one more thread, or keep the task until one is free when the pool is full.
 */
import type { Isolation } from '../../shared/config.ts';

interface Candidate {
  readonly currentUsage: number;
}

export type Placement = <W extends Candidate>(task: { readonly name: string }, workers: readonly W[]) => W | null;

/** The export of the thread bundle that does nothing: running it makes piscina hold one more idle thread. */
export const spareTaskName = 'spare';

/**
 * - `strict`: a free thread or none.
 * - `dedicated`: a free thread; once all `maxThreads` are there and taken, the least loaded one.
 * - `shared`: the least loaded one (all threads are there from the start).
 *
 * A spare task only ever takes a free thread.
 */
export function placementFor(isolation: Isolation, maxThreads: number): Placement {
  return (task, workers) => {
    const least = leastLoaded(workers);
    if (least === null || least.currentUsage === 0) return least;
    if (task.name === spareTaskName || isolation === 'strict') return null;
    return isolation === 'shared' || workers.length >= maxThreads ? least : null;
  };
}

function leastLoaded<W extends Candidate>(workers: readonly W[]): W | null {
  let least: W | null = null;
  for (const worker of workers) {
    if (least === null || worker.currentUsage < least.currentUsage) least = worker;
    if (least.currentUsage === 0) break;
  }
  return least;
}
