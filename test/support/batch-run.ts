/**
 * `dsh-acp run` as a program: started as a person would, watched through the events that `--json` prints, and checked for what it leaves behind.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import type { JobResult } from '../../src/main/run/job-result.ts';
import type { RunEvent } from '../../src/main/run/run-event.ts';
import { markedProcesses } from '../../src/shared/process-table.ts';
import { cliPath, codeCache } from './server-process.ts';

export const otherAgent = [process.execPath, fileURLToPath(new URL('./other-agent-main.js', import.meta.url))];
/** The built-in model, as fast as it goes. */
export const scripted = ['--model', 'scripted', '--pace-ms', '0'];
const deadlineMs = 30_000;

/** A directory for the files of one test: jobs, results, repositories, worktrees. */
export class RunScene {
  readonly dir = mkdtempSync(join(tmpdir(), 'dsh-acp-run-test-'));
  readonly out = join(this.dir, 'results.jsonl');
  readonly #runs: BatchRun[] = [];

  constructor(t: Test) {
    t.teardown(async () => {
      for (const run of this.#runs) await run.dispose();
      for (const { pid } of markedProcesses(this.dir)) process.kill(pid, 'SIGKILL');
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  jobs(jobs: readonly (object | string)[], name = 'jobs.jsonl'): string {
    const path = join(this.dir, name);
    writeFileSync(path, jobs.map((job) => `${typeof job === 'string' ? job : JSON.stringify(job)}\n`).join(''));
    return path;
  }

  /** An empty directory to work in. */
  folder(name: string): string {
    const path = join(this.dir, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  repository(name: string, files: Readonly<Record<string, string>>): string {
    const repo = this.folder(name);
    for (const [file, text] of Object.entries(files)) writeFileSync(join(repo, file), text);
    git(repo, 'init', '-q', '-b', 'main');
    git(repo, 'add', '-A');
    git(repo, 'commit', '-qm', 'base');
    return repo;
  }

  /** Starts `dsh-acp run`; its settings, home and worktrees are the scene's. */
  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): BatchRun {
    const run = new BatchRun(this.dir, ['--worktree-dir', join(this.dir, 'worktrees'), ...args], env);
    this.#runs.push(run);
    return run;
  }

  /** Runs a jobs file to its end, with `--json`. */
  async run(jobs: string, args: readonly string[] = scripted): Promise<BatchRun> {
    const run = this.start([jobs, '--out', this.out, '--json', ...args]);
    await run.exited;
    return run;
  }

  results(): JobResult[] {
    if (!existsSync(this.out)) return [];
    return readFileSync(this.out, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }

  /** `key status` of each result, sorted: for runs whose results come in any order. */
  statuses(): string[] {
    return this.results()
      .map(({ key, status }) => `${key} ${status}`)
      .sort();
  }

  result(id: string): JobResult {
    const found = this.results().find((result) => result.key === id);
    if (found === undefined) throw new Error(`there is no result of ${id}`);
    return found;
  }

  /** Nothing of any run is there but its results: no process, worktree, lock or draft. */
  async nothingLeft(t: Test, repos: readonly string[] = []): Promise<void> {
    const deadline = performance.now() + 2_000;
    let left = markedProcesses(this.dir);
    while (left.length > 0 && performance.now() < deadline) {
      await delay(20);
      left = markedProcesses(this.dir);
    }
    t.same(
      left.map(({ pid }) => pid),
      [],
      'no process is left',
    );
    const worktrees = join(this.dir, 'worktrees');
    t.same(existsSync(worktrees) ? readdirSync(worktrees) : [], [], 'no worktree is left');
    for (const repo of repos) {
      t.equal(git(repo, 'worktree', 'list').trim().split('\n').length, 1, 'git knows of no worktree');
      t.equal(git(repo, 'status', '--short'), '', 'the repository is as it was');
    }
    const strange = readdirSync(this.dir).filter((name) => /^results\.jsonl\.(?:lock|waiting)|\.tmp$/.test(name));
    t.same(strange, [], 'no lock and no draft is left');
  }
}

export function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd, encoding: 'utf8' });
}

type Waiter = { readonly matches: (event: RunEvent) => boolean; readonly resolve: () => void };

export class BatchRun {
  readonly child: ChildProcess;
  readonly events: RunEvent[] = [];
  stdout = '';
  stderr = '';
  readonly exited: Promise<number | null>;
  readonly #waiters = new Set<Waiter>();
  #rest = '';

  constructor(dir: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.child = spawn(process.execPath, [cliPath, 'run', ...args], {
      cwd: dir,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: join(dir, 'home'), DSH_ACP_SANDBOX: 'off', DSH_ACP_CODE_CACHE: codeCache, ...env },
    });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.exited = once(this.child, 'close').then(([code]) => code);
  }

  /** Fulfils at the first event, already here or yet to come, that matches. */
  async event(matches: (event: RunEvent) => boolean, what: string): Promise<void> {
    if (this.events.some(matches)) return;
    const came = new Promise<void>((resolve) => this.#waiters.add({ matches, resolve }));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadlineMs);
    });
    await Promise.race([came, this.exited, late]);
    clearTimeout(timer);
    if (this.events.some(matches)) return;
    throw new Error(`${what} did not come; stderr: ${this.stderr}; stdout: ${this.stdout.slice(-2000)}`);
  }

  async running(key: string): Promise<void> {
    await this.event((event) => event.type === 'job/state' && event.key === key && event.state === 'running', `the start of ${key}`);
  }

  async dispose(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    await this.exited;
  }

  #read(text: string): void {
    this.stdout += text;
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('{')) continue;
      const event: RunEvent = JSON.parse(line);
      this.events.push(event);
      for (const waiter of this.#waiters) {
        if (!waiter.matches(event)) continue;
        this.#waiters.delete(waiter);
        waiter.resolve();
      }
    }
  }
}
