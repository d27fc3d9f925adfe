/** How each cost grows with one size. */
import type { Part } from '../run.ts';

export const growthPart: Part = {
  name: 'growth',
  onlyFull: true,
  run: async () => undefined,
};
