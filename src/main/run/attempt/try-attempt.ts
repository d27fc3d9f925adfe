/**
 * One try at an attempt: workspace, setup, session, patch, check, and the workspace gone again. Never rejects.
 */
import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isSessionId, sessionLogPath } from '../../../shared/log/session-paths.ts';
import type { AgentConnection } from '../agent/agent-connection.ts';
import { AgentFault, toAgentFault } from '../agent/agent-fault.ts';
import { JobSession, type SessionEnd } from '../agent/job-session.ts';
import { type CommandOutcome, runCommand } from '../command.ts';
import type { Attempt } from '../job.ts';
import { commandEnvironment } from '../job-environment.ts';
import type { JobState } from '../run-event.ts';
import { type Patch, takePatch } from '../workspace/patch.ts';
import type { Worktree } from '../workspace/worktrees.ts';
import type { AttemptParts } from './attempt-parts.ts';
import { toolsStarted } from './tools-started.ts';
import { errorVerdict, judge, type Verdict } from './verdict.ts';

/** An agent that is ending answers `cancelled` first, and is gone within the time that it takes to end in order. */
const goingPatienceMs = 8_000;

export interface TryEnd {
  readonly verdict: Verdict;
  readonly session: SessionEnd | undefined;
  readonly setup: CommandOutcome | undefined;
  readonly check: CommandOutcome | undefined;
  readonly patch: Patch | undefined;
  readonly baseCommit: string | undefined;
  readonly logPath: string | undefined;
  readonly setupMs: number;
  /** It may have changed something that another try would meet. */
  readonly sideEffects: boolean;
  /** What every other job will meet too, until a person does something; it says nothing about this one. */
  readonly blocked: string | undefined;
}

export async function tryAttempt(parts: AttemptParts, attempt: Attempt): Promise<TryEnd> {
  const running = new Try(parts, attempt);
  try {
    await running.run();
  } catch (error) {
    running.verdict = errorVerdict('internal', `the runner met a fault: ${describe(error)}`, false);
  } finally {
    await running.leave();
  }
  return running.end();
}

class Try {
  verdict: Verdict | undefined;
  readonly #parts: AttemptParts;
  readonly #attempt: Attempt;
  readonly #signal: AbortSignal;
  #worktree: Worktree | undefined;
  #cwd = '';
  #setup: CommandOutcome | undefined;
  #check: CommandOutcome | undefined;
  #session: SessionEnd | undefined;
  #patch: Patch | undefined;
  #logPath: string | undefined;
  #setupMs = 0;
  #sideEffects = false;
  #blocked: string | undefined;

  constructor(parts: AttemptParts, attempt: Attempt) {
    this.#parts = parts;
    this.#attempt = attempt;
    this.#signal = parts.stop.cancelSignal;
  }

  async run(): Promise<void> {
    const { job } = this.#attempt;
    if (job.budget?.deadline !== undefined && job.budget.deadline <= this.#parts.now()) {
      this.verdict = { status: 'budget', error: 'its deadline had passed before it started', retryable: false };
      return;
    }
    this.#enter('preparing');
    const start = performance.now();
    const ready = await this.#prepare();
    this.#setupMs = performance.now() - start;
    if (!ready || this.#signal.aborted) return;
    this.#enter('running');
    const fault = await this.#converse();
    if (this.#signal.aborted) return;
    if (fault?.needsPerson === true) {
      this.#blocked = fault.message;
      return;
    }
    await this.#takePatch();
    const evidence = { fault, stopReason: this.#session?.stopReason, limited: this.#session?.limited ?? false };
    // A turn that was ended by a limit may have done its work; one that failed, or that somebody else cancelled, has not.
    const isWorthChecking = evidence.limited || (fault === undefined && evidence.stopReason !== 'cancelled');
    if (job.check !== undefined && isWorthChecking) {
      this.#enter('checking');
      this.#check = await this.#command(job.check, job.checkTimeoutMs);
    }
    this.verdict ??= judge({ ...evidence, check: this.#check });
  }

  /** Ends what was started and removes what was made. Never rejects. */
  async leave(): Promise<void> {
    await Promise.all([this.#setup?.end(), this.#check?.end()]);
    if (!this.#parts.keepWorktrees) await this.#worktree?.remove();
  }

  end(): TryEnd {
    // A cancelled run asks nothing more of anybody: whatever was found out is not final.
    const cancelled: Verdict = { status: 'cancelled', error: 'the run was stopped', retryable: false };
    return {
      verdict: this.#signal.aborted ? cancelled : (this.verdict ?? errorVerdict('internal', 'the try came to no end', false)),
      session: this.#session,
      setup: this.#setup,
      check: this.#check,
      patch: this.#patch,
      baseCommit: this.#worktree?.baseCommit,
      logPath: this.#logPath,
      setupMs: this.#setupMs,
      sideEffects: this.#sideEffects,
      blocked: this.#blocked,
    };
  }

  #enter(state: JobState): void {
    this.#parts.emit({ type: 'job/state', time: this.#parts.now(), key: this.#attempt.key, state });
  }

  async #prepare(): Promise<boolean> {
    const { job } = this.#attempt;
    try {
      this.#cwd = await this.#makePlace();
    } catch (error) {
      this.verdict = errorVerdict('setup', describe(error), false);
      return false;
    }
    if (job.setup === undefined) return true;
    this.#setup = await this.#command(job.setup, job.setupTimeoutMs);
    if (this.#setup.spawnError === undefined && this.#setup.exitCode === 0 && !this.#setup.timedOut) return true;
    this.verdict = errorVerdict('setup', `the setup ${howItFailed(this.#setup)}`, false);
    return false;
  }

  async #makePlace(): Promise<string> {
    const { place } = this.#attempt.job;
    if (place.kind === 'directory') {
      await requireDirectory(place.cwd);
      return place.cwd;
    }
    this.#worktree = await this.#parts.worktrees.create(place, this.#signal);
    const cwd = join(this.#worktree.directory, place.subdirectory);
    await requireDirectory(cwd);
    const [root, real] = await Promise.all([realpath(this.#worktree.directory), realpath(cwd)]);
    // A link in the repository may lead anywhere.
    if (relative(root, real).startsWith('..')) throw new Error('the subdirectory leads out of the worktree');
    return cwd;
  }

  async #command(argv: readonly string[], timeoutMs: number): Promise<CommandOutcome> {
    const env = commandEnvironment(this.#parts.environment, this.#attempt.job.env, this.#attempt.seed);
    return await runCommand({ argv, cwd: this.#cwd, env, timeoutMs, signal: this.#signal });
  }

  async #converse(): Promise<AgentFault | undefined> {
    let connection: AgentConnection;
    try {
      connection = await this.#parts.host.acquire();
    } catch (error) {
      return toAgentFault(error, () => describe(error));
    }
    let countedUsd = 0;
    const { key } = this.#attempt;
    const { emit, now, cost, defaults, onRefused } = this.#parts;
    const session = await new JobSession(connection, {
      attempt: this.#attempt,
      cwd: this.#cwd,
      defaults,
      signal: this.#signal,
      onRefused,
      onProgress: (chars) => emit({ type: 'job/progress', time: now(), key, chars }),
      onTurn: (turn, usage, costUsd) => {
        countedUsd += costUsd ?? 0;
        if (costUsd !== undefined) cost.add(costUsd);
        emit({
          type: 'job/turn',
          time: now(),
          key,
          turn,
          ...(usage === undefined ? {} : { usage }),
          ...(costUsd === undefined ? {} : { costUsd }),
        });
      },
    }).run();
    this.#session = session;
    const rest = (session.costUsd ?? 0) - countedUsd;
    if (rest > 0) cost.add(rest);
    this.#logPath = this.#findLog(connection, session.sessionId);
    const fault = session.fault ?? (await this.#lostMeanwhile(connection, session));
    this.#sideEffects =
      session.toolsSeen || (fault !== undefined && session.prompted && connection.isOwn && (await toolsStarted(this.#logPath)));
    return fault;
  }

  /** Nobody here cancelled the turn: then the agent is on its way out, or somebody else has a hand in it. */
  async #lostMeanwhile(connection: AgentConnection, { stopReason, limited }: SessionEnd): Promise<AgentFault | undefined> {
    if (stopReason !== 'cancelled' || limited || this.#signal.aborted) return undefined;
    const why = await Promise.race([connection.lost, delay(goingPatienceMs, undefined, { ref: false })]);
    return why === undefined ? undefined : new AgentFault('lost', `the agent was lost: ${why}`, { retryable: true });
  }

  #findLog(connection: AgentConnection, sessionId: string | undefined): string | undefined {
    const { stateDir } = this.#parts;
    if (stateDir === undefined || !connection.isOwn || !isSessionId(sessionId)) return undefined;
    return sessionLogPath(stateDir, sessionId);
  }

  async #takePatch(): Promise<void> {
    if (this.#worktree === undefined || this.#session?.prompted !== true) return;
    const name = createHash('sha256').update(this.#attempt.key).digest('hex').slice(0, 16);
    const readable = this.#attempt.key.replaceAll(/[^\w.-]/g, '_').slice(0, 80);
    try {
      this.#patch = await takePatch(this.#worktree, {
        scratch: join(this.#parts.run.path, `patch-${name}`),
        filePath: join(this.#parts.patchDir, `${readable}-${name.slice(0, 8)}.patch`),
        signal: this.#signal,
      });
    } catch (error) {
      this.verdict = errorVerdict('internal', `the patch could not be made: ${describe(error)}`, false);
    }
  }
}

async function requireDirectory(path: string): Promise<void> {
  const info = await stat(path).catch(() => undefined);
  if (info?.isDirectory() !== true) throw new Error(`there is no directory ${path}`);
}

function howItFailed({ spawnError, timedOut, exitCode, signal }: CommandOutcome): string {
  if (spawnError !== undefined) return spawnError;
  if (timedOut) return 'took longer than its limit';
  return exitCode === null ? `was ended by ${signal}` : `ended with code ${exitCode}`;
}

function describe(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 2_000);
}
