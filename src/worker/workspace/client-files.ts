/**
 * Asks the client for a file as it has it, and hands it new text: bounded in size and time, taken back when the turn ends.
 *
 * A client that does not do what it offered, or twice in a row does not answer, is asked no more until the session is
 * attached again: a stuck editor must not cost every call its patience.
 */
import type { ClientAnswer, ClientRequest } from '../../shared/thread-protocol.ts';
import { isWritableText } from '../tools/text-file.ts';

/** Longer texts stay between the tools and the disk. In UTF-16 units. */
export const longestClientText = 2 * 1024 * 1024;
const readTimeoutMs = 10_000;
/** Editors run formatters when they save. */
const writeTimeoutMs = 30_000;
const patience = 2;
const methodNotFound = -32601;
const notFound = -32002;

export interface ClientFilesOptions {
  readonly sessionId: string;
  /** A canonical path as the client spells it. */
  readonly spell?: (path: string) => string;
  readonly ask: (request: ClientRequest) => Promise<ClientAnswer>;
  /** What becomes of it is of no interest here. */
  readonly withdraw: (requestKey: string) => Promise<void> | void;
  /** Posts what is gathered; gives the number of the batch that shows the running call. */
  readonly flush: () => number;
  /** Says once why the client is asked no more. */
  readonly onGivenUp?: (why: string) => void;
}

/** `failed`: it has no answer that could be used. */
export type ClientText = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'missing' | 'failed' };

/** `refused`: it said no, so nothing was written. `unknown`: it may yet write. `why` goes into a sentence. */
export type ClientWritten = { readonly kind: 'written' } | { readonly kind: 'refused' | 'unknown'; readonly why: string };

export class ClientFiles {
  readonly #options: ClientFilesOptions;
  #asked = 0;
  #unanswered = 0;
  #isGivenUp = false;

  constructor(options: ClientFilesOptions) {
    this.#options = options;
  }

  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  /** @param path canonical @throws the signal's reason when it aborts first */
  async read(path: string, signal: AbortSignal): Promise<ClientText> {
    const answer = await this.#ask('fs/read_text_file', { path }, { timeoutMs: readTimeoutMs, signal });
    if (answer.kind === 'error') return { kind: answer.code === notFound ? 'missing' : 'failed' };
    const content = answer.kind === 'result' ? (answer.result as { content?: unknown } | null | undefined)?.content : undefined;
    const isUsable = typeof content === 'string' && content.length <= longestClientText && isWritableText(content);
    return isUsable ? { kind: 'text', text: content } : { kind: 'failed' };
  }

  /** @param path canonical @throws the signal's reason when it aborts first: it is then not known what was written */
  async write(path: string, content: string, signal: AbortSignal): Promise<ClientWritten> {
    const answer = await this.#ask('fs/write_text_file', { path, content }, { timeoutMs: writeTimeoutMs, signal });
    switch (answer.kind) {
      case 'result':
        return { kind: 'written' };
      case 'error':
        return { kind: 'refused', why: `it answered with error ${answer.code}` };
      case 'unavailable':
        return { kind: 'refused', why: 'it is not there' };
      case 'timeout':
      case 'withdrawn':
      default:
        return { kind: 'unknown', why: 'it did not answer in time' };
    }
  }

  async #ask(
    method: 'fs/read_text_file' | 'fs/write_text_file',
    { path, ...content }: { readonly path: string; readonly content?: string },
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<ClientAnswer> {
    signal.throwIfAborted();
    const { sessionId, ask, withdraw, flush, spell } = this.#options;
    this.#asked += 1;
    const requestKey = `file:${this.#asked}`;
    let stop: () => void = () => undefined;
    const aborted = new Promise<'aborted'>((resolve) => {
      stop = () => resolve('aborted');
      signal.addEventListener('abort', stop, { once: true });
    });
    // A thread that lost main is at its end anyway.
    const asking = ask({
      sessionId,
      requestKey,
      method,
      params: { sessionId, path: spell?.(path) ?? path, ...content },
      afterBatch: flush(),
      timeoutMs,
    }).catch((): ClientAnswer => ({ kind: 'unavailable' }));
    const answer = await Promise.race([asking, aborted]);
    signal.removeEventListener('abort', stop);
    if (answer === 'aborted') {
      void Promise.resolve(withdraw(requestKey)).catch(() => undefined);
      throw signal.reason;
    }
    this.#learn(answer, method);
    return answer;
  }

  #learn(answer: ClientAnswer, method: string): void {
    this.#unanswered = answer.kind === 'timeout' ? this.#unanswered + 1 : 0;
    if (answer.kind === 'error' && answer.code === methodNotFound) this.#giveUp(`the client offers ${method} and does not have it`);
    else if (this.#unanswered >= patience) this.#giveUp(`the client did not answer ${method} in time`);
  }

  #giveUp(why: string): void {
    if (this.#isGivenUp) return;
    this.#isGivenUp = true;
    this.#options.onGivenUp?.(why);
  }
}
