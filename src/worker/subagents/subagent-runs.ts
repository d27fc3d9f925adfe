/**
 * All runs of one session's subagents: starts them, knows the background ones by their ids, and ends them all with the
 * session.
 *
 * Ids count from the log (`agent-1`, `agent-2`, …) and mean something in this session only, so another session's run can
 * neither be named nor reached. Ended background runs are rebuilt from the log: a parked session forgets none.
 */
import { randomUUID } from 'node:crypto';
import type { LogEvent, PermissionMode } from '../../shared/events.ts';
import {
  selfProvider,
  type SubagentApi,
  type SubagentProvider,
  type SubagentQuestion,
  type SubagentRequest,
  type SubagentUsage,
} from '../../shared/subagent-protocol.ts';
import type { QuestionAsker } from '../permission/subagent-questions.ts';
import { BackgroundJobs, type BackgroundJob } from './background-jobs.ts';
import { abortedBeforeStart, jobIdOf, type RunEvent, SubagentRun } from './subagent-run.ts';

export interface SubagentRunsParts {
  readonly sessionId: string;
  /** The session's canonical working directory. */
  readonly cwd: string;
  readonly spillDir: string;
  /** How many delegations stand above this session. */
  readonly depth: number;
  /** The session's own cap of the depth. */
  readonly maxDepth?: number | undefined;
  readonly providers: readonly SubagentProvider[];
  /** Who runs the children of a provider. */
  readonly apiOf: (provider: string) => SubagentApi;
  /** The turn that runs, or the last one. */
  readonly turn: () => number;
  readonly mode: () => PermissionMode;
  /** @throws ServerError LOG_WRITE_FAILED */
  readonly record: (event: RunEvent) => void;
  /** Called once for each run that says what it used, right behind its end in the log. */
  readonly chargeUsage: (usage: SubagentUsage) => void;
  /** Tells the model something at its next step. */
  readonly notice: (text: string) => void;
  /** Asks the client about something a child wants to do. Never rejects. */
  readonly ask: (asker: QuestionAsker, question: SubagentQuestion, signal: AbortSignal) => Promise<boolean>;
}

/** What a call wants started. */
export interface RunSpec {
  readonly callId: string;
  readonly provider: string;
  readonly description: string;
  readonly prompt: string;
  readonly background: boolean;
  /** What the parent has left of its budgets. */
  readonly left: Pick<SubagentRequest, 'deadline' | 'maxTokens' | 'maxCostUsd' | 'maxSteps' | 'maxToolCalls'>;
  /** W3C trace context of the turn that delegates. */
  readonly traceparent?: string | undefined;
  readonly signal: AbortSignal;
}

export type RunStarted =
  | { readonly ok: true; readonly run: SubagentRun }
  | { readonly ok: false; readonly code: string; readonly message: string };

export const mostBackgroundRuns = 10;

export class SubagentRuns {
  readonly #parts: SubagentRunsParts;
  readonly #jobs: BackgroundJobs;
  /** Until nothing of them is left. */
  readonly #live = new Set<SubagentRun>();
  /** Of these, those whose start was given up: their child may be on its way still. */
  readonly #givenUp = new Set<SubagentRun>();
  #lastNumber = 0;
  #disposal: Promise<void> | undefined;

  constructor(parts: SubagentRunsParts) {
    this.#parts = parts;
    this.#jobs = new BackgroundJobs(parts.notice);
  }

  get providers(): readonly SubagentProvider[] {
    return this.#parts.providers;
  }

  /** Runs of which something is left: a child that works, or one that is being ended. */
  get live(): number {
    return this.#live.size;
  }

  /** Takes in one event of the stored log; all of them, in order, before {@link resume}. */
  observe(event: LogEvent): void {
    if (event.type === 'subagent/start') this.#lastNumber = Math.max(this.#lastNumber, numberOf(event.data.runId));
    this.#jobs.observe(event);
  }

  /**
   * Logs the end of runs that the log has left open: they died with their thread or their server.
   *
   * @throws ServerError LOG_WRITE_FAILED
   */
  resume(): void {
    for (const { callId, runId, background } of this.#jobs.open()) {
      const diagnostic = 'The end of this run was not recorded: it ended with its thread or its server.';
      const data = { callId, runId, stopReason: 'error' as const, durationMs: 0, diagnostic, ...(background ? { output: '' } : {}) };
      this.#parts.record({ type: 'subagent/end', data });
      this.#jobs.markEnded(data);
    }
    this.#jobs.repeatNotices();
  }

  /**
   * Starts a run. Fulfils when the child has its prompt, or when it is clear that there will be none. Never rejects.
   *
   * An abort is answered at once, so that a cancelled turn ends without waiting for a child that will not go; the child is
   * reaped behind it. Nothing is started before that is done, and {@link dispose} waits for it, too.
   */
  async start(spec: RunSpec): Promise<RunStarted> {
    if (this.#givenUp.size > 0) await abortedOr(spec.signal, Promise.all([...this.#givenUp].map((run) => run.gone())));
    if (spec.signal.aborted || this.#disposal !== undefined) return { ok: false, code: 'ABORTED', message: abortedBeforeStart };
    if (spec.background && this.#runningJobs >= mostBackgroundRuns) {
      const message = `this session already runs ${mostBackgroundRuns} background subagents; wait for one to end, or end one with subagent_kill`;
      return { ok: false, code: 'OVERLOADED', message };
    }
    const run = this.#make(spec);
    this.#live.add(run);
    void run.gone().then(() => this.#live.delete(run));
    try {
      const started = await run.start(spec.signal);
      if (!started.ok) {
        if (started.code === 'ABORTED') this.#giveUp(run);
        return started;
      }
    } catch {
      return { ok: false, code: 'LOG_WRITE_FAILED', message: 'the session log could not be written' };
    }
    if (spec.background) this.#jobs.add(run);
    return { ok: true, run };
  }

  /** A background run of this session by its id. */
  job(id: string): BackgroundJob | undefined {
    return this.#jobs.get(id);
  }

  /** Ends a background run, of which its model then needs no notice. */
  async kill(id: string): Promise<BackgroundJob | undefined> {
    const job = this.#jobs.get(id);
    if (job?.state !== 'running') return job;
    this.#jobs.markKilled(id);
    job.run.cancel();
    return { state: 'ended', description: job.description, result: await job.run.result };
  }

  /** The ids of the background runs that can be asked after. */
  jobIds(): readonly string[] {
    return this.#jobs.ids();
  }

  /** Ends every run; their results say that they were cancelled. */
  cancelAll(): void {
    for (const run of this.#live) run.cancel();
  }

  /** Fulfils when every run of now has ended, in the log, too; children may still be on their way out. */
  async allEnded(): Promise<void> {
    await Promise.all([...this.#live].map((run) => run.result));
  }

  /** Refuses new runs and ends all; fulfils when nothing of them is left. Memoised; never rejects. */
  dispose(): Promise<void> {
    this.#disposal ??= this.#dispose();
    return this.#disposal;
  }

  #giveUp(run: SubagentRun): void {
    this.#givenUp.add(run);
    void run.gone().then(() => this.#givenUp.delete(run));
  }

  async #dispose(): Promise<void> {
    // A session that leaves tells its model nothing more.
    this.#jobs.close();
    await Promise.all([...this.#live].map((run) => run.dispose()));
  }

  get #runningJobs(): number {
    return [...this.#live].filter((run) => run.background && run.ended === undefined).length;
  }

  #make(spec: RunSpec): SubagentRun {
    const { sessionId, cwd, spillDir, depth, maxDepth, providers, apiOf, turn, mode, record, chargeUsage, ask } = this.#parts;
    this.#lastNumber += 1;
    const { callId, provider, description, prompt, background, left, traceparent } = spec;
    const asker = { callId, turn: turn(), provider, description };
    return new SubagentRun({
      api: apiOf(provider),
      request: {
        owner: sessionId,
        runId: `agent-${this.#lastNumber}:${randomUUID()}`,
        provider,
        prompt,
        cwd,
        depth: depth + 1,
        ...(maxDepth === undefined ? {} : { maxDepth }),
        // What a process may do is set where it is configured: the parent's mode could be a looser one.
        ...(provider === selfProvider ? { mode: mode(), ...(traceparent === undefined ? {} : { traceparent }) } : {}),
        ...left,
        spillDir,
      },
      callId,
      turn: turn(),
      description,
      // Where it works is the provider's to say.
      cwd: providers.find(({ name }) => name === provider)?.cwd ?? cwd,
      background,
      record,
      chargeUsage,
      askUp: (question, signal) => ask(asker, question, signal),
    });
  }
}

function numberOf(runId: string): number {
  return Number(/^agent-(\d{1,9})$/.exec(jobIdOf(runId))?.[1] ?? 0);
}

/** Fulfils with the promise, which must not reject, or when the signal aborts. */
async function abortedOr(signal: AbortSignal, done: Promise<unknown>): Promise<void> {
  if (signal.aborted) return;
  const over = new AbortController();
  const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true, signal: over.signal }));
  await Promise.race([done, aborted]);
  over.abort();
}
