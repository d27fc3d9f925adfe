/** Costs by the size of what is put out: by a command that the model runs, and by the model itself. */
import { startTarget } from '../load/targets.ts';
import { cpuBetween } from '../load/thread-cpu.ts';
import type { BenchRun } from '../run.ts';
import { flat, linear, Samples } from './curve.ts';

const over = 'bytes';
const repeats = 5;
/** Characters of a delta. */
const deltaBytes = 100;
const flags = ['--permission-mode', 'full-access', '--context-window', '100000000', '--max-output-tokens', '10000000'];

type Plan = (bytes: number) => object;

export async function growthByOutput(bench: BenchRun): Promise<void> {
  const commands = bench.full ? [1e3, 1e4, 1e5, 1e6, 1e7, 1e8] : [1e3, 1e4, 1e5, 1e6];
  // A command's output goes to the disk, and a window of it to the model; an answer is kept as it is.
  await one(bench, { what: "a command's output", sizes: commands, plan: commandPlan, from: 1e6, memory: flat });
  const answers = bench.full ? [1e3, 1e4, 1e5, 1e6, 4e6] : [1e3, 1e4, 1e5];
  await one(bench, { what: "the model's answer", sizes: answers, plan: answerPlan, from: 1e5, memory: linear });
}

interface Output {
  readonly what: string;
  readonly sizes: readonly number[];
  readonly plan: Plan;
  readonly from: number;
  /** How memory may grow. */
  readonly memory: number;
}

/** CPU is the server's own: what the command's processes use is not in it. */
async function one(bench: BenchRun, { what, sizes, plan, from, memory: mostMemory }: Output): Promise<void> {
  const [time, cpu, memory, main] = [new Samples(), new Samples(), new Samples(), new Samples()];
  for (const size of sizes) {
    const { agent, close } = await startTarget('shared', bench.model, { flags });
    for (let warmUp = 0; warmUp < 3; warmUp += 1) await agent.prompt(await agent.newSession(), plan(Math.min(size, 1e5)));
    for (let repeat = 0; repeat < repeats; repeat += 1) {
      const id = await agent.newSession();
      const before = agent.cpu.read();
      const start = performance.now();
      const reason = await agent.prompt(id, plan(size));
      time.add(size, performance.now() - start);
      const used = cpuBetween(before, agent.cpu.read());
      cpu.add(size, used.main + used.threads + used.pool + used.v8 + used.other);
      main.add(size, used.main);
      bench.check(reason === 'end_turn' ? 0 : 1, `growth, ${what} of ${size} bytes: stop reason ${reason}`);
    }
    memory.add(size, agent.rssMb('VmHWM'));
    bench.check(agent.failedCalls, `growth, ${what} of ${size} bytes: failed calls`);
    await close();
  }
  bench.curve(time.curve({ what: `a turn by ${what}`, unit: 'ms', over, most: linear, from }));
  bench.curve(cpu.curve({ what: `CPU of the server by ${what}`, unit: 'ms', over, most: linear, from }));
  bench.curve(main.curve({ what: `main thread by ${what}`, unit: 'ms', over, most: linear, from }));
  bench.curve(memory.curve({ what: `greatest memory of the server by ${what}`, unit: 'MB', over, most: mostMemory, from }));
}

function commandPlan(bytes: number): object {
  const command = `head -c ${bytes} /dev/zero | tr '\\0' 'x' | fold -w 100`;
  const tools = [{ name: 'bash', arguments: JSON.stringify({ command, description: 'puts out text' }) }];
  return { plans: [{ tools }, { tokens: 1 }] };
}

function answerPlan(bytes: number): object {
  return { tokens: Math.max(1, Math.round(bytes / deltaBytes)), stamp: true, padTo: deltaBytes };
}
