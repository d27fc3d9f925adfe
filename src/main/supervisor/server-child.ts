/**
 * The server as a child process: its only way to the protocol is a socket pair on fd 3. Its stdout is our stderr, so nothing
 * that prints can reach the client.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { markedProcesses, signalProcess } from '../../shared/process-table.ts';
import { orderlyExit, supervisedVariable, supervisedWord } from '../../shared/supervised.ts';
import { SilenceWatch } from './silence-watch.ts';

export interface ChildEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Set where we ended it, since it had given no sign of life for so long. */
  readonly silentMs?: number;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Milliseconds without a sign of life after which it is killed; `0` waits for ever. */
  readonly stuckAfterMs: number;
}

export interface ChildSinks {
  readonly onData: (chunk: Buffer) => void;
  /** {@link ServerChild.isFull} may have become false. */
  readonly onDrain: () => void;
}

const protocolFd = 3;
const beatFd = 4;
/** Somebody else may hold the other end, though nobody is meant to. */
const drainMs = 1000;

export class ServerChild {
  /** Fulfils once the process has ended and everything it wrote has been handed out. Never rejects. */
  readonly ended: Promise<ChildEnd>;
  readonly #process: ChildProcess;
  /** Absent where no process could be started. */
  readonly #socket: Socket | undefined;
  #isFull = false;
  #killer: NodeJS.Timeout | undefined;
  #silentMs: number | undefined;

  /** @param restarts how many processes there were before it */
  constructor({ command, args, env, stuckAfterMs }: ServerCommand, restarts: number, { onData, onDrain }: ChildSinks) {
    const mark = randomUUID();
    const beat = stuckAfterMs === 0 ? undefined : { fd: beatFd, everyMs: SilenceWatch.beatEveryMs(stuckAfterMs) };
    this.#process = spawn(command, [...args], {
      stdio: ['ignore', 2, 2, 'pipe', ...(beat === undefined ? [] : (['pipe'] as const))],
      // Of its own group: an interrupt typed at a terminal comes to it once, through us.
      detached: true,
      env: { ...env, [supervisedVariable]: supervisedWord({ fd: protocolFd, beat, restarts, mark }) },
    });
    const exited = new Promise<ChildEnd>((resolve) => {
      this.#process.once('exit', (code, signal) => resolve({ code, signal }));
      this.#process.once('error', () => resolve({ code: 1, signal: null }));
    });
    const socket = (this.#process.stdio as readonly unknown[] | undefined)?.[protocolFd] as Socket | undefined;
    this.#socket = socket;
    socket?.on('data', onData);
    // A write to a process that has just died; its end tells the rest.
    socket?.on('error', () => undefined);
    socket?.on('drain', () => {
      this.#isFull = false;
      onDrain();
    });
    const watch = beat === undefined ? undefined : this.#watchFor(stuckAfterMs);
    const drained = new Promise<void>((resolve) => (socket === undefined ? resolve() : socket.once('close', () => resolve())));
    this.ended = exited.then(async (end) => {
      clearTimeout(this.#killer);
      watch?.stop();
      if (end.code !== orderlyExit) endChildren(mark);
      // Whole lines that it still wrote are the client's, also of a client that is slow: no more than a pipe holds.
      socket?.resume();
      // What was under way to it is nobody's now, and would keep the socket open.
      socket?.end();
      await Promise.race([drained, new Promise<void>((resolve) => setTimeout(resolve, drainMs).unref())]);
      socket?.destroy();
      return this.#silentMs === undefined ? end : { ...end, silentMs: this.#silentMs };
    });
  }

  /** More should not be sent before it has read on. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** The line has no LF. */
  send(line: string): void {
    if (this.#socket?.writable === true && !this.#socket.write(`${line}\n`)) this.#isFull = true;
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  /** End of input: the server answers what is open, and goes; within `graceMs`, or it is killed. */
  end(graceMs: number): void {
    this.#socket?.end();
    this.#killIn(graceMs);
  }

  /** A signal that should end it, within `graceMs`. */
  signal(signal: NodeJS.Signals, graceMs: number): void {
    this.#process.kill(signal);
    this.#killIn(graceMs);
  }

  #watchFor(limitMs: number): SilenceWatch {
    const watch = new SilenceWatch({
      limitMs,
      onSilent: () => {
        this.#silentMs = limitMs;
        // Nothing less ends a process that is stopped.
        this.#process.kill('SIGKILL');
      },
    });
    const beats = (this.#process.stdio as readonly unknown[] | undefined)?.[beatFd] as Socket | undefined;
    beats?.on('data', () => watch.beat());
    beats?.on('error', () => undefined);
    return watch;
  }

  #killIn(graceMs: number): void {
    this.#killer ??= setTimeout(() => this.#process.kill('SIGKILL'), graceMs);
  }
}

/** What a process that died left running: its commands, MCP servers, subagents. Whoever would have waited for their end is gone. */
function endChildren(mark: string): void {
  // Again, since one may have been born behind the back of a look.
  for (let looks = 0; looks < mostLooks; looks += 1) {
    const left = markedProcesses(`${mark}/`);
    if (left.length === 0) return;
    for (const { pid } of left) signalProcess(pid, 'SIGKILL');
  }
}

const mostLooks = 3;
