/**
 * One run, from the checked options to its outcome: opens the results, starts the agent, runs the attempts, and leaves nothing behind.
 */
import { ServerError } from '../../shared/errors.ts';
import { configError } from '../config/config-error.ts';
import { AgentHost } from './agent/agent-host.ts';
import type { AttemptParts } from './attempt/attempt-parts.ts';
import { runAttempt } from './attempt/run-attempt.ts';
import { CostMeter } from './cost-meter.ts';
import type { Attempt } from './job.ts';
import type { JobResult } from './job-result.ts';
import { runMark } from './job-environment.ts';
import { Attempts } from './jobs/attempts.ts';
import { Ledger } from './ledger/ledger.ts';
import type { RunEvent, RunObserver, RunOutcome } from './run-event.ts';
import type { RunOptions } from './run-options.ts';
import { readSidecar, refuseOtherSetup, writeSidecar } from './run-sidecar.ts';
import { RunStop } from './run-stop.ts';
import { RunTotals } from './run-totals.ts';
import { runSchedule } from './scheduler.ts';
import { endLeftovers, removeStaleRuns, RunDirectory } from './workspace/run-directory.ts';
import { Worktrees } from './workspace/worktrees.ts';

/** More are not held in memory for the views: the report then does without what only they say. */
const heldAttempts = 10_000;
/** A timer of Node takes no longer time. */
const longestTimerMs = 2_147_483_647;

export class Batch {
  readonly #options: RunOptions;
  readonly #attempts: Attempts;
  readonly #totals = new RunTotals();
  readonly #stop: RunStop;
  readonly #cost: CostMeter;
  readonly #start = Date.now();
  #observers: readonly RunObserver[] = [];
  /** By index, where there are few enough. */
  #held: readonly Attempt[] | undefined;
  #ledger: Ledger | undefined;
  #run: RunDirectory | undefined;
  #host: AgentHost | undefined;
  #last: JobResult | undefined;
  #failure: ServerError | undefined;
  #refused = 0;
  #blocked: string | undefined;
  #earlierAgent: string | undefined;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#attempts = new Attempts(options.jobs, options.repeat);
    this.#stop = new RunStop((why) => this.#emit({ type: 'run/draining', time: Date.now(), why }));
    this.#cost = new CostMeter(options.maxCostUsd, (why) => this.#stop.drain('max-cost', why));
  }

  /** The result that came last; for a run of one job. */
  get lastResult(): JobResult | undefined {
    return this.#last;
  }

  /** Somebody wants it to end: once, nothing new starts; twice, everything is cancelled; a third time, nothing is waited for. */
  interrupt(): void {
    if (!this.#stop.isDraining) this.#stop.drain('signal', 'asked to stop: what runs is finished; ask again to cancel it');
    else if (!this.#stop.isCancelled) this.#stop.cancel('signal', '');
    else this.abandon();
  }

  /** Kills what can be killed at once; worktrees are left to the next run. */
  abandon(): void {
    this.#host?.kill();
    if (this.#run !== undefined) endLeftovers(this.#run.id);
  }

  /**
   * @throws ServerError CONFIG_INVALID before anything has run; LOG_WRITE_FAILED when results could not be written; INTERNAL when a report
   * could not
   */
  async run(): Promise<RunOutcome> {
    try {
      await this.#prepare();
      await this.#work();
    } finally {
      await this.#leave();
    }
    const outcome = this.#outcome();
    this.#emit({ type: 'run/end', time: Date.now(), outcome });
    this.#sayAtEnd();
    const problems: unknown[] = this.#failure === undefined ? [] : [this.#failure];
    for (const observer of this.#observers) await observer.finish?.(outcome).catch((error: unknown) => problems.push(error));
    if (problems.length > 0) throw problems[0];
    return outcome;
  }

  async #prepare(): Promise<void> {
    const { resultsPath, ordered, retryErrors, force, worktreeDir, observers, notice, jobs, agent } = this.#options;
    this.#held = await this.#heldAttempts();
    this.#observers = observers(this.#held);
    for (const problem of jobs.problems) notice(`left out: ${problem}`);
    if (resultsPath !== undefined) {
      const onEarlier = (result: JobResult): void => this.#totals.add(result);
      this.#ledger = await Ledger.open({ path: resultsPath, attempts: this.#attempts, ordered, retryErrors, force, onEarlier });
      const earlier = readSidecar(resultsPath);
      this.#earlierAgent = earlier?.agent;
      const hasResults = this.#totals.count + this.#ledger.strangers > 0;
      if (hasResults && !force) refuseOtherSetup(resultsPath, earlier?.setup, agent.setup);
      if (this.#ledger.strangers > 0)
        notice(`${this.#ledger.strangers} results are of jobs that the jobs file does not have; they are left as they are`);
    }
    await removeStaleRuns(worktreeDir);
    this.#run = RunDirectory.create(worktreeDir);
  }

  async #work(): Promise<void> {
    const { agent, concurrency, shuffleSeed, maxTimeMs, resultsPath, version } = this.#options;
    const order = this.#attempts.order((index) => this.#ledger?.isDone(index) ?? false, shuffleSeed);
    const run = this.#run ?? RunDirectory.create(this.#options.worktreeDir);
    // Where nothing is to be run, no agent is asked for its name.
    let agentName = (order.length === 0 ? this.#earlierAgent : undefined) ?? agent.argv[0] ?? '';
    if (order.length > 0) {
      this.#host = new AgentHost({
        argv: agent.argv,
        cwd: agent.cwd,
        env: process.env,
        runId: run.id,
        clientVersion: version,
        signal: this.#stop.cancelSignal,
        onBroken: (why) => this.#stop.cancel('agent', why),
      });
      // A command that is wrong shows before any job has a result.
      agentName = await this.#host.acquire().then(
        (connection) => connection.agentName,
        (error: Error) => {
          if (this.#stop.isCancelled) return agentName;
          throw configError({ key: '--agent', expected: `a command that speaks ACP, but ${error.message}`, where: 'command line' });
        },
      );
    }
    if (resultsPath !== undefined) {
      writeSidecar(resultsPath, this.#options, { agent: agentName, runId: run.id, startedAt: new Date(this.#start).toISOString() });
    }
    const done = this.#attempts.count - order.length;
    this.#emit({ type: 'run/start', time: Date.now(), total: order.length, done, concurrency, agent: agentName });
    if (this.#host === undefined) return;
    this.#cost.add(this.#totals.costUsd);
    const timer =
      maxTimeMs === undefined
        ? undefined
        : setTimeout(() => this.#stop.cancel('max-time', 'the time of the run is over'), Math.min(maxTimeMs, longestTimerMs));
    const parts = this.#parts(run, this.#host);
    await runSchedule({ order, concurrency, stop: this.#stop, cost: this.#cost, run: (index) => this.#one(parts, index) });
    clearTimeout(timer);
  }

  #parts(run: RunDirectory, host: AgentHost): AttemptParts {
    const { agent, defaults, keepWorktrees, retries, retryDelayMs, withheld, resultsPath } = this.#options;
    return {
      host,
      run,
      worktrees: new Worktrees(run),
      environment: { ambient: process.env, withheld, mark: runMark(run.id, 'command') },
      stop: this.#stop,
      cost: this.#cost,
      defaults,
      stateDir: agent.stateDir,
      model: agent.setup.model,
      patchDir: resultsPath === undefined ? run.path : `${resultsPath}.patches`,
      keepWorktrees,
      retries,
      retryDelayMs,
      onRefused: () => {
        this.#refused += 1;
      },
      onBlocked: (why) => {
        this.#blocked ??= why;
        this.#stop.drain('agent', why);
      },
      emit: (event) => this.#emit(event),
      now: Date.now,
      random: Math.random,
    };
  }

  /** Runs one attempt and writes down what came of it. Never rejects. */
  async #one(parts: AttemptParts, index: number): Promise<number | undefined> {
    let attempt: Attempt;
    try {
      attempt = this.#held?.[index] ?? (await this.#attempts.attempt(index));
    } catch (error) {
      // The jobs file was changed under the run.
      this.#failure ??= configError({ key: 'jobs file', expected: 'it to stay as it was', came: String(error), where: 'while it ran' });
      this.#stop.drain('results', 'the jobs file has changed');
      return undefined;
    }
    const { result, isFinal, costUnknown } = await runAttempt(parts, attempt);
    if (result === undefined) return undefined;
    if (isFinal && !(await this.#keep(index, result))) return undefined;
    this.#last = result;
    this.#totals.add(result);
    this.#emit({ type: 'job/end', time: Date.now(), result });
    if (costUnknown) this.#cost.unknown();
    const isGood = result.status === 'passed' || result.status === 'completed';
    if (this.#options.failFast && isFinal && !isGood) this.#stop.drain('fail-fast', `${result.key} ended ${result.status}`);
    return result.costUsd;
  }

  async #keep(index: number, result: JobResult): Promise<boolean> {
    try {
      await this.#ledger?.append(index, result);
      return true;
    } catch (error) {
      this.#failure ??= error instanceof ServerError ? error : new ServerError('LOG_WRITE_FAILED', 'The results could not be written.');
      this.#stop.cancel('results', this.#failure.message);
      return false;
    }
  }

  /** Nothing of the run stays: no process, no worktree, no lock. Never rejects. */
  async #leave(): Promise<void> {
    await this.#host?.stop();
    if (this.#run !== undefined) {
      endLeftovers(this.#run.id);
      if (this.#options.keepWorktrees) this.#run.keep();
      else await this.#run.remove();
    }
    await this.#ledger?.close();
    await this.#options.jobs.close();
  }

  #outcome(): RunOutcome {
    const { jobs } = this.#options;
    const facts = { total: this.#attempts.count, invalid: jobs.invalid, wallMs: Date.now() - this.#start };
    const outcome = this.#totals.outcome({ ...facts, stopped: this.#stop.cause });
    const { stopped: _, ...whole } = outcome;
    // A stop that came when all was done has stopped nothing.
    return outcome.notRun === 0 && !this.#stop.isCancelled ? whole : outcome;
  }

  #sayAtEnd(): void {
    const { notice, keepWorktrees } = this.#options;
    if (keepWorktrees && this.#run !== undefined) notice(`the worktrees are in ${this.#run.path}`);
    if (this.#blocked !== undefined) notice(`stopped, as no job can do anything: ${this.#blocked} Run the same command again then.`);
    if (this.#refused > 0) {
      notice(`${this.#refused} permission requests were refused, as nobody is here to answer them: see --mode and --policy-file`);
    }
  }

  async #heldAttempts(): Promise<readonly Attempt[] | undefined> {
    if (this.#attempts.count > heldAttempts) return undefined;
    const held: Attempt[] = [];
    for (let index = 0; index < this.#attempts.count; index += 1) held.push(await this.#attempts.attempt(index));
    return held;
  }

  #emit(event: RunEvent): void {
    for (const observer of this.#observers) observer.onEvent(event);
  }
}
