/**
 * Runs one command of a job, the setup or the check: in a process group of its own, with a time limit, its output bounded, ended as a
 * tree. Stdin is empty. What the command leaves running in the background stays until its {@link CommandOutcome.end} is called.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { signalGroup, waitGroupGone } from '../../shared/process-table.ts';
import { BoundedOutput } from './bounded-output.ts';

const termGraceMs = 1_000;
const killPatienceMs = 3_000;
/** For what is still in the pipes when the command has ended; a background process may hold them open for ever. */
const pipeGraceMs = 100;

export interface CommandSpec {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Ends the command and all that it started. */
  readonly signal: AbortSignal;
}

export interface CommandOutcome {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  /** Stdout and stderr as they came, head and tail. */
  readonly output: string;
  /** Why it could not be started; absent when it was. */
  readonly spawnError?: string;
  readonly durationMs: number;
  /** Ends whatever the command left running. Never rejects. */
  end(): Promise<void>;
}

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** Never rejects. */
export async function runCommand(spec: CommandSpec): Promise<CommandOutcome> {
  const start = performance.now();
  const output = new BoundedOutput();
  const [program = '', ...args] = spec.argv;
  const done = (rest: Omit<CommandOutcome, 'output' | 'durationMs'>): CommandOutcome => {
    return { output: output.text(), durationMs: performance.now() - start, ...rest };
  };
  if (spec.signal.aborted) return done({ exitCode: null, signal: null, timedOut: false, end: nothing });
  const child = launch(program, args, spec);
  if (child instanceof Error) return done(notStarted(program, spec.cwd, child));
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk));
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const exited = new Promise<Error | undefined>((resolve) => {
    child.once('error', resolve);
    child.once('exit', () => resolve(undefined));
  });
  const { pid } = child;
  if (pid === undefined) return done(notStarted(program, spec.cwd, (await exited) ?? new Error('no process')));
  let timedOut = false;
  const stop = () => void endGroup(pid);
  const timer = setTimeout(() => {
    timedOut = true;
    stop();
  }, spec.timeoutMs);
  spec.signal.addEventListener('abort', stop, { once: true });
  await exited;
  clearTimeout(timer);
  spec.signal.removeEventListener('abort', stop);
  if (timedOut || spec.signal.aborted) await endGroup(pid);
  await Promise.race([closed, delay(pipeGraceMs, undefined, { ref: false })]);
  child.stdout.destroy();
  child.stderr.destroy();
  const leaves = signalGroup(pid, 0);
  return done({ exitCode: child.exitCode, signal: child.signalCode, timedOut, end: leaves ? () => endGroup(pid) : nothing });
}

function launch(program: string, args: readonly string[], { cwd, env }: CommandSpec): Child | Error {
  try {
    const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    // Raised when a signal cannot be delivered, too: unheard, it would end the process.
    child.on('error', () => undefined);
    return child;
  } catch (error) {
    return error as Error;
  }
}

function notStarted(program: string, cwd: string, error: Error): Omit<CommandOutcome, 'output' | 'durationMs'> {
  const code = (error as NodeJS.ErrnoException).code ?? error.message;
  const spawnError = `${program} could not be started in ${cwd} (${code})`;
  return { exitCode: null, signal: null, timedOut: false, spawnError, end: nothing };
}

async function nothing(): Promise<void> {
  // The command left nothing running.
}

const ending = new Map<number, Promise<void>>();

/** TERM, then KILL. Once for each group, however many ask. */
export async function endGroup(pgid: number): Promise<void> {
  const known = ending.get(pgid);
  if (known !== undefined) return await known;
  const end = endOnce(pgid).finally(() => ending.delete(pgid));
  ending.set(pgid, end);
  await end;
}

async function endOnce(pgid: number): Promise<void> {
  signalGroup(pgid, 'SIGTERM');
  // A stopped process takes its TERM only when it goes on.
  signalGroup(pgid, 'SIGCONT');
  if (await waitGroupGone(pgid, termGraceMs)) return;
  signalGroup(pgid, 'SIGKILL');
  await waitGroupGone(pgid, killPatienceMs);
}
