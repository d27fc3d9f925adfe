/**
 * One run of a subagent, from its start to the proof that nothing of it is left: polls whoever runs the child, logs what it
 * does, passes its questions up, and settles once.
 *
 * The first end wins. A cancel settles the run at once with what came; the child is disposed of behind it.
 */
import { toWireError } from '../../shared/errors.ts';
import type { EventData } from '../../shared/events.ts';
import type {
  SubagentApi,
  SubagentNews,
  SubagentQuestion,
  SubagentRequest,
  SubagentResult,
  SubagentStarted,
  SubagentUsage,
} from '../../shared/subagent-protocol.ts';
import { ActivityLog } from './activity-log.ts';
import { clipDiagnostic, keptAnswer, outputBytes } from './run-outcome.ts';
import { RunProgress } from './run-progress.ts';

/** The events a run logs. */
export type RunEvent = {
  [T in 'subagent/start' | 'subagent/activity' | 'subagent/end']: { readonly type: T; readonly data: EventData[T] };
}['subagent/start' | 'subagent/activity' | 'subagent/end'];

export interface RunParts {
  readonly api: SubagentApi;
  readonly request: SubagentRequest;
  /** The tool call that delegates. */
  readonly callId: string;
  readonly turn: number;
  readonly description: string;
  /** Where the child works, for the log. */
  readonly cwd: string;
  readonly background: boolean;
  /** @throws ServerError LOG_WRITE_FAILED */
  readonly record: (event: RunEvent) => void;
  /** Called once, right behind the run's end in the log. */
  readonly chargeUsage: (usage: SubagentUsage) => void;
  /** Whether the child may do this. Never rejects; an aborted signal takes the question back. */
  readonly askUp: (question: SubagentQuestion, signal: AbortSignal) => Promise<boolean>;
}

/** The id that a model reads; the run's own is unique over all sessions. */
export function jobIdOf(runId: string): string {
  return runId.split(':', 1)[0] ?? runId;
}

export type RunStart = { readonly ok: true } | { readonly ok: false; readonly code: string; readonly message: string };

/** What the model reads for a run that was cancelled before there was one. */
export const abortedBeforeStart = 'subagent request was aborted before the ACP child started';
/** One long poll. A shorter one would only cost more of them. */
const pollMs = 25_000;
/** Between two polls: a child that streams is looked at so often, and not for every word. */
const gapMs = 25;
/** A young run is polled without a gap: many are over by then, and to them it would be most of their time. */
const youngMs = 200;
/** From a cancel to the settled result, should whoever runs the child not answer. */
const cancelWaitMs = 300;

export class SubagentRun {
  readonly runId: string;
  /** What its model calls it. */
  readonly jobId: string;
  readonly provider: string;
  readonly description: string;
  readonly background: boolean;
  /** Never rejects. */
  readonly result: Promise<SubagentResult>;
  /** What came since somebody last asked. */
  readonly news = new RunProgress();
  /** What the run has come to. */
  readonly progress = new RunProgress();
  readonly #parts: RunParts;
  readonly #log: ActivityLog;
  readonly #over = new AbortController();
  readonly #asked = new Set<string>();
  readonly #startedAt = performance.now();
  #settle: (result: SubagentResult) => void = () => undefined;
  #ended: SubagentResult | undefined;
  #cancelled = false;
  #started = false;
  #output = '';
  #usage: SubagentUsage | undefined;
  #gone: Promise<void> | undefined;

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.runId = parts.request.runId;
    this.jobId = jobIdOf(this.runId);
    this.provider = parts.request.provider;
    this.description = parts.description;
    this.background = parts.background;
    this.result = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#log = new ActivityLog({
      callId: parts.callId,
      runId: this.runId,
      record: parts.record,
      onFault: (error) => this.#fail(error),
    });
  }

  get ended(): SubagentResult | undefined {
    return this.#ended;
  }

  get elapsedMs(): number {
    return this.#ended?.durationMs ?? Math.round(performance.now() - this.#startedAt);
  }

  /**
   * Starts the child. A refusal comes when nothing is left of it. An abort alone is answered at once, before the child has
   * been reaped: whoever starts the next run, or lets the session go, waits for {@link gone}.
   *
   * @throws ServerError LOG_WRITE_FAILED; the child is then disposed of
   */
  async start(signal: AbortSignal): Promise<RunStart> {
    if (signal.aborted) return this.#notStarted();
    const abort = (): void => this.cancel();
    signal.addEventListener('abort', abort, { once: true });
    try {
      const started = await Promise.race([this.#startChild(), this.result.then(() => undefined)]);
      if (started === undefined || this.#cancelled) return this.#notStarted();
      if (!started.ok) {
        this.#end(this.#localEnd('error'));
        return { ok: false, code: started.code, message: started.message };
      }
      this.#started = true;
      this.#logStart(started.logPath);
      void this.#follow();
      // A background run lives on when its turn is cut short; the session decides about it.
      if (!this.background) this.#endWith(signal);
      return { ok: true };
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Ends the run as `aborted`, at the latest {@link cancelWaitMs} later. Without effect on one that has ended. */
  cancel(): void {
    if (this.#cancelled || this.#ended !== undefined) return;
    this.#cancelled = true;
    void this.#stopChild();
    if (this.#started) setTimeout(() => this.#end(this.#localEnd('aborted')), cancelWaitMs);
    else this.#end(this.#localEnd('aborted'));
  }

  /** Ends the run and fulfils when nothing of it is left. Memoised; never rejects. */
  dispose(): Promise<void> {
    this.cancel();
    return this.gone();
  }

  /** Fulfils when nothing of the child is left, after the run's end. Never rejects. */
  async gone(): Promise<void> {
    await this.result;
    await this.#gone;
  }

  /** Resolves whatever happens: a thread that was lost is a refusal, too. */
  async #startChild(): Promise<SubagentStarted> {
    const { api, request } = this.#parts;
    const starting = api.startSubagent(request);
    // Even a start that was given up may have made a child: it is disposed of when the start has settled.
    this.#gone = starting
      .then((started) => (started.ok ? this.result.then(() => api.disposeSubagent(request.owner, this.runId)) : undefined))
      // Lost with whoever ran it, and whoever clears up behind that one ends the child, too.
      .catch(() => undefined);
    try {
      return await starting;
    } catch (error) {
      const { code, message } = toWireError(error);
      return { ok: false, code, message };
    }
  }

  #notStarted(): RunStart {
    this.#cancelled = true;
    this.#end(this.#localEnd('aborted'));
    return { ok: false, code: 'ABORTED', message: abortedBeforeStart };
  }

  #endWith(signal: AbortSignal): void {
    const abort = (): void => this.cancel();
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    void this.result.then(() => signal.removeEventListener('abort', abort));
  }

  #logStart(logPath: string | undefined): void {
    const { callId, turn, background, description, cwd } = this.#parts;
    const log = logPath === undefined ? {} : { logPath };
    try {
      const data = { turn, callId, runId: this.runId, provider: this.provider, description, cwd, background, ...log };
      this.#parts.record({ type: 'subagent/start', data });
    } catch (error) {
      this.#started = false;
      this.#end(this.#localEnd('error'));
      throw error;
    }
  }

  async #follow(): Promise<void> {
    const { api, request } = this.#parts;
    let seq = 0;
    try {
      while (this.#ended === undefined) {
        const answer = await api.awaitSubagent(request.owner, this.runId, seq, pollMs);
        if (this.#ended !== undefined) return;
        if (!answer.ok)
          return this.#end({ ...this.#localEnd('error'), diagnostic: 'Whoever ran the subagent does not know the run any more.' });
        seq = answer.value.seq;
        this.#take(answer.value);
        if (this.#ended === undefined && this.elapsedMs > youngMs) await new Promise((resolve) => setTimeout(resolve, gapMs));
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  #take(news: SubagentNews): void {
    this.#log.lost(news.dropped);
    for (const activity of news.activities) {
      this.news.apply(activity);
      this.progress.apply(activity);
      if (activity.kind === 'text') this.#output = (this.#output + activity.text).slice(-outputBytes);
      else if (activity.kind === 'usage') this.#usage = activity.usage;
    }
    this.#log.take(news.activities);
    for (const question of news.questions) this.#ask(question);
    if (news.result !== undefined) this.#end(news.result);
  }

  #ask(question: SubagentQuestion): void {
    const { api, request, askUp } = this.#parts;
    if (this.#asked.has(question.questionId)) return;
    this.#asked.add(question.questionId);
    void askUp(question, this.#over.signal)
      .then((allow) => api.answerSubagent(request.owner, this.runId, question.questionId, allow))
      // The child is lost with whoever ran it: nobody waits for the answer.
      .catch(() => undefined);
  }

  async #stopChild(): Promise<void> {
    const { api, request } = this.#parts;
    // A child that is lost has stopped.
    await api.cancelSubagent(request.owner, this.runId).catch(() => undefined);
  }

  #fail(fault: unknown): void {
    void this.#stopChild();
    this.#end({ ...this.#localEnd('error'), diagnostic: toWireError(fault).message });
  }

  /** An end that nobody reported, with the text that came. */
  #localEnd(stopReason: 'aborted' | 'error'): SubagentResult {
    return { stopReason, output: this.#output, durationMs: Math.round(performance.now() - this.#startedAt) };
  }

  #end(result: SubagentResult): void {
    if (this.#ended !== undefined) return;
    this.#ended = result;
    this.#over.abort();
    if (this.#started) this.#logEnd(result);
    this.#settle(result);
  }

  #logEnd(result: SubagentResult): void {
    const { stopReason, durationMs, diagnostic, logPath } = result;
    const usage = result.usage ?? this.#usage;
    try {
      this.#log.finish();
      const { unlogged } = this.#log;
      this.#parts.record({
        type: 'subagent/end',
        data: {
          callId: this.#parts.callId,
          runId: this.runId,
          stopReason,
          durationMs,
          ...(usage === undefined ? {} : { usage }),
          ...(diagnostic === undefined ? {} : { diagnostic: clipDiagnostic(diagnostic) }),
          ...(this.background ? keptAnswer(result) : {}),
          ...(unlogged === 0 ? {} : { unlogged }),
          ...(logPath === undefined ? {} : { logPath }),
        },
      });
    } catch {
      // The disk refuses: whatever the session logs next fails the same way, and says so.
    }
    if (usage !== undefined) this.#parts.chargeUsage(usage);
  }
}
