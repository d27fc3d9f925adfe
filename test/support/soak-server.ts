/** A server under soak: a client that remembers no frame, so that it can run for hours, and that can stop reading. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { monotonicMs } from './monotonic.ts';

const main = fileURLToPath(new URL('./serve-main.js', import.meta.url));
const answerMs = 120_000;

export interface Answer {
  readonly id?: number;
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: any };
}

export class SoakServer {
  readonly child: ChildProcess;
  readonly exited: Promise<readonly unknown[]>;
  /** Milliseconds from the model's delta to its frame here, of sessions in `watched`. */
  readonly latencies: number[] = [];
  readonly watched = new Set<string>();
  /** Lines that were no JSON, and answers to what was not asked. */
  readonly violations: string[] = [];
  answered = 0;
  stderr = '';
  readonly #open = new Map<number, (answer: Answer) => void>();
  #next = 1;

  constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    this.child = spawn(process.execPath, [main, ...args], { stdio: ['pipe', 'pipe', 'pipe'], env });
    this.exited = once(this.child, 'close');
    this.child.stdin?.on('error', () => undefined);
    this.child.stderr?.on('data', (bytes: Buffer) => (this.stderr = (this.stderr + bytes.toString()).slice(-4000)));
    createInterface({ input: this.child.stdout! }).on('line', (line) => this.#take(line));
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get unanswered(): number {
    return this.#open.size;
  }

  async request(method: string, params: object): Promise<Answer> {
    const id = this.#next++;
    const answer = new Promise<Answer>((resolve) => this.#open.set(id, resolve));
    this.#send({ jsonrpc: '2.0', id, method, params });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${method} was not answered within ${answerMs} ms; ${this.stderr}`)), answerMs);
    });
    return await Promise.race([answer, late]).finally(() => clearTimeout(timer));
  }

  notify(method: string, params: object): void {
    this.#send({ jsonrpc: '2.0', method, params });
  }

  /** Reads nothing for a while. */
  stall(ms: number): void {
    this.child.stdout?.pause();
    setTimeout(() => this.child.stdout?.resume(), ms).unref();
  }

  async close(): Promise<unknown> {
    this.child.stdin?.end();
    return (await this.exited)[0];
  }

  #send(frame: object): void {
    this.child.stdin?.write(`${JSON.stringify(frame)}\n`);
  }

  #take(line: string): void {
    const now = monotonicMs();
    let frame: any;
    try {
      frame = JSON.parse(line);
    } catch {
      this.violations.push(line.slice(0, 200));
      return;
    }
    if (frame.method === undefined) this.#settle(frame);
    else if (frame.id !== undefined) this.#send({ jsonrpc: '2.0', id: frame.id, result: { outcome: { outcome: 'cancelled' } } });
    else if (this.watched.has(frame.params?.sessionId)) this.#time(frame.params.update, now);
  }

  #settle(answer: Answer): void {
    const resolve = this.#open.get(answer.id ?? -1);
    if (resolve === undefined) this.violations.push(`an answer to ${answer.id}`);
    this.#open.delete(answer.id ?? -1);
    this.answered += 1;
    resolve?.(answer);
  }

  #time(update: any, now: number): void {
    if (update?.sessionUpdate !== 'agent_message_chunk') return;
    const sent = Number(/^\d+(?:\.\d+)?(?= )/.exec(update.content?.text ?? '')?.[0] ?? Number.NaN);
    if (Number.isFinite(sent)) this.latencies.push(now - sent);
  }
}
