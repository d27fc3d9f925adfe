/**
 * Runs two servers under a mixed load for minutes, breaks things beside it, and says what did not hold.
 *
 * `lone` gives each session a thread: some of its sessions are left alone and timed, threads of the others are killed. `crowd` has all
 * the rest on shared threads: its reader stops now and then, its children and the model server are killed. Everything asked must be
 * answered, nothing may grow, and every log must be readable at the end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, fstatSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sessionsDir } from '../../src/shared/log/session-paths.ts';
import { markedProcesses } from '../../src/shared/process-table.ts';
import { readLog } from '../../src/worker/log/log-reader.ts';
import { childrenOf, type Measure, percentile, rise, type Sample, sampleOf } from './soak-figures.ts';
import { SoakServer } from './soak-server.ts';

export interface SoakOptions {
  readonly seconds: number;
  readonly sessions: number;
  readonly seed: number;
  /** Without it latencies and growth are told and not judged: for a short run on a busy machine. */
  readonly judged: boolean;
  readonly say: (line: string) => void;
}

/** What the second half may grow by: a share of its mean and a constant. */
const bounds: Readonly<Record<Measure, readonly [share: number, constant: number]>> = {
  rssMb: [0.1, 24],
  fds: [0.05, 10],
  threads: [0.05, 6],
  children: [0.05, 10],
};
/** Of the quiet p99; below the second figure, in milliseconds, nothing is judged. */
const slower = [2, 30] as const;
const modelMain = fileURLToPath(new URL('./model-server-main.js', import.meta.url));

class Soak {
  readonly complaints: string[] = [];
  readonly counts: Record<string, number> = {};
  readonly #options: SoakOptions;
  readonly #dir = mkdtempSync(join(tmpdir(), 'dsh-acp-soak-'));
  #state: number;
  #model: ChildProcess | undefined;
  #over = false;
  #wild = false;

  constructor(options: SoakOptions) {
    this.#options = options;
    this.#state = options.seed >>> 0 || 1;
  }

  async run(): Promise<void> {
    const port = await freePort();
    await this.#startModel(port);
    const [lone, crowd] = [this.#serve('lone', port, ['--max-threads', '24']), this.#serve('crowd', port, ['--isolation', 'shared'])];
    try {
      for (const server of [lone, crowd]) await server.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
      await this.#load(lone, crowd, port);
    } finally {
      this.#over = true;
      for (const server of [lone, crowd]) {
        const code = await Promise.race([server.close(), delay(20_000, 'none', { ref: false })]);
        if (code !== 0) this.#complain(`a server ended with ${String(code)}: ${server.stderr.slice(-500)}`);
        if (server.unanswered > 0) this.#complain(`${server.unanswered} requests were never answered`);
        for (const violation of server.violations.slice(0, 3)) this.#complain(`on stdout: ${violation}`);
        server.child.kill('SIGKILL');
      }
      this.#model?.kill('SIGKILL');
      const left = markedProcesses(this.#dir);
      if (left.length > 0) this.#complain(`${left.length} processes are left`);
      await this.#readLogs();
      rmSync(this.#dir, { recursive: true, force: true });
    }
  }

  async #load(lone: SoakServer, crowd: SoakServer, port: number): Promise<void> {
    const { seconds, sessions, say } = this.#options;
    const start = performance.now();
    const at = (): number => (performance.now() - start) / 1000;
    const runs: Promise<void>[] = [];
    const watched = Math.max(2, Math.min(8, Math.floor(sessions / 10)));
    for (let index = 0; index < sessions; index += 1) {
      const kind = index < watched ? 'watched' : index < watched * 2 ? 'killed' : 'mixed';
      runs.push(this.#session(kind === 'mixed' ? crowd : lone, kind).catch((error: unknown) => this.#complain(String(error))));
    }
    const samples = new Map<SoakServer, Sample[]>([
      [lone, []],
      [crowd, []],
    ]);
    const sample = setInterval(
      () => {
        for (const [server, list] of samples) list.push(sampleOf(server.pid, at()));
      },
      Math.min(2000, seconds * 20),
    );
    // A start is no quiet time: what warms up is left out of it.
    await delay(seconds * 100);
    lone.latencies.length = 0;
    await delay(seconds * 150);
    const quiet = percentile(lone.latencies.splice(0), 0.99);
    this.#wild = true;
    while (at() < seconds * 0.95) {
      await delay(Math.min(1000, seconds * 20));
      if (this.#chance(0.15)) this.#endOneChild(crowd);
      if (this.#chance(0.08)) this.#stall(crowd);
      if (this.#chance(0.04)) await this.#restartModel(port);
    }
    this.#over = true;
    clearInterval(sample);
    await Promise.all(runs);
    const wild = percentile(lone.latencies, 0.99);
    say(
      `added latency of undisturbed sessions, p99: ${quiet.toFixed(1)} ms before anything was broken, ${wild.toFixed(1)} ms after (${lone.latencies.length} deltas)`,
    );
    if (this.#options.judged && wild > Math.max(slower[1], quiet * slower[0]))
      this.#complain(`undisturbed sessions: p99 ${wild.toFixed(1)} ms`);
    for (const [name, server] of [
      ['lone', lone],
      ['crowd', crowd],
    ] as const)
      this.#judge(name, samples.get(server) ?? []);
    say(`answered: ${lone.answered + crowd.answered}; ${JSON.stringify(this.counts)}`);
  }

  #judge(name: string, samples: readonly Sample[]): void {
    for (const measure of Object.keys(bounds) as Measure[]) {
      const { rise: grown, mean } = rise(samples, measure);
      const [share, constant] = bounds[measure];
      this.#options.say(`${name} ${measure}: mean ${mean.toFixed(1)}, grew by ${grown.toFixed(1)} over the second half`);
      if (this.#options.judged && grown > mean * share + constant) this.#complain(`${name}: ${measure} grew by ${grown.toFixed(1)}`);
    }
  }

  async #session(server: SoakServer, kind: 'watched' | 'killed' | 'mixed'): Promise<void> {
    const cwd = mkdtempSync(join(this.#dir, 'work-'));
    writeFileSync(join(cwd, 'notes.txt'), 'one line\n'.repeat(200));
    let id = await this.#open(server, cwd);
    if (kind === 'watched') server.watched.add(id);
    while (!this.#over) {
      const roll = this.#random();
      const text = kind === 'watched' ? '{"tokens":20,"delayMs":50,"stamp":true}' : this.#prompt(cwd, kind);
      const answer = server.request('session/prompt', { sessionId: id, prompt: [{ type: 'text', text }] });
      if (kind === 'mixed' && roll < 0.08) {
        await delay(this.#random() * 100);
        server.notify('session/cancel', { sessionId: id });
      }
      const { result, error } = await answer;
      this.#count(result?.stopReason ?? error?.data?.code ?? String(error?.code));
      if (kind === 'mixed' && roll > 0.95) await this.#closeAndLoad(server, id, cwd);
      // A session that has lost three threads within a minute is put away.
      if (error?.data?.code === 'SESSION_FAILED') id = await this.#open(server, cwd);
      await delay(200 + this.#random() * (kind === 'mixed' ? 4000 : 800));
    }
  }

  async #open(server: SoakServer, cwd: string): Promise<string> {
    const { result, error } = await server.request('session/new', { cwd, mcpServers: [] });
    if (result === undefined) throw new Error(`session/new: ${JSON.stringify(error)}`);
    return result.sessionId as string;
  }

  async #closeAndLoad(server: SoakServer, sessionId: string, cwd: string): Promise<void> {
    await server.request('session/close', { sessionId });
    const { error } = await server.request('session/load', { sessionId, cwd, mcpServers: [] });
    this.#count(error === undefined ? 'loaded' : `load ${error.data?.code ?? error.code}`);
    if (error !== undefined) throw new Error(`session/load: ${JSON.stringify(error)}`);
  }

  #prompt(cwd: string, kind: string): string {
    if (this.#wild && kind === 'killed' && this.#chance(0.1))
      return `[!${this.#chance(0.5) ? 'throw' : 'exit'} 30] {"tokens":200,"delayMs":5}`;
    const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) });
    const bash = (command: string) => call('bash', { command, description: 'a command' });
    const path = join(cwd, 'notes.txt');
    const tools = [
      [call('read', { file_path: path }), call('grep', { pattern: 'line', path: cwd })],
      [bash('echo hello; sleep 0.2'), call('read', { file_path: path })],
      [bash('seq 2000')],
      [call('write', { file_path: join(cwd, `out-${Math.floor(this.#random() * 5)}.txt`), content: 'x'.repeat(2000) })],
      [bash('sleep 2 & sleep 0.1')],
    ][Math.floor(this.#random() * 7)];
    return JSON.stringify(tools === undefined ? { tokens: 30, delayMs: 5 } : { plans: [{ tools }, { tokens: 5, delayMs: 5 }] });
  }

  #endOneChild(server: SoakServer): void {
    const children = childrenOf(server.pid);
    const pid = children[Math.floor(this.#random() * children.length)];
    if (pid === undefined) return;
    try {
      process.kill(pid, 'SIGKILL');
      this.#count('children killed');
    } catch {
      // It has ended meanwhile.
    }
  }

  #stall(server: SoakServer): void {
    server.stall(3000);
    this.#count('stalls');
  }

  async #restartModel(port: number): Promise<void> {
    this.#model?.kill('SIGKILL');
    await delay(300);
    await this.#startModel(port);
    this.#count('model restarts');
  }

  async #startModel(port: number): Promise<void> {
    const child = spawn(process.execPath, [modelMain, String(port)], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#model = child;
    await once(child.stdout, 'data');
  }

  #serve(name: string, port: number, more: readonly string[]): SoakServer {
    const state = join(this.#dir, name);
    mkdirSync(state);
    const model = ['--base-url', `http://127.0.0.1:${port}/v1`, '--model', 'bench', '--permission-mode', 'full-access', '--titles', 'off'];
    return new SoakServer([...model, '--state-dir', state, ...more], { PATH: process.env['PATH'], HOME: state });
  }

  async #readLogs(): Promise<void> {
    let logs = 0;
    for (const name of ['lone', 'crowd']) {
      const dir = sessionsDir(join(this.#dir, name));
      const files = existsSync(dir) ? readdirSync(dir) : [];
      for (const file of files.filter((one) => one.endsWith('.jsonl'))) {
        logs += 1;
        await readWhole(join(dir, file)).catch((error: unknown) => this.#complain(`${file}: ${String(error)}`));
      }
      const locks = files.filter((one) => !one.endsWith('.jsonl') && !one.endsWith('.d'));
      if (locks.length > 0) this.#complain(`${name}: ${locks.length} locks or drafts are left`);
    }
    this.#options.say(`${logs} logs are whole`);
  }

  #complain(text: string): void {
    this.complaints.push(text);
  }

  #count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  /** In [0, 1); the same from the same seed, as far as the order of events allows. */
  #random(): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return this.#state / 2 ** 32;
  }
}

/** @throws ServerError LOG_CORRUPT */
async function readWhole(path: string): Promise<void> {
  const fd = openSync(path, 'r');
  try {
    await readLog({ fd, path, size: fstatSync(fd).size }, () => undefined);
  } finally {
    closeSync(fd);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** @returns what did not hold */
export async function soak(options: SoakOptions): Promise<readonly string[]> {
  const run = new Soak(options);
  await run.run();
  return run.complaints;
}
