/**
 * The way of a question to the person: a form that the client shows, about one tool call.
 */
import type { CreateElicitationRequest } from '@agentclientprotocol/sdk';
import type { ClientAnswer, ClientRequest } from '../../shared/thread-protocol.ts';
import { askOnce } from '../permission/ask-once.ts';
import type { AskForm } from './ask-user-form.ts';

export interface PersonQuestionsParts {
  readonly sessionId: string;
  /** `0` waits for as long as the person takes. */
  readonly timeoutMs: number;
  readonly ask: (request: ClientRequest) => Promise<ClientAnswer>;
  readonly withdraw: (requestKey: string) => Promise<void>;
  /** Posts what is gathered; gives the number of the batch that holds the call's `tool_call`. */
  readonly flush: () => number;
}

export class PersonQuestions {
  readonly #parts: PersonQuestionsParts;
  #asked = 0;

  constructor(parts: PersonQuestionsParts) {
    this.#parts = parts;
  }

  /** Never rejects. A question whose `signal` aborts is taken back at once, and a late answer is dropped. */
  async ask(callId: string, form: AskForm, signal: AbortSignal): Promise<ClientAnswer> {
    const { sessionId, timeoutMs, flush } = this.#parts;
    this.#asked += 1;
    const requestKey = `ask:${this.#asked}:${callId}`;
    const params = { sessionId, toolCallId: callId, mode: 'form', ...form } satisfies CreateElicitationRequest;
    const request: ClientRequest = { sessionId, requestKey, method: 'elicitation/create', params, afterBatch: flush(), timeoutMs };
    const outcome = await askOnce(() => this.#parts.ask(request), { signal, timeoutMs: 0 });
    if (outcome.kind === 'answered') return outcome.answer;
    if (outcome.kind !== 'aborted') return { kind: 'unavailable' };
    // The question no longer counts, whether or not the client hears of it.
    this.#parts.withdraw(requestKey).catch(() => undefined);
    return { kind: 'withdrawn' };
  }
}
