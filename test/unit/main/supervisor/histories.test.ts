/**
 * What a supervisor promises, over random histories: a server that is played dies between any two of its steps, in the middle of a line
 * and in the middle of a start, while a client asks, cancels, closes and answers. Whatever happens, each request is answered once, no
 * prompt begins twice, no session is lost or nobody's, and nothing is left open at the client.
 */
import * as fc from 'fast-check';
import t from 'tap';
import type { OutputScanner } from '../../../../src/main/supervisor/output-scanner.ts';
import { Supervisor } from '../../../../src/main/supervisor/supervisor.ts';
import { PlayedServer, type Store } from './played-server.ts';

/** What happens, and a number that chooses among what it could happen to. */
type Step = readonly [kind: (typeof kinds)[number], pick: number];

const kinds = [
  'new',
  'prompt',
  'prompt',
  'prompt',
  'keyed',
  'command',
  'cancel',
  'cancel-request',
  'close',
  'load',
  'delete',
  'list',
  'answer',
  'read',
  'read',
  'read',
  'work',
  'work',
  'work',
  'write',
  'write',
  'write',
  'die',
] as const;

interface Asked {
  readonly method: string;
  readonly sessionId: string | undefined;
  /** How many processes had died when it was sent. */
  readonly deaths: number;
  readonly text: string | undefined;
  readonly isCommand: boolean;
  cancelled: boolean;
  /** The session was, or may have been, closed or deleted when it came to this request. */
  mayBeGone: boolean;
  readonly answers: any[];
}

class History {
  readonly wrong: string[] = [];
  readonly #store: Store = { sessions: new Map(), began: new Map(), ended: new Set() };
  readonly #supervisor: Supervisor;
  readonly #asked = new Map<number, Asked>();
  /** Open at the client. */
  readonly #questions = new Set<number>();
  readonly #everAsked: number[] = [];
  readonly #cards = new Set<string>();
  readonly #told = new Set<string>();
  readonly #gone = new Set<string>();
  #server!: PlayedServer;
  #scanner!: OutputScanner;
  #ids = 0;
  #deaths = 0;

  constructor() {
    this.#supervisor = new Supervisor({
      toClient: (text) => {
        for (const line of String(text).split('\n')) if (line !== '') this.#take(JSON.parse(line));
      },
      onRegulate: () => undefined,
    });
    this.#begin();
    this.#ask('initialize', { protocolVersion: 1 });
  }

  /** Two sessions are open. */
  open(): void {
    this.settle();
    for (let i = 0; i < 2; i += 1) this.#ask('session/new', { cwd: '/w', mcpServers: [] });
    this.settle();
  }

  step([kind, pick]: Step): void {
    const sessions = [...this.#told];
    const sessionId = sessions[pick % Math.max(1, sessions.length)];
    const place = { cwd: '/w', mcpServers: [] };
    switch (kind) {
      case 'read':
        for (let n = pick % 4; n >= 0; n -= 1) this.#server.read();
        break;
      case 'work':
        for (let n = pick % 6; n >= 0; n -= 1) this.#server.work(pick + n);
        break;
      case 'write':
        this.#scanner.push(this.#server.write(pick % 3 === 0 ? 1 + (pick % 97) : undefined));
        break;
      case 'die':
        this.die(pick);
        break;
      case 'answer': {
        const id = this.#everAsked[pick % Math.max(1, this.#everAsked.length)];
        if (id !== undefined) this.#answer(id);
        break;
      }
      case 'new':
      case 'list':
      case 'cancel-request':
      case 'prompt':
      case 'keyed':
      case 'command':
      case 'cancel':
      case 'close':
      case 'load':
      case 'delete':
        // While it does not want input, the client is not read.
        if (!this.#supervisor.wantsInput) break;
        if (kind === 'new') this.#ask('session/new', place);
        else if (kind === 'list') this.#ask('session/list', {});
        else if (kind === 'cancel-request') this.#cancelRequest(1 + (pick % this.#ids));
        else if (sessionId !== undefined) this.#inSession(kind, sessionId, place);
    }
  }

  #inSession(
    kind: 'prompt' | 'keyed' | 'command' | 'cancel' | 'close' | 'load' | 'delete',
    sessionId: string,
    place: Readonly<Record<string, unknown>>,
  ): void {
    const text = kind === 'command' ? `/do ${this.#ids}` : `text ${this.#ids}`;
    const meta = kind === 'keyed' ? { _meta: { 'dsh-acp': { key: `own ${this.#ids}` } } } : {};
    switch (kind) {
      case 'prompt':
      case 'keyed':
      case 'command':
        this.#ask('session/prompt', { sessionId, prompt: [{ type: 'text', text }], ...meta }, text);
        break;
      case 'cancel':
        for (const asked of this.#open()) if (asked.method === 'session/prompt' && asked.sessionId === sessionId) asked.cancelled = true;
        this.#send({ method: 'session/cancel', params: { sessionId } });
        break;
      case 'close':
      case 'delete':
        this.#gone.add(sessionId);
        for (const asked of this.#open()) if (asked.sessionId === sessionId) asked.mayBeGone = asked.cancelled = true;
        if (kind === 'delete') this.#told.delete(sessionId);
        this.#ask(`session/${kind}`, { sessionId });
        break;
      case 'load':
        this.#ask('session/load', { sessionId, ...place });
    }
  }

  /** Some of what the process wrote arrives yet, perhaps half a line. */
  die(pick: number): void {
    this.#deaths += 1;
    this.#scanner.push(this.#server.write(pick % 211));
    this.#supervisor.serverDied({ code: null, signal: 'SIGKILL' });
    this.#begin();
  }

  /** The process that runs now lives on until nothing is left to do. */
  settle(): void {
    for (let rounds = 0; rounds < 10_000; rounds += 1) {
      for (const id of this.#questions) this.#answer(id);
      const did = [this.#server.read(), this.#server.work(rounds)].some(Boolean);
      const written = this.#server.write();
      this.#scanner.push(written);
      if (!did && written.length === 0 && this.#questions.size === 0) return;
    }
    this.wrong.push('it goes on for ever');
  }

  giveUp(): void {
    this.#supervisor.serverDied({ code: 1, signal: null });
    this.#supervisor.giveUp({ code: 1, signal: null });
  }

  leave(): void {
    for (const asked of this.#open()) asked.cancelled = true;
    this.#supervisor.clientLeft();
    this.settle();
    this.giveUp();
  }

  /** @param isOver no process will come any more */
  judge(isOver: boolean): readonly string[] {
    for (const [id, asked] of this.#asked) this.#judgeAnswer(id, asked, isOver);
    for (const [text, times] of this.#store.began) if (times > 1) this.wrong.push(`${text} began ${times} times`);
    if (this.#questions.size > 0) this.wrong.push(`questions are open: ${[...this.#questions].join(', ')}`);
    if (this.#cards.size > 0) this.wrong.push(`cards are open: ${[...this.#cards].join(', ')}`);
    // Who has left or is given up is told of no session any more, and a process that could delete one does not come.
    if (!isOver)
      for (const id of this.#store.sessions.keys()) if (!this.#told.has(id) && !this.#gone.has(id)) this.wrong.push(`${id} is nobody's`);
    return this.wrong;
  }

  #judgeAnswer(id: number, { method, sessionId, answers, text, isCommand, cancelled, mayBeGone, deaths }: Asked, isOver: boolean): void {
    const say = (what: string): void => void this.wrong.push(`${id} ${method} ${text ?? ''}: ${what}`);
    if (answers.length !== 1) return say(`was answered ${answers.length} times`);
    const [{ result, error }] = answers;
    const code: string | undefined = error?.data?.code;
    if (code === 'SESSION_NOT_FOUND' && !mayBeGone && sessionId !== undefined) say('found no session');
    if (code === 'INVALID_REQUEST' || code === 'INTERNAL') say(code);
    if (text === undefined || isCommand) return;
    const hasEnded = this.#store.ended.has(text);
    if (result?.stopReason === 'end_turn' && !hasEnded) say('was answered, and has not ended');
    if (result?.stopReason === 'cancelled' && !cancelled) say('was cancelled, and nobody asked for that');
    // Of three processes it is not asked again.
    if (code === 'SERVER_RESTARTED' && hasEnded && !cancelled && !isOver && this.#deaths - deaths < 3)
      say('has ended, and its answer was not found');
  }

  #begin(): void {
    this.#server = new PlayedServer(this.#store);
    this.#scanner = this.#supervisor.begin({ send: (line) => this.#server.send(line) });
  }

  *#open(): Iterable<Asked> {
    for (const asked of this.#asked.values()) if (asked.answers.length === 0) yield asked;
  }

  #ask(method: string, params: Readonly<Record<string, unknown>>, text?: string): void {
    this.#ids += 1;
    const sessionId = params['sessionId'] as string | undefined;
    const mayBeGone = sessionId !== undefined && this.#gone.has(sessionId);
    const isCommand = text?.startsWith('/') === true;
    this.#asked.set(this.#ids, { method, sessionId, text, isCommand, mayBeGone, deaths: this.#deaths, cancelled: false, answers: [] });
    this.#send({ id: this.#ids, method, params });
  }

  #cancelRequest(requestId: number): void {
    const asked = this.#asked.get(requestId);
    if (asked === undefined || asked.method === 'initialize') return;
    asked.cancelled = true;
    this.#send({ method: '$/cancel_request', params: { requestId } });
  }

  #answer(id: number): void {
    this.#questions.delete(id);
    this.#send({ id, result: { of: id } });
  }

  #send(frame: object): void {
    this.#supervisor.fromClient(JSON.stringify({ jsonrpc: '2.0', ...frame }));
  }

  #take(frame: any): void {
    if (frame.method === 'session/request_permission') {
      if (this.#everAsked.includes(frame.id)) this.wrong.push(`the question ${frame.id} was asked twice`);
      this.#questions.add(frame.id);
      this.#everAsked.push(frame.id);
    } else if (frame.method === '$/cancel_request') this.#questions.delete(frame.params.requestId);
    else if (frame.method === 'session/update') this.#update(frame.params);
    else this.#answered(frame);
  }

  #answered(frame: any): void {
    const asked = this.#asked.get(frame.id);
    if (asked === undefined) return void this.wrong.push(`an answer to ${frame.id}`);
    asked.answers.push(frame);
    if (asked.method === 'session/new' && frame.result !== undefined) this.#told.add(frame.result.sessionId);
    if (asked.method === 'session/prompt')
      for (const card of this.#cards) if (card.startsWith(`${asked.sessionId}/`)) this.wrong.push(`${card} is open behind ${frame.id}`);
  }

  #update({ sessionId, update }: any): void {
    const card = `${sessionId}/${update.toolCallId}`;
    if (update.sessionUpdate === 'tool_call') this.#cards.add(card);
    else if (update.status === 'failed' || update.status === 'completed') this.#cards.delete(card);
  }
}

const steps = fc.array(fc.tuple(fc.constantFrom(...kinds), fc.nat(10_000)), { maxLength: 100, size: 'max' });
const ends = fc.constantFrom('settle' as const, 'settle' as const, 'leave' as const, 'give-up' as const);

void t.test('however a server dies, its client sees one connection that answers all it was asked', async () => {
  fc.assert(
    fc.property(steps, ends, fc.boolean(), (all, end, wasOpen) => {
      const history = new History();
      if (wasOpen) history.open();
      for (const step of all) history.step(step);
      if (end === 'settle') history.settle();
      else if (end === 'leave') history.leave();
      else history.giveUp();
      const wrong = history.judge(end !== 'settle');
      if (wrong.length > 0) throw new Error(wrong.join('; '));
    }),
    { numRuns: Number(process.env['DSH_ACP_HISTORIES'] ?? 200) },
  );
});
