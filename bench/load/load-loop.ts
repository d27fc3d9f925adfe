/** The ways in which a load prompts: each waits for the answers of its own, or nobody waits. */
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../../test/support/monotonic.ts';
import type { AgentProcess } from './agent-process.ts';
import type { LoadMeter } from './load-meter.ts';
import type { LoadSession } from './load-session.ts';
import type { LoadShape } from './load-shape.ts';
import { arrivals } from './schedule.ts';

const parkedDeadlineMs = 60_000;

/** Runs all turns of one repeat; milliseconds that they took. @param seed of the times of an open loop */
export async function runTurns(sessions: readonly LoadSession[], shape: LoadShape, meter: LoadMeter, seed: number): Promise<number> {
  if (shape.loop === 'open') return await openLoop(sessions, shape, meter, seed);
  return shape.isolation === 'parked' ? await parkedWaves(sessions, shape, meter) : await closedLoop(sessions, shape, meter);
}

/** All at the same moment, and each its next prompt right behind its last answer. */
async function closedLoop(sessions: readonly LoadSession[], shape: LoadShape, meter: LoadMeter): Promise<number> {
  const start = monotonicMs();
  await Promise.all(
    sessions.map(async (session) => {
      for (let turn = 0; turn < shape.turns; turn += 1) await session.turn(meter, shape);
    }),
  );
  return monotonicMs() - start;
}

/** All at the same moment, once all are on no thread; the time until they are is not counted. */
async function parkedWaves(sessions: readonly LoadSession[], shape: LoadShape, meter: LoadMeter): Promise<number> {
  const agents = new Set(sessions.map(({ target }) => target.agent));
  let ms = 0;
  for (let turn = 0; turn < shape.turns; turn += 1) {
    for (const agent of agents) await allParked(agent);
    const start = monotonicMs();
    await Promise.all(sessions.map((session) => session.turn(meter, shape)));
    ms += monotonicMs() - start;
  }
  return ms;
}

async function openLoop(sessions: readonly LoadSession[], shape: LoadShape, meter: LoadMeter, seed: number): Promise<number> {
  const start = monotonicMs();
  const turns: Promise<void>[] = [];
  for (const { atMs, session } of arrivals({ sessions: sessions.length, turns: shape.turns, rate: shape.rate }, seed)) {
    const due = start + atMs;
    // A late timer makes a prompt late, and the time by which it is late counts.
    const wait = due - monotonicMs();
    if (wait > 1) await sleep(wait);
    const turn = sessions[session]!.turn(meter, shape, due);
    // One that fails before all are sent is looked at with the others.
    turn.catch(() => undefined);
    turns.push(turn);
  }
  await Promise.all(turns);
  return monotonicMs() - start;
}

/** @throws Error after a minute */
export async function allParked(agent: AgentProcess): Promise<void> {
  const deadline = performance.now() + parkedDeadlineMs;
  for (;;) {
    const { sessions } = await agent.request('_status', {});
    if (sessions.attached === 0) return;
    if (performance.now() > deadline) throw new Error(`${sessions.attached} sessions were not parked within ${parkedDeadlineMs} ms`);
    await sleep(50);
  }
}
