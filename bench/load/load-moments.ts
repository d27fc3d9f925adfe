/** What happens once in the life of a turn or a session and not with each token: attaching, and cancelling. */
import { setTimeout as sleep } from 'node:timers/promises';
import { LatencyHistogram, type Percentiles } from './histogram.ts';
import { allParked } from './load-loop.ts';
import type { LoadSession } from './load-session.ts';
import type { LoadShape } from './load-shape.ts';

/** Sessions that are measured, at most. */
const samples = 20;
const runningDeadlineMs = 60_000;

/** The first call of some sessions that needs a thread, one after another. Undoes what it has set, so that tools may work. */
export async function attachTimes(sessions: readonly LoadSession[], { isolation }: LoadShape): Promise<Percentiles> {
  const chosen = sessions.slice(0, samples);
  const times = new LatencyHistogram();
  // What is resumed is on a thread.
  if (isolation === 'parked') for (const agent of new Set(chosen.map(({ target }) => target.agent))) await allParked(agent);
  for (const { target, id } of chosen) {
    const start = performance.now();
    await target.agent.request('session/set_mode', { sessionId: id, modeId: 'accept-edits' });
    times.record(performance.now() - start);
  }
  for (const { target, id } of chosen) await target.agent.request('session/set_mode', { sessionId: id, modeId: 'full-access' });
  return times.percentiles();
}

/** Cancels some turns that stream, one after another. */
export async function cancelTimes(sessions: readonly LoadSession[]): Promise<{ readonly times: Percentiles; readonly wrong: number }> {
  const chosen = sessions.slice(0, samples);
  const ends = chosen.map(({ target, id }) => target.agent.prompt(id, { tokens: 1_000_000, delayMs: 20 }));
  const agents = new Set(chosen.map(({ target }) => target.agent));
  for (const agent of agents) await allRun(agent, chosen.filter(({ target }) => target.agent === agent).length);
  const times = new LatencyHistogram();
  let wrong = 0;
  for (const [index, { target, id }] of chosen.entries()) {
    const start = performance.now();
    target.agent.notify('session/cancel', { sessionId: id });
    if ((await ends[index]) !== 'cancelled') wrong += 1;
    times.record(performance.now() - start);
  }
  return { times: times.percentiles(), wrong };
}

/** Where threads are not shared some may have to wait for one, and are cancelled while they do. */
async function allRun(agent: LoadSession['target']['agent'], count: number): Promise<void> {
  const deadline = performance.now() + runningDeadlineMs;
  for (;;) {
    const { turns } = await agent.request('_status', {});
    if (turns.running + turns.waiting >= count) break;
    if (performance.now() > deadline) throw new Error(`${turns.running} turns of ${count} run after ${runningDeadlineMs} ms`);
    await sleep(20);
  }
  // A turn that runs has asked its model, but not yet streamed.
  await sleep(200);
}
