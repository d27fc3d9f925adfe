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
