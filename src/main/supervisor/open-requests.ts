/**
 * What the client has asked and not been answered: enough to ask it again, or to answer it, when the server process dies.
 */
import { idKey, type LooseFrame } from './frames.ts';
import type { ChildEnd } from './server-child.ts';

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
  /** The process of now has been given it. */
  handed: boolean;
  /** How the last process ended that had been given it. */
  end: ChildEnd | undefined;
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
    const open: OpenRequest = { ...request, line, tries: 0, handed: false, end: undefined, cancelled: false, shown: false };
    const key = idKey(request.id);
    if (key === undefined) return open;
    this.#byId.set(key, open);
    this.#kept += open.line?.length ?? 0;
    if (open.method === 'session/load' && open.sessionId !== undefined) this.#loads.set(open.sessionId, open);
    return open;
  }

  /** False for one that was answered meanwhile. */
  isOpen(request: OpenRequest): boolean {
    return this.#byId.get(idKey(request.id) ?? '') === request;
  }

  /** Takes the request that a response answers out of the list; `undefined` when there is none. */
  settle(response: LooseFrame): OpenRequest | undefined {
    const key = idKey(response.id);
    const request = key === undefined ? undefined : this.#byId.get(key);
    if (request !== undefined && key !== undefined) this.#forget(key, request);
    return request;
  }

  /** `session/cancel`: ends every prompt of the session. Gives those that no process of now has. */
  cancelSession(sessionId: unknown): OpenRequest[] {
    const prompts = this.all().filter((request) => request.method === 'session/prompt' && request.sessionId === sessionId);
    for (const request of prompts) request.cancelled = true;
    return prompts.filter(({ handed }) => !handed);
  }

  /** `$/cancel_request`. Gives the request where no process of now has it. */
  cancelRequest(id: unknown): OpenRequest | undefined {
    const request = this.#byId.get(idKey(id) ?? '');
    if (request !== undefined) request.cancelled = true;
    return request?.handed === false ? request : undefined;
  }

  /** These whole lines go to the client: notes which loads they begin to show. Costs nothing while there is no load. */
  noteShown(lines: Buffer | string): void {
    for (const [sessionId, request] of this.#loads) if (!request.shown && lines.includes(sessionId)) request.shown = true;
  }

  /** In the order in which they came. */
  all(): OpenRequest[] {
    return [...this.#byId.values()];
  }

  #forget(key: string, request: OpenRequest): void {
    this.#byId.delete(key);
    this.#kept -= request.line?.length ?? 0;
    if (this.#loads.get(request.sessionId ?? '') === request) this.#loads.delete(request.sessionId ?? '');
  }
}
