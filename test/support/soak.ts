/**
 * Runs two servers under a mixed load for minutes, breaks things beside it, and says what did not hold.
 *
 * `lone` gives each session a thread: some of its sessions are left alone and timed, threads of the others are killed. `crowd` has all
 * the rest on shared threads: its reader is slow or stops now and then, its children and its model server are killed. Sessions are
 * opened one after the other; then quiet times and storms follow each other, so that what storms do to a session left alone is held
 * against the same minutes of the same machine. Everything asked must be answered, nothing may grow, every log must be readable at the end.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { markedProcesses } from '../../src/shared/process-table.ts';
import { SoakFaults, SoakModel } from './soak-faults.ts';
import { cores, cpuShares, cpuTicks, type Sample, sampleOf } from './soak-figures.ts';
import { Journal, textOf } from './soak-journal.ts';
import { type Block, type Cycle, cycleFigures, judgeGrowth, judgeLatency, type SoakSummary, summaryLines } from './soak-report.ts';
import { readLeftLogs } from './soak-logs.ts';
import { SoakServer } from './soak-server.ts';
import { type Kind, SoakSession } from './soak-session.ts';

export interface SoakOptions {
  readonly seconds: number;
  readonly sessions: number;
  readonly seed: number;
  /** Without it latencies and growth are told and not judged: for a run of seconds on a busy machine. */
  readonly judged: boolean;
  readonly say: (line: string) => void;
}

/** When what happens, in seconds since the start. */
interface Timetable {
  readonly opened: number;
  readonly warm: number;
  readonly cycles: number;
  readonly quiet: number;
  readonly storm: number;
  readonly faultEvery: number;
}

function timetable(seconds: number): Timetable {
  const opened = Math.min(60, seconds * 0.15);
  const warm = opened + Math.min(60, seconds * 0.1);
  const rest = seconds * 0.96 - warm;
  const cycles = Math.max(1, Math.min(12, Math.floor(rest / 14)));
  const quiet = rest / cycles / 3;
  return { opened, warm, cycles, quiet, storm: 2 * quiet, faultEvery: Math.min(2.5, quiet / 5) };
}

class Soak {
  readonly journal = new Journal();
  readonly #counts: Record<string, number> = {};
  readonly #options: SoakOptions;
  readonly #times: Timetable;
  readonly #dir = mkdtempSync(join(tmpdir(), 'dsh-acp-soak-'));
  readonly #samples = new Map<SoakServer, Sample[]>();
  readonly #models: SoakModel[] = [];
  readonly #cycles: Cycle[] = [];
  readonly #afterClose: Record<string, Sample> = {};
  #state: number;
  #over = false;
  #logs = 0;
  /** When the load began, in seconds since the start: servers take their time to come up. */
  #begun = 0;

  constructor(options: SoakOptions) {
    this.#options = options;
    this.#times = timetable(options.seconds);
    this.#state = options.seed >>> 0 || 1;
  }

  async run(): Promise<SoakSummary> {
    const lone = await this.#serve('lone', ['--max-threads', '24']);
    const crowd = await this.#serve('crowd', ['--isolation', 'shared']);
    const servers = [lone, crowd];
    try {
      for (const server of servers) await server.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
      await this.#load(lone, crowd);
    } catch (error) {
      this.journal.complain(error instanceof Error ? (error.stack ?? error.message) : String(error));
    } finally {
      this.#over = true;
      for (const server of servers) await this.#end(server);
      for (const model of this.#models) model.kill();
      const left = markedProcesses(this.#dir);
      if (left.length > 0) this.journal.complain(`${left.length} processes are left: ${left.map(({ pid }) => pid).join(', ')}`);
      await this.#readLogs();
    }
    const summary = this.#summary(servers);
    if (summary.complaints.length === 0) rmSync(this.#dir, { recursive: true, force: true });
    else this.#keep();
    return summary;
  }

  async #load(lone: SoakServer, crowd: SoakServer): Promise<void> {
    this.#begun = this.journal.now;
    const sessions = this.#sessions(lone, crowd);
    const sampling = setInterval(() => this.#sample(), Math.min(2000, this.#options.seconds * 20));
    const runs: Promise<void>[] = [];
    try {
      for (const [index, session] of sessions.entries()) {
        await this.#until((this.#times.opened * index) / sessions.length);
        runs.push(session.run());
      }
      await this.#until(this.#times.warm);
      const [, model] = this.#models;
      const faults = new SoakFaults({
        lone,
        crowd,
        model: model!,
        sessions,
        journal: this.journal,
        random: () => this.#random(),
        count: (name) => this.#count(name),
      });
      for (let cycle = 0; cycle < this.#times.cycles; cycle += 1) {
        // What the storm before has broken comes back first.
        if (cycle > 0) await delay(this.#times.quiet * 200);
        const quiet = await this.#block(lone, this.#times.quiet * (cycle > 0 ? 0.8 : 1));
        const storm = await this.#block(lone, this.#times.storm, faults);
        this.#cycles.push({ quiet, storm });
        this.#tell(cycle);
      }
    } finally {
      this.#over = true;
      await Promise.all(runs);
      clearInterval(sampling);
    }
    for (const server of [lone, crowd]) await this.#lookAfterClose(server);
  }

  #sessions(lone: SoakServer, crowd: SoakServer): SoakSession[] {
    const { sessions } = this.#options;
    const watched = Math.max(2, Math.min(8, Math.floor(sessions / 10)));
    const parts = {
      dir: this.#dir,
      journal: this.journal,
      random: () => this.#random(),
      count: (name: string) => this.#count(name),
      // Many sessions ask seldom: a machine that is full measures nothing.
      pauseMs: 500 + (120_000 / cores / 1000) * sessions,
      isOver: () => this.#over,
    };
    const made = Array.from({ length: sessions }, (_, index): SoakSession => {
      const kind: Kind = index < watched ? 'watched' : index < watched * 2 ? 'killed' : 'mixed';
      return new SoakSession({ ...parts, kind, server: kind === 'mixed' ? crowd : lone });
    });
    // The order in which they come should not be that of their kinds.
    return made
      .map((session) => ({ session, at: this.#random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ session }) => session);
  }

  /** Some seconds of the load: quiet, or a storm of at least one round of faults. */
  async #block(lone: SoakServer, seconds: number, faults?: SoakFaults): Promise<Block> {
    const from = this.journal.now;
    lone.latencies = [];
    const before = cpuTicks(this.#pids());
    const isOver = (): boolean => this.journal.now >= from + seconds && faults?.isRoundOver !== false;
    while (!isOver()) {
      await delay(this.#times.faultEvery * 1000);
      await faults?.next();
    }
    const { ours, others } = cpuShares(before, cpuTicks(this.#pids()));
    return { from, to: this.journal.now, latencies: lone.latencies, ours, others };
  }

  #pids(): number[] {
    return [process.pid, ...[...this.#samples.keys()].map(({ pid }) => pid), ...this.#models.flatMap(({ pid }) => pid ?? [])];
  }

  #tell(index: number): void {
    const cycle = this.#cycles[index];
    if (cycle === undefined) return;
    const { quietP99, stormP99, others } = cycleFigures(cycle);
    const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
    this.#options.say(
      `${this.journal.now.toFixed(0)} s: p99 ${quietP99.toFixed(1)} ms quiet, ${stormP99.toFixed(1)} ms in the storm; the soak uses ${percent(cycle.storm.ours)} of the machine, others ${percent(others[0])} and ${percent(others[1])}`,
    );
    const slowest = cycle.storm.latencies.reduce((worst, one) => (one.ms > worst.ms ? one : worst), { ms: 0, at: 0, sessionId: '' });
    this.journal.note('soak', `cycle ${index}: slowest delta of a storm ${slowest.ms.toFixed(1)} ms in ${slowest.sessionId}`);
    if (stormP99 > 100)
      for (const fault of this.journal.faults(cycle.storm.from, cycle.storm.to)) this.#options.say(`    ${textOf(fault)}`);
  }

  #sample(): void {
    for (const [server, list] of this.#samples) {
      try {
        list.push(sampleOf(server.pid, this.journal.now));
      } catch {
        this.journal.complain(`${server.name} is gone: ${server.stderr.slice(-500)}`);
        this.#samples.delete(server);
      }
    }
  }

  /** All sessions are closed: nothing of them is left running. */
  async #lookAfterClose(server: SoakServer): Promise<void> {
    const until = this.journal.now + 10;
    let sample = sampleOf(server.pid, this.journal.now);
    while (sample.children > 0 && this.journal.now < until) {
      await delay(50);
      sample = sampleOf(server.pid, this.journal.now);
    }
    this.#afterClose[server.name] = sample;
    if (sample.children > 0)
      this.journal.complain(`${server.name} has ${sample.children} children ten seconds after its last session was closed`);
  }

  async #end(server: SoakServer): Promise<void> {
    const code = await Promise.race([server.close(), delay(20_000, 'nothing within 20 s', { ref: false })]);
    if (code !== 0) this.journal.complain(`${server.name} ended with ${String(code)}: ${server.stderr.slice(-500)}`);
    if (server.unanswered > 0) this.journal.complain(`${server.name}: ${server.unanswered} requests were never answered`);
    for (const violation of server.violations.slice(0, 3)) this.journal.complain(`${server.name}, on stdout: ${violation}`);
    server.child.kill('SIGKILL');
  }

  async #serve(name: string, more: readonly string[]): Promise<SoakServer> {
    const model = new SoakModel(await freePort());
    await model.start();
    this.#models.push(model);
    const state = join(this.#dir, name);
    mkdirSync(state);
    const args = [
      '--base-url',
      model.baseUrl,
      '--model',
      'bench',
      '--permission-mode',
      'full-access',
      '--titles',
      'off',
      '--log-level',
      'debug',
      '--state-dir',
      state,
    ];
    const server = new SoakServer(name, [...args, ...more], { PATH: process.env['PATH'], HOME: state }, (line) =>
      this.journal.note(`stderr of ${name}`, line),
    );
    this.#samples.set(server, []);
    return server;
  }

  async #readLogs(): Promise<void> {
    for (const name of ['lone', 'crowd']) {
      const { logs, broken, remains } = await readLeftLogs(join(this.#dir, name));
      this.#logs += logs;
      for (const [session, why] of broken) this.journal.complain(why, session);
      if (remains.length > 0) this.journal.complain(`${name}: locks or drafts are left: ${remains.slice(0, 5).join(', ')}`);
    }
  }

  #summary(servers: readonly SoakServer[]): SoakSummary {
    const { seconds, sessions, seed, judged } = this.#options;
    const grown = servers.map((server) => ({
      name: server.name,
      ...judgeGrowth(server.name, this.#samples.get(server) ?? [], this.#begun + this.#times.warm),
    }));
    const told = [judgeLatency(this.#cycles, judged), ...grown.flatMap(({ verdicts }) => verdicts)];
    const verdicts = judged ? told : told.map((one) => ({ ...one, verdict: 'not judged: too short' as const }));
    for (const { what, found, bound, verdict } of verdicts)
      if (verdict === 'broken') this.journal.complain(`${what}: ${found}, and the bound is ${bound}`);
    return {
      seconds,
      sessions,
      seed,
      cores,
      node: process.versions.node,
      answered: servers.reduce((sum, { answered }) => sum + answered, 0),
      logs: this.#logs,
      counts: this.#counts,
      cycles: this.#cycles.map(cycleFigures),
      growth: Object.fromEntries(grown.map(({ name, growth }) => [name, growth])),
      afterClose: this.#afterClose,
      verdicts,
      complaints: this.journal.complaints,
    };
  }

  #keep(): void {
    const path = join(this.#dir, 'journal.txt');
    writeFileSync(path, this.journal.text());
    this.#options.say(`what happened, by time: ${path}`);
  }

  /** @param at seconds since the load began */
  async #until(at: number): Promise<void> {
    await delay(Math.max(0, (this.#begun + at - this.journal.now) * 1000));
  }

  #count(name: string): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + 1;
  }

  /** In [0, 1); the same from the same seed, as far as the order of events allows. */
  #random(): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return this.#state / 2 ** 32;
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

/** Says at its end what did not hold, and then one block of figures. */
export async function soak(options: SoakOptions): Promise<SoakSummary> {
  const summary = await new Soak(options).run();
  for (const complaint of summary.complaints) options.say(`WRONG ${complaint}`);
  for (const line of ['', ...summaryLines(summary)]) options.say(line);
  return summary;
}
