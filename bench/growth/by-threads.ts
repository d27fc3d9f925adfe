/** Costs by the number of session threads, each with one session that works. */
import { runRound } from '../load/round.ts';
import { settledMb } from '../load/settled-memory.ts';
import { startTarget } from '../load/targets.ts';
import type { BenchRun } from '../run.ts';
import { flat, linear, Samples } from './curve.ts';

const load = { tokens: 200, delayMs: 5 };
const warmUps = 3;
const rounds = 5;
const over = 'threads';
/** Each thread is started for its session, however long that takes. */
const flags = ['--spare-threads', '0', '--attach-timeout-ms', '600000'];

export async function growthByThreads(bench: BenchRun): Promise<void> {
  const sizes = bench.full ? [1, 2, 4, 8, 16, 32, 64] : [1, 2, 4, 8];
  const [memory, attach, cpu, main, turn, exit] = Array.from({ length: 6 }, () => new Samples()) as [
    Samples,
    Samples,
    Samples,
    Samples,
    Samples,
    Samples,
  ];
  for (const threads of sizes) {
    const { agent, close } = await startTarget(`dedicated:${threads}`, bench.model, { flags });
    const idleMb = await settledMb(agent);
    const ids = await agent.newSessions(threads);
    const start = performance.now();
    await Promise.all(ids.map((sessionId) => agent.request('session/set_mode', { sessionId, modeId: 'read-only' })));
    attach.add(threads, performance.now() - start);
    for (let round = 0; round < warmUps; round += 1) await runRound(agent, ids, { ...load, delayMs: 0 });
    for (let round = 0; round < rounds; round += 1) {
      const { totalMs, cpuUs, wrong } = await runRound(agent, ids, load);
      bench.check(wrong, `growth, ${threads} threads: texts`);
      cpu.add(threads, cpuUs.total);
      main.add(threads, cpuUs.main);
      turn.add(threads, totalMs);
    }
    memory.add(threads, (await settledMb(agent)) - idleMb);
    exit.add(threads, await close());
  }
  bench.curve(memory.curve({ what: 'memory of threads after work', unit: 'MB', over, most: linear }));
  bench.curve(attach.curve({ what: 'attaching a session to each at once', unit: 'ms', over, most: linear, from: 4 }));
  // A few threads alone are woken for each single token; many share a wake.
  bench.curve(cpu.curve({ what: 'CPU of a token', unit: 'µs', over, most: flat, from: 4 }));
  bench.curve(main.curve({ what: 'main thread for a token', unit: 'µs', over, most: flat, from: 4 }));
  bench.curve(turn.curve({ what: `turns of ${load.tokens} tokens at ${load.delayMs} ms on all of them`, unit: 'ms', over, most: flat }));
  bench.curve(exit.curve({ what: 'end of input to exit', unit: 'ms', over, most: linear }));
}
