/** Turns of several sessions at once, one wave after another, and what one turn of them costs. */
import { monotonicMs } from '../../test/support/monotonic.ts';
import type { AgentProcess } from '../load/agent-process.ts';
import { LatencyHistogram } from '../load/histogram.ts';
import { countWrong, type RoundLoad } from '../load/round.ts';
import { type CpuSplit, cpuBetween } from '../load/thread-cpu.ts';

export interface TurnCost {
  /** Microseconds of CPU for one turn. */
  readonly cpuUs: CpuSplit;
  /** Median, from a prompt to its answer. */
  readonly turnMs: number;
  readonly wrong: number;
}

/** Each session has one turn in each wave; a wave begins when the one before it is over. */
export async function turnWaves(agent: AgentProcess, waves: readonly (readonly string[])[], load: RoundLoad): Promise<TurnCost> {
  const times = new LatencyHistogram();
  let wrong = 0;
  let turns = 0;
  const before = agent.cpu.read();
  for (const ids of waves) {
    agent.sessions.clear();
    await Promise.all(
      ids.map(async (id) => {
        const start = monotonicMs();
        if ((await agent.prompt(id, load)) !== 'end_turn') wrong += 1;
        times.record(monotonicMs() - start);
      }),
    );
    turns += ids.length;
    wrong += countWrong(agent, ids, load.tokens);
  }
  return { cpuUs: cpuBetween(before, agent.cpu.read(), 1000 / turns), turnMs: times.percentile(50), wrong };
}

/** `count` turns of each session, one at a time. */
export function oneByOne(ids: readonly string[], count: number): (readonly string[])[] {
  return Array.from({ length: count }, () => ids.map((id) => [id])).flat();
}
