/**
 * Permission requests of the session threads, sent to the client. Fails closed: whatever is not a clear choice of an
 * offered option is `unavailable`, which the thread takes as a no. Only a live session of this connection may ask, and only
 * about a call. A program is offered nothing that would last: its answer is one decision, never a grant.
 */
import { type AgentContext, methods, type RequestPermissionRequest } from '@agentclientprotocol/sdk';
import type { Profile } from '../../shared/config.ts';
import type { PermissionAnswer, PermissionRequest } from '../../shared/thread-protocol.ts';
import type { ThreadLane } from '../threads/thread-lane.ts';

/** The open session of this id on the connection, as far as the channel needs it. */
export type LiveSession = (sessionId: string) => { readonly profile: Profile } | undefined;

export class PermissionChannel {
  readonly #liveSession: LiveSession;
  readonly #client: () => AgentContext | undefined;
  readonly #open = new Map<string, AbortController>();

  constructor(client: () => AgentContext | undefined, liveSession: LiveSession) {
    this.#client = client;
    this.#liveSession = liveSession;
  }

  /** Sent only after the updates that show the call. Several may be open at once, answered in any order. Never rejects. */
  async ask(lane: ThreadLane, request: PermissionRequest): Promise<PermissionAnswer> {
    const withdrawn = new AbortController();
    const key = keyOf(request.sessionId, request.requestKey);
    this.#open.set(key, withdrawn);
    try {
      await lane.batchTaken(request.afterBatch);
      const client = this.#client();
      const params = this.#question(request);
      if (client === undefined || params === undefined) return { outcome: 'unavailable' };
      // The end of the call or of its turn came by another port, and was quicker; that the question is taken back is still on
      // its way. A subagent in the background asks in the name of a call that ended when it began.
      const ended = request.outlivesCall !== true && hasEnded(lane, request, params.toolCall.toolCallId);
      if (withdrawn.signal.aborted || ended) return { outcome: 'cancelled' };
      const options = { cancellationSignal: withdrawn.signal, stopWaitingOnCancel: true };
      return readAnswer(await client.request(methods.client.session.requestPermission, params, options), params);
    } catch {
      return { outcome: withdrawn.signal.aborted ? 'cancelled' : 'unavailable' };
    } finally {
      this.#open.delete(key);
    }
  }

  /** What goes to the client; `undefined` when nobody there can rightly be asked. */
  #question({ sessionId, params }: PermissionRequest): RequestPermissionRequest | undefined {
    const session = this.#liveSession(sessionId);
    const question = params as RequestPermissionRequest;
    if (session === undefined || question.sessionId !== sessionId || !question.toolCall.toolCallId) return undefined;
    if (session.profile === 'editor') return question;
    const options = question.options.filter(({ kind }) => kind === 'allow_once' || kind === 'reject_once');
    return options.length === 0 ? undefined : { ...question, options };
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

/** A program is shown no cards: of its calls the end of the turn alone is known. */
function hasEnded(lane: ThreadLane, { sessionId, afterBatch }: PermissionRequest, callId: string): boolean {
  return lane.hasEndedCard(sessionId, callId) || lane.hasEndedTurn(sessionId, afterBatch);
}

function keyOf(sessionId: string, requestKey: string): string {
  return `${sessionId}/${requestKey}`;
}

/** Responses to our requests are not validated by the SDK. */
function readAnswer(response: unknown, params: RequestPermissionRequest): PermissionAnswer {
  const outcome = (response as { outcome?: { outcome?: unknown; optionId?: unknown } } | null | undefined)?.outcome;
  if (outcome?.outcome === 'cancelled') return { outcome: 'cancelled' };
  if (outcome?.outcome !== 'selected') return { outcome: 'unavailable' };
  const chosen = params.options.find((option) => option.optionId === outcome.optionId);
  return chosen === undefined ? { outcome: 'unavailable' } : { outcome: 'selected', optionId: chosen.optionId };
}
