/**
 * Plays one plan: the client's acts and answers, the faults, the end; and collects the history and what is wrong with it.
 */
import { createHash } from 'node:crypto';
import { ServerError } from '../../src/shared/errors.ts';
import { Disk } from './disk.ts';
import { Judge } from './judge.ts';
import { judgeLog } from './judge-log.ts';
import type { Act, Plan } from './plan.ts';
import type { SimulatedPort } from './ports.ts';
import { Random } from './random.ts';
import { watchSettling } from './settling.ts';
import { SimulatedServer } from './simulated-server.ts';
import { surroundWith } from './surroundings.ts';
import { type Pending, Realm, World } from './world.ts';

export interface Outcome {
  readonly complaints: readonly string[];
  readonly history: readonly string[];
  /** Of the history. */
  readonly hash: string;
  readonly events: number;
}

const noId = (session: number): string => `00000000-0000-7000-8000-${String(session).padStart(12, '0')}`;
/** Simulated: longer than every grace and time limit of the server together. */
const longestEndMs = 120_000;

/** @param tellsOrigins a timer that is left says who started it */
export async function simulate(plan: Plan, tellsOrigins: boolean): Promise<Outcome> {
  const run = new SimulatedRun(plan, tellsOrigins);
  try {
    return await run.play();
  } finally {
    surroundWith(undefined);
  }
}

class SimulatedRun {
  readonly #plan: Plan;
  readonly #world: World;
  readonly #disk: Disk;
  readonly #ports = new Set<SimulatedPort>();
  readonly #judge: Judge;
  readonly #history: string[] = [];
  readonly #complaints: string[] = [];
  readonly #client: Random;
  readonly #begun = new Set<string>();
  readonly #aborts = new Map<number, AbortController>();
  readonly #answers = new Map<number, { readonly params: any; readonly answer: (response: unknown) => void }>();
  #server!: SimulatedServer;
  #servers = 0;
  #questions = 0;
  #nextRequest = 10_000;
  #isOver = false;
  /** Sessions with something open when the input ended. */
  readonly #endedEarly = new Set<number>();
  #reopen: 'load' | 'resume' = 'load';
  /** Nothing was lost on the way to the client: no crash of thread or machine, no failing disk. */
  #sawEverything = true;

  constructor(plan: Plan, tellsOrigins: boolean) {
    this.#plan = plan;
    this.#judge = new Judge(plan.settings.profile === 'editor');
    this.#world = new World(plan.seed ^ 0x5f3759df, tellsOrigins);
    this.#client = new Random(plan.seed ^ 0x1234567);
    this.#disk = new Disk(this.#world);
  }

  async play(): Promise<Outcome> {
    const world = this.#world;
    surroundWith({ world, disk: this.#disk, ports: this.#ports });
    watchSettling((what) => this.#complain(what));
    this.#startServer();
    for (const act of this.#plan.acts) world.after(act.at, () => this.#inServer(() => this.#act(act)), { realm: world.main, kind: 'act' });
    const last = this.#plan.acts.at(-1)?.at ?? 0;
    const stopped = await world.run(() => this.#isOver && this.#server.stopped, last + longestEndMs);
    world.realm = world.main;
    if (!stopped) this.#complain('the server did not stop');
    else {
      // What has been posted arrives yet.
      await world.run(() => false, world.now + 200);
      world.realm = world.main;
      this.#judge.atRest();
      this.#lookForRemains();
    }
    await this.#lookAtLogs();
    const complaints = [...this.#complaints, ...this.#judge.complaints, ...world.faults];
    const hash = createHash('sha256').update(this.#history.join('\n')).digest('hex').slice(0, 16);
    return { complaints, history: this.#history, hash, events: world.events };
  }

  #startServer(): void {
    const world = this.#world;
    this.#servers += 1;
    const realm = new Realm(`server ${this.#servers}`);
    realm.onDeath = () => world.after(0, () => this.#afterPowerCut(), { realm: world.main });
    world.realm = realm;
    const parts = {
      world,
      disk: this.#disk,
      ports: this.#ports,
      plan: this.#plan,
      begun: this.#begun,
      number: this.#servers,
      take: (text: string) => this.#take(text),
      ask: (params: unknown, answer: (response: unknown) => void) => this.#ask(params, answer),
      note: (what: string) => this.#note(what),
      complain: (what: string) => this.#complain(what),
    };
    this.#server = new SimulatedServer(parts, realm);
    world.realm = world.main;
  }

  #inServer(run: () => void): void {
    const { realm } = this.#server;
    if (realm.dead) return;
    this.#world.realm = realm;
    run();
  }

  #act(act: Act): void {
    if (this.#isOver) return;
    const { table } = this.#server;
    const id = noId(act.session + 1);
    const session = table.find(id);
    switch (act.kind) {
      case 'new':
        this.#judge.sessionIs(id, act.session);
        this.#request('other', act, async () => void (await table.create('/sim/work', view(this.#plan), {}, { id })));
        break;
      case 'prompt':
        this.#prompt(act, id);
        break;
      case 'steer':
        this.#steer(act, id);
        break;
      case 'cancel':
        this.#note(`> cancel ${act.session}`);
        this.#judge.cancelled(act.session);
        session?.cancel();
        break;
      case 'abort':
        this.#note(`> abort ${act.request}`);
        this.#judge.aborted(act.request);
        this.#aborts.get(act.request)?.abort();
        break;
      case 'mode':
        this.#request('other', act, async () => await table.get(id).setMode(act.mode), act.mode);
        break;
      case 'close':
        this.#judge.closing(act.session);
        this.#request('other', act, async () => await table.close(id));
        break;
      case 'load':
      case 'resume':
        this.#open(act, id);
        break;
      case 'park':
        void session?.park();
        break;
      case 'kill-thread':
        this.#killThread(id, act.calls);
        break;
      case 'full-disk':
        this.#note(`! the disk refuses writes with ${act.code} for ${act.forMs} ms`);
        this.#sawEverything = false;
        this.#disk.faults.writes = act.code;
        this.#world.after(act.forMs, () => (this.#disk.faults.writes = undefined), { realm: this.#world.main });
        break;
      case 'failing-sync':
        this.#note('! the next sync fails');
        this.#sawEverything = false;
        this.#disk.faults.syncs += 1;
        break;
      case 'power-cut':
        this.#reopen = act.reopen;
        this.#server.realm.fuse = act.calls;
        break;
      case 'end-of-input':
        this.#end();
        break;
      default:
    }
  }

  #prompt(act: Extract<Act, { kind: 'prompt' }>, id: string): void {
    const tag = /S\d+P\d+/.exec(act.text)?.[0];
    const stop = new AbortController();
    this.#aborts.set(act.request, stop);
    const options = act.key === undefined ? {} : { key: { id: act.key, payload: act.payload ?? '' } };
    const send = async (): Promise<unknown> => {
      const result = await this.#server.table.get(id).prompt([{ type: 'text', text: act.text }], options, stop.signal);
      if (result.stopReason !== 'cancelled') this.#mustBeDurable(id, tag ?? '?');
      return { stopReason: result.stopReason };
    };
    this.#request('prompt', act, send, act.text.replaceAll('\n', ' | '), {
      request: act.request,
      script: act.text,
      ...(tag === undefined ? {} : { tag }),
    });
  }

  #steer(act: Extract<Act, { kind: 'steer' }>, id: string): void {
    const tag = /S\d+P\d+/.exec(act.text)?.[0];
    const stop = new AbortController();
    this.#aborts.set(act.request, stop);
    const message = {
      content: [{ type: 'text' as const, text: act.text }],
      messageId: `00000000-0000-4000-8000-${String(act.request).padStart(12, '0')}`,
    };
    const send = async (): Promise<unknown> => {
      const steered = await this.#server.table.get(id).steer(message, stop.signal);
      return steered.outcome === 'started'
        ? { outcome: steered.outcome, stopReason: steered.result.stopReason }
        : { outcome: steered.outcome };
    };
    this.#request('steer', act, send, act.text.replaceAll('\n', ' | '), { request: act.request, ...(tag === undefined ? {} : { tag }) });
  }

  /** The response is written as the edge writes it: when the promise settles, behind what was written before. */
  #request(
    kind: 'prompt' | 'load' | 'steer' | 'other',
    act: Act,
    send: () => Promise<unknown>,
    words = '',
    { request = this.#nextRequest++, ...prompt }: { request?: number; tag?: string; script?: string } = {},
  ): void {
    this.#note(`> ${request} ${act.kind} ${act.session} ${words}`);
    this.#judge.requested(request, kind, act.session, prompt);
    const { writer } = this.#server;
    const write = (answer: object): void => writer.write(`${JSON.stringify({ jsonrpc: '2.0', id: request, ...answer })}\n`);
    send().then(
      (result) => write({ result: result ?? {} }),
      (error: unknown) => {
        if (!(error instanceof ServerError)) this.#complain(`the request ${request} failed with no error of ours: ${String(error)}`);
        const { code, message } = error as ServerError;
        write({ error: { code, message } });
      },
    );
  }

  #open(act: Act, id: string): void {
    const { table } = this.#server;
    const wanted = { id, cwd: '/sim/work', view: view(this.#plan) };
    if (act.kind === 'load') this.#request('load', act, () => table.load(wanted, {}).then(() => undefined));
    else this.#request('other', act, () => table.resume(wanted, {}).then(() => undefined));
  }

  #killThread(id: string, calls: number): void {
    const thread = this.#server.pool.threadOf(id);
    if (thread === undefined || thread.realm.dead) return;
    this.#note(`! thread ${thread.threadId} dies after ${calls} calls`);
    this.#sawEverything = false;
    thread.realm.fuse = calls;
  }

  #afterPowerCut(): void {
    this.#note('! the power is cut');
    const { pool } = this.#server;
    for (const thread of pool.threads) {
      thread.realm.onDeath = () => undefined;
      this.#world.kill(thread.realm);
    }
    this.#ports.clear();
    this.#sawEverything = false;
    this.#judge.lost();
    this.#answers.clear();
    // Whoever asked the dead server has nothing left to take back; doing it would run that server's code in the next one's name.
    this.#aborts.clear();
    this.#disk.cutPower(this.#world.random);
    this.#startServer();
    // The client comes back and opens what it had.
    for (const path of [...this.#disk.files.keys()].filter((one) => one.endsWith('.jsonl'))) {
      const session = Number(path.slice(-18, -6)) - 1;
      const act: Act = { at: 0, session, kind: this.#reopen };
      this.#world.after(this.#client.int(1, 60), () => this.#inServer(() => this.#act(act)), { realm: this.#world.main, kind: 'act' });
    }
  }

  #end(): void {
    this.#note('> end of input');
    this.#isOver = true;
    for (const { session } of this.#judge.open.values()) this.#endedEarly.add(session);
    this.#judge.ended();
    this.#server.realm.fuse = undefined;
    void this.#server.stop();
  }

  /** A turn that was answered as ended is on the disk with its end, whatever happens next. */
  #mustBeDurable(id: string, tag: string): void {
    const named = new RegExp(`\\b${tag}\\b`);
    const lines = this.#disk.durableText(`/sim/state/sessions/${id}.jsonl`).split('\n');
    const asked = lines.findIndex((line) => line.startsWith('{"type":"user/message"') && named.test(line));
    const ended = lines.findIndex((line, index) => index > asked && line.startsWith('{"type":"turn/end"'));
    if (asked < 0 || ended < 0) this.#complain(`${tag} was answered and its end is not on the disk`);
  }

  #take(text: string): void {
    for (const line of text.split('\n')) {
      if (line === '') continue;
      const frame = JSON.parse(line);
      this.#note(`< ${shown(frame)}`);
      this.#judge.take(frame);
      if (frame.method === 'session/request_permission') this.#consider(frame.id);
    }
  }

  #ask(params: any, answer: (response: unknown) => void): number {
    this.#questions += 1;
    this.#answers.set(this.#questions, { params, answer });
    return this.#questions;
  }

  /** The client has read a permission request, and thinks about it. */
  #consider(id: string): void {
    const question = this.#answers.get(Number(id.slice(1)));
    const how = this.#client.pick(this.#plan.settings.answers);
    const thinking = how === 'late' ? this.#client.int(800, 4000) : this.#client.int(1, 60);
    if (how === 'never' || question === undefined) return;
    const { realm } = this.#server;
    const reply = (): void => {
      if (realm.dead) return;
      this.#note(`> ${id} ${how}`);
      this.#judge.answered(id);
      question.answer(responseOf(how, question.params));
    };
    this.#world.after(thinking, reply, { realm: this.#world.main, kind: 'client' });
  }

  #lookForRemains(): void {
    const world = this.#world;
    const timers = world
      .pending()
      .filter((one) => one.realm === this.#server.realm && (one.kind === 'timeout' || one.kind === 'interval') && !one.unref);
    if (timers.length > 0) this.#complain(`${timers.length} timers are left of the server${originsOf(timers)}`);
    const locks = [...this.#disk.files.keys()].filter((path) => path.endsWith('.lock') || path.endsWith('.claim') || path.endsWith('.tmp'));
    if (locks.length > 0 && this.#sawEverything) this.#complain(`locks are left: ${locks.join(', ')}`);
    const ports = [...this.#ports].filter((port) => !port.realm.dead);
    if (ports.length > 0) this.#complain(`${ports.length} ports are left open`);
    if (this.#server.broker.running > 0) this.#complain(`${this.#server.broker.running} commands are left running`);
    if (this.#server.openQuestions > 0) this.#complain(`${this.#server.openQuestions} questions are left open`);
  }

  async #lookAtLogs(): Promise<void> {
    this.#disk.faults.writes = undefined;
    this.#disk.faults.syncs = 0;
    const seen = this.#sawEverything ? this.#judge.seen : undefined;
    for (const path of Array.from(this.#disk.files.keys())) {
      if (!path.endsWith('.jsonl') || this.#disk.unkept.has(path)) continue;
      let found: readonly string[] | undefined;
      const session = Number(path.slice(-18, -6)) - 1;
      // Where a turn's end and its answer may part: the client or the session has gone, or something was lost.
      const isExact = this.#sawEverything && !this.#endedEarly.has(session) && !this.#judge.closed.has(session);
      const { answers } = this.#judge;
      void judgeLog(path, `server-${this.#servers}`, { session, seen, answers, isExact }).then((complaints) => (found = complaints));
      await this.#world.run(() => found !== undefined);
      for (const one of found ?? [`${path} was not read to its end`]) this.#complain(`log of session ${session}: ${one}`);
    }
  }

  #note(what: string): void {
    this.#history.push(`${this.#world.now.toFixed(2).padStart(9)}  ${what}`);
  }

  #complain(what: string): void {
    this.#complaints.push(what);
    this.#note(`!! ${what}`);
  }
}

function originsOf(timers: readonly Pending[]): string {
  const origins = timers.flatMap(({ origin }) => origin ?? []);
  return origins.length === 0 ? '' : `, started by ${origins.join(', ')}`;
}

function view({ settings }: Plan): any {
  return { profile: settings.profile, client: { terminalOutput: false } };
}

function responseOf(how: Plan['settings']['answers'][number], { options }: any): unknown {
  const choice = (kind: string): unknown => ({
    outcome: { outcome: 'selected', optionId: options.find((one: any) => one.kind === kind)?.optionId },
  });
  if (how === 'allow' || how === 'late') return choice('allow_once');
  if (how === 'reject') return choice('reject_once');
  if (how === 'cancelled') return { outcome: { outcome: 'cancelled' } };
  return { outcome: { outcome: 'selected', optionId: 'nobody offered this' } };
}

function shown(frame: any): string {
  if (frame.method === 'session/update') {
    const { sessionId, update } = frame.params;
    const { sessionUpdate, toolCallId, status, title, content } = update;
    const said = content?.text === undefined ? '' : JSON.stringify(content.text);
    return [`update ${Number(sessionId.slice(-12)) - 1}`, sessionUpdate, toolCallId, status, title, said]
      .filter((part) => part !== undefined && part !== '')
      .join(' ');
  }
  if (frame.method !== undefined) return `${frame.method} ${frame.id ?? frame.params.requestId} ${frame.params.toolCall?.toolCallId ?? ''}`;
  return `${frame.id} ${JSON.stringify(frame.result ?? frame.error)}`;
}
