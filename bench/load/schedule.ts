/**
 * When an open loop prompts: at random moments with a mean rate, as independent people do, drawn from a seed before the load begins.
 * No answer, however late, changes them: who waits for answers before asking again leaves out just the moments that were slow.
 */
import { Random } from '../../test/simulation/random.ts';

export interface Arrival {
  /** Milliseconds from the beginning of the load. */
  readonly atMs: number;
  /** Which session prompts; each does equally often. */
  readonly session: number;
}

/** `sessions` × `turns` arrivals in order, `rate` of them a second on the average. The same seed gives the same ones. */
export function arrivals(plan: { readonly sessions: number; readonly turns: number; readonly rate: number }, seed: number): Arrival[] {
  const random = new Random(seed);
  const order = sessionOrder(plan, random);
  let atMs = 0;
  return order.map((session) => {
    // Exponential gaps: what is left of one is as long as a new one, so the past says nothing about the next arrival.
    atMs += (-Math.log(1 - random.next()) * 1000) / plan.rate;
    return { atMs, session };
  });
}

/** All sessions once, in a random order, before any of them again. */
function sessionOrder({ sessions, turns }: { readonly sessions: number; readonly turns: number }, random: Random): number[] {
  const order: number[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const round = Array.from({ length: sessions }, (_, index) => index);
    for (let last = round.length - 1; last > 0; last -= 1) {
      const other = random.int(0, last);
      [round[last], round[other]] = [round[other]!, round[last]!];
    }
    order.push(...round);
  }
  return order;
}
