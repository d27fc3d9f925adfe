/**
 * What the client has asked and not been answered: enough to ask it again, or to answer it, when the server process dies.
 */
import { idKey, type LooseFrame } from './frames.ts';

export interface OpenRequest {
  /** As it came: it is echoed with its type. */
  readonly id: unknown;
  readonly method: string;
  readonly sessionId: string | undefined;
  /** As it is handed to the server; `undefined` once too much is kept to ask it again. */
  readonly line: string | undefined;
  /** The idempotence key of this prompt is ours. */
  readonly ownKey: boolean;
  /** Whether asking twice does no more than asking once. */
  readonly repeatable: boolean;
  /** Of a request that opens a session: what opens it again, as JSON. */
  readonly resume: string | undefined;
  /** Of one that makes a session: the id that it shall have. */
  readonly madeId?: string;
  /** How many processes have been given it. */
  tries: number;
  /** The client wants it ended. */
  cancelled: boolean;
  /** Something has been shown that asking again would show twice. */
  shown: boolean;
}

export type NewRequest = Pick<OpenRequest, 'id' | 'method' | 'sessionId' | 'ownKey' | 'repeatable' | 'resume' | 'madeId'> & {
  readonly line: string;
};

/** UTF-16 units of all lines that are kept for asking again. */
const mostKept = 32 * 1024 * 1024;

export class OpenRequests {
  readonly #byId = new Map<string, OpenRequest>();
  /** Loads among them, by session: what they have shown matters. */
  readonly #loads = new Map<string, OpenRequest>();
  #kept = 0;

  get size(): number {
    return this.#byId.size;
  }

  has(id: unknown): boolean {
    return this.#byId.has(idKey(id) ?? '');
  }

  /** Call only for an id that is not open. */
  add(request: NewRequest): OpenRequest {
    const line = this.#kept + request.line.length <= mostKept ? request.line : undefined;
    const open: OpenRequest = { ...request, line, tries: 0, cancelled: false, shown: false };
    this.restore(open);
    return open;
  }

  /** Takes the request that a response answers out of the list; `undefined` when there is none. */
  settle(response: LooseFrame): OpenRequest | undefined {
    const key = idKey(response.id);
    const request = key === undefined ? undefined : this.#byId.get(key);
    if (request !== undefined && key !== undefined) this.#forget(key, request);
    return request;
  }

  /** `session/cancel`: ends every prompt of the session. */
  cancelSession(sessionId: unknown): void {
    for (const request of this.#byId.values()) {
      if (request.method === 'session/prompt' && request.sessionId === sessionId) request.cancelled = true;
    }
  }

  /** `$/cancel_request`. */
  cancelRequest(id: unknown): void {
    const request = this.#byId.get(idKey(id) ?? '');
    if (request !== undefined) request.cancelled = true;
  }

  /** These whole lines go to the client: notes which loads they begin to show. Costs nothing while there is no load. */
  noteShown(lines: Buffer | string): void {
    for (const [sessionId, request] of this.#loads) if (!request.shown && lines.includes(sessionId)) request.shown = true;
  }

  /** All of them, in the order in which they came; the list is empty afterwards. */
  takeAll(): OpenRequest[] {
    const all = [...this.#byId.values()];
    this.#byId.clear();
    this.#loads.clear();
    this.#kept = 0;
    return all;
  }

  /** Puts one back that is asked again. */
  restore(request: OpenRequest): void {
    const key = idKey(request.id);
    if (key === undefined) return;
    this.#byId.set(key, request);
    this.#kept += request.line?.length ?? 0;
    if (request.method === 'session/load' && request.sessionId !== undefined) this.#loads.set(request.sessionId, request);
  }

  #forget(key: string, request: OpenRequest): void {
    this.#byId.delete(key);
    this.#kept -= request.line?.length ?? 0;
    if (this.#loads.get(request.sessionId ?? '') === request) this.#loads.delete(request.sessionId ?? '');
  }
}
