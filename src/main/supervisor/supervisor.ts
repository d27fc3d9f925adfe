/**
 * Stands between a client and the server process, and outlives the latter: when that dies, it is started again, its sessions
 * are opened again from their logs, and what was under way is asked again or answered. The client sees one connection.
 *
 * Prompts without an idempotence key are given one of ours. So a prompt can be sent again without fear of running twice: the
 * log says whether it never began, has ended, or was cut in the middle.
 */
import { randomUUID } from 'node:crypto';
import { answerAtDeath, cutTurnError, doubleError, givenUpError, leavingAnswer } from './answers.ts';
import { type LooseFrame, member, parseFrame } from './frames.ts';
import { type Held, type KnownSession, KnownSessions } from './known-sessions.ts';
import { type OpenRequest, OpenRequests } from './open-requests.ts';
import { OutputScanner } from './output-scanner.ts';
import { readLine, readRequest } from './read-request.ts';
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

const privatePrefix = 'dsh-acp-supervisor/';
/** Sessions that are opened again at a time: more at once would only be slower together. */
const mostOpenings = 4;
/** UTF-16 units of lines that wait for their sessions; beyond them the client's input waits. */
const mostHeld = 1024 * 1024;

export class Supervisor {
  readonly #parts: SupervisorParts;
  readonly #requests = new OpenRequests();
  readonly #sessions = new KnownSessions();
  readonly #cards = new ShownCards();
  readonly #asked = new ServerRequests();
  /** What the supervisor itself has asked the server. */
  readonly #own = new Map<string, (response: LooseFrame) => void>();
  readonly #keyPrefix = randomUUID();
  /** As it was answered last with a result. */
  #initialize: string | undefined;
  #server: ServerPort | undefined;
  /** False until a new process has answered `initialize`. */
  #ready = false;
  /** Of the client, come meanwhile. */
  #waiting: Waiting[] = [];
  #again: OpenRequest[] = [];
  #eager: KnownSession[] = [];
  #wanted: KnownSession[] = [];
  #openings = 0;
  /** Sessions that a process may have made, and nobody has been told of. */
  #unwanted: string[] = [];
  #held = 0;
  #count = 0;

  constructor(parts: SupervisorParts) {
    this.#parts = parts;
  }

  /** Whether lines of the client can be taken now; while they cannot, its input should not be read. */
  get wantsInput(): boolean {
    return this.#ready && this.#held <= mostHeld;
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
    this.#held = 0;
    this.#wanted = [];
    this.#openings = 0;
    for (const line of this.#asked.withdrawAll()) this.#line(line);
    for (const id of this.#sessions.ids()) this.#closeCards(id);
    this.#eager = this.#sessions.loseAll();
    for (const request of [...this.#again.splice(0), ...this.#requests.takeAll()]) {
      // Of a session that is being loaded.
      if (request.sessionId !== undefined) this.#closeCards(request.sessionId);
      const answer = answerAtDeath(request, end);
      if (answer === undefined) this.#again.push(request);
      else if (request.madeId !== undefined) this.#unwanted.push(request.madeId);
      this.#tell(answer);
    }
  }

  /** The process will not be started again: whatever waits is answered. Call it behind {@link serverDied}. */
  giveUp(end: ChildEnd): void {
    for (const request of this.#again.splice(0)) this.#line(givenUpError(request, end));
  }

  /** The client will say no more: what no process has been given is answered here, the rest by the process. */
  clientLeft(): void {
    const held = [...this.#sessions.values()].flatMap((session) => session.held.splice(0));
    const unasked = [...this.#again.splice(0), ...[...this.#waiting.splice(0), ...held].flatMap(({ request }) => request ?? [])];
    for (const request of unasked) {
      this.#requests.settle({ id: request.id });
      this.#line(leavingAnswer(request));
    }
    this.#eager = [];
    this.#wanted = [];
  }

  #newKey(): string {
    this.#count += 1;
    return `${this.#keyPrefix}/${this.#count}`;
  }

  #becomeReady(): void {
    this.#ready = true;
    for (const request of this.#again.splice(0)) {
      this.#requests.restore(request);
      this.#pass({ sessionId: request.sessionId, line: request.line ?? '', request });
    }
    for (const waiting of this.#waiting.splice(0)) this.#pass(waiting);
    for (const sessionId of this.#unwanted.splice(0)) this.#askOwn('session/delete', JSON.stringify({ sessionId }), () => undefined);
    this.#openNext();
    this.#parts.onRegulate();
  }

  /** Sessions that something waits for first; then those that were at work, though nobody has asked: they keep their locks. */
  #openNext(): void {
    while (this.#openings < mostOpenings) {
      const session = this.#wanted.shift() ?? this.#eager.pop();
      if (session === undefined) return;
      if (session.state !== 'open' && !session.isAsked) this.#open(session);
    }
  }

  #notified(frame: LooseFrame, line: string): void {
    const sessionId = member(frame.params, 'sessionId');
    const known = typeof sessionId === 'string' ? sessionId : undefined;
    if (frame.method === '$/cancel_request') this.#requests.cancelRequest(member(frame.params, 'requestId'));
    if (frame.method === 'session/cancel') {
      this.#requests.cancelSession(sessionId);
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
    session.held.push(waiting);
    this.#hold(waiting.line.length);
    if (session.state === 'opening') return;
    session.state = 'opening';
    this.#wanted.push(session);
    this.#openNext();
  }

  #hand({ line, request }: Held, session: KnownSession | undefined): void {
    if (request !== undefined) request.tries += 1;
    if (session !== undefined && request?.method === 'session/prompt') session.active = true;
    this.#server?.send(line);
  }

  #hold(change: number): void {
    this.#held += change;
    this.#parts.onRegulate();
  }

  #open(session: KnownSession): void {
    session.state = 'opening';
    session.isAsked = true;
    this.#openings += 1;
    this.#askOwn('session/resume', session.resume, (response) => {
      const held = session.held.splice(0);
      const isOpen = response.error === undefined;
      // Another try is free: what stands in the way may go.
      Object.assign(session, { state: isOpen ? 'open' : 'lost', isAsked: false, active: isOpen } satisfies Partial<KnownSession>);
      if (member(member(response.error, 'data'), 'code') === 'SESSION_NOT_FOUND') this.#sessions.forget(session.id);
      for (const one of held) {
        if (isOpen) this.#hand(one, session);
        else if (one.request !== undefined) this.#refuse(one.request, response.error);
      }
      this.#hold(-held.reduce((sum, { line }) => sum + line.length, 0));
      this.#openings -= 1;
      this.#openNext();
    });
  }

  #refuse({ id }: OpenRequest, error: unknown): void {
    if (this.#requests.settle({ id }) !== undefined) this.#line(JSON.stringify({ jsonrpc: '2.0', id, error }));
  }

  /** @param params as JSON */
  #askOwn(method: string, params: string, onResponse: (response: LooseFrame) => void): void {
    this.#count += 1;
    const id = `${privatePrefix}${this.#keyPrefix}/${this.#count}`;
    this.#own.set(id, onResponse);
    this.#server?.send(`{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${params}}`);
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
    const own = typeof frame.id === 'string' ? this.#own.get(frame.id) : undefined;
    if (own !== undefined) {
      this.#own.delete(frame.id as string);
      own(frame);
      return;
    }
    const request = this.#requests.settle(frame);
    if (request === undefined) {
      // For a line that could not be told from noise. Nothing else of ours is unknown here.
      if (frame.id === null || frame.error !== undefined) this.#line(line);
      return;
    }
    if (request.method === 'initialize' && frame.error === undefined) this.#initialize = paramsOf(request.line);
    this.#sessions.learn(request, frame);
    const isCut = request.ownKey && member(member(frame.error, 'data'), 'code') === 'TURN_INTERRUPTED';
    this.#line(isCut ? cutTurnError(request, frame.error) : line);
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
