/** A server under soak: a client that remembers no frame, so that it can run for hours, and that can stop reading. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { monotonicMs } from './monotonic.ts';
import { saboteurMain } from './saboteur-program.ts';

const answerMs = 120_000;

export interface Latency {
  readonly ms: number;
  /** Of {@link monotonicMs}. */
  readonly at: number;
  readonly sessionId: string;
}

export interface Answer {
  readonly id?: number;
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: any };
}

export class SoakServer {
  readonly child: ChildProcess;
  readonly exited: Promise<readonly unknown[]>;
  /** From the model's delta to its frame here, of sessions in `watched`. */
  latencies: Latency[] = [];
  readonly watched = new Set<string>();
  /** Lines that were no JSON, and answers to what was not asked. */
  readonly violations: string[] = [];
  answered = 0;
  stderr = '';
  readonly name: string;
  readonly #open = new Map<number, { readonly resolve: (answer: Answer) => void; readonly reject: (why: Error) => void }>();
  #next = 1;

  constructor(name: string, args: readonly string[], env: NodeJS.ProcessEnv, onStderr: (line: string) => void) {
    this.name = name;
    this.child = spawn(process.execPath, [saboteurMain, ...args], { stdio: ['pipe', 'pipe', 'pipe'], env });
    this.exited = once(this.child, 'close');
    void this.exited.then(([code, signal]) => this.#ended(`${name} ended with ${String(code ?? signal)}: ${this.stderr.slice(-1000)}`));
    this.child.stdin?.on('error', () => undefined);
    createInterface({ input: this.child.stderr! }).on('line', (line) => {
      this.stderr = `${this.stderr}${line}\n`.slice(-4000);
      onStderr(line);
    });
    createInterface({ input: this.child.stdout! }).on('line', (line) => this.#take(line));
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get unanswered(): number {
    return this.#open.size;
  }

  /** @throws Error that names the request, once it has waited too long */
  async request(method: string, params: object, mostMs = answerMs): Promise<Answer> {
    const id = this.#next++;
    const answer = new Promise<Answer>((resolve, reject) => this.#open.set(id, { resolve, reject }));
    this.#send({ jsonrpc: '2.0', id, method, params });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const why = (): Error =>
        new Error(`${this.name}: ${method} (request ${id}) was not answered within ${mostMs / 1000} s; ${this.stderr}`);
      timer = setTimeout(() => reject(why()), mostMs);
    });
    return await Promise.race([answer, late]).finally(() => clearTimeout(timer));
  }

  notify(method: string, params: object): void {
    this.#send({ jsonrpc: '2.0', method, params });
  }

  /** What the server says of itself, for who looks into a fault; never waits long. */
  async status(): Promise<string> {
    const late = () => ({ result: 'not answered within 5 s' });
    const { result, error } = await this.request('_status', {}, 5000).catch(late as () => Answer);
    return JSON.stringify(result ?? error);
  }

  /** Reads nothing for a while. */
  stall(ms: number): void {
    this.child.stdout?.pause();
    setTimeout(() => this.child.stdout?.resume(), ms).unref();
  }

  /** Reads for a tenth of the time only. */
  readSlowly(ms: number): void {
    const until = performance.now() + ms;
    const step = (): void => {
      this.child.stdout?.resume();
      if (performance.now() > until) return;
      setTimeout(() => this.child.stdout?.pause(), 20).unref();
      setTimeout(step, 200).unref();
    };
    step();
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
    else if (this.watched.has(frame.params?.sessionId)) this.#time(frame.params, now);
  }

  #settle(answer: Answer): void {
    const asked = this.#open.get(answer.id ?? -1);
    if (asked === undefined) this.violations.push(`an answer to ${answer.id}`);
    this.#open.delete(answer.id ?? -1);
    this.answered += 1;
    asked?.resolve(answer);
  }

  #ended(why: string): void {
    for (const { reject } of this.#open.values()) reject(new Error(`a request was open when ${why}`));
  }

  #time({ sessionId, update }: any, now: number): void {
    if (update?.sessionUpdate !== 'agent_message_chunk') return;
    const sent = Number(/^\d+(?:\.\d+)?(?= )/.exec(update.content?.text ?? '')?.[0] ?? Number.NaN);
    if (Number.isFinite(sent)) this.latencies.push({ ms: now - sent, at: now, sessionId });
  }
}
