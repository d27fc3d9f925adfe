/**
 * One load of the command line; without one the matrix: a load that all others differ from in one way, so that each dimension is
 * there at least once.
 */
import { defaultShape, type LoadShape } from '../load/load-shape.ts';
import { runLoad } from '../load/run-load.ts';
import type { Part } from '../run.ts';

const matrix: readonly Partial<LoadShape>[] = [
  { floor: true },
  { sessions: 200, floor: true },
  { connections: 4, sessions: 25 },
  { turns: 20, tokens: 10 },
  { delayMs: 0, turns: 10, floor: true },
  { delayMs: 0, turns: 10, outputBytes: 100_000 },
  { loop: 'open', rate: 50, floor: true },
  { loop: 'open', rate: 200, tokens: 50, sessions: 200 },
  { mix: 'reads' },
  { mix: 'commands', sessions: 20, tokens: 20 },
  { mix: 'commands', sessions: 20, tokens: 20, outputBytes: 1_000_000 },
  { mix: 'edits' },
  { history: 200 },
  { profile: 'automation' },
  { profile: 'automation', mix: 'reads', sessions: 200, delayMs: 0 },
  { isolation: 'dedicated' },
  { isolation: 'strict', threads: 25 },
  { isolation: 'parked' },
];

export const loadPart: Part = {
  name: 'load',
  onlyFull: true,
  run: async (bench) => {
    const shapes = bench.shape === undefined ? matrix.map((change): LoadShape => ({ ...defaultShape, ...change })) : [bench.shape];
    for (const shape of shapes) await runLoad(bench, shape);
  },
};
