/**
 * An ACP agent under load, as a child process: our server, or the floor agent. The client side is as lean as it can be,
 * since it shares the cores with the agent: lines are cut as bytes, and updates are read by searching, not by parsing.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { monotonicMs } from '../../test/support/monotonic.ts';
import { ThreadCpu } from './thread-cpu.ts';

export interface SessionCount {
  firstTokenAt: number;
  tokens: number;
  text: string;
}

interface Waiting {
  readonly resolve: (result: any) => void;
  readonly reject: (error: Error) => void;
}

/** Called for each text update. `at` is the time its bytes came in, by {@link monotonicMs}. */
export type OnText = (sessionId: string, text: string, at: number) => void;

const chunkMark = Buffer.from('"agent_message_chunk"');
const sessionMark = '"sessionId":"';
const textMark = '"text":"';

export class AgentProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  readonly sessions = new Map<string, SessionCount>();
  readonly cpu: ThreadCpu;
  updates = 0;
  /** Bytes of all that it has said. */
  bytes = 0;
  /** Tool calls that were shown to have failed. */
  failedCalls = 0;
  onText: OnText | undefined;
  #pending = new Map<number, Waiting>();
  #rest: Buffer = Buffer.alloc(0);
  #nextId = 1;

  constructor(command: readonly string[], env: Readonly<Record<string, string>>) {
    const [program, ...args] = command;
    this.child = spawn(program!, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: process.env['PATH'], ...env } });
    this.child.stdout!.on('data', (chunk: Buffer) => this.#read(chunk));
    this.exited = once(this.child, 'exit').then(() => this.#rejectPending());
    this.cpu = new ThreadCpu(this.child.pid!);
  }

  /** Rejects with the error that the agent answers, or when it ends first. */
  request(method: string, params: object): Promise<any> {
    const id = this.#nextId++;
    const answer = new Promise<any>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return answer;
  }

  notify(method: string, params: object): void {
    this.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`);
  }

  async newSession(): Promise<string> {
    const { sessionId } = await this.request('session/new', { cwd: process.cwd(), mcpServers: [] });
    return sessionId as string;
  }

  /** `together` of them at a time. */
  async newSessions(count: number, together = 1): Promise<string[]> {
    const ids: string[] = [];
    while (ids.length < count) {
      const batch = Array.from({ length: Math.min(together, count - ids.length) }, () => this.newSession());
      ids.push(...(await Promise.all(batch)));
    }
    return ids;
  }

  /** Sends a plan for the local model server as a prompt; fulfils with the stop reason. */
  async prompt(sessionId: string, plan: object, before = ''): Promise<string> {
    const prompt = [{ type: 'text', text: `${before}${JSON.stringify(plan)}` }];
    const { stopReason } = await this.request('session/prompt', { sessionId, prompt });
    return stopReason as string;
  }

  /** Proportional memory in MB. */
  pssMb(): number {
    const line = readFileSync(`/proc/${this.child.pid}/smaps_rollup`, 'utf8').match(/^Pss:\s+(\d+)/m);
    return Number(line?.[1] ?? Number.NaN) / 1024;
  }

  /** Of `/proc/<pid>/status` in MB: resident memory now, and at most so far. */
  rssMb(which: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
    const line = readFileSync(`/proc/${this.child.pid}/status`, 'utf8').match(new RegExp(`^${which}:\\s+(\\d+)`, 'm'));
    return Number(line?.[1] ?? Number.NaN) / 1024;
  }

  threads(): number {
    return readdirSync(`/proc/${this.child.pid}/task`).length;
  }

  /** Stops reading: the agent's output fills up. */
  pause(): void {
    this.child.stdout!.pause();
  }

  resume(): void {
    this.child.stdout!.resume();
  }

  /** Ends stdin; milliseconds until the exit. Rejects when the agent does not end with 0. */
  async close(): Promise<number> {
    const start = performance.now();
    this.child.stdin!.end();
    await this.exited;
    const ms = performance.now() - start;
    if (this.child.exitCode !== 0) throw new Error(`the agent ended with ${this.child.exitCode ?? this.child.signalCode}`);
    return ms;
  }

  #rejectPending(): void {
    for (const { reject } of this.#pending.values()) reject(new Error('the agent ended before it answered'));
    this.#pending.clear();
  }

  #read(chunk: Buffer): void {
    const at = monotonicMs();
    this.bytes += chunk.length;
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
      this.#take(bytes.subarray(start, end), at);
      start = end + 1;
    }
    this.#rest = bytes.subarray(start);
  }

  #take(line: Buffer, at: number): void {
    if (line.includes(chunkMark)) {
      this.#countToken(line.toString('latin1'), at);
      return;
    }
    const frame = JSON.parse(line.toString('utf8'));
    if (frame.method === 'session/update') {
      this.updates += 1;
      if (frame.params.update.status === 'failed') this.failedCalls += 1;
    }
    if (typeof frame.id !== 'number' || frame.method !== undefined) return;
    const waiting = this.#pending.get(frame.id);
    this.#pending.delete(frame.id);
    if (frame.error === undefined) waiting?.resolve(frame.result);
    else waiting?.reject(new Error(JSON.stringify(frame.error)));
  }

  #countToken(line: string, at: number): void {
    this.updates += 1;
    const idAt = line.indexOf(sessionMark) + sessionMark.length;
    const sessionId = line.slice(idAt, line.indexOf('"', idAt));
    let count = this.sessions.get(sessionId);
    if (count === undefined) {
      count = { firstTokenAt: performance.now(), tokens: 0, text: '' };
      this.sessions.set(sessionId, count);
    }
    count.tokens += 1;
    const from = line.indexOf(textMark) + textMark.length;
    const text = line.slice(from, line.indexOf('"', from));
    count.text += text;
    this.onText?.(sessionId, text, at);
  }
}
