/**
 * A child process that leads a group of its own, and the group's proven end.
 *
 * Stands directly on `node:child_process`. Stdin is /dev/null, or a pipe where that was asked for, and nothing is
 * inherited: a child can neither read the protocol nor write into it. A process that leaves the group (`setsid`) is out of reach here; see EscapeeSweep.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import type { ControlNews, NetworkOff, SpawnFailure } from '../../shared/broker-protocol.ts';
import { signalGroup, signalGroupInside, waitGroupGone } from '../../shared/process-table.ts';
import type { SpawnGate } from '../../shared/spawn-gate.ts';

export interface ExitStatus {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export interface LaunchSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** A stdin that can be written to; without it the child reads the end of input at once. */
  readonly stdin?: 'pipe';
  /** The leader only holds a sandbox: its end is that of all inside, so it is not asked to end, but killed when they were asked in vain. */
  readonly holdsSandbox?: boolean;
  /** Open descriptors that it inherits, from number 3 on. */
  readonly descriptors?: readonly number[];
}

export type Launch = ({ readonly ok: true; readonly group: ProcessGroup } & LaunchFacts) | ({ readonly ok: false } & SpawnFailure);

/** What a command was started in. */
export interface LaunchFacts {
  /** Looks behind a command in a sandbox. */
  readonly guard?: { news(): Promise<ControlNews> };
  readonly networkOff?: NetworkOff;
}

/** Starts the command. What the system refuses (no program, no directory, no room), and a closed gate, is an answer: a code and a sentence. */
export async function launchGroup(spec: LaunchSpec, gate?: SpawnGate): Promise<Launch> {
  const start = (): ChildProcess =>
    spawn(spec.command, spec.args, {
      cwd: spec.cwd,
      env: spec.env,
      detached: true,
      stdio: [spec.stdin ?? 'ignore', 'pipe', 'pipe', ...(spec.descriptors ?? [])],
    });
  try {
    // The system call comes back when the child has become its program: from then on it can be found by its mark.
    const child = gate === undefined ? start() : gate.pass(start);
    if (child === undefined) return { ok: false, spawnError: 'the server is going down and starts no more processes' };
    if (child.pid !== undefined) return { ok: true, group: new ProcessGroup(child, child.pid, spec.holdsSandbox) };
    const error = await new Promise<Error>((resolve) => child.once('error', resolve));
    return { ok: false, spawnError: describeFailure(spec, error) };
  } catch (error) {
    return { ok: false, spawnError: describeFailure(spec, error) };
  }
}

function describeFailure(spec: LaunchSpec, error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'UNKNOWN';
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      // The system gives the same code for both.
      if (!isDirectory(spec.cwd)) return `${code}: the working directory ${spec.cwd} does not exist or is not a directory`;
      return `${code}: the program ${spec.command} was not found`;
    case 'EACCES':
      return `EACCES: no permission to run ${spec.command} in ${spec.cwd}`;
    case 'EAGAIN':
    case 'ENOMEM':
    case 'EMFILE':
    case 'ENFILE':
      return `${code}: the system has no room for another process now; try again when others have ended`;
    case 'E2BIG':
      return 'E2BIG: the command and its environment are too long for the system';
    default:
      return `${code}: ${spec.command} could not be started`;
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Not there, or behind a directory that may not be entered: no place to work in either way.
    return false;
  }
}

/** How long a killed group may take to vanish before it is given up: only a process stuck in the kernel takes longer. */
const giveUpMs = 3000;

export class ProcessGroup {
  readonly pgid: number;
  /** `undefined` unless a pipe was asked for. Errors of it are heard here: a child that reads no more is no fault. */
  readonly stdin: Writable | undefined;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The leader's end, reaped. Never rejects. */
  readonly exited: Promise<ExitStatus>;
  /** No member is left that could run. Never rejects; stays open for as long as one is stuck in the kernel. */
  readonly gone: Promise<void>;
  /** Fulfils when a killed group does not vanish: whoever waits must go on without the proof. */
  readonly givenUp: Promise<void>;
  #hasExited = false;
  #isGone = false;
  #giveUp: () => void = () => undefined;
  #killAt = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  readonly #holdsSandbox: boolean;

  constructor(child: ChildProcess, pgid: number, holdsSandbox = false) {
    this.#holdsSandbox = holdsSandbox;
    if (child.stdout === null || child.stderr === null) throw new Error('the child was spawned without pipes');
    this.pgid = pgid;
    this.stdin = child.stdin ?? undefined;
    this.stdin?.on('error', () => undefined);
    this.stdout = child.stdout;
    this.stderr = child.stderr;
    // Raised when a signal cannot be delivered, too: unheard, it would end the thread.
    child.on('error', () => undefined);
    this.exited = new Promise((resolve) =>
      child.once('exit', (exitCode, signal) => {
        this.#hasExited = true;
        resolve({ exitCode, signal });
      }),
    );
    this.givenUp = new Promise((resolve) => {
      this.#giveUp = resolve;
    });
    this.gone = this.#watch();
  }

  /** True once the leader has ended, whatever is left of the group. */
  get hasExited(): boolean {
    return this.#hasExited;
  }

  /** True once {@link end} has been called. */
  get ending(): boolean {
    return this.#killAt !== Number.POSITIVE_INFINITY;
  }

  /**
   * TERM to the group, KILL after `graceMs`. A second call can only bring the KILL forward. Fulfils when the group is
   * gone (true) or given up (false).
   */
  async end(graceMs: number): Promise<boolean> {
    if (this.#isGone) return true;
    const killAt = performance.now() + graceMs;
    if (!this.ending) {
      if (this.#holdsSandbox && !this.#hasExited) signalGroupInside(this.pgid, 'SIGTERM');
      else signalGroup(this.pgid, 'SIGTERM');
      // A stopped process takes its TERM only when it goes on.
      signalGroup(this.pgid, 'SIGCONT');
    }
    if (killAt < this.#killAt) {
      this.#killAt = killAt;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#kill(), graceMs);
    }
    return await Promise.race([this.gone.then(() => true), this.givenUp.then(() => false)]);
  }

  #kill(): void {
    signalGroup(this.pgid, 'SIGKILL');
    this.#timer = setTimeout(this.#giveUp, giveUpMs);
  }

  async #watch(): Promise<void> {
    await this.exited;
    await waitGroupGone(this.pgid, Number.POSITIVE_INFINITY);
    // From here on the number may belong to somebody else: it is never signalled again.
    this.#isGone = true;
    clearTimeout(this.#timer);
  }
}
