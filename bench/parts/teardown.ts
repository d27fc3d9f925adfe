/** End of input while many sessions are on threads, each after a turn: milliseconds until the process has gone. */
import { runRound } from '../load/round.ts';
import { median, withSpread } from '../load/statistics.ts';
import { startTarget, type TargetName } from '../load/targets.ts';
import type { BenchRun, Part } from '../run.ts';

export const teardownPart: Part = {
  name: 'teardown',
  run: async (bench) => {
    await measure(bench, 'shared', { sessions: 1000, what: '1,000 sessions, shared' });
    await measure(bench, 'dedicated:64', { sessions: 64, what: '64 sessions on 64 dedicated threads' });
  },
};

async function measure(bench: BenchRun, name: TargetName, plan: { readonly sessions: number; readonly what: string }): Promise<void> {
  const exits: number[] = [];
  for (let i = 0; i < (bench.full ? 5 : 2); i += 1) {
    const { agent, close } = await startTarget(name, bench.model);
    const ids = await agent.newSessions(plan.sessions, 50);
    const { wrong } = await runRound(agent, ids, { tokens: 5, delayMs: 0 });
    bench.check(wrong, `teardown, ${name}: texts`);
    exits.push(await close());
  }
  const ms = median(exits);
  bench.figure({
    what: `end of input → exit, ${plan.what}: ms`,
    target: '≤ 400',
    measured: withSpread(exits, 0),
    holds: ms <= 400,
    values: { exitMs: ms },
  });
}
