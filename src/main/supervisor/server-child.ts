/**
 * The server as a child process: its only way to the protocol is a socket pair on fd 3. Its stdout is our stderr, so nothing
 * that prints can reach the client.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { supervisedVariable } from '../../shared/supervised.ts';

export interface ChildEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

const protocolFd = 3;

export class ServerChild {
  /** Fulfils once the process has ended and everything it wrote has been handed out. */
  readonly ended: Promise<ChildEnd>;
  readonly #process: ChildProcess;
  readonly #socket: Socket;

  /** @param restarts how many processes there were before it */
  constructor({ command, args, env }: ServerCommand, restarts: number, onData: (chunk: Buffer) => void) {
    this.#process = spawn(command, [...args], {
      stdio: ['ignore', 2, 2, 'pipe'],
      // Of its own group: an interrupt typed at a terminal comes to it once, through us.
      detached: true,
      env: { ...env, [supervisedVariable]: `${protocolFd}:${restarts}` },
    });
    this.#socket = this.#process.stdio[protocolFd] as Socket;
    this.#socket.on('data', onData);
    // A write to a process that has just died; its end tells the rest.
    this.#socket.on('error', () => undefined);
    const exited = new Promise<ChildEnd>((resolve) => {
      this.#process.once('exit', (code, signal) => resolve({ code, signal }));
      this.#process.once('error', () => resolve({ code: 1, signal: null }));
    });
    const drained = new Promise<void>((resolve) => this.#socket.once('close', () => resolve()));
    this.ended = exited.then(async (end) => {
      // What was under way to it is nobody's now, and would keep the socket open.
      this.#socket.end();
      await Promise.race([drained, new Promise<void>((resolve) => setTimeout(resolve, drainMs).unref())]);
      this.#socket.destroy();
      return end;
    });
  }

  /** `false` when the caller should wait for {@link onDrain}. The line has no LF. */
  send(line: string): boolean {
    return this.#socket.writable ? this.#socket.write(`${line}\n`) : true;
  }

  onDrain(resume: () => void): void {
    this.#socket.on('drain', resume);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** End of input: the server answers what is open, and goes. */
  end(): void {
    this.#socket.end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }
}

/** A grandchild may hold the other end; it has nothing to say that concerns the client. */
const drainMs = 1000;
