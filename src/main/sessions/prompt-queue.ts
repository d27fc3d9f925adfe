/**
 * The prompts of one session: one turn at a time, in the order in which they came, each answered exactly once.
 *
 * Requests with the same idempotence key join one prompt. A request that is cancelled ends its own waiting; the prompt ends
 * with the last of them. What a key stood for once its turn has ended is the session thread's to say, from the log.
 */
import PQueue from 'p-queue';
import { fromWireError, type JsonObject, ServerError } from '../../shared/errors.ts';
import type { PromptBlock } from '../../shared/events.ts';
import type { PromptKey, PromptOptions } from '../../shared/session-options.ts';
import type { TurnOutcome } from '../../shared/thread-protocol.ts';
import type { AttachedSession, Departure } from '../threads/attached-session.ts';
import { cancelRunningTurn } from './cancel-ladder.ts';
import { cancelledResult, PendingPrompt, type PromptResult } from './pending-prompt.ts';
import type { SessionParts } from './session-parts.ts';

/** Requests that may wait for one prompt. */
const mostWaiters = 100;

export interface PromptQueueParts extends Pick<SessionParts, 'config' | 'threads' | 'admission' | 'turns' | 'counters' | 'slotAhead'> {
  readonly sessionId: string;
  /** Where the session is now, if it is on a thread. */
  readonly attached: () => AttachedSession | undefined;
  readonly attach: () => Promise<AttachedSession>;
  /** A prompt has ended, or was given up. */
  readonly onEnded: () => void;
}

export class PromptQueue {
  readonly #parts: PromptQueueParts;
  readonly #prompts = new Set<PendingPrompt>();
  readonly #keyed = new Map<string, PendingPrompt>();
  // Made at the first prompt: most open sessions of a large run never hold one.
  #queue: PQueue | undefined;
  #isBetween = false;

  constructor(parts: PromptQueueParts) {
    this.#parts = parts;
  }

  /** Prompts without an answer, and what is done between prompts. */
  get size(): number {
    return this.#prompts.size + (this.#isBetween ? 1 : 0);
  }

  /**
   * Queues a prompt, or joins the one with the same key. Aborting `signal` cancels this request alone.
   *
   * @throws ServerError SESSION_BUSY by the overlap rule; KEY_CONFLICT; OVERLOADED; THREAD_LOST; TURN_INTERRUPTED; the turn's
   * own failure (MODEL_FAILED, …)
   */
  add(content: readonly PromptBlock[], options: PromptOptions, signal: AbortSignal): Promise<PromptResult> {
    return this.#waitFor(this.#join(options.key) ?? this.#start(content, options), signal);
  }

  /**
   * Does something between prompts, one at a time: prompts that come meanwhile wait for it.
   *
   * @throws ServerError SESSION_BUSY while a prompt has no answer, or something else is being done; what `work` throws
   */
  async between<T>(work: () => Promise<T>): Promise<T> {
    if (this.#prompts.size > 0 || this.#isBetween)
      throw this.#busy('A prompt of this session is running or waits, or it is being rewound.');
    this.#isBetween = true;
    this.#queue ??= new PQueue({ concurrency: 1 });
    try {
      return await this.#queue.add(work);
    } finally {
      this.#isBetween = false;
      this.#parts.onEnded();
    }
  }

  /** The prompt that runs, or else the next one; none that is to be cancelled. */
  get front(): PendingPrompt | undefined {
    for (const prompt of this.#prompts) if (!prompt.settled && !prompt.cancelRequested) return prompt;
    return undefined;
  }

  /** Ends the running turn and drops the queued ones: each answers `cancelled`. */
  cancel(): void {
    for (const prompt of this.#prompts) this.#cancelOne(prompt);
  }

  /** Fulfils when every prompt of now has its answer. */
  async allAnswered(): Promise<void> {
    await Promise.allSettled([...this.#prompts].map((prompt) => prompt.answer));
  }

  /** Teardown: every prompt answers `cancelled` at once, whatever its turn does. */
  abandon(): void {
    for (const prompt of this.#prompts) {
      prompt.cancelRequested = true;
      prompt.settleCancelled();
    }
  }

  /** The server itself failed: prompts answer with the error. */
  fail(error: ServerError): void {
    for (const prompt of this.#prompts) prompt.fail(error);
  }

  #start(content: readonly PromptBlock[], options: PromptOptions): PendingPrompt {
    this.#refuseOverlap();
    const prompt = new PendingPrompt(content, options);
    const id = options.key?.id;
    this.#prompts.add(prompt);
    if (id !== undefined) this.#keyed.set(id, prompt);
    const forget = (): void => {
      this.#prompts.delete(prompt);
      if (id !== undefined) this.#keyed.delete(id);
    };
    prompt.answer.then(forget, forget);
    this.#parts.counters.promptStarted(prompt.answer);
    this.#queue ??= new PQueue({ concurrency: 1 });
    void this.#queue.add(() => this.#admitAndRun(prompt));
    return prompt;
  }

  /** The prompt that the key stands for, while it waits or runs. */
  #join(key: PromptKey | undefined): PendingPrompt | undefined {
    const prompt = key === undefined ? undefined : this.#keyed.get(key.id);
    if (prompt === undefined || prompt.settled) return undefined;
    if (prompt.options.key?.payload !== key?.payload) throw keyConflict();
    if (prompt.waiters >= mostWaiters) throw this.#busy(`${mostWaiters} requests wait for the prompt of this key already.`);
    return prompt;
  }

  #waitFor(prompt: PendingPrompt, signal: AbortSignal): Promise<PromptResult> {
    prompt.waiters += 1;
    return new Promise((resolve, reject) => {
      prompt.answer.then(resolve, reject);
      const leave = (): void => {
        if (prompt.settled) return;
        prompt.waiters -= 1;
        if (prompt.waiters > 0) resolve(cancelledResult);
        else this.#cancelOne(prompt);
      };
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave, { once: true });
    });
  }

  #refuseOverlap(): void {
    const { overlap, maxQueuedPrompts } = this.#parts.config;
    const limit = overlap === 'reject' ? 1 : maxQueuedPrompts + 1;
    if (this.#prompts.size < limit) return;
    throw this.#busy(
      overlap === 'reject'
        ? 'A prompt of this session is running, and this server refuses overlapping prompts.'
        : `${maxQueuedPrompts} prompts of this session wait already.`,
    );
  }

  #busy(message: string): ServerError {
    return new ServerError('SESSION_BUSY', message, { data: { sessionId: this.#parts.sessionId, waiting: this.#prompts.size } });
  }

  #cancelOne(prompt: PendingPrompt): void {
    if (prompt.settled || prompt.cancelRequested) return;
    prompt.cancelRequested = true;
    const attached = this.#parts.attached();
    if (prompt.requestId === undefined || attached === undefined) prompt.settleCancelled();
    else void cancelRunningTurn(prompt, attached, this.#parts);
  }

  async #admitAndRun(prompt: PendingPrompt): Promise<void> {
    if (prompt.settled) return;
    try {
      await this.#parts.admission.admit(() => this.#run(prompt), prompt.options.priority);
    } catch (error) {
      if (prompt.cancelRequested) prompt.settleCancelled();
      else prompt.fail(asServerError(error));
    } finally {
      this.#parts.onEnded();
    }
  }

  async #run(prompt: PendingPrompt): Promise<void> {
    if (prompt.settled) return;
    const attached = await this.#parts.attach();
    if (prompt.settled) return;
    const { completions } = this.#parts.threads;
    const { requestId, end } = completions.expectTurn();
    prompt.begin(requestId);
    this.#parts.turns.started(attached.lane);
    try {
      await this.#send(prompt, requestId, attached);
      const outcome = await attached.orDeparture(end);
      if ('kind' in outcome) settleDeparted(prompt, outcome);
      else if (outcome.ok) prompt.settle(outcome);
      else prompt.fail(failureOf(outcome));
    } finally {
      prompt.unwound = true;
      completions.forget(requestId);
      this.#parts.turns.ended(attached.lane);
    }
  }

  async #send({ content, options }: PendingPrompt, requestId: number, attached: AttachedSession): Promise<void> {
    const sent = this.#parts.slotAhead?.(attached.lane, this.#parts.sessionId, options.priority ?? 0);
    try {
      await attached.call((api) => api.prompt(requestId, content, options, sent?.slot));
      if (attached.departed !== undefined) sent?.giveBack();
    } catch (error) {
      sent?.giveBack();
      throw error;
    }
  }
}

function keyConflict(): ServerError {
  return new ServerError('KEY_CONFLICT', 'The prompt has the key of an earlier one of this session, and another content.');
}

function settleDeparted(prompt: PendingPrompt, how: Departure): void {
  if (prompt.cancelRequested || how.kind === 'left') prompt.settleCancelled();
  else if (how.forMemory === true)
    prompt.fail(new ServerError('SESSION_MEMORY', 'The thread of this session came to hold more memory than it may, and was ended.'));
  else prompt.fail(new ServerError('THREAD_LOST', 'The thread that ran this turn ended before the turn did.', { cause: how.reason }));
}

/** What the turn used and said before it failed is part of the answer. */
function failureOf({ error, usage, text, stored }: Extract<TurnOutcome, { ok: false }>): ServerError {
  const data: JsonObject = {
    ...error.data,
    ...(usage === undefined ? {} : { usage: usage as unknown as JsonObject }),
    ...(text === undefined ? {} : { text }),
    ...(stored === undefined ? {} : { stored }),
  };
  return fromWireError({ ...error, data });
}

function asServerError(error: unknown): ServerError {
  return error instanceof ServerError ? error : new ServerError('INTERNAL', 'The server met an unexpected fault.', { cause: error });
}
