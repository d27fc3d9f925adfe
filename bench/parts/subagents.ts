/**
 * Delegating: to a fresh child process, to a warm one of a pool, and to another session of the same server (`self`). The child
 * is this server with the scripted model, so what is measured is the way there and back.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentProcess } from '../load/agent-process.ts';
import { cli } from '../load/scripted-jobs.ts';
import { median, percentile } from '../load/statistics.ts';
import type { BenchRun, Part } from '../run.ts';

const samples = 15;
const goneDeadlineMs = 30_000;

export const subagentsPart: Part = {
  name: 'subagents',
  run: async (bench) => {
    const folder = mkdtempSync(join(tmpdir(), 'dsh-acp-bench-'));
    try {
      const rig = await Rig.start(folder);
      await rig.delegate('self say hello'); // The first one on a server loads what the later ones find loaded.
      await measure(bench, rig, 'self', 'another session of this server (self)');
      await measure(bench, rig, 'pooled', 'a warm child process of the pool');
      await measure(bench, rig, 'fresh', 'a fresh child process');
      await childMemory(bench, rig);
      await rig.agent.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

class Rig {
  readonly agent: AgentProcess;
  readonly #sessionId: string;
  readonly #log: string;

  private constructor(agent: AgentProcess, session: { readonly id: string; readonly log: string }) {
    this.agent = agent;
    this.#sessionId = session.id;
    this.#log = session.log;
  }

  static async start(folder: string): Promise<Rig> {
    const workspace = join(folder, 'workspace');
    mkdirSync(workspace);
    const child = [cli, '--model', 'scripted', '--pace-ms', '0', '--state-dir', join(folder, 'child-state')];
    const provider = (name: string, more: string): string =>
      `[[subagents]]\nname = "${name}"\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify(child)}\n${more}\n`;
    writeFileSync(join(folder, 'config.toml'), provider('fresh', '') + provider('pooled', 'pool_size = 2'));
    const flags = ['--config', join(folder, 'config.toml'), '--state-dir', join(folder, 'state'), '--model', 'scripted', '--pace-ms', '0'];
    const agent = new AgentProcess([process.execPath, cli, ...flags, '--permission-mode', 'full-access'], { HOME: folder });
    await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await agent.request('session/new', { cwd: workspace, mcpServers: [] });
    return new Rig(agent, { id: sessionId, log: join(folder, 'state', 'sessions', `${sessionId}.jsonl`) });
  }

  /** A turn that delegates; its events. */
  async delegate(command: string): Promise<{ readonly totalMs: number; readonly startMs: number; readonly ok: boolean }> {
    const before = this.#events().length;
    const start = performance.now();
    const prompt = [{ type: 'text', text: `delegate ${command}` }];
    await this.agent.request('session/prompt', { sessionId: this.#sessionId, prompt });
    const totalMs = performance.now() - start;
    const events = this.#events().slice(before);
    const timeOf = (type: string): number => events.find((event) => event.type === type)?.time ?? Number.NaN;
    const result = events.find((event) => event.type === 'tool/result');
    return { totalMs, startMs: timeOf('subagent/start') - timeOf('tool/start'), ok: result?.data.isError === false };
  }

  children(): number[] {
    const pid = this.agent.child.pid!;
    // Children hang on the thread that started them: here the broker's.
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.flatMap((tid) =>
      readFileSync(`/proc/${pid}/task/${tid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
    );
  }

  #events(): { type: string; time: number; data: any }[] {
    return readFileSync(this.#log, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
  }
}

async function measure(bench: BenchRun, rig: Rig, provider: string, what: string): Promise<void> {
  const starts: number[] = [];
  const totals: number[] = [];
  const ends: number[] = [];
  const warm = rig.children().length;
  if (provider === 'pooled') await rig.delegate('pooled say hello');
  for (let i = 0; i < samples; i += 1) {
    const { totalMs, startMs, ok } = await rig.delegate(`${provider} say hello`);
    bench.check(ok ? 0 : 1, `${what}: result`);
    starts.push(startMs);
    totals.push(totalMs);
    if (provider === 'fresh') ends.push(await untilGone(rig, warm));
  }
  const gone = ends.length === 0 ? '' : `; ${median(ends).toFixed(0)} / ${Math.max(...ends).toFixed(0)} until its process is gone`;
  bench.figure({
    what: `delegating to ${what}: start p50 / max ms; the whole turn p50 ms`,
    target: '–',
    measured: `${median(starts).toFixed(0)} / ${Math.max(...starts).toFixed(0)}; ${median(totals).toFixed(0)}${gone}`,
    values: { startP50: median(starts), startMax: Math.max(...starts), turnP50: median(totals), turnP99: percentile(totals, 99) },
  });
}

/** `warm` children of the pool stay. */
async function untilGone(rig: Rig, warm: number): Promise<number> {
  const start = performance.now();
  while (rig.children().length > warm) {
    if (performance.now() - start > goneDeadlineMs) throw new Error('a child process did not end');
    await sleep(2);
  }
  return performance.now() - start;
}

async function childMemory(bench: BenchRun, rig: Rig): Promise<void> {
  const before = { mb: rig.agent.pssMb(), children: new Set(rig.children()) };
  const count = 10;
  await rig.delegate(`& fresh wait 3000`);
  const pid = rig.children().find((one) => !before.children.has(one));
  const childMb = pid === undefined ? Number.NaN : pssMb(pid);
  for (let i = 0; i < count; i += 1) await rig.delegate('self say hello');
  const selfMb = (rig.agent.pssMb() - before.mb) / count;
  bench.figure({
    what: `memory: a child process, MB; growth of the server for each run of self (${count}, one after another), MB`,
    target: '–',
    measured: `${childMb.toFixed(0)}; ${selfMb.toFixed(2)}`,
    values: { childMb, selfMb },
  });
}

function pssMb(pid: number): number {
  const line = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').match(/^Pss:\s+(\d+)/m);
  return Number(line?.[1] ?? Number.NaN) / 1024;
}
