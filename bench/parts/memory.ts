/**
 * Memory: growth of the server's PSS divided by sessions. Garbage that is not collected yet counts, as it does for the machine.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runRound } from '../load/round.ts';
import { settledMb } from '../load/settled-memory.ts';
import { startTarget, type Target, type TargetName } from '../load/targets.ts';
import type { BenchRun, Part } from '../run.ts';

const turn = { tokens: 200, delayMs: 0 };
const parkDeadlineMs = 60_000;

export const memoryPart: Part = {
  name: 'memory',
  run: async (bench) => {
    await afterTurn(bench, 'dedicated:64', { sessions: 32, mostKb: 12 * 1024 });
    await afterTurn(bench, 'shared', { sessions: 500, mostKb: 1024 });
    await neverAttached(bench);
    await parkedAfterUse(bench);
  },
};

/** One round for all of them at once, so that in `shared` the text of all is in flight together. */
async function afterTurn(bench: BenchRun, name: TargetName, plan: { readonly sessions: number; readonly mostKb: number }): Promise<void> {
  const { agent, close } = await startTarget(name, bench.model);
  const before = await settledMb(agent);
  const ids = await agent.newSessions(plan.sessions, 50);
  const { wrong } = await runRound(agent, ids, turn);
  bench.check(wrong, `memory, ${name}: texts`);
  const kb = ((await settledMb(agent)) - before) * (1024 / plan.sessions);
  await close();
  const isolation = name.split(':')[0]!;
  bench.figure({ what: `idle server, ${isolation}: MB`, target: '–', measured: before.toFixed(0), values: { mb: before } });
  bench.figure({
    what: `memory of a session, ${isolation}, after a turn of 200 tokens (${plan.sessions} sessions): KB`,
    target: `≤ ${plan.mostKb}`,
    measured: kb.toFixed(0),
    holds: kb <= plan.mostKb,
    values: { kb },
  });
}

async function neverAttached(bench: BenchRun): Promise<void> {
  const sessions = 10_000;
  const { agent, close } = await startTarget('shared', bench.model);
  const before = await settledMb(agent);
  await agent.newSessions(sessions, 50);
  const kb = ((await settledMb(agent)) - before) * (1024 / sessions);
  await close();
  bench.figure({
    what: `memory of a session that was made and never attached (${sessions}): KB`,
    target: '≤ 10',
    measured: kb.toFixed(1),
    holds: kb <= 10,
    values: { kb },
  });
}

/**
 * The heaps of a server grow with its work up to a size at which they stay, whoever works. So the same sessions are parked and
 * revived first until that is over; what then comes with new sessions is what they leave behind.
 */
async function parkedAfterUse(bench: BenchRun): Promise<void> {
  const batch = 250;
  const batches = 6;
  const target = await startTarget('shared', bench.model, { flags: ['--park-after-ms', '200'] });
  const useAndPark = async (ids: readonly string[]): Promise<void> => {
    const { wrong } = await runRound(target.agent, ids, { tokens: 5, delayMs: 0 });
    bench.check(wrong, 'memory, parked: texts');
    await allParked(target);
  };
  const same = await target.agent.newSessions(batch, 50);
  for (let i = 0; i < 8; i += 1) await useAndPark(same);
  const before = await settledMb(target.agent);
  for (let i = 0; i < batches; i += 1) await useAndPark(await target.agent.newSessions(batch, 50));
  const after = await settledMb(target.agent);
  await target.close();
  const kb = (after - before) * (1024 / (batch * batches));
  bench.figure({
    what: `memory of a session parked after a turn (${batch * batches} more on a server of ${before.toFixed(0)} MB): KB`,
    target: '≤ 10',
    measured: kb.toFixed(1),
    holds: kb <= 10,
    values: { kb, grownMb: before },
  });
}

/** A session on a thread holds its lock file. */
async function allParked({ stateDir }: Target): Promise<void> {
  const deadline = performance.now() + parkDeadlineMs;
  const locks = (): number => readdirSync(join(stateDir, 'sessions')).filter((name) => name.endsWith('.lock')).length;
  while (locks() > 0) {
    if (performance.now() > deadline) throw new Error(`${locks()} sessions were not parked within ${parkDeadlineMs} ms`);
    await sleep(100);
  }
}
