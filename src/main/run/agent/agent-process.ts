/**
 * The agent's process: started in a group of its own, its stderr drained, ended as a tree. Ctrl-C in the terminal does not reach it: the runner
 * decides when it ends.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { endGroup } from '../command.ts';

const keptErrorChars = 64 * 1024;
/** From the closing of stdin to TERM: more than a server of ours takes to end in order. */
const eofGraceMs = 10_000;

export interface AgentCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export class AgentProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** The end of the process, in words. Never rejects. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #stderr = '';

  /** A command that cannot be started ends at once. */
  constructor({ argv, cwd, env }: AgentCommand) {
    const [program = '', ...args] = argv;
    this.#child = spawn(program, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    this.stdin = this.#child.stdin;
    this.stdout = this.#child.stdout;
    // Raised when a signal cannot be delivered, too: unheard, it would end the run.
    this.#child.on('error', () => undefined);
    // A write after its end fails; the end says so already.
    this.stdin.on('error', () => undefined);
    this.stdout.on('error', () => undefined);
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-keptErrorChars);
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('error', (error: NodeJS.ErrnoException) => {
        if (this.#child.pid === undefined) resolve(`${program} could not be started (${error.code ?? error.message})`);
      });
      this.#child.once('exit', (code, signal) => resolve(code === null ? `it was ended by ${signal}` : `it ended with code ${code}`));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** The last of what it wrote to stderr, on one line; `''` when it wrote nothing. */
  stderrTail(chars: number): string {
    const tail = this.#stderr.trim().slice(-chars);
    return tail.replaceAll(/[\p{Cc}\s]+/gu, ' ');
  }

  /** Closes its stdin, as a client does that goes away, and waits; TERM, then KILL to its group if that does not help. Never rejects. */
  async stop(): Promise<void> {
    this.stdin.end();
    await Promise.race([this.ended, delay(eofGraceMs, undefined, { ref: false })]);
    // What it left in its group ends with it.
    if (this.pid !== undefined) await endGroup(this.pid);
  }

  /** At once. */
  kill(): void {
    if (this.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null) process.kill(-this.pid, 'SIGKILL');
  }
}
