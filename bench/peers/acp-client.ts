/**
 * The client of the comparison: one agent process of anyone's, over ACP on stdio. As lean as the agents deserve that are quick: updates
 * are read by searching, not by parsing. Every request has a deadline, since some agents never answer.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { markVariable, type ProcessTree } from './process-tree.ts';

export interface AgentCommand {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The text of a session since its last prompt. */
export interface Heard {
  /** `performance.now()` of the first piece; NaN before it. */
  firstAt: number;
  updates: number;
  text: string;
}

interface Waiting {
  readonly resolve: (result: any) => void;
  readonly reject: (error: Error) => void;
}

const chunkMark = Buffer.from('"agent_message_chunk"');
const sessionMark = '"sessionId":"';
const textMark = '"text":"';
const requestMs = 60_000;
/** A round of two hundred sessions can take an agent half a minute; this is for one that hangs. */
const promptMs = 180_000;

export class AcpClient {
  readonly child: ChildProcess;
  readonly exited: Promise<void>;
  readonly heard = new Map<string, Heard>();
  readonly #pending = new Map<number, Waiting>();
  readonly #cwd: string;
  readonly #stderrPath: string;
  #rest: Buffer = Buffer.alloc(0);
  #nextId = 1;

  /** `scratch` is an empty folder: the agent's home, its working directory, and what it says on stderr are in there. */
  constructor({ command, env }: AgentCommand, scratch: { readonly home: string; readonly work: string }, tree: ProcessTree) {
    const [program, ...args] = command;
    this.#cwd = scratch.work;
    this.#stderrPath = join(scratch.home, `stderr-${Math.random().toString(36).slice(2)}.txt`);
    const stderr = openSync(this.#stderrPath, 'w');
    this.child = spawn(program!, args, {
      cwd: scratch.work,
      stdio: ['pipe', 'pipe', stderr],
      detached: true,
      env: { PATH: process.env['PATH'], HOME: scratch.home, TMPDIR: scratch.home, LANG: 'C.UTF-8', [markVariable]: tree.mark, ...env },
    });
    closeSync(stderr);
    if (this.child.pid !== undefined) tree.add(this.child.pid);
    this.child.stdin!.on('error', () => undefined); // It may end before it has read everything.
    this.child.stdout!.on('data', (chunk: Buffer) => this.#read(chunk));
    this.exited = new Promise((resolve) => {
      const end = (reason: string): void => {
        for (const { reject } of this.#pending.values()) reject(new Error(reason));
        this.#pending.clear();
        resolve();
      };
      this.child.once('error', (error) => end(error.message));
      this.child.once('exit', (code, signal) => end(`it ended with ${code ?? signal} before it answered`));
    });
  }

  /** Rejects with the error that the agent answers, when it ends first, or after a minute. */
  async request(method: string, params: object, limitMs = requestMs): Promise<any> {
    const id = this.#nextId++;
    const answer = new Promise<any>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.#send({ id, method, params });
    const timer = setTimeout(() => {
      const waiting = this.#pending.get(id);
      this.#pending.delete(id);
      waiting?.reject(new Error(`${method} was not answered within ${limitMs / 1000} s`));
    }, limitMs);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
    }
  }

  notify(method: string, params: object): void {
    this.#send({ method, params });
  }

  async newSession(): Promise<string> {
    const { sessionId } = await this.request('session/new', { cwd: this.#cwd, mcpServers: [] });
    return sessionId as string;
  }

  /** Fulfils with the stop reason. */
  async prompt(sessionId: string, text: string): Promise<string> {
    this.heard.set(sessionId, { firstAt: Number.NaN, updates: 0, text: '' });
    const { stopReason } = await this.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }, promptMs);
    return stopReason as string;
  }

  /** The end of what it has said on stderr. */
  stderrTail(): string {
    return readFileSync(this.#stderrPath, 'utf8').trim().slice(-600);
  }

  /** Ends stdin and waits for the exit for `limitMs`; false when it has not come. */
  async leave(limitMs: number): Promise<boolean> {
    this.child.stdin!.end();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), limitMs);
    });
    const inTime = await Promise.race([this.exited.then(() => true), late]);
    clearTimeout(timer);
    return inTime;
  }

  #send(frame: object): void {
    if (this.child.stdin!.writable) this.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
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
      this.#hear(line.toString('latin1'));
      return;
    }
    let frame: any;
    try {
      frame = JSON.parse(line.toString('utf8'));
    } catch {
      return; // Some agents print to stdout; a text that is lost by it is seen to be wrong.
    }
    if (frame.method !== undefined) {
      if (frame.id !== undefined) this.#send({ id: frame.id, ...answerTo(frame) });
      return;
    }
    const waiting = this.#pending.get(frame.id);
    this.#pending.delete(frame.id);
    if (frame.error === undefined) waiting?.resolve(frame.result);
    else waiting?.reject(new Error(JSON.stringify(frame.error).slice(0, 500)));
  }

  #hear(line: string): void {
    const idAt = line.indexOf(sessionMark) + sessionMark.length;
    const heard = this.heard.get(line.slice(idAt, line.indexOf('"', idAt)));
    if (heard === undefined) return; // Said of itself, before the first prompt.
    const from = line.indexOf(textMark) + textMark.length;
    if (heard.updates === 0) heard.firstAt = performance.now();
    heard.updates += 1;
    heard.text += line.slice(from, line.indexOf('"', from));
  }
}

/** Permissions are given; nothing else is offered. */
function answerTo(frame: any): object {
  if (frame.method !== 'session/request_permission') return { error: { code: -32601, message: 'Method not found' } };
  const option = frame.params?.options?.find((one: { kind: string }) => one.kind === 'allow_once');
  return { result: { outcome: { outcome: 'selected', optionId: option?.optionId } } };
}
