/**
 * Costs by the number of open sessions: of the memory of all, and of what is done with some of them while the others lie idle. A
 * burst wakes sessions that are on no thread, as they are in a large server.
 */
import { Random } from '../../test/simulation/random.ts';
import type { AgentProcess } from '../load/agent-process.ts';
import { allParked } from '../load/load-loop.ts';
import { settledMb } from '../load/settled-memory.ts';
import { median, percentile } from '../load/statistics.ts';
import { startTarget } from '../load/targets.ts';
import type { BenchRun } from '../run.ts';
import { flat, linear, Samples } from './curve.ts';
import { turnWaves } from './turn-waves.ts';

const burst = 50;
const bursts = 6;
const load = { tokens: 5, delayMs: 0 };
const over = 'open sessions';

interface Costs {
  readonly memory: Samples;
  readonly opening: Samples;
  readonly cpu: Samples;
  readonly main: Samples;
  readonly turn: Samples;
  readonly status: Samples;
  readonly list: Samples;
}

export async function growthBySessions(bench: BenchRun): Promise<void> {
  const sizes = bench.full ? [1, 10, 100, 300, 1000, 3000, 10_000] : [1, 10, 100, 300];
  const costs: Costs = {
    memory: new Samples(),
    opening: new Samples(),
    cpu: new Samples(),
    main: new Samples(),
    turn: new Samples(),
    status: new Samples(),
    list: new Samples(),
  };
  for (let repeat = 0; repeat < (bench.full ? 2 : 1); repeat += 1) await oneServer(bench, sizes, costs);
  // Where fewer are open than a burst wakes, less is done at a time.
  const from = 100;
  bench.curve(costs.memory.curve({ what: 'memory of idle open sessions', unit: 'MB', over, most: linear, from: 1000 }));
  bench.curve(costs.opening.curve({ what: 'session/new', unit: 'ms', over, most: flat, from }));
  bench.curve(costs.cpu.curve({ what: 'CPU of a turn that wakes its session', unit: 'µs', over, most: flat, from }));
  bench.curve(costs.main.curve({ what: 'main thread in a turn that wakes its session', unit: 'µs', over, most: flat, from }));
  bench.curve(costs.turn.curve({ what: `a turn in a burst of ${burst}`, unit: 'ms', over, most: flat, from }));
  bench.curve(costs.status.curve({ what: '_status', unit: 'ms', over, most: linear, from }));
  bench.curve(costs.list.curve({ what: 'the first page of session/list', unit: 'ms', over: 'stored sessions', most: linear, from }));
  await takenThreads(
    bench,
    sizes.filter((size) => size >= from),
  );
}

/** Where every thread is taken, a turn has to find a session that leaves its own. */
async function takenThreads(bench: BenchRun, sizes: readonly number[]): Promise<void> {
  const { agent, close } = await startTarget('dedicated:8', bench.model, { flags: ['--attach-timeout-ms', '600000'] });
  const random = new Random(2);
  const ids = await agent.newSessions(burst);
  await turnWaves(agent, [ids, ids, ids, ids], load);
  const main = new Samples();
  for (const size of sizes) {
    ids.push(...(await agent.newSessions(Math.max(0, size - ids.length), 10)));
    for (let i = 0; i < bursts; i += 1) {
      const { cpuUs, wrong } = await turnWaves(agent, [some(ids, random)], load);
      bench.check(wrong, `growth, ${size} sessions on 8 threads: texts`);
      if (i > 0) main.add(size, cpuUs.main);
    }
  }
  await close();
  const what = "main thread in a turn that takes another session's thread";
  bench.curve(main.curve({ what, unit: 'µs', over, most: flat }));
}

async function oneServer(bench: BenchRun, sizes: readonly number[], costs: Costs): Promise<void> {
  const { agent, close } = await startTarget('shared', bench.model, { flags: ['--park-after-ms', '1'] });
  const random = new Random(1);
  // Heaps grow with work up to where they stay; what is left then is what sessions are.
  const first = await agent.newSessions(burst);
  for (let i = 0; i < 20; i += 1) await wakeAndPark(agent, [first]);
  const idleMb = await settledMb(agent);
  const ids: string[] = [];
  for (const size of sizes) {
    const opened: number[] = [];
    while (ids.length < size) {
      const start = performance.now();
      ids.push(await agent.newSession());
      opened.push(performance.now() - start);
    }
    costs.opening.add(size, percentile(opened.slice(-200), 50));
    costs.memory.add(size, (await settledMb(agent)) - idleMb);
    for (let i = 0; i < bursts; i += 1) {
      const { cpuUs, turnMs, wrong } = await wakeAndPark(agent, [some(ids, random)]);
      bench.check(wrong, `growth, ${size} sessions: texts`);
      // The first burst compiles what is left to compile.
      if (i === 0) continue;
      costs.cpu.add(size, cpuUs.total);
      costs.main.add(size, cpuUs.main);
      costs.turn.add(size, turnMs);
    }
    costs.status.add(size, await medianMs(() => agent.request('_status', {})));
    costs.list.add(size, await medianMs(() => agent.request('session/list', {})));
  }
  await close();
}

async function wakeAndPark(agent: AgentProcess, waves: readonly (readonly string[])[]): ReturnType<typeof turnWaves> {
  const cost = await turnWaves(agent, waves, load);
  await allParked(agent);
  return cost;
}

/** A burst's worth of different sessions. */
function some(ids: readonly string[], random: Random): string[] {
  const chosen = new Set<string>();
  while (chosen.size < Math.min(burst, ids.length)) chosen.add(random.pick(ids));
  return [...chosen];
}

async function medianMs(call: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 9; i += 1) {
    const start = performance.now();
    await call();
    times.push(performance.now() - start);
  }
  return median(times);
}
