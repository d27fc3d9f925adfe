/**
 * A server under a fault test: it remembers what was asked of it and what each session has shown, has secrets that must come out
 * nowhere, and is watched for what it leaves open.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { canaryEnvironment, CanaryWatch, holdsCanary } from './canaries.ts';
import { ChildWatch, footprint, type Footprint } from './footprint.ts';
import type { ClientView } from './log-against-client.ts';
import { saboteurMain } from './saboteur-program.ts';
import { type Frame, type ServerOptions, ServerProcess } from './server-process.ts';

export interface FaultServerOptions extends ServerOptions {
  /** `false` runs the built server; else its threads obey the saboteur. */
  readonly saboteur?: boolean;
  /** What the client says in `initialize`. */
  readonly capabilities?: object;
}

interface Asked {
  readonly id: number;
  readonly method: string;
  readonly params: any;
  /** Frames that had come by then. */
  readonly at: number;
  /** Monotonic milliseconds. */
  readonly time: number;
}

/** What the client saw of a session, and when it last worked with it. */
export interface SeenSession extends Omit<ClientView, 'mayLack'> {
  readonly lastUsed: number;
}

const opening = new Set(['session/new', 'session/load', 'session/resume', 'session/fork']);
/** How long closed sessions may take to give everything back. */
const settledWithinMs = 5000;
/** While nothing tells of a child, it is looked for them this often. */
const lookEveryMs = 400;
/** From the word that a command runs to its start. */
const startedAfterMs = 15;

/** A server that remembers what was asked of it. */
export class FaultServer extends ServerProcess {
  readonly requests: Asked[] = [];
  /** Set by a test that kills it: answers may be missing, a turn may be open, a lock may be left. */
  killed = false;
  /** Set by a test that leaves a session behind whose thread was lost in a turn: the turn is closed by the next load. */
  leavesOpenTurn = false;
  /** Set by a test that takes the client's reading end away. */
  unread = false;
  expectedExit = 0;
  readonly #children: ChildWatch;
  readonly #stdout = new CanaryWatch();
  readonly #timer: NodeJS.Timeout;
  #own = 0;
  /** Before the first session. */
  #base: Footprint | undefined;

  constructor({ env, ...options }: FaultServerOptions = {}) {
    super({
      ...(options.saboteur === false ? {} : { command: [process.execPath, saboteurMain] }),
      ...options,
      env: { ...canaryEnvironment, ...privateTmp(options.stateDir), ...env },
    });
    this.#children = new ChildWatch(this.pid, options.args?.includes('--supervise') === true);
    this.#timer = setInterval(() => this.#children.look(), lookEveryMs).unref();
    void this.exited.then(() => clearInterval(this.#timer));
    this.child.stdout!.on('data', (chunk: Buffer) => {
      this.#stdout.take(chunk);
      if (chunk.includes('"in_progress"')) setTimeout(() => this.#children.look(), startedAfterMs).unref();
    });
  }

  override start(method: string, params: object): number {
    if (opening.has(method)) this.#base ??= footprint(this.pid);
    const at = this.frames.length;
    const id = super.start(method, params);
    this.requests.push({ id, method, params, at, time: performance.now() });
    return id;
  }

  /** SIGKILL, and the wait for the end. */
  async crash(): Promise<void> {
    this.killed = true;
    this.child.kill('SIGKILL');
    await this.exited;
  }

  responses(id: number): Frame[] {
    return this.frames.filter((frame) => frame.method === undefined && frame.id === id);
  }

  /** Fulfils at the session's next update of this kind. */
  async nextUpdate(sessionId: string, kind = 'agent_message_chunk'): Promise<any> {
    const frame = await this.next(
      ({ method, params }) => method === 'session/update' && params.sessionId === sessionId && params.update.sessionUpdate === kind,
      `a ${kind} of ${sessionId}`,
    );
    return frame.params.update;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Where one of the secrets is in what it said, and in the environment of a child. */
  get leaks(): string[] {
    const children = [...this.#children.environments].filter(([, environment]) => holdsCanary(environment)).map(([pid]) => `child ${pid}`);
    return [...(this.#stdout.found ? ['stdout'] : []), ...(holdsCanary(this.stderr) ? ['stderr'] : []), ...children];
  }

  /** What it showed of each session from its beginning; nothing of one of which the client saw no beginning. */
  views(): Map<string, SeenSession> {
    const beginnings = this.#beginnings();
    const greeting = this.requests.find(({ method }) => method === 'initialize');
    const said = greeting === undefined ? undefined : this.#answers().get(greeting.id)?.result;
    if (said === undefined) return new Map();
    const { profile } = said.agentCapabilities._meta['dsh-acp'];
    const traits = { terminalOutput: greeting?.params.clientCapabilities?._meta?.terminal_output === true };
    const updates = new Map<string, unknown[]>([...beginnings.keys()].map((id) => [id, []]));
    for (const [at, { method, params }] of this.frames.entries()) {
      if (method === 'session/update' && at >= (beginnings.get(params.sessionId) ?? Number.POSITIVE_INFINITY))
        updates.get(params.sessionId)?.push(params.update);
    }
    return new Map([...updates].map(([id, of]) => [id, { updates: of, profile, traits, lastUsed: this.#lastUsed(id) }]));
  }

  /**
   * Closes every session, as a client does that lives on, and waits until what they held is given back.
   *
   * @returns what is still open then
   */
  async settle(): Promise<string[]> {
    this.#children.look();
    await Promise.all(this.#openSessions().map((sessionId) => this.#ask('session/close', { sessionId })));
    const { result } = await this.#ask('_status', {});
    for (const end = performance.now() + settledWithinMs; ; await delay(10)) {
      const left = this.#left(result.threads);
      if (left.length === 0 || performance.now() > end) return left;
    }
  }

  /** With an id that no test has used for frames of its own. */
  async #ask(method: string, params: object): Promise<Frame> {
    this.#own += 1;
    const id = `settle-${this.#own}`;
    this.send({ jsonrpc: '2.0', id, method, params });
    return await this.response(id);
  }

  /** @param kept threads that the server keeps for the sessions to come */
  #left(kept: number): string[] {
    const [base, now] = [this.#base, footprint(this.pid)];
    if (base === undefined || now === undefined) return [];
    const more = (what: 'pipes' | 'sockets' | 'watches' | 'threads', room = 0): string[] =>
      now[what] > base[what] + room ? [`${now[what] - base[what]} more ${what} than before the first session`] : [];
    return [
      ...now.files.filter((path) => path.startsWith(join(this.stateDir, '..'))),
      ...more('pipes'),
      ...more('sockets'),
      ...more('watches'),
      ...more('threads', fileThreads),
      ...(now.loops > kept + ownLoops ? [`${now.loops} event loops for ${kept} session threads`] : []),
    ];
  }

  #openSessions(): string[] {
    const open = new Set<string>();
    const answers = this.#answers();
    for (const asked of this.requests) {
      const answer = answers.get(asked.id);
      if (answer?.result === undefined) continue;
      const sessionId: string = answer.result.sessionId ?? asked.params.sessionId;
      if (opening.has(asked.method)) open.add(sessionId);
      else if (asked.method === 'session/close' || asked.method === 'session/delete') open.delete(sessionId);
    }
    return [...open];
  }

  #lastUsed(sessionId: string): number {
    const answers = this.#answers();
    const used = this.requests.findLast(({ id, params }) => params?.sessionId === sessionId && answers.get(id)?.result !== undefined);
    return used?.time ?? 0;
  }

  /** Where each session's updates begin among the frames. A load shows all of it again, so it begins there. */
  #beginnings(): Map<string, number> {
    const beginnings = new Map<string, number>();
    const asked = new Map<unknown, Asked>(this.requests.map((one) => [one.id, one]));
    for (const [at, { id, method, result }] of this.frames.entries()) {
      if (method !== undefined || result === undefined) continue;
      const request = asked.get(id);
      if (request?.method === 'session/load') beginnings.set(request.params.sessionId, request.at);
      // Also of requests that a test wrote as bytes. What a fork shows is no news of it.
      else if (typeof result.sessionId === 'string' && request?.method !== 'session/fork') beginnings.set(result.sessionId, at);
    }
    return beginnings;
  }

  /** The first answer to each request. */
  #answers(): Map<unknown, Frame> {
    return new Map(
      this.frames
        .filter(({ method }) => method === undefined)
        .map((frame) => [frame.id, frame] as const)
        .toReversed(),
    );
  }
}

/** Those that work on files start when there is a file to work on. */
const fileThreads = 4;
/** Of the main thread, the broker, the runtime's own timers; and one that a spare thread may be about to have. */
const ownLoops = 5;

/** A temporary directory of its own, beside the state: what is left in it is looked through. */
function privateTmp(stateDir: string | undefined): Record<string, string> {
  if (stateDir === undefined) return {};
  const path = join(stateDir, '..', 'tmp');
  mkdirSync(path, { recursive: true });
  return { TMPDIR: path };
}
