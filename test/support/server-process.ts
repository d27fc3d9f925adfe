/**
 * A raw client of the assembled server: starts `dist/main/cli.js` as an editor would, checks every byte of its stdout, and
 * keeps each frame. It does not use the SDK, so that it can also say what no well-behaved client would.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { validateAgentFrame } from './acp-schema.ts';

export const projectRoot = fileURLToPath(new URL('../../../', import.meta.url));
/** One for all tests: most of a start is compiling. */
export const codeCache = join(projectRoot, 'build', 'code-cache');
export const cliPath = join(projectRoot, 'dist', 'main', 'cli.js');

export interface Frame {
  readonly jsonrpc?: string;
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: any;
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: any };
}

export interface ServerOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stateDir?: string;
  /** The command instead of our own server: a packed install, for example. */
  readonly command?: readonly string[];
  /** Answers requests of the agent; `undefined` leaves them unanswered. */
  readonly onRequest?: (frame: Frame) => unknown;
}

export function isCommandList({ params }: Frame): boolean {
  return params?.update?.sessionUpdate === 'available_commands_update';
}

type Waiter = { readonly matches: (frame: Frame) => boolean; readonly resolve: (frame: Frame) => void };

const deadlineMs = 20_000;

export class ServerProcess {
  readonly child: ChildProcess;
  readonly stateDir: string;
  readonly frames: Frame[] = [];
  /** Lines of stdout that were not one valid frame, with the reason. */
  readonly violations: string[] = [];
  stderr = '';
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly #waiters = new Set<Waiter>();
  readonly #methods = new Map<string, string>();
  readonly #onRequest: (frame: Frame) => unknown;
  readonly #ownsStateDir: boolean;
  #rest = Buffer.alloc(0);
  #nextId = 1;

  constructor(options: ServerOptions = {}) {
    this.#ownsStateDir = options.stateDir === undefined;
    this.stateDir = options.stateDir ?? mkdtempSync(join(tmpdir(), 'dsh-acp-test-'));
    this.#onRequest = options.onRequest ?? allowOnce;
    const [command, ...before] = options.command ?? [process.execPath, cliPath];
    this.child = spawn(command!, [...before, '--state-dir', this.stateDir, ...(options.args ?? ['--model', 'scripted'])], {
      stdio: ['pipe', 'pipe', 'pipe'],
      // What commands do must not hang on the machine; a test about the sandbox turns it on.
      env: { PATH: process.env['PATH'], HOME: this.stateDir, DSH_ACP_SANDBOX: 'off', DSH_ACP_CODE_CACHE: codeCache, ...options.env },
    });
    this.child.stdin!.on('error', () => undefined);
    this.child.stdout!.on('data', (chunk: Buffer) => this.#read(chunk));
    this.child.stderr!.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    this.exited = once(this.child, 'close').then(([code, signal]) => ({ code, signal }));
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Writes bytes as they are. */
  sendRaw(bytes: string | Buffer): void {
    this.child.stdin!.write(bytes);
  }

  send(frame: object): void {
    this.sendRaw(`${JSON.stringify(frame)}\n`);
  }

  notify(method: string, params: object): void {
    this.send({ jsonrpc: '2.0', method, params });
  }

  /** Sends a request; returns its id at once. */
  start(method: string, params: object): number {
    const id = this.#nextId++;
    this.#methods.set(JSON.stringify(id), method);
    this.send({ jsonrpc: '2.0', id, method, params });
    return id;
  }

  /** Sends a request and waits for its response, whichever it is. */
  request(method: string, params: object): Promise<Frame> {
    return this.response(this.start(method, params));
  }

  response(id: string | number | null): Promise<Frame> {
    return this.waitFor((frame) => frame.method === undefined && frame.id === id, `the response to ${String(id)}`);
  }

  /** The first frame, already here or yet to come, that matches. */
  waitFor(matches: (frame: Frame) => boolean, what = 'a frame'): Promise<Frame> {
    const known = this.frames.find(matches);
    return known === undefined ? this.next(matches, what) : Promise.resolve(known);
  }

  /** The next frame to come that matches. */
  next(matches: (frame: Frame) => boolean, what = 'a frame'): Promise<Frame> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        matches,
        resolve: (frame) => {
          clearTimeout(timer);
          resolve(frame);
        },
      };
      const timer = setTimeout(() => {
        this.#waiters.delete(waiter);
        reject(new Error(`${what} did not come within ${deadlineMs} ms; stderr: ${this.stderr.slice(-2000)}`));
      }, deadlineMs);
      this.#waiters.add(waiter);
    });
  }

  async initialize(clientCapabilities: object = {}): Promise<Frame> {
    return await this.request('initialize', { protocolVersion: 1, clientCapabilities });
  }

  async newSession(cwd: string): Promise<string> {
    const response = await this.request('session/new', { cwd, mcpServers: [] });
    if (response.error !== undefined) throw new Error(`session/new: ${JSON.stringify(response.error)}`);
    return response.result.sessionId;
  }

  startPrompt(sessionId: string, text: string): number {
    return this.start('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  }

  async prompt(sessionId: string, text: string): Promise<Frame> {
    return await this.response(this.startPrompt(sessionId, text));
  }

  /** The `update` objects of a session so far, in order; lists of commands, which come in the background, are left out. */
  updates(sessionId: string): any[] {
    return this.frames
      .filter((frame) => frame.method === 'session/update' && frame.params.sessionId === sessionId && !isCommandList(frame))
      .map((frame) => frame.params.update);
  }

  /** The streamed answer text of a session so far. */
  text(sessionId: string): string {
    return this.updates(sessionId)
      .filter((update) => update.sessionUpdate === 'agent_message_chunk')
      .map((update) => update.content.text)
      .join('');
  }

  /** Ends stdin as a leaving client does and waits for the exit. */
  async close(): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }> {
    this.child.stdin!.end();
    const killer = setTimeout(() => this.child.kill('SIGKILL'), deadlineMs);
    const exit = await this.exited;
    clearTimeout(killer);
    return exit;
  }

  /** For `t.teardown`: ends the server whatever state it is in and removes its state directory. */
  async dispose(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill('SIGKILL');
      await this.exited;
    }
    if (this.#ownsStateDir) rmSync(this.stateDir, { recursive: true, force: true });
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (let end = this.#rest.indexOf(10); end !== -1; end = this.#rest.indexOf(10)) {
      const line = this.#rest.subarray(0, end).toString('utf8');
      this.#rest = this.#rest.subarray(end + 1);
      this.#take(line);
    }
  }

  #take(line: string): void {
    let frame: Frame;
    try {
      frame = JSON.parse(line);
    } catch {
      this.violations.push(`not JSON: ${line.slice(0, 200)}`);
      return;
    }
    const method = this.#methods.get(JSON.stringify(frame.id));
    for (const problem of validateAgentFrame(frame, method === undefined ? {} : { method })) this.violations.push(problem);
    this.frames.push(frame);
    if (frame.method !== undefined && frame.id !== undefined) this.#answer(frame);
    for (const waiter of this.#waiters) {
      if (!waiter.matches(frame)) continue;
      this.#waiters.delete(waiter);
      waiter.resolve(frame);
    }
  }

  #answer(frame: Frame): void {
    const result = this.#onRequest(frame);
    if (result !== undefined) this.send({ jsonrpc: '2.0', id: frame.id, result });
  }
}

/** Answers a permission request with the option that allows once. */
export function allowOnce(frame: Frame): unknown {
  const option = frame.params?.options?.find((one: { kind: string }) => one.kind === 'allow_once');
  return { outcome: { outcome: 'selected', optionId: option?.optionId } };
}
