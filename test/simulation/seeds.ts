/** Seeds as tests: what fails is told with the smallest history that was found. */
import { failureText, runSeed } from './run-seed.ts';

/** From `from` up to, not including, `to`. The text of the first failure; undefined when all went well. */
export async function firstFailure(from: number, to: number): Promise<string | undefined> {
  for (let seed = from; seed < to; seed += 1) {
    const { complaints } = await runSeed(seed);
    if (complaints.length > 0) return await failureText(seed);
  }
  return undefined;
}

/**
 * Seeds that once showed a fault, and what it was. A change of the simulation can make another history of a seed, so each fault of the
 * server has a test of its own kind as well.
 */
export const onceFailed: readonly (readonly [seed: number, what: string])[] = [
  [2931, 'a card that ended when the disk refused its result was made again by the next turn'],
  [3527, 'a request was taken back from a server that had lost its power'],
  [3629, 'an answer was read back from the log before its turn end was on the disk'],
  [6854, 'a repeated prompt that came too late to join its turn was taken for one that ran at the same time as the next'],
  [10234, 'a program was asked for a permission behind the end of the turn'],
  [12980, 'a look at a directory that a dead server had begun'],
  [12984, 'that look kept every later server waiting'],
  [19843, 'what a turn showed while a load of its session was refused was taken for part of the load'],
  [38507, 'a message that a turn had taken in was taken for one that had ended'],
];
