/** Memory of an agent that has nothing to do any more. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentProcess } from './agent-process.ts';

/** PSS once it moves by less than 1 % in a quarter of a second: threads have started, pages have been given back. */
export async function settledMb(agent: AgentProcess): Promise<number> {
  let before = Number.NaN;
  for (;;) {
    const now = agent.pssMb();
    if (Math.abs(now - before) < now / 100) return now;
    before = now;
    await sleep(250);
  }
}
