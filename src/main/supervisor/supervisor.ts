/**
 * Stands between a client and the server process, and outlives the latter: when that dies, it is started again, its sessions
 * are opened again from their logs, and what was under way is asked again or answered. The client sees one connection.
 *
 * Prompts without an idempotence key are given one of ours. So a prompt can be sent again without fear of running twice: the
 * log says whether it never began, has ended, or was cut in the middle.
 */
import { randomUUID } from 'node:crypto';
import { answerAtDeath, cancelledAnswer, cutTurnAnswer, doubleError, givenUpError, leavingAnswer, notKeptError } from './answers.ts';
import { type LooseFrame, member, parseFrame } from './frames.ts';
import { type Held, type KnownSession, KnownSessions } from './known-sessions.ts';
import { type OpenRequest, OpenRequests } from './open-requests.ts';
import { OutputScanner } from './output-scanner.ts';
import { OwnRequests } from './own-requests.ts';
import { readLine, readRequest } from './read-request.ts';
import { Reopening } from './reopening.ts';
import type { ChildEnd } from './server-child.ts';
import { ServerRequests } from './server-requests.ts';
import { ShownCards } from './shown-cards.ts';

/** The server process as far as the supervisor talks to it. */
export interface ServerPort {
  /** A line without its LF. */
  send(line: string): void;
}

export interface SupervisorParts {
  /** Whole lines, LF included, in order. */
  readonly toClient: (text: string | Buffer) => void;
  /** {@link Supervisor.wantsInput} may have changed. */
  readonly onRegulate: () => void;
}

interface Waiting extends Held {
  readonly sessionId: string | undefined;
}

export class Supervisor {
  readonly #parts: SupervisorParts;
  /** Of the client. Those that are asked again stay in it from one process to the next. */
  readonly #requests = new OpenRequests();
  readonly #sessions = new KnownSessions();
  readonly #reopening: Reopening;
  readonly #cards = new ShownCards();
  readonly #asked = new ServerRequests();
  readonly #keyPrefix = randomUUID();
  readonly #own = new OwnRequests(this.#keyPrefix);
  /** As it was answered last with a result. */
  #initialize: string | undefined;
  #server: ServerPort | undefined;
  /** False until a new process has answered `initialize`. */
  #ready = false;
  /** Of the client, come meanwhile. */
  #waiting: Waiting[] = [];
  #again: OpenRequest[] = [];
  /** Sessions that a process may have made, and nobody has been told of. */
  readonly #unwanted = new Set<string>();
  #keys = 0;

  constructor(parts: SupervisorParts) {
    this.#parts = parts;
    this.#reopening = new Reopening({
      sessions: this.#sessions,
      ask: (resume, onResponse) => this.#askOwn('session/resume', resume, onResponse),
      hand: (held, session) => this.#hand(held, session),
      refuse: ({ id }, error) => this.#answer(id, JSON.stringify({ jsonrpc: '2.0', id, error })),
    });
  }

  /** Whether lines of the client can be taken now; while they cannot, its input should not be read. */
  get wantsInput(): boolean {
    return this.#ready;
  }

  /** A new process. Give what it writes to the scanner that this returns. */
  begin(server: ServerPort): OutputScanner {
    this.#server = server;
    if (this.#initialize === undefined) this.#becomeReady();
    else this.#askOwn('initialize', this.#initialize, () => this.#becomeReady());
    return new OutputScanner({ plain: (bytes) => this.#show(bytes), line: (line) => this.#fromServer(line) });
  }

  /** A line of the client, without its LF. */
  fromClient(line: string): void {
    const read = readLine(line);
    if (read.kind === 'noise' && this.#requests.has(read.id)) this.#line(doubleError(read.id));
    else if (read.kind === 'noise') this.#pass({ sessionId: undefined, line });
    else if (read.kind === 'answer') this.#answered(read.frame);
    else if (read.kind === 'notification') this.#notified(read.frame, line);
    else if (this.#requests.has(read.frame.id)) this.#line(doubleError(read.frame.id));
    else {
      const request = this.#requests.add(readRequest(read.frame, line, () => this.#newKey()));
      this.#pass({ sessionId: request.sessionId, line: request.line ?? line, request });
    }
  }

  /** The process has ended: closes and answers what cannot wait for the next one. */
  serverDied(end: ChildEnd): void {
    this.#server = undefined;
    this.#ready = false;
    this.#own.clear();
    // Requests among them are in the list below; a cancel has left its mark there.
    this.#waiting = [];
    for (const line of this.#asked.withdrawAll()) this.#line(line);
    for (const id of this.#sessions.ids()) this.#closeCards(id);
    this.#reopening.loseAll();
    this.#again = [];
    for (const request of this.#requests.all()) {
      if (request.handed) request.end = end;
      request.handed = false;
      // Of a session that is being loaded.
      if (request.sessionId !== undefined) this.#closeCards(request.sessionId);
      const answer = answerAtDeath(request, end);
      if (answer === undefined) this.#again.push(request);
      else this.#giveUpOn(request, answer);
    }
  }

  /** The process will not be started again: whatever waits is answered. Call it behind {@link serverDied}. */
  giveUp(end: ChildEnd): void {
    for (const request of this.#requests.all()) this.#answer(request.id, givenUpError(request, end));
  }

  /** The client will say no more: what no process has been given is answered here, the rest by the process. */
  clientLeft(): void {
    for (const request of this.#requests.all()) if (!request.handed) this.#answer(request.id, leavingAnswer(request));
    this.#waiting = [];
    this.#again = [];
    this.#reopening.stop();
  }

  #newKey(): string {
    this.#keys += 1;
    return `${this.#keyPrefix}/${this.#keys}`;
  }

  #becomeReady(): void {
    this.#ready = true;
    for (const request of this.#again.splice(0)) this.#pass({ sessionId: request.sessionId, line: request.line ?? '', request });
    for (const waiting of this.#waiting.splice(0)) this.#pass(waiting);
    for (const sessionId of this.#unwanted) this.#deleteUnwanted(sessionId);
    this.#reopening.openNext();
    this.#parts.onRegulate();
  }

  #notified(frame: LooseFrame, line: string): void {
    const sessionId = member(frame.params, 'sessionId');
    const known = typeof sessionId === 'string' ? sessionId : undefined;
    if (frame.method === '$/cancel_request') {
      const unasked = this.#requests.cancelRequest(member(frame.params, 'requestId'));
      // The server knows nothing of it.
      if (unasked !== undefined) return this.#giveUpOn(unasked, cancelledAnswer(unasked));
    }
    if (frame.method === 'session/cancel') {
      for (const prompt of this.#requests.cancelSession(sessionId)) this.#giveUpOn(prompt, cancelledAnswer(prompt));
      // Nothing is left in it that could be cancelled.
      if (this.#sessions.get(known)?.state === 'lost') return;
    }
    this.#pass({ sessionId: known, line });
  }

  #answered(frame: LooseFrame): void {
    const line = this.#asked.incoming(frame);
    if (line !== undefined) this.#server?.send(line);
  }

  /** On to the server: behind the opening of its session, where that was lost. */
  #pass(waiting: Waiting): void {
    if (!this.#ready) {
      this.#waiting.push(waiting);
      return;
    }
    const session = this.#sessions.get(waiting.sessionId);
    // A session need not be open to be deleted.
    const canGo =
      session === undefined || session.state === 'open' || (session.state === 'lost' && waiting.request?.method === 'session/delete');
    if (canGo) {
      this.#hand(waiting, session);
      return;
    }
    if (this.#reopening.hold(waiting, session)) return;
    const { request } = waiting;
    if (request !== undefined) this.#giveUpOn(request, notKeptError(request));
  }

  #hand({ line, request }: Held, session: KnownSession | undefined): void {
    if (request !== undefined) {
      // It was cancelled while it waited.
      if (!this.#requests.isOpen(request)) return;
      request.tries += 1;
      request.handed = true;
    }
    if (session !== undefined && request?.method === 'session/prompt') session.active = true;
    this.#server?.send(line);
  }

  /** Answers one that is asked of no process any more. */
  #giveUpOn({ id, madeId, tries }: OpenRequest, answer: string): void {
    this.#answer(id, answer);
    if (madeId === undefined || tries === 0) return;
    this.#unwanted.add(madeId);
    if (this.#ready) this.#deleteUnwanted(madeId);
  }

  #deleteUnwanted(sessionId: string): void {
    this.#askOwn('session/delete', JSON.stringify({ sessionId }), () => this.#unwanted.delete(sessionId));
  }

  /** The one answer of an open request, made here. */
  #answer(id: unknown, line: string): void {
    if (this.#requests.settle({ id }) !== undefined) this.#line(line);
  }

  /** @param params as JSON */
  #askOwn(method: string, params: string, onResponse: (response: LooseFrame) => void): void {
    this.#server?.send(this.#own.line(method, params, onResponse));
  }

  #fromServer(line: string): void {
    const frame = parseFrame(line);
    if (frame === undefined) return; // It is ours, and no frame: never the client's.
    const { method } = frame;
    if (method === undefined) this.#responded(frame, line);
    else if (frame.id !== undefined) this.#line(this.#asked.outgoing(frame));
    else if (method === '$/cancel_request') this.#tell(this.#asked.withdrawal(frame));
    else {
      if (method === 'session/update') this.#cards.note(frame);
      this.#show(`${line}\n`);
    }
  }

  #responded(frame: LooseFrame, line: string): void {
    if (this.#own.take(frame)) return;
    const request = this.#requests.settle(frame);
    if (request === undefined) {
      // For a line that could not be told from noise. Nothing else of ours is unknown here.
      if (frame.id === null || frame.error !== undefined) this.#line(line);
      return;
    }
    if (request.method === 'initialize' && frame.error === undefined) this.#initialize = paramsOf(request.line);
    this.#sessions.learn(request, frame);
    const isCut = request.ownKey && member(member(frame.error, 'data'), 'code') === 'TURN_INTERRUPTED';
    this.#line(isCut ? cutTurnAnswer(request, frame.error) : line);
  }

  #closeCards(sessionId: string): void {
    const frames = this.#cards.close(sessionId);
    if (frames !== '') this.#parts.toClient(frames);
  }

  #show(lines: Buffer | string): void {
    this.#requests.noteShown(lines);
    this.#parts.toClient(lines);
  }

  #tell(line: string | undefined): void {
    if (line !== undefined) this.#line(line);
  }

  #line(line: string): void {
    this.#parts.toClient(`${line}\n`);
  }
}

/** As JSON. */
function paramsOf(line: string | undefined): string | undefined {
  return line === undefined ? undefined : JSON.stringify(parseFrame(line)?.params ?? {});
}
