/**
 * Which requests are open on the connection, in both directions.
 *
 * The two directions number independently. Ids are compared by type and value: `1`, `"1"` and `null` are three requests.
 */
import type { RequestId } from './envelope.ts';

/** The session that a request names, where it names one. */
export type NamedSession = string | undefined;

/** Open requests of one connection. Each id is open at most once a direction; nothing here is ever answered twice. */
export class RequestLedger {
  readonly #fromClient = new Map<RequestId, NamedSession>();
  readonly #toClient = new Map<RequestId, NamedSession>();
  #answeredWaiters: (() => void)[] = [];

  /** Opens a request of the client. False when that id is still open: the request must be refused. */
  accept(id: RequestId, session: NamedSession): boolean {
    if (this.#fromClient.has(id)) return false;
    this.#fromClient.set(id, session);
    return true;
  }

  /** Closes a request of the client. False when no such request is open: its answer must not go out again. */
  answer(id: RequestId): boolean {
    const wasOpen = this.#fromClient.delete(id);
    if (this.#fromClient.size === 0) for (const resolve of this.#answeredWaiters.splice(0)) resolve();
    return wasOpen;
  }

  /** Fulfils when no request of the client is open. */
  allAnswered(): Promise<void> {
    if (this.#fromClient.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#answeredWaiters.push(resolve));
  }

  /** Opens a request to the client. */
  issue(id: RequestId, session: NamedSession): void {
    this.#toClient.set(id, session);
  }

  /** Closes a request to the client, or says that none is open by that id. */
  settle(id: RequestId): { readonly session: NamedSession } | undefined {
    if (!this.#toClient.has(id)) return undefined;
    const session = this.#toClient.get(id);
    this.#toClient.delete(id);
    return { session };
  }
}

/** Reads `params.sessionId`, if it is there and a string. */
export function namedSession(params: unknown): NamedSession {
  if (typeof params !== 'object' || params === null || !Object.hasOwn(params, 'sessionId')) return undefined;
  const { sessionId } = params as { sessionId: unknown };
  return typeof sessionId === 'string' ? sessionId : undefined;
}
