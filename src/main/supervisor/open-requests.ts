/**
 * What the client has asked and not been answered: enough to ask it again, or to answer it, when the server process dies.
 */
import { idKey, type LooseFrame, member } from './frames.ts';

export interface OpenRequest {
  /** As it came: it is echoed with its type. */
  readonly id: unknown;
  readonly method: string;
  readonly sessionId: string | undefined;
  readonly params: unknown;
  /** As it was handed to the server. */
  readonly line: string;
  /** The idempotence key of this prompt is ours. */
  readonly ownKey: boolean;
  /** The client wants it ended. */
  cancelled: boolean;
  /** Further requests under the same id, which the server refuses each with an error of its own. */
  doubles: number;
}

const invalidRequest = -32600;

export class OpenRequests {
  readonly #byId = new Map<string, OpenRequest>();

  get size(): number {
    return this.#byId.size;
  }

  add(frame: LooseFrame, line: string, ownKey: boolean): void {
    const key = idKey(frame.id);
    if (key === undefined || typeof frame.method !== 'string') return;
    const known = this.#byId.get(key);
    if (known !== undefined) {
      known.doubles += 1;
      return;
    }
    const sessionId = member(frame.params, 'sessionId');
    this.#byId.set(key, {
      id: frame.id,
      method: frame.method,
      sessionId: typeof sessionId === 'string' ? sessionId : undefined,
      params: frame.params,
      line,
      ownKey,
      cancelled: false,
      doubles: 0,
    });
  }

  /** Takes the request that a response answers out of the list; `undefined` when there is none, or it answers a double of it. */
  settle(response: LooseFrame): OpenRequest | undefined {
    const key = idKey(response.id);
    const request = key === undefined ? undefined : this.#byId.get(key);
    if (request === undefined || key === undefined) return undefined;
    if (request.doubles > 0 && member(response.error, 'code') === invalidRequest) {
      request.doubles -= 1;
      return undefined;
    }
    this.#byId.delete(key);
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

  /** All of them, in the order in which they came; the list is empty afterwards. */
  takeAll(): OpenRequest[] {
    const all = [...this.#byId.values()];
    this.#byId.clear();
    return all;
  }

  /** Puts one back that is asked again. */
  restore(request: OpenRequest): void {
    const key = idKey(request.id);
    if (key !== undefined) this.#byId.set(key, { ...request, doubles: 0 });
  }
}
