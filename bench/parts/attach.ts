/**
 * Attaching in `dedicated`: the time of a `session/set_mode` on a session that is on no thread yet. It holds the attach, one
 * call to the thread and one line in the log. The server has run one turn before, as a server at work has: from then on threads
 * share compiled code.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentProcess } from '../load/agent-process.ts';
import { runRound } from '../load/round.ts';
import { percentile } from '../load/statistics.ts';
import { startTarget } from '../load/targets.ts';
import type { BenchRun, Part } from '../run.ts';

const samples = 15;
const burst = 50;
/** Threads of a server that has started none for this long are taken as all there. */
const quietMs = 100;

export const attachPart: Part = {
  name: 'attach',
  run: async (bench) => {
    await oneByOne(bench, { what: 'attach to a spare thread', flags: [], most: 5 });
    await oneByOne(bench, { what: 'attach to a new thread (cold)', flags: ['--spare-threads', '0'], most: 60 });
    await burstOfCold(bench);
  },
};

async function oneByOne(
  bench: BenchRun,
  plan: { readonly what: string; readonly flags: readonly string[]; readonly most: number },
): Promise<void> {
  const { agent, close } = await startTarget('dedicated:64', bench.model, { flags: plan.flags });
  await runOneTurn(agent);
  const times: number[] = [];
  for (let i = 0; i < samples; i += 1) {
    const sessionId = await agent.newSession();
    await threadsSettled(agent);
    times.push(await attachMs(agent, sessionId));
  }
  await close();
  const [p50, p99] = [percentile(times, 50), percentile(times, 99)];
  bench.figure({
    what: `${plan.what}: p50 / p99 ms`,
    target: `≤ ${plan.most} / –`,
    measured: `${p50.toFixed(1)} / ${p99.toFixed(1)}`,
    holds: p50 <= plan.most,
    values: { p50, p99 },
  });
}

async function burstOfCold(bench: BenchRun): Promise<void> {
  const all: number[] = [];
  const each: number[] = [];
  for (let i = 0; i < (bench.full ? 5 : 2); i += 1) {
    const { agent, close } = await startTarget('dedicated:64', bench.model, { flags: ['--spare-threads', '0'] });
    await runOneTurn(agent);
    const ids = await agent.newSessions(burst);
    const start = performance.now();
    each.push(...(await Promise.all(ids.map((id) => attachMs(agent, id)))));
    all.push(performance.now() - start);
    await close();
  }
  const [total, p50] = [percentile(all, 50), percentile(each, 50)];
  bench.figure({
    what: `attach ${burst} at once, all cold: ms until the last (p50 ${p50.toFixed(0)})`,
    target: `≤ ${25 * burst}`,
    measured: total.toFixed(0),
    holds: total <= 25 * burst,
    values: { totalMs: total, p50 },
  });
}

async function runOneTurn(agent: AgentProcess): Promise<void> {
  await runRound(agent, [await agent.newSession()], { tokens: 20, delayMs: 0 });
}

async function attachMs(agent: AgentProcess, sessionId: string): Promise<number> {
  const start = performance.now();
  await agent.request('session/set_mode', { sessionId, modeId: 'read-only' });
  return performance.now() - start;
}

/** Spare threads start on their own; there is no frame that says so, but the number of threads stands still, and so does their CPU. */
async function threadsSettled(agent: AgentProcess): Promise<void> {
  let before = { threads: 0, cpu: -1 };
  for (;;) {
    const now = { threads: agent.threads(), cpu: agent.cpu.read().total };
    if (now.threads === before.threads && now.cpu - before.cpu < 5) return;
    before = now;
    await sleep(quietMs);
  }
}
