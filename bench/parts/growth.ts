/**
 * How each cost grows with one size: open sessions, threads, the length of a conversation, the size of a log, of an output. Small sizes
 * only without `--full`.
 */
import { growthByHistory } from '../growth/by-history.ts';
import { growthByLogSize } from '../growth/by-log-size.ts';
import { growthByOutput } from '../growth/by-output.ts';
import { growthBySessions } from '../growth/by-sessions.ts';
import { growthByThreads } from '../growth/by-threads.ts';
import type { Part } from '../run.ts';

/** A part each: all of their names contain `growth`. */
export const growthParts: readonly Part[] = [
  { name: 'growth-sessions', onlyFull: true, run: growthBySessions },
  { name: 'growth-threads', onlyFull: true, run: growthByThreads },
  { name: 'growth-history', onlyFull: true, run: growthByHistory },
  { name: 'growth-log', onlyFull: true, run: growthByLogSize },
  { name: 'growth-output', onlyFull: true, run: growthByOutput },
];
