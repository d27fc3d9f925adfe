/**
 * Runs our server with `--cpu-prof` and gathers what its threads leave.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { tokenText } from '../../test/support/answer-plan.ts';
import { AgentProcess } from '../load/agent-process.ts';
import { type RoundLoad, runRound } from '../load/round.ts';
import type { ModelServerProcess } from '../load/targets.ts';
import type { CpuProfile, Span } from './cpu-profile.ts';

export interface Capture {
  readonly profiles: readonly CpuProfile[];
  /** When the work to be looked at was done. */
  readonly spans: readonly Span[];
}

export interface CaptureOptions {
  /** The home of all servers, in which a first one has left its compiled code. */
  readonly home: string;
  /** The folder whose `dist/` is run. */
  readonly packageRoot: string;
  readonly model: ModelServerProcess;
  /** An isolation, with its greatest number of threads where one is wanted: `shared`, `dedicated:64`. */
  readonly isolation: string;
  readonly intervalUs: number;
}

export interface LoadToProfile extends RoundLoad {
  readonly sessions: number;
}

const keptWithinMs = 20_000;

/** A start with a turn, so that what is profiled finds the compiled code that an earlier start leaves, as nearly all do. */
export async function warmHome(options: CaptureOptions): Promise<void> {
  await withProfiles(options, async (agent) => {
    await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    await agent.prompt(await agent.newSession(), { tokens: 1 });
    await codeKept(options.home);
    return [];
  });
}

/** The code of the program and that of session threads are written some seconds behind the first answers. */
async function codeKept(home: string): Promise<void> {
  const folder = join(home, '.cache', 'dsh-acp', 'code');
  const isKept = (): boolean => existsSync(folder) && readdirSync(folder).filter((name) => name.endsWith('.bin')).length >= 2;
  for (const end = performance.now() + keptWithinMs; !isKept(); ) {
    if (performance.now() > end) throw new Error(`the server kept no compiled code in ${folder} within ${keptWithinMs} ms`);
    await sleep(100);
  }
}

/** The clock of the profiles. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** From the start of a process to the answer of `initialize`, of `starts` processes one after the other. */
export async function captureStartup(options: CaptureOptions, starts: number): Promise<Capture> {
  const profiles: CpuProfile[] = [];
  const spans: Span[] = [];
  for (let start = 0; start < starts; start += 1) {
    const one = await withProfiles(options, async (agent, from) => {
      await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
      return [{ from, to: nowUs() }];
    });
    profiles.push(...one.profiles);
    spans.push(...one.spans);
  }
  return { profiles, spans };
}

/** Rounds of one load until they make `seconds`, after `warmUps` that are not looked at. @throws Error when a text came wrong */
export async function captureLoad(
  options: CaptureOptions,
  load: LoadToProfile,
  run: { warmUps: number; seconds: number },
): Promise<Capture> {
  return await withProfiles(options, async (agent) => {
    await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    const ids = await agent.newSessions(load.sessions);
    for (let round = 0; round < run.warmUps; round += 1) await runRound(agent, ids, { ...load, delayMs: 0 });
    const spans: Span[] = [];
    for (let usedUs = 0; usedUs < run.seconds * 1e6; ) {
      const from = nowUs();
      await runRound(agent, ids, load);
      const to = nowUs();
      requireTexts(agent, ids, load.tokens);
      spans.push({ from, to });
      usedUs += to - from;
    }
    return spans;
  });
}

/** The first turn of `sessions` sessions, one after the other: with `dedicated`, what a new thread does until it has answered. */
export async function captureFirstTurns(options: CaptureOptions, sessions: number): Promise<Capture> {
  return await withProfiles(options, async (agent, from) => {
    await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    for (const id of await agent.newSessions(sessions)) await agent.prompt(id, { tokens: 1 });
    return [{ from, to: nowUs() }];
  });
}

/** Whole texts; deltas may have come together, as the outbox joins them while the client is behind. */
function requireTexts(agent: AgentProcess, ids: readonly string[], tokens: number): void {
  const expected = Array.from({ length: tokens }, (_, index) => tokenText(index)).join('');
  const wrong = ids.filter((id) => agent.sessions.get(id)?.text !== expected).length;
  if (wrong > 0) throw new Error(`${wrong} texts of ${ids.length} came wrong`);
}

async function withProfiles(
  { packageRoot, home, model, isolation, intervalUs }: CaptureOptions,
  work: (agent: AgentProcess, startedUs: number) => Promise<readonly Span[]>,
): Promise<Capture> {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-acp-profile-run-'));
  const [kind = '', threads] = isolation.split(':');
  const nodeArgs = ['--cpu-prof', `--cpu-prof-dir=${join(folder, 'profiles')}`, `--cpu-prof-interval=${intervalUs}`];
  const flags = ['--state-dir', folder, '--base-url', model.baseUrl, '--model', 'bench', '--isolation', kind];
  if (threads !== undefined) flags.push('--max-threads', threads);
  const startedUs = nowUs();
  const agent = new AgentProcess([process.execPath, ...nodeArgs, join(packageRoot, 'dist', 'main', 'cli.js'), ...flags], { HOME: home });
  try {
    const spans = await work(agent, startedUs);
    await agent.close();
    return { profiles: readProfiles(join(folder, 'profiles')), spans };
  } finally {
    agent.child.kill('SIGKILL'); // Where it has not ended: nothing may write into the folder any more.
    await agent.exited;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A thread that was ended hard may have left half a file: that one is left out. */
function readProfiles(folder: string): CpuProfile[] {
  return readdirSync(folder)
    .toSorted()
    .flatMap((name) => {
      try {
        return [JSON.parse(readFileSync(join(folder, name), 'utf8')) as CpuProfile];
      } catch {
        return [];
      }
    });
}
