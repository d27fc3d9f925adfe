/**
 * Batches of jobs: a thousand sessions with tools at once in one server, the same work with a process per job, ten thousand open
 * sessions, and what the batch runner adds.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import PQueue from 'p-queue';
import { cli, runJob, script, serverFlags, startJobServer, toolCallsPerJob, undone, Workspaces } from '../load/scripted-jobs.ts';
import type { BenchRun, Part } from '../run.ts';

export const jobsPart: Part = {
  name: 'jobs',
  run: async (bench) => {
    const workspaces = new Workspaces();
    try {
      const { cpuMs, perSecond } = await thousandAtOnce(bench, workspaces);
      await processPerJob(bench, workspaces, { cpuMs, perSecond });
      await tenThousandOpen(bench, workspaces);
      await runnerOverhead(bench, workspaces, { what: 'without its report', flags: ['--no-report'], most: 10 });
      await runnerOverhead(bench, workspaces, { what: 'with the report and a page for each job', flags: [], most: undefined });
    } finally {
      workspaces.remove();
    }
  },
};

interface Cost {
  /** Of a job, the agent's commands not counted. */
  readonly cpuMs: number;
  readonly perSecond: number;
}

async function thousandAtOnce(bench: BenchRun, workspaces: Workspaces): Promise<Cost> {
  const count = 1000;
  const paths = workspaces.make(count);
  return await withStateDir(async (stateDir) => {
    const agent = await startJobServer(stateDir);
    const cpuBefore = processCpuMs(agent.child.pid!);
    const start = performance.now();
    const answers = await Promise.all(paths.map((path) => runJob(agent, path)));
    const seconds = (performance.now() - start) / 1000;
    const cpuMs = (processCpuMs(agent.child.pid!) - cpuBefore) / count;
    const peakMb = statusMb(agent.child.pid!, 'VmHWM');
    const wrong = answers.filter(({ stopReason, toolCalls }) => stopReason !== 'end_turn' || toolCalls !== toolCallsPerJob).length;
    bench.check(wrong, `${count} sessions at once: answers`);
    bench.check(undone(paths), `${count} sessions at once: workspaces`);
    await agent.close();
    const cost = { cpuMs, perSecond: count / seconds };
    bench.figure({
      what: `${count} sessions at once, ${toolCallsPerJob} tool calls each: seconds; jobs/s; CPU ms of a job; peak MB`,
      target: 'nothing lost',
      measured: `${seconds.toFixed(1)}; ${cost.perSecond.toFixed(0)}; ${cpuMs.toFixed(1)}; ${peakMb.toFixed(0)}`,
      holds: wrong === 0,
      values: { seconds, ...cost, peakMb },
    });
    return cost;
  });
}

/** As many processes at a time as keep two cores busy: more would only fight for them. */
async function processPerJob(bench: BenchRun, workspaces: Workspaces, one: Cost): Promise<void> {
  const count = 60;
  const paths = workspaces.make(count);
  const queue = new PQueue({ concurrency: 4 });
  let cpuMs = 0;
  const start = performance.now();
  await queue.addAll(
    paths.map((path) => async () => {
      await withStateDir(async (stateDir) => {
        const agent = await startJobServer(stateDir);
        const { stopReason } = await runJob(agent, path);
        bench.check(stopReason === 'end_turn' ? 0 : 1, 'a process per job: answers');
        cpuMs += processCpuMs(agent.child.pid!);
        await agent.close();
      });
    }),
  );
  const perSecond = count / ((performance.now() - start) / 1000);
  bench.check(undone(paths), 'a process per job: workspaces');
  const each = cpuMs / count;
  bench.figure({
    what: `a process per job, the same work (${count}): jobs/s; CPU ms of a job; one server is × faster, × cheaper`,
    target: '–',
    measured: `${perSecond.toFixed(1)}; ${each.toFixed(0)}; ${(one.perSecond / perSecond).toFixed(1)}; ${(each / one.cpuMs).toFixed(1)}`,
    values: { perSecond, cpuMs: each, faster: one.perSecond / perSecond, cheaper: each / one.cpuMs },
  });
}

/** All of them have run a job and are open; a hundred still have their threads. */
async function tenThousandOpen(bench: BenchRun, workspaces: Workspaces): Promise<void> {
  const count = bench.full ? 10_000 : 2_000;
  const wave = 100;
  await withStateDir(async (stateDir) => {
    const agent = await startJobServer(stateDir, ['--park-after-ms', '250']);
    let wrong = 0;
    for (let done = 0; done < count; done += wave) {
      const answers = await Promise.all(workspaces.make(wave).map((path) => runJob(agent, path)));
      wrong += answers.filter(({ stopReason }) => stopReason !== 'end_turn').length;
    }
    bench.check(wrong, `${count} open sessions: answers`);
    const mb = statusMb(agent.child.pid!, 'VmRSS');
    const { sessions } = await agent.request('_status', {});
    bench.check(sessions.open === count ? 0 : 1, `${count} open sessions: the number that is open`);
    const closeMs = await agent.close();
    bench.figure({
      what: `${count} open sessions after a job each, most parked: MB (RSS); attached; ms to the exit`,
      target: '≤ 1024 at 10,000',
      measured: `${mb.toFixed(0)}; ${sessions.attached}; ${closeMs.toFixed(0)}`,
      ...(bench.full ? { holds: mb <= 1024 } : {}),
      values: { sessions: count, mb, attached: sessions.attached, closeMs },
    });
  });
}

interface RunnerPlan {
  readonly what: string;
  readonly flags: readonly string[];
  readonly most: number | undefined;
}

async function runnerOverhead(bench: BenchRun, workspaces: Workspaces, plan: RunnerPlan): Promise<void> {
  const count = bench.full ? 1000 : 300;
  const paths = workspaces.make(count);
  await withStateDir(async (folder) => {
    const jobs = paths.map((cwd, index) => JSON.stringify({ id: `job-${index}`, prompt: script, cwd }));
    writeFileSync(join(folder, 'jobs.jsonl'), `${jobs.join('\n')}\n`);
    const flags = [
      '--out',
      join(folder, 'results.jsonl'),
      '--concurrency',
      '64',
      '--plain',
      ...plan.flags,
      ...serverFlags(join(folder, 'state')),
    ];
    const start = performance.now();
    const runner = spawn(process.execPath, [cli, 'run', join(folder, 'jobs.jsonl'), ...flags], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { PATH: process.env['PATH'], HOME: folder },
    });
    const ended = once(runner, 'exit');
    const cpu = await cpuUntilExit(runner.pid!, ended);
    const seconds = (performance.now() - start) / 1000;
    bench.check(runner.exitCode === 0 ? 0 : 1, 'runner: exit code');
    bench.check(undone(paths), 'runner: workspaces');
    const lines = readFileSync(join(folder, 'results.jsonl'), 'utf8').trim().split('\n');
    bench.check(lines.length === count ? 0 : 1, 'runner: result lines');
    const share = (cpu.runnerMs / cpu.serverMs) * 100;
    bench.figure({
      what: `the batch runner, ${plan.what} (${count} jobs): CPU beside the server's, %; CPU ms of a job in runner + server; jobs/s`,
      target: plan.most === undefined ? '–' : `≤ ${plan.most}`,
      measured: `${share.toFixed(1)}; ${(cpu.runnerMs / count).toFixed(2)} + ${(cpu.serverMs / count).toFixed(1)}; ${(count / seconds).toFixed(0)}`,
      ...(plan.most === undefined ? {} : { holds: share <= plan.most }),
      values: { share, runnerMs: cpu.runnerMs, serverMs: cpu.serverMs, perSecond: count / seconds },
    });
  });
}

/** The last readings before both have ended; what comes within the last few milliseconds is not seen. */
async function cpuUntilExit(runnerPid: number, ended: Promise<unknown>): Promise<{ runnerMs: number; serverMs: number }> {
  const last = { runnerMs: 0, serverMs: 0 };
  while ((await Promise.race([ended, sleep(20)])) === undefined) {
    try {
      last.runnerMs = processCpuMs(runnerPid);
      for (const pid of childrenOf(runnerPid)) last.serverMs = Math.max(last.serverMs, processCpuMs(pid));
    } catch {
      // It ended between two reads.
    }
  }
  return last;
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
}

/** User and system time of a process, its children not counted; in steps of 10 ms. */
function processCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function statusMb(pid: number, name: string): number {
  const line = readFileSync(`/proc/${pid}/status`, 'utf8').match(new RegExp(`^${name}:\\s+(\\d+)`, 'm'));
  return Number(line?.[1] ?? Number.NaN) / 1024;
}

async function withStateDir<T>(use: (stateDir: string) => Promise<T>): Promise<T> {
  const stateDir = mkdtempSync(join(tmpdir(), 'dsh-acp-bench-'));
  try {
    return await use(stateDir);
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
}
