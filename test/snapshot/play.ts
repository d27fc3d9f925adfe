/**
 * Plays the steps of one scenario against the assembled server over real stdio, and keeps everything that came back.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  watch,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { LogEvent } from '../../src/shared/events.ts';
import { readEvents, logPath } from '../support/invariants.ts';
import { type Frame, isCommandList, ServerProcess } from '../support/server-process.ts';
import type { Scenario, Step } from './scenario.ts';

/** A frame of stdout, and what it belongs to. */
export interface ReceivedFrame {
  readonly frame: Frame;
  /** Name of the session, or `-` for what belongs to none. */
  readonly session: string;
  /** For a response: the request, as `3 session/prompt`; the number counts the client's requests. */
  readonly answers: string | undefined;
  /** True for an update that shows history again. */
  readonly replayed: boolean;
}

export interface SentPrompt {
  readonly session: string;
  readonly response: Frame | undefined;
}

export interface Played {
  readonly received: readonly ReceivedFrame[];
  /** Names of sessions by their ids. */
  readonly sessions: ReadonlyMap<string, string>;
  readonly prompts: readonly SentPrompt[];
  /** Title and what was chosen, in the order asked. */
  readonly permissions: readonly (readonly [string, string])[];
  /** What is wrong with stdout, stderr or the exit, whatever the scenario. */
  readonly faults: readonly string[];
  readonly logs: ReadonlyMap<string, readonly LogEvent[]>;
  /** Files of the workspace at the end, by relative path. */
  readonly files: ReadonlyMap<string, string>;
  readonly seed: ReadonlyMap<string, string>;
  readonly workspace: string;
  readonly stateDir: string;
}

const deadlineMs = 15_000;

export async function play(scenario: Scenario): Promise<Played> {
  const player = new Player(scenario);
  try {
    for (const step of scenario.steps.steps) await player.step(step);
    return await player.finish();
  } finally {
    await player.dispose();
  }
}

class Player {
  readonly #scenario: Scenario;
  readonly #root = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-snapshot-')));
  readonly #workspace = join(this.#root, 'workspace');
  readonly #stateDir = join(this.#root, 'state');
  readonly #seed: ReadonlyMap<string, string>;
  readonly #servers: ServerProcess[] = [];
  readonly #requests = new Map<ServerProcess, Map<unknown, { readonly label: string; readonly session: string }>>();
  /** Ids by name. */
  readonly #ids = new Map<string, string>();
  readonly #prompts: { session: string; server: ServerProcess; id: number }[] = [];
  readonly #permissions: [string, string][] = [];
  readonly #faults: string[] = [];
  readonly #loads: { server: ServerProcess; session: string; from: number; to: number }[] = [];
  #sent = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    mkdirSync(this.#workspace);
    if (scenario.workspace !== undefined) cpSync(scenario.workspace, this.#workspace, { recursive: true });
    this.#seed = filesUnder(this.#workspace);
    // Some tools order files by their time: make it the same for all.
    for (const path of this.#seed.keys()) utimesSync(join(this.#workspace, path), 1764460800, 1764460800);
    this.#start();
  }

  async step(step: Step): Promise<void> {
    const session = step.session ?? 's1';
    switch (step.op) {
      case 'initialize':
        await this.#initialize();
        return;
      case 'newSession': {
        const { result } = await this.#request('session/new', { cwd: this.#path(step.cwd), mcpServers: [] }, session);
        if (result !== undefined) this.#ids.set(session, result.sessionId);
        return;
      }
      case 'prompt':
        this.#prompt(step, session);
        await this.#promptEnd(session);
        return;
      case 'startPrompt':
        this.#prompt(step, session);
        return;
      case 'awaitPrompt':
        await this.#promptEnd(session);
        return;
      case 'promptAndCancelWhen':
        this.#prompt(step, session);
        if (step.update !== undefined) await this.#update(session, step.update);
        if (step.file !== undefined) await this.#file(step.file);
        this.#server.notify('session/cancel', { sessionId: this.#id(session) });
        await this.#promptEnd(session);
        return;
      case 'waitForUpdate':
        await this.#update(session, step.update ?? {});
        return;
      case 'waitForFile':
        await this.#file(step.file ?? '');
        return;
      case 'waitForPermission':
        await this.#server.waitFor(({ method }) => method === 'session/request_permission', 'a permission request');
        return;
      case 'cancel':
        this.#server.notify('session/cancel', { sessionId: this.#id(session) });
        return;
      case 'setMode':
        await this.#request('session/set_mode', { sessionId: this.#id(session), modeId: step.mode }, session);
        return;
      case 'load':
        await this.#load(session, this.#path(step.cwd));
        return;
      case 'close':
        await this.#request('session/close', { sessionId: this.#id(session) }, session);
        return;
      case 'list':
        await this.#request('session/list', {}, '-');
        return;
      case 'restartServer':
        await this.#end();
        this.#start();
        await this.#initialize();
        return;
      default:
        step.op satisfies never;
    }
  }

  /** Leaves the server and gathers what it did. */
  async finish(): Promise<Played> {
    await this.#end();
    const logs = new Map<string, readonly LogEvent[]>();
    for (const [name, id] of this.#ids) logs.set(name, await readEvents(logPath(this.#server, id)));
    return {
      received: this.#servers.flatMap((server) => this.#receivedFrom(server)),
      sessions: new Map([...this.#ids].map(([name, id]) => [id, name])),
      prompts: this.#prompts.map(({ session, server, id }) => ({ session, response: responses(server, id)[0] })),
      permissions: this.#permissions,
      faults: this.#faults,
      logs,
      files: filesUnder(this.#workspace),
      seed: this.#seed,
      workspace: this.#workspace,
      stateDir: this.#stateDir,
    };
  }

  async dispose(): Promise<void> {
    for (const server of this.#servers) await server.dispose();
    rmSync(this.#root, { recursive: true, force: true });
  }

  get #server(): ServerProcess {
    return this.#servers.at(-1)!;
  }

  #start(): void {
    const server = new ServerProcess({
      stateDir: this.#stateDir,
      args: ['--model', `replay:${this.#scenario.modelPath}`, ...(this.#scenario.steps.args ?? [])],
      onRequest: (frame) => this.#answer(frame),
    });
    this.#servers.push(server);
    this.#requests.set(server, new Map());
  }

  async #end(): Promise<void> {
    const server = this.#server;
    const exit = await server.close();
    if (exit.code !== 0) this.#faults.push(`the server ended with ${exit.code ?? exit.signal}`);
    if (server.stderr !== '') this.#faults.push(`stderr: ${server.stderr}`);
    this.#faults.push(...server.violations);
    for (const [id, { label }] of this.#requests.get(server)!) {
      const count = responses(server, id).length;
      if (count !== 1) this.#faults.push(`${label} has ${count} responses`);
    }
  }

  async #initialize(): Promise<void> {
    await this.#request('initialize', { protocolVersion: 1, clientCapabilities: this.#scenario.steps.clientCapabilities ?? {} }, '-');
  }

  #begin(method: string, params: object, session: string): number {
    this.#sent += 1;
    const id = this.#server.start(method, params);
    this.#requests.get(this.#server)!.set(id, { label: `${this.#sent} ${method}`, session });
    return id;
  }

  #request(method: string, params: object, session: string): Promise<Frame> {
    return this.#server.response(this.#begin(method, params, session));
  }

  #prompt(step: Step, session: string): void {
    const prompt = step.prompt ?? [{ type: 'text', text: step.text }];
    const id = this.#begin('session/prompt', { sessionId: this.#id(session), prompt }, session);
    this.#prompts.push({ session, server: this.#server, id });
  }

  async #promptEnd(session: string): Promise<void> {
    const { server, id } = this.#prompts.findLast((prompt) => prompt.session === session)!;
    await server.response(id);
  }

  async #load(session: string, cwd: string): Promise<void> {
    const server = this.#server;
    const from = server.frames.length;
    await this.#request('session/load', { sessionId: this.#id(session), cwd, mcpServers: [] }, session);
    this.#loads.push({ server, session, from, to: server.frames.length });
  }

  async #update(session: string, part: object): Promise<void> {
    const id = this.#id(session);
    const matches = ({ method, params }: Frame): boolean =>
      method === 'session/update' && params.sessionId === id && holds(params.update, part);
    await this.#server.waitFor(matches, `an update with ${JSON.stringify(part)}`);
  }

  async #file(name: string): Promise<void> {
    const path = join(this.#workspace, name);
    const signal = AbortSignal.timeout(deadlineMs);
    await new Promise<void>((resolve, reject) => {
      const watcher = watch(this.#workspace, { signal }, () => {
        if (existsSync(path)) done();
      });
      const done = (): void => {
        watcher.close();
        resolve();
      };
      signal.addEventListener('abort', () => reject(new Error(`${name} was not made within ${deadlineMs} ms`)));
      watcher.on('error', reject);
      // It may have been there before the watch began.
      if (existsSync(path)) done();
    });
  }

  #answer(frame: Frame): unknown {
    const { toolCall, options } = frame.params;
    const rule = this.#scenario.steps.permissions?.find(({ title }) => new RegExp(title).test(toolCall.title));
    const choose = rule?.choose ?? 'cancelled';
    if (rule === undefined) this.#faults.push(`no rule answers the question "${toolCall.title}"`);
    this.#permissions.push([toolCall.title, choose]);
    if (choose === 'none') return undefined;
    if (choose === 'cancelled') return { outcome: { outcome: 'cancelled' } };
    const option = options.find((one: { kind: string }) => one.kind === choose);
    return { outcome: { outcome: 'selected', optionId: option?.optionId } };
  }

  #receivedFrom(server: ServerProcess): ReceivedFrame[] {
    const names = new Map([...this.#ids].map(([name, id]) => [id, name]));
    const asked = new Map<unknown, string>();
    const received = server.frames.map((frame, index) => {
      const request = frame.method === undefined ? this.#requests.get(server)!.get(frame.id) : undefined;
      const session = request?.session ?? names.get(frame.params?.sessionId) ?? asked.get(frame.params?.requestId) ?? '-';
      if (frame.method !== undefined && frame.id !== undefined) asked.set(frame.id, session);
      const replayed =
        frame.method === 'session/update' &&
        this.#loads.some((load) => load.server === server && load.session === session && index >= load.from && index < load.to);
      return { frame, session, answers: request?.label, replayed };
    });
    // The list of commands is the same everywhere, and changes with every command that is added.
    return received.filter(({ frame }) => !isCommandList(frame));
  }

  #path(name: string | undefined): string {
    return name === undefined ? this.#workspace : join(this.#workspace, name);
  }

  #id(session: string): string {
    const id = this.#ids.get(session);
    if (id === undefined) throw new Error(`there is no session ${session} yet`);
    return id;
  }
}

function responses(server: ServerProcess, id: unknown): Frame[] {
  return server.frames.filter((frame) => frame.method === undefined && frame.id === id);
}

/** Whether `value` has every member of `part`, in depth. */
function holds(value: any, part: any): boolean {
  if (typeof part !== 'object' || part === null) return value === part;
  return typeof value === 'object' && value !== null && Object.entries(part).every(([key, inner]) => holds(value[key], inner));
}

function filesUnder(root: string): Map<string, string> {
  const names = readdirSync(root, { recursive: true }).map(String).sort();
  const files = names.map((name) => join(root, name)).filter((path) => statSync(path).isFile());
  return new Map(files.map((path) => [relative(root, path), readFileSync(path, 'utf8')]));
}
