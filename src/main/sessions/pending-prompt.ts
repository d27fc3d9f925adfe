/**
 * One `session/prompt` from its arrival to its answer. It settles exactly once: the first terminal reason wins, whatever
 * comes later (a late completion, a second cancel, the thread's death) is dropped.
 */
import type { ServerError } from '../../shared/errors.ts';
import type { PromptBlock } from '../../shared/events.ts';
import type { PromptOptions } from '../../shared/session-options.ts';
import type { TurnOutcome } from '../../shared/thread-protocol.ts';

export type PromptResult = Extract<TurnOutcome, { ok: true }>;

export class PendingPrompt {
  readonly content: readonly PromptBlock[];
  readonly options: PromptOptions;
  readonly answer: Promise<PromptResult>;
  /** Requests that wait for the answer: more than one when they have the same key. */
  waiters = 0;
  /** True once somebody asked for its end; a thread lost after that answers `cancelled`, not an error. */
  cancelRequested = false;
  /** True once the thread has nothing more to do with it, which may be after the answer. */
  unwound = false;
  #requestId: number | undefined;
  #waitingForBegin: (() => void)[] = [];
  #settled = false;
  #resolve: (result: PromptResult) => void = () => undefined;
  #reject: (error: ServerError) => void = () => undefined;

  constructor(content: readonly PromptBlock[], options: PromptOptions) {
    this.content = content;
    this.options = options;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // The answer may be taken up later than it settles.
    this.answer.catch(() => undefined);
  }

  /** Main's number for the turn once a thread runs it. */
  get requestId(): number | undefined {
    return this.#requestId;
  }

  /** To be called right before the thread is told: what is told to it from then on comes behind the prompt. */
  begin(requestId: number): void {
    this.#requestId = requestId;
    for (const begun of this.#waitingForBegin.splice(0)) begun();
  }

  /** Fulfils once a thread runs it, or once it has settled without. */
  async whenBegun(): Promise<void> {
    if (this.#requestId !== undefined || this.#settled) return;
    const begun = new Promise<void>((resolve) => this.#waitingForBegin.push(resolve));
    await Promise.race([begun, this.whenSettled()]);
  }

  async whenSettled(): Promise<void> {
    await this.answer.catch(() => undefined);
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Says whether this call was the one that settled it. */
  settle(result: PromptResult): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#resolve(result);
    return true;
  }

  settleCancelled(): boolean {
    return this.settle(cancelledResult);
  }

  fail(error: ServerError): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#reject(error);
    return true;
  }
}

/** The answer of what never ran, or whose end nobody waited for. */
export const cancelledResult: PromptResult = {
  ok: true,
  stopReason: 'cancelled',
  usage: {
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    reasoningTokens: 0,
    steps: 0,
    toolCalls: 0,
    elapsedMs: 0,
  },
};
