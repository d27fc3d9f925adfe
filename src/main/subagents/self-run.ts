/**
 * One run of the provider `self`: another session of this server that works for the one that delegated. Its news wait here
 * for the poll of that session's thread.
 *
 * Ends once, by whichever comes first: the turn's end, silence, a cancel. The session leaves its thread as soon as the run
 * has ended; its log stays.
 */
import { ServerError } from '../../shared/errors.ts';
import type { SubagentActivity, SubagentProvider, SubagentRequest, SubagentResult, SubagentUsage } from '../../shared/subagent-protocol.ts';
import { IdleWatch } from '../../shared/subagents/idle-watch.ts';
import { RunNews } from '../../shared/subagents/run-news.ts';
import type { Session } from '../sessions/session.ts';
import { SelfQuestions } from './self-questions.ts';
import { resultOfFailure, resultOfTurn } from './self-result.ts';

export interface SelfRunParts {
  readonly request: SubagentRequest;
  readonly provider: SubagentProvider;
  /** On its thread. */
  readonly session: Session;
}

/** UTF-16 units kept of what was said, for a run that does not end by itself. */
const keptChars = 256 * 1024;

export class SelfRun {
  readonly news = new RunNews();
  readonly questions: SelfQuestions;
  readonly session: Session;
  /** Nothing of the run is left but its log. Never rejects. */
  readonly over: Promise<void>;
  readonly #parts: SelfRunParts;
  readonly #startedAt = performance.now();
  readonly #idle: IdleWatch;
  /** Calls of the session that run, or wait. */
  readonly #openCalls = new Set<string>();
  #text = '';
  #usage: SubagentUsage | undefined;

  /** The prompt goes out now. */
  constructor(parts: SelfRunParts) {
    const { provider, session } = parts;
    this.#parts = parts;
    this.session = session;
    this.questions = new SelfQuestions(provider.permission, this.news);
    // A tool that works is no silence, and neither is a question that waits.
    this.#idle = new IdleWatch(provider.idleTimeoutMs, () => this.questions.isWaiting || this.#openCalls.size > 0);
    void this.#idle.expired.then(() => this.#endIdle());
    this.over = this.#run();
  }

  get owner(): string {
    return this.#parts.request.owner;
  }

  get isRunning(): boolean {
    return this.news.result === undefined;
  }

  /** What the session did. */
  take(activities: readonly SubagentActivity[]): void {
    this.#idle.sign();
    for (const activity of activities) {
      if (activity.kind === 'text') this.#text = (this.#text + activity.text).slice(-keptChars);
      else if (activity.kind === 'usage') this.#usage = activity.usage;
      else if (activity.kind === 'tool') this.#followCall(activity);
      this.news.add(activity);
    }
  }

  /** Settles the run as `aborted` at once; the session's turn ends behind it, in order. */
  cancel(): void {
    this.#end({ stopReason: 'aborted', output: this.#text });
    this.session.cancel();
  }

  async #run(): Promise<void> {
    const { prompt, traceparent } = this.#parts.request;
    // In the caller's trace, beside the turn that delegates: that one's span has no id before it is exported.
    const options = traceparent === undefined ? {} : { traceparent };
    try {
      const turn = await this.session.prompt([{ type: 'text', text: prompt }], options, new AbortController().signal);
      this.#end(resultOfTurn(turn, this.#text));
    } catch (error) {
      const known = error instanceof ServerError ? error : new ServerError('INTERNAL', 'The server met an unexpected fault.');
      this.#end(resultOfFailure(known, this.#text));
    }
    // Its thread is free again; a fault of its last barrier is in the server's own log.
    await this.session.dispose().catch(() => undefined);
  }

  #followCall({ childCallId, status }: Extract<SubagentActivity, { kind: 'tool' }>): void {
    if (status === 'completed' || status === 'failed') this.#openCalls.delete(childCallId);
    else this.#openCalls.add(childCallId);
  }

  #endIdle(): void {
    const { idleTimeoutMs } = this.#parts.provider;
    this.#end({ stopReason: 'error', output: this.#text, diagnostic: `it did nothing for ${idleTimeoutMs} ms` });
    this.session.cancel();
  }

  #end(result: Omit<SubagentResult, 'durationMs' | 'logPath'>): void {
    this.#idle.stop();
    this.questions.close();
    const usage = result.usage ?? this.#usage;
    this.news.end({
      ...result,
      ...(usage === undefined ? {} : { usage }),
      durationMs: Math.round(performance.now() - this.#startedAt),
      logPath: this.session.identity.paths.log,
    });
  }
}
