/** What a soak breaks, one at a time and in a random order: threads, children, the model server, and the patience of who reads. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { childrenOf } from './soak-figures.ts';
import type { Journal } from './soak-journal.ts';
import type { SoakServer } from './soak-server.ts';
import type { SoakSession } from './soak-session.ts';

const modelMain = fileURLToPath(new URL('./model-server-main.js', import.meta.url));

/** A model server that can be killed and comes back at its port. */
export class SoakModel {
  readonly #port: number;
  #child: ChildProcess | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#port}/v1`;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [modelMain, String(this.#port)], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    await once(child.stdout, 'data');
  }

  kill(): void {
    this.#child?.kill('SIGKILL');
  }
}

export interface FaultParts {
  readonly lone: SoakServer;
  readonly crowd: SoakServer;
  /** The one of `crowd`. */
  readonly model: SoakModel;
  readonly sessions: readonly SoakSession[];
  readonly journal: Journal;
  readonly random: () => number;
  readonly count: (name: string) => void;
}

/** For a child to kill. */
const mostWaitMs = 10_000;

type Fault = 'thread' | 'child' | 'model' | 'stall' | 'slow';
/** Children die most often: there are most of them. */
const round: readonly Fault[] = ['thread', 'child', 'stall', 'child', 'model', 'thread', 'slow', 'child'];

export class SoakFaults {
  readonly #parts: FaultParts;
  #left: Fault[] = [];

  constructor(parts: FaultParts) {
    this.#parts = parts;
  }

  /** True between two rounds: each fault has had its turn. */
  get isRoundOver(): boolean {
    return this.#left.length === 0;
  }

  /** One fault; each of a round has its turn before the next round. */
  async next(): Promise<void> {
    if (this.#left.length === 0)
      this.#left = round
        .map((fault) => ({ fault, at: this.#parts.random() }))
        .sort((a, b) => a.at - b.at)
        .map(({ fault }) => fault);
    const { crowd, random } = this.#parts;
    switch (this.#left.pop()) {
      case 'thread':
        this.#doomOne();
        break;
      case 'child':
        await this.#endOneChild(random() < 0.8 ? crowd : this.#parts.lone);
        break;
      case 'model':
        await this.#restartModel();
        break;
      case 'stall':
        this.#note('the client of crowd reads nothing for 3 s', 'stalls');
        crowd.stall(3000);
        break;
      case 'slow':
        this.#note('the client of crowd reads slowly for 5 s', 'slow readers');
        crowd.readSlowly(5000);
        break;
      case undefined:
    }
  }

  #doomOne(): void {
    const { sessions, random } = this.#parts;
    const able = sessions.filter(({ kind, isDoomed }) => kind === 'killed' && !isDoomed);
    const one = able[Math.floor(random() * able.length)];
    if (one === undefined) return;
    const how = random() < 0.5 ? 'throw' : 'exit';
    one.doom(how);
    this.#note(`a thread of lone is to end by ${how}`);
  }

  async #endOneChild(server: SoakServer): Promise<void> {
    // There is none at times: commands are short.
    for (const until = performance.now() + mostWaitMs; performance.now() < until; await delay(20)) {
      const children = childrenOf(server.pid);
      const pid = children[Math.floor(this.#parts.random() * children.length)];
      if (pid !== undefined && killed(pid)) return this.#note(`a child of ${server.name} is killed`, 'children killed');
    }
  }

  async #restartModel(): Promise<void> {
    this.#note('the model server of crowd is killed', 'model restarts');
    this.#parts.model.kill();
    await delay(300);
    await this.#parts.model.start();
  }

  #note(what: string, counted?: string): void {
    this.#parts.journal.note('fault', what);
    if (counted !== undefined) this.#parts.count(counted);
  }
}

/** False when it has ended meanwhile. */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}
