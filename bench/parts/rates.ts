/**
 * Latency over load: what is added to each delta at more and more deltas a second, in both loops, beside the floor. Nothing else differs
 * between the rows, so they make the curves of the report.
 */
import { defaultShape } from '../load/load-shape.ts';
import { runLoad } from '../load/run-load.ts';
import type { Part } from '../run.ts';

/** So many that no session is prompted before it has answered, also in the open loop: the floor has no queue. */
const sessions = 400;
const base = { ...defaultShape, sessions, floor: true, repeats: 3 };
/** Milliseconds between two deltas of one session: 2,000 to 50,000 a second of all together. Rounds are as long, whatever the pace. */
const delays = [200, 80, 40, 20, 8];
const roundMs = 2000;
/** Prompts a second, of 50 deltas each. */
const rates = [20, 50, 100, 200, 400];

export const ratesPart: Part = {
  name: 'rates',
  onlyFull: true,
  run: async (bench) => {
    for (const delayMs of delays) await runLoad(bench, { ...base, turns: 1, tokens: roundMs / delayMs, delayMs });
    for (const rate of rates) {
      const turns = Math.max(1, Math.round((rate * roundMs) / 1000 / sessions));
      await runLoad(bench, { ...base, loop: 'open', rate, turns, tokens: 50, delayMs: 5 });
    }
  },
};
