/**
 * An ACP agent under load, as a child process: our server, or the floor agent. The client side is as lean as it can be,
 * since it shares the cores with the agent: lines are cut as bytes, and updates are read by searching, not by parsing.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';

export interface SessionCount {
  firstTokenAt: number;
  tokens: number;
  text: string;
}

type Settle = (frame: { result?: any; error?: any }) => void;

const chunkMark = Buffer.from('"agent_message_chunk"');
const sessionMark = '"sessionId":"';
const textMark = '"text":"';

export class AgentProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  readonly sessions = new Map<string, SessionCount>();
  updates = 0;
  #pending = new Map<number, Settle>();
  #rest: Buffer = Buffer.alloc(0);
  #nextId = 1;

  constructor(command: readonly string[], env: Readonly<Record<string, string>>) {
    const [program, ...args] = command;
    this.child = spawn(program!, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: process.env['PATH'], ...env } });
    this.child.stdout!.on('data', (chunk: Buffer) => this.#read(chunk));
    this.exited = once(this.child, 'exit');
  }

  request(method: string, params: object): Promise<any> {
    const id = this.#nextId++;
    const answer = new Promise<any>((resolve, reject) => {
      this.#pending.set(id, (frame) =>
        frame.error === undefined ? resolve(frame.result) : reject(new Error(JSON.stringify(frame.error))),
      );
    });
    this.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return answer;
  }

  notify(method: string, params: object): void {
    this.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`);
  }

  /** Milliseconds of CPU of the whole process so far (clock ticks of 10 ms). */
  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  /** Milliseconds of CPU of the main thread so far, in nanosecond steps. */
  mainCpuMs(): number {
    return Number(readFileSync(`/proc/${this.child.pid}/task/${this.child.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  }

  /** Proportional memory in MB. */
  pssMb(): number {
    const line = readFileSync(`/proc/${this.child.pid}/smaps_rollup`, 'utf8').match(/^Pss:\s+(\d+)/m);
    return Number(line?.[1] ?? 0) / 1024;
  }

  threads(): number {
    return readdirSync(`/proc/${this.child.pid}/task`).length;
  }

  /** Ends stdin; milliseconds until the exit. */
  async close(): Promise<number> {
    const start = performance.now();
    this.child.stdin!.end();
    await this.exited;
    return performance.now() - start;
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
      this.#take(bytes.subarray(start, end));
      start = end + 1;
    }
    this.#rest = bytes.subarray(start);
  }

  #take(line: Buffer): void {
    if (line.includes(chunkMark)) {
      this.#countToken(line.toString('latin1'));
      return;
    }
    const frame = JSON.parse(line.toString('utf8'));
    if (frame.method === 'session/update') this.updates += 1;
    if (typeof frame.id !== 'number' || frame.method !== undefined) return;
    this.#pending.get(frame.id)?.(frame);
    this.#pending.delete(frame.id);
  }

  #countToken(line: string): void {
    this.updates += 1;
    const at = line.indexOf(sessionMark) + sessionMark.length;
    const sessionId = line.slice(at, line.indexOf('"', at));
    let count = this.sessions.get(sessionId);
    if (count === undefined) {
      count = { firstTokenAt: performance.now(), tokens: 0, text: '' };
      this.sessions.set(sessionId, count);
    }
    count.tokens += 1;
    const from = line.indexOf(textMark) + textMark.length;
    count.text += line.slice(from, line.indexOf('"', from));
  }
}
