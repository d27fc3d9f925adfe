/**
 * Stands between a client and the server process, and outlives the latter: when that dies, it is started again, its sessions
 * are opened again from their logs, and what was under way is asked again or answered. The client sees one connection.
 *
 * Prompts without an idempotence key are given one of ours. So a prompt can be sent again without fear of running twice: the
 * log says whether it never began, has ended, or was cut in the middle.
 */
import { randomUUID } from 'node:crypto';
import { extensionName } from '../acp/meta/extension.ts';
import { OpenCards } from '../threads/open-cards.ts';
import { errorLine, type LooseFrame, member, parseFrame, resultLine } from './frames.ts';
import { type KnownSession, KnownSessions } from './known-sessions.ts';
import { type OpenRequest, OpenRequests } from './open-requests.ts';
import { OutputScanner } from './output-scanner.ts';
import type { ChildEnd } from './server-child.ts';
import { ServerRequests } from './server-requests.ts';

/** The server process as far as the supervisor talks to it. */
export interface ServerPort {
  /** A line without its LF. */
  send(line: string): void;
}

export interface SupervisorParts {
  /** Whole lines, LF included, in order. */
  readonly toClient: (text: string | Buffer) => void;
}

const privatePrefix = 'dsh-acp-supervisor/';
/** Sessions that are opened again though nobody has asked for them, at a time. */
const eagerOpenings = 4;

export class Supervisor {
  readonly #toClient: (text: string | Buffer) => void;
  readonly #requests = new OpenRequests();
  readonly #sessions = new KnownSessions();
  readonly #cards = new OpenCards();
  readonly #asked = new ServerRequests();
  /** What the supervisor itself has asked the server. */
  readonly #own = new Map<string, (response: LooseFrame) => void>();
  readonly #keyPrefix = randomUUID();
  #initialize: LooseFrame | undefined;
  #server: ServerPort | undefined;
  /** False until a new process has answered `initialize`. */
  #ready = false;
  /** Lines of the client that came meanwhile. */
  #waiting: { readonly sessionId: string | undefined; readonly line: string }[] = [];
  #again: OpenRequest[] = [];
  #eager: KnownSession[] = [];
  #count = 0;

  constructor({ toClient }: SupervisorParts) {
    this.#toClient = toClient;
  }

  /** Whether lines of the client can be taken now; while they cannot, its input should not be read. */
  get ready(): boolean {
    return this.#ready;
  }

  /** A new process. Give what it writes to the scanner that this returns. `onReady` is called once lines can be taken. */
  begin(server: ServerPort, onReady: () => void): OutputScanner {
    this.#server = server;
    if (this.#initialize === undefined) this.#becomeReady(onReady);
    else this.#askOwn(this.#initialize, () => this.#becomeReady(onReady));
    return new OutputScanner({ plain: this.#toClient, line: (line) => this.#fromServer(line) });
  }

  /** A line of the client, without its LF. */
  fromClient(line: string): void {
    const frame = parseFrame(line);
    const sessionId = member(frame?.params, 'sessionId');
    const known = typeof sessionId === 'string' ? sessionId : undefined;
    if (frame === undefined) this.#pass(undefined, line);
    else if (typeof frame.method !== 'string') this.#answered(frame);
    else if (frame.id === undefined) this.#notified(frame, known, line);
    else this.#pass(known, this.#request(frame, known, line));
  }

  /** The process has ended and will be started again: closes and answers what cannot wait for that. */
  serverDied(end: ChildEnd): void {
    this.#server = undefined;
    this.#ready = false;
    this.#own.clear();
    // Requests among them are in the list below; a cancel has left its mark there.
    this.#waiting = [];
    for (const line of this.#asked.withdrawAll()) this.#line(line);
    this.#eager = this.#sessions.loseAll();
    for (const request of this.#requests.takeAll()) {
      if (request.sessionId !== undefined) this.#closeCards(request.sessionId);
      this.#settleOrKeep(request, end);
    }
    // Cards of work that no request waits for.
    for (const { id } of this.#eager) this.#closeCards(id);
  }

  /** The process will not be started again: whatever waits is answered. */
  giveUp(end: ChildEnd): void {
    for (const request of this.#again.splice(0)) this.#line(restartError(request, end));
  }

  #becomeReady(onReady: () => void): void {
    this.#ready = true;
    for (const request of this.#again.splice(0)) {
      this.#requests.restore(request);
      this.#pass(request.sessionId, request.line);
    }
    for (const { sessionId, line } of this.#waiting.splice(0)) this.#pass(sessionId, line);
    for (let begun = 0; begun < eagerOpenings; begun += 1) this.#openNextEager();
    onReady();
  }

  /** Children of a dead server run on until its session is opened again: so those that were at work are, unasked. */
  #openNextEager(): void {
    const session = this.#eager.pop();
    if (session === undefined) return;
    if (session.state === 'lost') this.#reopen(session, () => this.#openNextEager());
    else this.#openNextEager();
  }

  #request(frame: LooseFrame, sessionId: string | undefined, line: string): string {
    if (frame.method === 'initialize') this.#initialize = frame;
    const ownKey = frame.method === 'session/prompt' && member(extensionOf(frame), 'key') === undefined;
    const sent = ownKey ? (this.#withKey(frame) ?? line) : line;
    this.#requests.add(frame, sent, ownKey && sent !== line);
    const session = this.#sessions.get(sessionId);
    if (session !== undefined && frame.method === 'session/prompt') session.active = true;
    return sent;
  }

  #withKey(frame: LooseFrame): string | undefined {
    const params = frame.params as { readonly _meta?: Record<string, unknown> | null } | null | undefined;
    const extension = extensionOf(frame) ?? {};
    // Whatever is wrong with it, the server says it of what the client sent.
    if (typeof params !== 'object' || params === null || typeof extension !== 'object') return undefined;
    this.#count += 1;
    const key = `${this.#keyPrefix}/${this.#count}`;
    const _meta = { ...params._meta, [extensionName]: { ...extension, key } };
    return JSON.stringify({ ...frame, params: { ...params, _meta } });
  }

  #notified(frame: LooseFrame, sessionId: string | undefined, line: string): void {
    if (frame.method === 'session/cancel') this.#requests.cancelSession(sessionId);
    if (frame.method === '$/cancel_request') this.#requests.cancelRequest(member(frame.params, 'requestId'));
    this.#pass(sessionId, line);
  }

  #answered(frame: LooseFrame): void {
    const line = this.#asked.incoming(frame);
    if (line !== undefined) this.#server?.send(line);
  }

  /** On to the server: behind the opening of its session, where that was lost. */
  #pass(sessionId: string | undefined, line: string): void {
    if (!this.#ready) {
      this.#waiting.push({ sessionId, line });
      return;
    }
    const session = this.#sessions.get(sessionId);
    if (session === undefined || session.state === 'open') {
      this.#server?.send(line);
      return;
    }
    session.held.push(line);
    if (session.state === 'lost') this.#reopen(session);
  }

  #reopen(session: KnownSession, then: () => void = () => undefined): void {
    session.state = 'opening';
    this.#askOwn({ method: 'session/resume', params: session.resume }, (response) => {
      const held = session.held.splice(0);
      if (response.error === undefined) {
        session.state = 'open';
        for (const line of held) this.#server?.send(line);
      } else {
        this.#sessions.forget(session.id);
        for (const line of held) this.#refuseHeld(line, response.error);
      }
      then();
    });
  }

  #refuseHeld(line: string, error: unknown): void {
    const frame = parseFrame(line);
    if (frame?.id === undefined || typeof frame.method !== 'string') return;
    const answer = { id: frame.id, error };
    if (this.#requests.settle(answer) !== undefined) this.#line(JSON.stringify({ jsonrpc: '2.0', ...answer }));
  }

  #askOwn({ method, params }: LooseFrame, onResponse: (response: LooseFrame) => void): void {
    this.#count += 1;
    const id = `${privatePrefix}${this.#keyPrefix}/${this.#count}`;
    this.#own.set(id, onResponse);
    this.#server?.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  }

  #fromServer(line: string): void {
    const frame = parseFrame(line);
    if (frame === undefined) return; // It is ours, and no frame: never the client's.
    const { method } = frame;
    if (method === undefined) this.#responded(frame, line);
    else if (frame.id !== undefined) this.#line(this.#asked.outgoing(frame));
    else if (method === '$/cancel_request') this.#withdrawn(frame);
    else {
      if (method === 'session/update') this.#noteCard(frame);
      this.#line(line);
    }
  }

  #withdrawn(frame: LooseFrame): void {
    const line = this.#asked.withdrawal(frame);
    if (line !== undefined) this.#line(line);
  }

  #responded(frame: LooseFrame, line: string): void {
    const own = typeof frame.id === 'string' ? this.#own.get(frame.id) : undefined;
    if (own !== undefined) {
      this.#own.delete(frame.id as string);
      own(frame);
      return;
    }
    const request = this.#requests.settle(frame);
    if (request !== undefined) this.#sessions.learn(request, frame);
    const isCut = request?.ownKey === true && member(member(frame.error, 'data'), 'code') === 'TURN_INTERRUPTED';
    this.#line(isCut ? restartError(request, undefined) : line);
  }

  #noteCard(frame: LooseFrame): void {
    const sessionId = member(frame.params, 'sessionId');
    const update = member(frame.params, 'update');
    const callId = member(update, 'toolCallId');
    if (typeof sessionId !== 'string' || typeof callId !== 'string') return;
    const status = member(update, 'status');
    const terminal = member(member(update, '_meta'), 'terminal_info') !== undefined;
    if (member(update, 'sessionUpdate') === 'tool_call')
      this.#cards.note({ sessionId, callId, open: true, ...(terminal ? { terminal } : {}) });
    if (status === 'completed' || status === 'failed') this.#cards.note({ sessionId, callId, open: false });
  }

  #closeCards(sessionId: string): void {
    const { frames } = this.#cards.close(sessionId, 'Outcome unknown: the server process ended during this call.');
    if (frames !== '') this.#toClient(frames);
  }

  #settleOrKeep(request: OpenRequest, end: ChildEnd): void {
    if (request.cancelled && request.method === 'session/prompt') this.#line(resultLine(request.id, { stopReason: 'cancelled' }));
    else if (isRepeatable(request.method)) this.#again.push(request);
    else this.#line(restartError(request, end));
  }

  #line(line: string): void {
    this.#toClient(`${line}\n`);
  }
}

/** Whether the same request twice does no more than once. A prompt has a key, ours if none other. */
function isRepeatable(method: string): boolean {
  // A load that has begun has shown a part of the history; again would show it twice.
  return !method.startsWith('_session/') && method !== 'session/load' && method !== 'session/fork';
}

function extensionOf(frame: LooseFrame): unknown {
  return member(member(frame.params, '_meta'), extensionName) ?? undefined;
}

function wordsFor(end: ChildEnd | undefined): string {
  if (end === undefined) return 'ended';
  return end.signal === null ? `ended with code ${String(end.code)}` : `was ended by ${end.signal}`;
}

function restartError(request: Pick<OpenRequest, 'id' | 'sessionId' | 'method'>, end: ChildEnd | undefined): string {
  const what = request.method === 'session/prompt' ? 'in the middle of this turn' : `before it answered ${request.method.slice(0, 60)}`;
  const data = request.sessionId === undefined ? {} : { sessionId: request.sessionId };
  return errorLine(request.id, 'SERVER_RESTARTED', `The server process ${wordsFor(end)} ${what}.`, data);
}
