/**
 * The protocol as a client may rely on it, held against what a client of the simulation saw, frame by frame. Small on purpose: it knows
 * who asked for what and what is open, and nothing of how the server works.
 */
import { ShownText } from './shown-text.ts';

interface Asked {
  readonly session: number;
  readonly kind: 'prompt' | 'load' | 'steer' | 'other';
  readonly sent: number;
  readonly tag: string | undefined;
  /** The script of a prompt. */
  readonly script: string | undefined;
}

interface Card {
  status: string;
  readonly tag: string | undefined;
}

const terminal = new Set(['completed', 'failed']);

export class Judge {
  readonly complaints: string[] = [];
  readonly open = new Map<number, Asked>();
  /** Tags of turns that the client saw end, and of text that it saw. */
  readonly seen = new Set<string>();
  /** What the prompts with a tag were answered: a stop reason, or the code of an error. */
  readonly answers = new Map<string, Set<string>>();
  /** Sessions that somebody closed: their prompts are answered at once, and their turns end behind that. */
  readonly closed = new Set<number>();
  readonly #text = new ShownText();
  /** Prompts into whose turn something else may have been said, or of which a part was shown to nobody. */
  readonly #mixed = new Set<string>();
  readonly #answered = new Set<number>();
  readonly #requests = new Map<number, Asked>();
  readonly #cards = new Map<string, Card>();
  readonly #questions = new Map<string, { readonly session: number; readonly callId: string }>();
  readonly #withdrawn = new Set<string>();
  readonly #sessionOf = new Map<string, number>();
  /** When each session was last asked to end something. */
  readonly #cancelled = new Map<number, number>();
  readonly #aborted = new Set<number>();
  /** The last prompt of which each session has shown something. */
  readonly #front = new Map<number, number>();
  readonly #order = new Map<string, number>();
  /** By load: what it, or a turn that it overlapped, has shown. */
  readonly #shownWhileLoading = new Map<number, Set<string>>();
  #clock = 0;
  /** The client has gone: prompts are answered at once then, and their turns end behind that. */
  #isEnded = false;
  /** A program is shown no cards. */
  readonly #showsCards: boolean;

  constructor(showsCards: boolean) {
    this.#showsCards = showsCards;
  }

  sessionIs(id: string, session: number): void {
    this.#sessionOf.set(id, session);
  }

  requested(request: number, kind: Asked['kind'], session: number, { tag, script }: { tag?: string; script?: string } = {}): void {
    this.#clock += 1;
    const asked = { session, kind, sent: this.#clock, tag, script };
    if (kind === 'steer') for (const other of this.open.values()) if (other.session === session) this.#mix(other.tag);
    if (kind === 'prompt' && [...this.open.values()].some((other) => other.session === session && other.kind === 'steer')) this.#mix(tag);
    // A prompt that is sent again while it is open joins the first one, and stands where that one stands.
    const joins = [...this.open.values()].some((other) => other.tag === tag);
    if (tag !== undefined && !joins) this.#order.set(tag, this.#clock);
    this.open.set(request, asked);
    this.#requests.set(request, asked);
  }

  cancelled(session: number): void {
    this.#clock += 1;
    this.#cancelled.set(session, this.#clock);
  }

  aborted(request: number): void {
    this.#aborted.add(request);
  }

  /** The session is asked to close. */
  closing(session: number): void {
    this.closed.add(session);
    this.cancelled(session);
  }

  /** Every session: the input has ended. */
  ended(): void {
    this.#clock += 1;
    this.#isEnded = true;
    for (const { session } of this.#requests.values()) this.#cancelled.set(session, this.#clock);
  }

  /** The machine has lost its power: what was open gets no answer. */
  lost(): void {
    for (const { tag } of this.#requests.values()) this.#mix(tag);
    this.open.clear();
    this.#cards.clear();
    this.#questions.clear();
  }

  take(frame: any): void {
    if (frame.method === 'session/update') this.#update(frame.params);
    else if (frame.method === 'session/request_permission') this.#question(frame);
    else if (frame.method === '$/cancel_request') this.#withdraw(frame.params.requestId);
    else this.#response(frame);
  }

  answered(question: string): void {
    this.#questions.delete(question);
  }

  isOpen(question: string): boolean {
    return this.#questions.has(question) && !this.#withdrawn.has(question);
  }

  /** Behind the last frame of a server that had time to end. */
  atRest(): void {
    for (const [request, { kind }] of this.open) this.#complain(`the ${kind} ${request} has no response`);
    for (const [key, { status }] of this.#cards) if (!terminal.has(status)) this.#complain(`the card ${key} is left ${status}`);
    for (const question of this.#questions.keys()) this.#complain(`the question ${question} was never taken back`);
  }

  #update({ sessionId, update }: any): void {
    const session = this.#sessionOf.get(sessionId);
    if (session === undefined) return this.#complain(`an update of an unknown session ${sessionId}`);
    const text = JSON.stringify(update).replaceAll('\\n', ' ');
    const loads = [...this.open].filter(([, asked]) => asked.session === session && asked.kind === 'load').map(([id]) => id);
    const isReplay = loads.length > 0;
    const kind: string = update.sessionUpdate;
    for (const [tag, owner] of text.matchAll(/\bS(\d+)P\d+/g)) {
      if (Number(owner) !== session) this.#complain(`session ${session} shows ${tag}`);
      for (const load of loads) this.#shownWhileLoading.set(load, (this.#shownWhileLoading.get(load) ?? new Set()).add(tag));
      if (isReplay) continue;
      if (kind === 'agent_message_chunk' || kind === 'agent_thought_chunk' || kind === 'tool_call') this.#live(session, tag);
    }
    if (!isReplay) this.#text.take(session, update);
    // A steered message that its own turn could not log goes into a later one, and is shown there.
    if (kind === 'user_message_chunk') for (const asked of this.open.values()) if (asked.session === session) this.#mix(asked.tag);
    if (kind === 'tool_call' || kind === 'tool_call_update') this.#card(session, update, isReplay);
  }

  /** Something of the prompt is shown: it is open, and no later one of its session was shown before. */
  #live(session: number, tag: string): void {
    this.seen.add(tag);
    const isAsked = [...this.open.values()].some(
      (asked) => asked.tag === tag || (asked.session === session && asked.kind !== 'other' && this.#isSteered(tag)),
    );
    if (!isAsked && !this.#isEnded) this.#complain(`${tag} is shown while no request for it is open`);
    const order = this.#order.get(tag) ?? 0;
    if (this.#isSteered(tag)) return;
    if (order < (this.#front.get(session) ?? 0)) this.#complain(`${tag} is shown behind a later prompt of its session`);
    this.#front.set(session, order);
    if (!this.#isEnded) this.#refuseOverlap(session, tag, order);
  }

  /** Turns of one session come one behind the other: the earlier prompt is answered before something of the next is shown. */
  #refuseOverlap(session: number, tag: string, order: number): void {
    for (const asked of this.open.values()) {
      const isEarlier =
        asked.tag !== undefined && asked.tag !== tag && (this.#order.get(asked.tag) ?? 0) < order && !this.#hasRun(asked.tag);
      if (asked.session === session && asked.kind === 'prompt' && isEarlier)
        this.#complain(`${tag} is shown before ${asked.tag}, which came earlier, has its response`);
    }
  }

  /** A turn of this key was answered. A request that came too late to join it waits in a place of its own, for the stored answer. */
  #hasRun(tag: string): boolean {
    return [...(this.answers.get(tag) ?? [])].some((how) => how !== 'SESSION_BUSY' && how !== 'OVERLOADED');
  }

  #mix(tag: string | undefined): void {
    if (tag !== undefined) this.#mixed.add(tag);
  }

  #isSteered(tag: string): boolean {
    return [...this.#requests.values()].some((asked) => asked.tag === tag && asked.kind === 'steer');
  }

  #card(session: number, update: any, isReplay: boolean): void {
    const key = `${session}/${update.toolCallId}`;
    const card = this.#cards.get(key);
    const status: string | undefined = update.status;
    const [tag] = /\bS\d+P\d+/.exec(JSON.stringify(update.rawInput ?? update.title ?? '')) ?? [];
    if (isReplay) {
      if (card === undefined || update.sessionUpdate === 'tool_call')
        this.#cards.set(key, { status: status ?? 'pending', tag: tag ?? card?.tag });
      else if (status !== undefined) card.status = status;
      return;
    }
    if (update.sessionUpdate === 'tool_call') {
      if (card !== undefined) this.#complain(`the card ${key} was made twice`);
      this.#cards.set(key, { status: status ?? 'pending', tag });
      return;
    }
    if (card === undefined) return this.#complain(`an update of the card ${key}, which there is not`);
    if (tag !== undefined && card.tag === undefined) this.#cards.set(key, { status: card.status, tag });
    if (terminal.has(card.status)) return this.#complain(`the card ${key} has ended and is changed to ${status}`);
    if (status !== undefined) {
      if (status === 'pending' && card.status === 'in_progress') this.#complain(`the card ${key} goes back to pending`);
      (this.#cards.get(key) ?? card).status = status;
    }
  }

  #question({ id, params }: any): void {
    const session = this.#sessionOf.get(params.sessionId) ?? -1;
    const key = `${session}/${params.toolCall.toolCallId}`;
    const card = this.#cards.get(key);
    if (card === undefined && this.#showsCards) this.#complain(`a question about ${key} before its card`);
    else if (card !== undefined && terminal.has(card.status)) this.#complain(`a question about ${key} behind its end`);
    if (!this.#isEnded && ![...this.open.values()].some((asked) => asked.session === session))
      this.#complain(`a question of session ${session} while nothing is open`);
    this.#questions.set(id, { session, callId: params.toolCall.toolCallId });
  }

  #withdraw(question: string): void {
    this.#withdrawn.add(question);
    this.#questions.delete(question);
  }

  #response({ id, result, error }: any): void {
    const asked = this.open.get(id);
    if (asked === undefined) {
      this.#complain(this.#answered.has(id) ? `the request ${id} was answered twice` : `an answer to ${id}, which was not asked`);
      return;
    }
    this.open.delete(id);
    this.#answered.add(id);
    // A load that was refused has shown nothing: it was a turn of the session that did.
    if (error !== undefined) for (const tag of this.#shownWhileLoading.get(id) ?? []) this.seen.add(tag);
    this.#shownWhileLoading.delete(id);
    if (error?.code === 'INTERNAL') this.#complain(`the request ${id} failed with INTERNAL: ${error.message}`);
    if (asked.kind !== 'prompt' && asked.kind !== 'steer') return;
    if (asked.kind === 'prompt') this.#ended(asked, result?.stopReason ?? String(error?.code));
    // The turn that it was taken into goes on.
    if (result?.outcome === 'injected') return;
    const stillAsked = [...this.open.values()].some((other) => other.tag === asked.tag);
    for (const [key, card] of this.#isEnded ? [] : this.#cards) {
      if (card.tag === asked.tag && card.tag !== undefined && !terminal.has(card.status) && !stillAsked)
        this.#complain(`the request ${id} was answered while the card ${key} was ${card.status}`);
    }
    if (result?.stopReason !== 'cancelled') return;
    const wanted = (this.#cancelled.get(asked.session) ?? 0) > asked.sent || this.#aborted.has(id) || this.#someOf(asked.tag);
    if (!wanted) this.#complain(`the request ${id} ended cancelled, and nobody asked for that`);
  }

  #ended({ tag, script }: Asked, how: string): void {
    if (tag === undefined) return;
    const answers = this.answers.get(tag) ?? new Set();
    this.answers.set(tag, answers.add(how));
    if (how !== 'end_turn' || script === undefined || this.#mixed.has(tag)) return;
    const wrong = this.#text.wrongWith(tag, script);
    if (wrong !== undefined) this.#complain(`${tag} was answered end_turn, and its text ${wrong}`);
  }

  /** Requests with one key share a turn: the last one that leaves ends it for all that asked later, too. */
  #someOf(tag: string | undefined): boolean {
    return (
      [...this.#requests].some(([request, asked]) => asked.tag === tag && this.#aborted.has(request)) ||
      [...this.#requests.values()].some((asked) => asked.tag === tag && (this.#cancelled.get(asked.session) ?? 0) > asked.sent)
    );
  }

  #complain(what: string): void {
    this.complaints.push(what);
  }
}
