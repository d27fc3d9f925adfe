/**
 * From the start of the process to the first answers: ours, the floor agent and bare node in turns, each time a new process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { median, percentile, ratioRange, withSpread } from '../load/statistics.ts';
import { startTarget } from '../load/targets.ts';
import type { BenchRun, Part } from '../run.ts';

const starts = 15;
const firstStarts = 5;
const sessions = 200;

export const startupPart: Part = {
  name: 'startup',
  run: async (bench) => {
    const ours: number[] = [];
    const floors: number[] = [];
    const bare: number[] = [];
    const firstSession: number[] = [];
    const cpu: { readonly ours: number[]; readonly floor: number[] } = { ours: [], floor: [] };
    for (let i = 0; i < starts; i += 1) {
      bare.push(await bareNodeMs());
      const floor = await startTarget('floor', bench.model);
      floors.push(floor.initializeMs);
      cpu.floor.push(floor.agent.cpu.read().total);
      await floor.close();
      const target = await startTarget('dedicated', bench.model);
      ours.push(target.initializeMs);
      cpu.ours.push(target.agent.cpu.read().total);
      const answered = performance.now();
      await target.agent.newSession();
      firstSession.push(target.initializeMs + performance.now() - answered);
      await target.close();
    }
    const initialize = median(ours);
    bench.figure({
      what: `start → initialize answered, ms (floor ${median(floors).toFixed(0)}, bare node ${median(bare).toFixed(0)})`,
      target: '≤ 120',
      measured: withSpread(ours, 0),
      toFloor: initialize / median(floors),
      toFloorRange: ratioRange(ours, floors),
      holds: initialize <= 120,
      values: { initializeMs: initialize, floorMs: median(floors), bareNodeMs: median(bare) },
    });
    const first: number[] = [];
    for (let i = 0; i < firstStarts; i += 1) {
      const target = await startTarget('dedicated', bench.model, { noKeptCode: true });
      first.push(target.initializeMs);
      await target.close();
    }
    bench.figure({
      what: 'the same at the first start after an installation, ms',
      target: '–',
      measured: withSpread(first, 0),
      values: { firstStartMs: median(first) },
    });
    // The threads start right after the answer, so a little of their start is in it.
    bench.figure({
      what: `CPU until initialize is answered, ms (floor ${median(cpu.floor).toFixed(0)})`,
      target: '–',
      measured: withSpread(cpu.ours, 0),
      toFloor: median(cpu.ours) / median(cpu.floor),
      toFloorRange: ratioRange(cpu.ours, cpu.floor),
      values: { cpuMs: median(cpu.ours), floorCpuMs: median(cpu.floor) },
    });
    bench.figure({
      what: 'start → first session/new answered, ms',
      target: '–',
      measured: withSpread(firstSession, 0),
      values: { firstSessionMs: median(firstSession) },
    });
    await newSessions(bench);
  },
};

async function newSessions(bench: BenchRun): Promise<void> {
  const target = await startTarget('dedicated', bench.model);
  const times: number[] = [];
  for (let i = 0; i < sessions; i += 1) {
    const start = performance.now();
    await target.agent.newSession();
    times.push(performance.now() - start);
  }
  await target.close();
  const [p50, p99] = [median(times), percentile(times, 99)];
  bench.figure({
    what: `session/new, ${sessions} one after another: p50 / p99 ms`,
    target: '≤ 3 / –',
    measured: `${p50.toFixed(2)} / ${p99.toFixed(1)}`,
    holds: p50 <= 3,
    values: { p50, p99 },
  });
}

/** Until the first byte that a script of one line prints. The environment is as bare as the agents': some variables make every node slow. */
async function bareNodeMs(): Promise<number> {
  const start = performance.now();
  const child = spawn(process.execPath, ['-e', 'process.stdout.write("x")'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'] },
  });
  await once(child.stdout, 'data');
  const ms = performance.now() - start;
  await once(child, 'exit');
  return ms;
}
