/** Cancel: of turns that stream, of a thread that is stuck, and what a stuck thread does to the others meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';
import { configKeys } from '../../src/main/config/schema.ts';
import type { AgentProcess } from '../load/agent-process.ts';
import { stampedRound } from '../load/latency.ts';
import { median, percentile } from '../load/statistics.ts';
import { startTarget } from '../load/targets.ts';
import type { BenchRun, Part } from '../run.ts';

const sessions = 50;
const others = 10;
/** Taken from the settings' own table: a copy here once outlived a change of the default. */
const graceMs = configKeys.cancel_grace_ms.default;

export const cancelPart: Part = {
  name: 'cancel',
  run: async (bench) => {
    await whileStreaming(bench);
    await whileStuck(bench);
  },
};

/** One after another, while the others stream on. */
async function whileStreaming(bench: BenchRun): Promise<void> {
  const { agent, close } = await startTarget('dedicated:64', bench.model);
  const ids = await agent.newSessions(sessions);
  const streaming = new Set<string>();
  const allStream = new Promise<void>((resolve) => {
    agent.onText = (sessionId) => {
      if (streaming.add(sessionId).size === sessions) resolve();
    };
  });
  const ends = ids.map((id) => agent.prompt(id, { tokens: 100_000, delayMs: 20 }));
  await allStream;
  const times: number[] = [];
  for (const [index, id] of ids.entries()) {
    const { ms, reason } = await cancelMs(agent, id, ends[index]!);
    times.push(ms);
    if (reason !== 'cancelled') bench.fault(`a cancelled turn answered ${reason}`);
  }
  await close();
  const [p50, most] = [median(times), Math.max(...times)];
  bench.figure({
    what: `cancel of ${sessions} streaming turns → answer: p50 / max ms`,
    target: '≤ 50 / –',
    measured: `${p50.toFixed(1)} / ${most.toFixed(1)}`,
    holds: p50 <= 50,
    values: { p50, max: most },
  });
}

async function whileStuck(bench: BenchRun): Promise<void> {
  // The grace is left at its default: what is measured is what a user gets.
  const flags = ['--log-level', 'silent', '--stuck-thread-ms', '60000'];
  const { agent, close } = await startTarget('dedicated:64', bench.model, { saboteur: true, flags });
  const ids = await agent.newSessions(others);
  const load = { tokens: 75, delayMs: 20 };
  await stampedRound(agent, ids, load);
  const calm = await stampedRound(agent, ids, load);
  const victim = await agent.newSession();
  await agent.prompt(victim, { tokens: 1 });
  const end = agent.prompt(victim, { tokens: 100_000, delayMs: 1000 }, '[!spin 10] ');
  await sleep(300);
  const beside = await stampedRound(agent, ids, load);
  const { ms, reason } = await cancelMs(agent, victim, end);
  await close();
  bench.check(calm.wrong + beside.wrong, 'deltas beside a stuck thread');
  // A thread that reacts answers within milliseconds; a stuck one is ended when the grace is over.
  if (ms < graceMs) bench.fault(`no thread was stuck: the cancel was answered after ${ms.toFixed(0)} ms`);
  if (reason !== 'cancelled') bench.fault(`the turn of a stuck thread answered ${reason}`);
  const [p99, calmP99] = [percentile(beside.latenciesMs, 99), percentile(calm.latenciesMs, 99)];
  bench.figure({
    what: `${others} other sessions while one dedicated thread spins: p99 ms (${calmP99.toFixed(1)} without it)`,
    target: '≤ 50',
    measured: p99.toFixed(1),
    holds: p99 <= 50,
    values: { p99, calmP99 },
  });
  bench.figure({
    what: 'cancel of a turn whose thread spins → answer, ms',
    target: '≤ 1000',
    measured: ms.toFixed(0),
    holds: ms <= 1000,
    values: { ms },
  });
}

async function cancelMs(agent: AgentProcess, sessionId: string, end: Promise<string>): Promise<{ ms: number; reason: string }> {
  const start = performance.now();
  agent.notify('session/cancel', { sessionId });
  const reason = await end;
  return { ms: performance.now() - start, reason };
}
