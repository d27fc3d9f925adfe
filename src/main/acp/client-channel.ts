/**
 * Requests of the session threads to the client, other than permissions: its open buffers and questions to the person.
 * Only a live session of this connection may ask, only with its own id, and only what its client has said that it can; what the
 * client answers goes back unchecked.
 */
import { type AgentContext, RequestError } from '@agentclientprotocol/sdk';
import type { Profile } from '../../shared/config.ts';
import type { ClientAnswer, ClientRequest, ClientTraits } from '../../shared/thread-protocol.ts';
import type { ThreadLane } from '../threads/thread-lane.ts';

/** The open session of this id on the connection, as far as the channel needs it. */
export type AskingSession = (sessionId: string) => { readonly profile: Profile; readonly client: ClientTraits } | undefined;

export class ClientChannel {
  readonly #client: () => AgentContext | undefined;
  readonly #askingSession: AskingSession;
  readonly #open = new Map<string, AbortController>();

  constructor(client: () => AgentContext | undefined, askingSession: AskingSession) {
    this.#client = client;
    this.#askingSession = askingSession;
  }

  /** Sent only after the batch that the request names. Several may be open at once, answered in any order. Never rejects. */
  async ask(lane: Pick<ThreadLane, 'batchTaken'>, request: ClientRequest): Promise<ClientAnswer> {
    const stop = new AbortController();
    const key = keyOf(request.sessionId, request.requestKey);
    this.#open.set(key, stop);
    let timedOut = false;
    const timer =
      request.timeoutMs === 0
        ? undefined
        : setTimeout(() => {
            timedOut = true;
            stop.abort();
          }, request.timeoutMs);
    try {
      await lane.batchTaken(request.afterBatch);
      const client = this.#client();
      if (client === undefined || !this.#mayAsk(request)) return { kind: 'unavailable' };
      if (stop.signal.aborted) return { kind: timedOut ? 'timeout' : 'withdrawn' };
      const options = { cancellationSignal: stop.signal, stopWaitingOnCancel: true };
      return { kind: 'result', result: await client.request(request.method, request.params, options) };
    } catch (error) {
      if (stop.signal.aborted) return { kind: timedOut ? 'timeout' : 'withdrawn' };
      return error instanceof RequestError ? { kind: 'error', code: error.code, message: error.message } : { kind: 'unavailable' };
    } finally {
      clearTimeout(timer);
      this.#open.delete(key);
    }
  }

  #mayAsk({ sessionId, method, params }: ClientRequest): boolean {
    const session = this.#askingSession(sessionId);
    return session !== undefined && (params as { sessionId?: unknown }).sessionId === sessionId && isOffered(method, session);
  }

  /** Sends `$/cancel_request` for an open request; a late answer is dropped. */
  withdraw(sessionId: string, requestKey: string): void {
    this.#open.get(keyOf(sessionId, requestKey))?.abort();
  }

  /** The thread that asked is gone: its open requests are withdrawn. */
  withdrawSession(sessionId: string): void {
    for (const [key, controller] of this.#open) {
      if (key.startsWith(`${sessionId}/`)) controller.abort();
    }
  }
}

function isOffered(method: ClientRequest['method'], { profile, client }: NonNullable<ReturnType<AskingSession>>): boolean {
  switch (method) {
    case 'fs/read_text_file':
      return client.readTextFile === true;
    case 'fs/write_text_file':
      return client.writeTextFile === true;
    case 'elicitation/create':
      return client.elicitationForm === true && profile === 'editor';
    default:
      return false;
  }
}

function keyOf(sessionId: string, requestKey: string): string {
  return `${sessionId}/${requestKey}`;
}
