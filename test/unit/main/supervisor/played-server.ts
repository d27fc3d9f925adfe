/**
 * A server process as a supervisor sees one, reduced to what it promises: sessions and what became of prompts outlive it, all else dies
 * with it. It does one small thing at a time, so that it can die between any two of them.
 */

/** What is on the disk. */
export interface Store {
  /** By id: what became of each key. */
  readonly sessions: Map<string, Map<string, 'began' | 'end_turn' | 'cancelled'>>;
  /** By their text: how often prompts began, and which ended. */
  readonly began: Map<string, number>;
  readonly ended: Set<string>;
}

interface Turn {
  readonly id: unknown;
  readonly sessionId: string;
  readonly key: string | undefined;
  readonly text: string;
  phase: 'queued' | 'began' | 'shown' | 'asking' | 'over';
  cancelled: boolean;
  question?: number;
}

export class PlayedServer {
  readonly #store: Store;
  readonly #open = new Set<string>();
  readonly #inbox: any[] = [];
  readonly #turns: Turn[] = [];
  #outbox = '';
  #questions = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  send(line: string): void {
    this.#inbox.push(JSON.parse(line));
  }

  /** Takes the next frame. False when there is none. */
  read(): boolean {
    const frame = this.#inbox.shift();
    if (frame === undefined) return false;
    if (frame.method === undefined) this.#answered(frame);
    else if (frame.id === undefined) this.#notified(frame);
    else this.#asked(frame);
    return true;
  }

  /** One step of a turn: the first that is not over of some session. False when there is nothing to do. */
  work(pick: number): boolean {
    const fronts = [...new Map(this.#turns.toReversed().map((turn) => [turn.sessionId, turn])).values()];
    const able = fronts.filter(({ phase, cancelled }) => phase !== 'asking' || cancelled);
    const turn = able[pick % Math.max(1, able.length)];
    if (turn === undefined) return false;
    this.#advance(turn, pick);
    return true;
  }

  /** Takes up to so many characters of what it has written. */
  write(most = Number.POSITIVE_INFINITY): Buffer {
    const text = this.#outbox.slice(0, most);
    this.#outbox = this.#outbox.slice(text.length);
    return Buffer.from(text);
  }

  #advance(turn: Turn, pick: number): void {
    const { sessionId, text, key } = turn;
    const keys = this.#store.sessions.get(sessionId);
    if (turn.cancelled || keys === undefined) return this.#end(turn, { result: { stopReason: 'cancelled' } });
    switch (turn.phase) {
      case 'queued': {
        const known = key === undefined ? undefined : keys.get(key);
        if (known === 'began') return this.#end(turn, failed(-31011, 'TURN_INTERRUPTED'));
        if (known !== undefined) return this.#end(turn, { result: { stopReason: known } });
        if (key !== undefined) keys.set(key, 'began');
        this.#store.began.set(text, (this.#store.began.get(text) ?? 0) + 1);
        turn.phase = 'began';
        return;
      }
      case 'began':
        this.#update(turn, { sessionUpdate: 'tool_call', toolCallId: text, title: 't', status: 'pending' });
        turn.phase = 'shown';
        return;
      case 'shown':
        if (pick % 2 === 0) {
          turn.question = this.#questions++;
          this.#say({ id: turn.question, method: 'session/request_permission', params: { sessionId } });
          turn.phase = 'asking';
          return;
        }
        break;
      case 'asking':
      case 'over':
    }
    this.#update(turn, { sessionUpdate: 'tool_call_update', toolCallId: text, status: 'completed' });
    turn.phase = 'began';
    if (key !== undefined) keys.set(key, 'end_turn');
    this.#store.ended.add(text);
    this.#end(turn, { result: { stopReason: 'end_turn' } });
  }

  #end(turn: Turn, answer: object): void {
    if (turn.phase === 'asking') this.#say({ method: '$/cancel_request', params: { requestId: turn.question } });
    if (turn.phase !== 'queued' && turn.phase !== 'began')
      this.#update(turn, { sessionUpdate: 'tool_call_update', toolCallId: turn.text, status: 'failed' });
    // The end of a turn that was cancelled is logged, too.
    const keys = this.#store.sessions.get(turn.sessionId);
    if (turn.key !== undefined && turn.phase !== 'queued' && keys?.get(turn.key) === 'began') keys.set(turn.key, 'cancelled');
    this.#turns.splice(this.#turns.indexOf(turn), 1);
    this.#say({ id: turn.id, ...answer });
  }

  #asked({ id, method, params }: any): void {
    const { sessionId } = params;
    switch (method) {
      case 'session/prompt': {
        if (!this.#open.has(sessionId)) return this.#say({ id, ...failed(-32002, 'SESSION_NOT_FOUND') });
        const key: string | undefined = params._meta?.['dsh-acp']?.key;
        this.#turns.push({ id, sessionId, text: params.prompt[0].text, key, phase: 'queued', cancelled: false });
        return;
      }
      case 'session/new': {
        const made: string = params._meta['dsh-acp/supervisor'].sessionId;
        this.#store.sessions.set(made, new Map());
        this.#open.add(made);
        return this.#say({ id, result: { sessionId: made } });
      }
      case 'session/load':
      case 'session/resume':
        if (!this.#store.sessions.has(sessionId)) return this.#say({ id, ...failed(-32002, 'SESSION_NOT_FOUND') });
        this.#open.add(sessionId);
        return this.#say({ id, result: {} });
      case 'session/close':
      case 'session/delete':
        if (method === 'session/close' && !this.#open.has(sessionId)) return this.#say({ id, ...failed(-32002, 'SESSION_NOT_FOUND') });
        for (const turn of this.#turns.filter((one) => one.sessionId === sessionId))
          this.#end(turn, { result: { stopReason: 'cancelled' } });
        this.#open.delete(sessionId);
        if (method === 'session/delete') this.#store.sessions.delete(sessionId);
        return this.#say({ id, result: {} });
      default:
        this.#say({ id, result: {} });
    }
  }

  #notified({ method, params }: any): void {
    for (const turn of this.#turns) {
      if (method === 'session/cancel' ? turn.sessionId === params.sessionId : turn.id === params.requestId) turn.cancelled = true;
    }
  }

  #answered({ id }: any): void {
    const turn = this.#turns.find(({ question, phase }) => phase === 'asking' && question === id);
    if (turn !== undefined) turn.phase = 'over';
  }

  #update({ sessionId }: Turn, update: object): void {
    this.#say({ method: 'session/update', params: { sessionId, update } });
  }

  #say(frame: object): void {
    this.#outbox += `${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`;
  }
}

function failed(code: number, name: string): object {
  return { error: { code, message: name, data: { code: name } } };
}
