/**
 * `dsh-acp run`: from flags and settings to a batch, its views, its signals and its exit code.
 *
 * 0 all passed or completed · 1 some did not · 2 something is wrong with what was asked · 3 stopped early
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { configError } from '../config/config-error.ts';
import { flagOf } from '../config/key-spelling.ts';
import type { LoadedConfig } from '../config/load-config.ts';
import type { KeyName } from '../config/schema.ts';
import { Batch } from '../run/batch.ts';
import type { Job } from '../run/job.ts';
import { argvOf } from '../run/jobs/job-schema.ts';
import { type JobSource, singleJob } from '../run/jobs/job-source.ts';
import { openJobsFile, readJobsStream } from '../run/jobs/jobs-file.ts';
import type { RunOutcome } from '../run/run-event.ts';
import type { RunAgent, RunOptions, RunSetup } from '../run/run-options.ts';
import { createObservers } from '../run/view/create-observers.ts';
import { collectorVariables } from '../telemetry/telemetry.ts';
import { packageRoot, packageVersion } from './own-package.ts';
import type { CommandLine } from './parse-command-line.ts';
import { type RunFlags, readRunFlags } from './run-flags.ts';

const exits = { good: 0, someFailed: 1, stopped: 3 } as const;
const where = 'command line';
/** Settings that say something about the runner's own answers, and so also hold for another agent. */
const settingsForAnyAgent: readonly KeyName[] = ['policy_file', 'permission_mode', 'log_level'];

/** @throws ServerError CONFIG_INVALID for whatever is wrong before anything has run */
export async function runRun(line: CommandLine, load: () => Promise<LoadedConfig>): Promise<number> {
  const flags = readRunFlags(line.run);
  const { subject } = line.run;
  if (subject === undefined) throw configError({ key: 'run', expected: 'a jobs file, - for stdin, or a prompt after it', where });
  const fromFile = subject === '-' || isJobsFile(subject);
  refuseMisplaced(flags, fromFile);
  const loaded = await load();
  const resultsPath = flags.out === undefined ? undefined : resolve(flags.out);
  const agent = chooseAgent(line, flags, loaded, resultsPath);
  const jobs = fromFile ? await openJobs(subject, flags, loaded) : singleJob(jobOf(subject, flags));
  const batch = new Batch(options({ flags, loaded, jobs, agent, resultsPath, fromFile }));
  const outcome = await withSignals(batch, async () => await batch.run());
  if (!fromFile && flags.view === undefined) printAnswer(batch);
  return exitCode(outcome);
}

/** What names a file is one; so is whatever looks as if it should. */
function isJobsFile(subject: string): boolean {
  if (subject.endsWith('.jsonl') && !/\s/.test(subject)) return true;
  return subject.endsWith('.jsonl') && statSync(subject, { throwIfNoEntry: false })?.isFile() === true;
}

function refuseMisplaced(flags: RunFlags, fromFile: boolean): void {
  const refuse = (key: string, expected: string) => {
    throw configError({ key, expected, where });
  };
  if (fromFile) {
    if (flags.out === undefined) refuse('--out', 'a file for the results of a jobs file');
    if (flags.cwd !== undefined) refuse('--cwd', 'it with a prompt only; jobs of a file have their own cwd');
    if (flags.check !== undefined) refuse('--check', 'it with a prompt only; jobs of a file have their own check');
    return;
  }
  if (flags.out !== undefined) return;
  const needsOut = (['report', 'junit', 'trajectories', 'view'] as const).find((name) => flags[name] !== undefined);
  if (needsOut !== undefined) refuse(`--${needsOut === 'view' ? flags.view : needsOut}`, 'it only with --out');
}

async function openJobs(subject: string, { skipInvalid, agent }: RunFlags, { config }: LoadedConfig): Promise<JobSource> {
  const how = { skipInvalid, cwd: process.cwd(), noPrices: agent === undefined && config.session.prices === undefined };
  return subject === '-' ? await readJobsStream(process.stdin, how) : await openJobsFile(subject, how);
}

function jobOf(prompt: string, { cwd = '.', check, mode }: RunFlags): Job {
  if (prompt.trim() === '') throw configError({ key: 'run', expected: 'a prompt that is not blank', where });
  const place = { kind: 'directory', cwd: resolve(cwd) } as const;
  const said = { prompts: [prompt], place, check: argvOf(check), mode };
  return {
    ...said,
    id: 'prompt',
    line: 0,
    setup: undefined,
    setupTimeoutMs: 600_000,
    checkTimeoutMs: 600_000,
    budget: undefined,
    policy: undefined,
    env: {},
    labels: {},
    idempotent: false,
    seed: 0,
    hasSeed: false,
    priority: 0,
    traceparent: undefined,
    hash: createHash('sha256').update(JSON.stringify(said)).digest('base64url').slice(0, 22),
    meta: undefined,
  };
}

/** This program as a child, with the same settings; or whatever `--agent` names. */
function chooseAgent(line: CommandLine, flags: RunFlags, loaded: LoadedConfig, resultsPath: string | undefined): RunAgent {
  if (flags.agent !== undefined) {
    const misplaced = [...line.flags.keys()].find((name) => !settingsForAnyAgent.includes(name));
    if (misplaced !== undefined) {
      throw configError({ key: flagOf(misplaced) ?? misplaced, expected: 'no setting of this server with --agent', where });
    }
    const setup = { ...policyOf(loaded), command: digest(flags.agent) };
    return { argv: flags.agent, cwd: process.cwd(), stateDir: undefined, setup };
  }
  const source = (name: KeyName) => loaded.settings.find((setting) => setting.name === name)?.source;
  // Without a key a server shows its demo; as the results of a run that would be a forgery.
  if (loaded.config.session.model.kind === 'scripted' && source('model') === 'default') {
    throw configError({ key: 'model', expected: 'one: set DEEPSEEK_API_KEY, or --base-url and --model, or --model scripted', where });
  }
  if (flags.maxCostUsd !== undefined && loaded.config.session.prices === undefined) {
    throw configError({ key: '--max-cost', expected: 'prices to count by: set --price-input and --price-output', where });
  }
  const said = source('state_dir') === 'flag' || source('state_dir') === 'env';
  const stateDir = resultsPath === undefined || said ? loaded.config.stateDir : `${resultsPath}.state`;
  const argv = [process.execPath, join(packageRoot(), 'dist', 'main', 'cli.js'), 'serve'];
  for (const [name, value] of line.flags) if (name !== 'state_dir') argv.push(`${flagOf(name) ?? ''}=${value}`);
  if (line.file !== undefined) argv.push(`--config=${line.file}`);
  let { profile, isolation } = loaded.config;
  if (source('profile') === 'default') {
    profile = 'automation';
    argv.push(`--profile=${profile}`);
  }
  if (source('isolation') === 'default') {
    isolation = 'shared';
    argv.push(`--isolation=${isolation}`);
  }
  // Nobody takes a job's work back: what it changed is its result.
  if (source('undo') === 'default') argv.push('--undo=off');
  const setup = { ...modelOf(loaded), profile, isolation, ...policyOf(loaded) };
  return { argv: [...argv, `--state-dir=${stateDir}`], cwd: process.cwd(), stateDir, setup };
}

function modelOf({ config }: LoadedConfig): Pick<RunSetup, 'model' | 'baseUrl'> {
  const { model } = config.session;
  if (model.kind === 'openai-compatible') return { model: model.model, baseUrl: model.baseUrl };
  return { model: model.kind === 'replay' ? `replay:${model.path}` : model.kind };
}

function policyOf({ config }: LoadedConfig): Pick<RunSetup, 'policy'> {
  const { policy } = config.session;
  return policy === undefined ? {} : { policy: digest(policy) };
}

function digest(value: object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22);
}

interface Parts {
  readonly flags: RunFlags;
  readonly loaded: LoadedConfig;
  readonly jobs: JobSource;
  readonly agent: RunAgent;
  readonly resultsPath: string | undefined;
  readonly fromFile: boolean;
}

function options({ flags, loaded, jobs, agent, resultsPath, fromFile }: Parts): RunOptions {
  const { session } = loaded.config;
  const isOther = flags.agent !== undefined;
  return {
    ...flags,
    jobs,
    agent,
    resultsPath,
    worktreeDir: flags.worktreeDir === undefined ? defaultWorktreeDir() : resolve(flags.worktreeDir),
    defaults: { mode: flags.mode, answerMode: session.mode, policy: isOther ? session.policy : undefined },
    withheld: [...loaded.settings.filter(({ name }) => name === 'api_key_env').map(({ value }) => String(value)), ...collectorVariables],
    observers: (attempts) => {
      if (resultsPath === undefined) return [];
      const absolute = (path: string | undefined) => (path === undefined ? undefined : resolve(path));
      return createObservers({
        mode: flags.view ?? (fromFile ? (process.stdout.isTTY ? 'live' : 'plain') : 'quiet'),
        stdout: process.stdout,
        stderr: process.stderr,
        resultsPath,
        reportPath: flags.noReport ? undefined : (absolute(flags.report) ?? `${resultsPath.replace(/\.jsonl$/, '')}.report.html`),
        junitPath: absolute(flags.junit),
        trajectoriesPath: absolute(flags.trajectories),
        now: Date.now,
        attempts,
      });
    },
    notice: (text) => process.stderr.write(`dsh-acp: ${text.replaceAll('\n', ' ')}\n`),
    version: packageVersion(),
  };
}

/** Not beside the results: a worktree inside of another project would find that one's settings and packages. */
function defaultWorktreeDir(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? '';
  const home = homedir();
  if (isAbsolute(cache)) return join(cache, 'dsh-acp', 'worktrees');
  if (isAbsolute(home)) return join(home, '.cache', 'dsh-acp', 'worktrees');
  // A name that others could foresee might be theirs already.
  return mkdtempSync(join(tmpdir(), 'dsh-acp-worktrees-'));
}

async function withSignals<T>(batch: Batch, run: () => Promise<T>): Promise<T> {
  let asked = 0;
  const onSignal = () => {
    asked += 1;
    batch.interrupt();
    if (asked > 2) process.exit(exits.stopped);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, onSignal);
  // Whoever reads our output may go, as `head` does: the run goes on.
  process.stdout.on('error', () => undefined);
  try {
    return await run();
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
  }
}

function printAnswer({ lastResult }: Batch): void {
  if (lastResult === undefined) return;
  const { text, status, errorClass, error } = lastResult;
  if (text !== '') process.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
  if (status === 'passed' || status === 'completed') return;
  const why = [errorClass, error].filter((part) => part !== undefined).join(': ');
  process.stderr.write(`dsh-acp: ${status}${why === '' ? '' : ` (${why.replaceAll('\n', ' ')})`}\n`);
}

function exitCode({ byStatus, stopped, invalid = 0 }: RunOutcome): number {
  if (stopped !== undefined) return exits.stopped;
  const good = Object.keys(byStatus).every((status) => status === 'passed' || status === 'completed');
  return good && invalid === 0 ? exits.good : exits.someFailed;
}
