/**
 * One run: a child, its prompt, what it says, and its end.
 *
 * Ends once, by whichever comes first: the child's answer, its failure, silence, a cancel. The process is put away as soon
 * as the run has ended, or goes back to its pool; `dispose` only waits for that.
 */
import type { PromptResponse } from '@agentclientprotocol/sdk';
import type {
  SubagentProvider,
  SubagentRequest,
  SubagentResult,
  SubagentStarted,
  SubagentUsage,
} from '../../../shared/subagent-protocol.ts';
import { IdleWatch } from '../../../shared/subagents/idle-watch.ts';
import type { ReleaseSlot } from '../../../shared/subagents/provider-slots.ts';
import { RunNews } from '../../../shared/subagents/run-news.ts';
import { within } from '../within.ts';
import type { AcpChild } from './acp-child.ts';
import { smallJson } from './bounded-json.ts';
import { hurriedGraces } from './child-ending.ts';
import type { ChildPool } from './child-pool.ts';
import { metaKey, record } from './child-traits.ts';
import { diagnosticText } from './diagnostic.ts';
import { OpenQuestions } from './open-questions.ts';
import { readErrorUsage, readUsage } from './read-usage.ts';
import { RunCollector } from './run-collector.ts';
import { abortedText, authRequired, checkRequest, startChild, type StartFailure, type StartParts } from './start-child.ts';
import { stopReasonOf } from './stop-reason.ts';

/** Updates may follow the answer: they count until there was quiet for this long, and no longer than that. */
const quietMs = 250;
const lateLimitMs = 1000;
/** A cancelled child may end its turn in order, and serve again, before its input is closed. */
const cancelAnswerMs = 1000;
/** One that answers last may say in its answer what its turn has used; whoever waits for the result gives it up after 300 ms. */
const cancelUsageMs = 200;
const maxStructuredChars = 1024 * 1024;

export interface RunParts {
  readonly request: SubagentRequest;
  readonly provider: SubagentProvider;
  readonly pool: ChildPool;
  /** Waits for one; `undefined` when the signal aborted or the time passed. */
  readonly takeSlot: (signal: AbortSignal, waitMs: number) => Promise<ReleaseSlot | undefined>;
  readonly prepare: StartParts['prepare'];
  readonly spawn: StartParts['spawn'];
}

type Ending =
  | { readonly kind: 'answered'; readonly response: PromptResponse }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'idle' };

export class SubagentRun {
  readonly owner: string;
  readonly runId: string;
  readonly news = new RunNews();
  /** Never rejects. */
  readonly started: Promise<SubagentStarted>;
  /** Nothing of the run is left, or its child is back in the pool. Never rejects. */
  readonly over: Promise<void>;
  readonly #parts: RunParts;
  readonly #stop = new AbortController();
  readonly #questions: OpenQuestions;
  readonly #collector: RunCollector;
  #over: () => void = () => undefined;
  #isOver = false;
  #hurried = false;
  #child: AcpChild | undefined;
  #idle: IdleWatch | undefined;

  constructor(parts: RunParts) {
    this.owner = parts.request.owner;
    this.runId = parts.request.runId;
    this.#parts = parts;
    this.#collector = new RunCollector(this.news, parts.request.spillDir);
    this.#questions = new OpenQuestions(parts.provider.permission, {
      ask: (question) => this.news.ask(question),
      withdraw: (questionId) => this.news.withdraw(questionId),
      cardOf: (callId) => this.#collector.cards.get(callId),
    });
    this.over = new Promise((resolve) => {
      this.#over = resolve;
    });
    this.started = this.#start();
  }

  /** True until there is a result, or the start has failed. */
  get isRunning(): boolean {
    return !this.#isOver && this.news.result === undefined;
  }

  cancel(): void {
    this.#stop.abort();
  }

  answer(questionId: string, allow: boolean): void {
    if (this.#questions.answer(questionId, allow)) this.#idle?.sign();
  }

  /** Ends the run. `hurried` is for an owner that cannot wait for the provider's own graces. */
  async dispose(hurried: boolean): Promise<void> {
    this.#hurried ||= hurried;
    this.cancel();
    if (hurried) void this.#child?.end(hurriedGraces);
    await this.over;
  }

  async #start(): Promise<SubagentStarted> {
    const { provider, takeSlot } = this.#parts;
    const signal = this.#stop.signal;
    const deadline = performance.now() + provider.startTimeoutMs;
    const parts = { ...this.#parts, signal, deadline, takeWarm: (cwd: string) => this.#parts.pool.take(provider, cwd) };
    const checked = await checkRequest(parts);
    if (!checked.ok) return this.#failed(checked);
    const releaseSlot = await takeSlot(signal, provider.startTimeoutMs);
    if (releaseSlot === undefined) return this.#failed(signal.aborted ? abortedStart : noSlot(provider));
    const start = await startChild(parts, checked.cwd);
    if (!start.ok) {
      releaseSlot();
      return this.#failed(start);
    }
    this.#child = start.child;
    this.#parts.pool.noteStart(provider, start.child);
    void this.#drive(start.child, start.sessionId).finally(() => {
      releaseSlot();
      this.#settle();
    });
    return { ok: true, capabilities: start.child.traits.capabilities };
  }

  #failed(failure: StartFailure): StartFailure {
    // For whoever polls already.
    const stopReason = failure.code === 'REQUEST_CANCELLED' ? 'aborted' : 'error';
    this.news.end({ stopReason, output: '', diagnostic: failure.message, durationMs: 0 });
    this.#settle();
    return failure;
  }

  #settle(): void {
    this.#isOver = true;
    this.#over();
  }

  /** From the prompt to the child's end. Never rejects. */
  async #drive(child: AcpChild, sessionId: string): Promise<void> {
    const startedAt = performance.now();
    // A tool that works is no silence, and neither is a question that waits.
    const isExcused = (): boolean => this.#questions.isWaiting || this.#collector.cards.isWorking;
    const idle = new IdleWatch(this.#parts.provider.idleTimeoutMs, isExcused);
    this.#idle = idle;
    child.listen({
      sessionId,
      onUpdate: this.#collector.take,
      onPermission: (request, withdrawn) => this.#questions.decide(request, withdrawn),
      onSign: () => idle.sign(),
    });
    const answer: Promise<Ending> = child.prompt(sessionId, this.#parts.request.prompt).then(
      (response) => ({ kind: 'answered', response }),
      (error: unknown) => ({ kind: 'failed', error }),
    );
    const ending = await Promise.race([answer, this.#cancelled(), idle.expired.then(() => ({ kind: 'idle' as const }))]);
    idle.stop();
    // A child that answers and still asks is in no order to serve again.
    const isClean = ending.kind === 'cancelled' || !this.#questions.isWaiting;
    if (ending.kind !== 'answered') child.cancel(sessionId);
    // After the cancel, as the protocol has it.
    this.#questions.close();
    const outcome = await this.#outcome(child, ending, answer);
    this.news.end({ ...outcome, durationMs: performance.now() - startedAt });
    const stored = this.#collector.close();
    const last = await this.#lastAnswer(ending, answer);
    await stored;
    await this.#putAway(child, sessionId, isClean && last.kind === 'answered');
  }

  async #cancelled(): Promise<Ending> {
    const { signal } = this.#stop;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return { kind: 'cancelled' };
  }

  async #outcome(child: AcpChild, ending: Ending, answer: Promise<Ending>): Promise<Omit<SubagentResult, 'durationMs'>> {
    switch (ending.kind) {
      case 'answered':
        return await this.#answered(child, ending.response);
      case 'cancelled': {
        const last = child.traits.answersLast ? await within(answer, cancelUsageMs, ending) : ending;
        return { stopReason: 'aborted', output: await this.#collector.partial(), ...this.#usage(usageIn(last)) };
      }
      case 'idle': {
        const { idleTimeoutMs } = this.#parts.provider;
        return await this.#error(child, `the subagent said nothing for ${idleTimeoutMs} ms\n${child.stderrTail()}`);
      }
      case 'failed':
        return await this.#error(child, await describeFailure(child, ending.error), readErrorUsage(ending.error));
      default:
        return ending satisfies never;
    }
  }

  async #answered(child: AcpChild, response: PromptResponse): Promise<Omit<SubagentResult, 'durationMs'>> {
    if (!child.traits.answersLast) await this.#lateUpdates(child);
    const { stopReason, diagnostic } = stopReasonOf(response);
    // Who did not get to an end may have said what counts in any of its messages.
    const output = await (stopReason === 'completed' ? this.#collector.answer() : this.#collector.finish());
    const structured = smallJson(record(record(record(response)['_meta'])[metaKey])['structured'], maxStructuredChars);
    return {
      stopReason,
      output,
      ...(structured === undefined ? {} : { structured }),
      ...this.#usage(readUsage(response)),
      ...(diagnostic === undefined ? {} : { diagnostic: diagnosticText(diagnostic, child.secrets) }),
    };
  }

  async #error(child: AcpChild, why: string, usage?: SubagentUsage): Promise<Omit<SubagentResult, 'durationMs'>> {
    const output = await this.#collector.finish();
    return { stopReason: 'error', output, ...this.#usage(usage), diagnostic: diagnosticText(why, child.secrets) };
  }

  #usage(last: SubagentUsage | undefined): Pick<SubagentResult, 'usage'> {
    const usage = this.#collector.usage(last);
    return usage === undefined ? {} : { usage };
  }

  /** Waits for what still comes after the answer. */
  async #lateUpdates(child: AcpChild): Promise<void> {
    const answeredAt = performance.now();
    const gone = Promise.race([child.closed, this.#cancelled()]).then(() => true);
    for (;;) {
      const now = performance.now();
      const end = Math.min(Math.max(answeredAt, this.#collector.lastUpdate) + quietMs, answeredAt + lateLimitMs);
      if (now >= end || (await within(gone, end - now, false))) return;
      // A thread that stood still reads first what came meanwhile.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** A cancelled child has some time to end its turn in order. */
  async #lastAnswer(ending: Ending, answer: Promise<Ending>): Promise<Ending> {
    if (ending.kind !== 'cancelled' || this.#hurried) return ending;
    return await within(answer, Math.min(cancelAnswerMs, this.#parts.provider.disposeEofGraceMs), ending);
  }

  /** Only a child that did everything right serves again. */
  async #putAway(child: AcpChild, sessionId: string, isClean: boolean): Promise<void> {
    const { pool, provider } = this.#parts;
    if (isClean && !this.#hurried && (await pool.giveBack(provider, child, sessionId))) {
      // It may be another run's from now on.
      this.#child = undefined;
      return;
    }
    const { disposeEofGraceMs: eofMs, disposeGraceMs: termMs } = provider;
    await child.end(this.#hurried ? hurriedGraces : { eofMs, termMs });
  }
}

function usageIn(ending: Ending): SubagentUsage | undefined {
  if (ending.kind === 'answered') return readUsage(ending.response);
  return ending.kind === 'failed' ? readErrorUsage(ending.error) : undefined;
}

const abortedStart: StartFailure = { ok: false, code: 'REQUEST_CANCELLED', message: abortedText };

function noSlot({ name, maxRunning, startTimeoutMs }: SubagentProvider): StartFailure {
  const message = `${maxRunning} runs of the subagent "${name}" are under way, which is the limit, and none ended within ${startTimeoutMs} ms; wait for one and try again`;
  return { ok: false, code: 'OVERLOADED', message };
}

async function describeFailure(child: AcpChild, error: unknown): Promise<string> {
  if (child.isClosed) return `the subagent ended before it answered: ${await child.lastWords()}`;
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code === authRequired) return `the subagent needs to be signed in first: ${String(message)}`;
  const number = typeof code === 'number' ? ` (error ${code})` : '';
  return `the subagent refused its prompt${number}: ${String(message ?? error)}\n${child.stderrTail()}`;
}
