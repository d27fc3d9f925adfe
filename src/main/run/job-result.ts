/**
 * What became of an attempt: one line of the results file.
 */
import type { JsonObject, JsonValue } from '../../shared/errors.ts';
import type { TokenUsage } from '../../shared/events.ts';

export type JobStatus =
  /** The check said yes. */
  | 'passed'
  /** The check said no. */
  | 'failed'
  /** The turns ended normally and there is no check. */
  | 'completed'
  | 'cancelled'
  /** See `errorClass`. */
  | 'error'
  /** A budget or deadline ended a turn, and the check (where there is one) did not pass. */
  | 'budget';

export type ErrorClass =
  /** The workspace could not be made, or the setup command failed. */
  | 'setup'
  /** The agent could not be started, or broke the protocol. */
  | 'agent'
  /** The agent's process or thread ended under the job. */
  | 'lost'
  /** The model server refused or failed. */
  | 'model'
  /** Overload, rate limits, timeouts: worth another try. */
  | 'busy'
  /** The job asks for what the agent refuses. */
  | 'request'
  /** The check could not be run. */
  | 'check'
  | 'internal';

export interface JobUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly reasoningTokens: number;
  readonly steps: number;
  readonly toolCalls: number;
  /** Estimate of what model calls used of which the provider reported nothing, beside the numbers above. */
  readonly guessedTokens?: number;
  /** What subagents used beside the numbers above. */
  readonly subagents?: TokenUsage;
}

export interface JobResult {
  /** Form of this line. */
  readonly version: 1;
  /** `Attempt.key`: the one result of this attempt. */
  readonly key: string;
  readonly id: string;
  readonly repeat: number;
  readonly seed: number;
  /** `Job.hash` of the job that was run. */
  readonly jobHash?: string;
  readonly status: JobStatus;
  /** ACP's word for the last turn; absent when none ended. */
  readonly stopReason?: string;
  /** Final text of the last turn. */
  readonly text: string;
  readonly structured?: JsonValue;
  /** As the agent names it, or as this program was told; absent where neither is known. */
  readonly model?: string;
  /** Of all tries together; absent when the agent did not say. */
  readonly usage?: JobUsage;
  /** Of all tries together; absent when the agent did not say. */
  readonly costUsd?: number;
  readonly times: {
    /** ISO 8601, UTC. */
    readonly startedAt: string;
    readonly endedAt: string;
    /** Of the last try, as are the next two: workspace and setup command. */
    readonly setupMs: number;
    readonly turnsMs: number;
    readonly checkMs: number;
    /** Of all tries and the waits between them. */
    readonly totalMs: number;
    /** From the first prompt to its first update. */
    readonly firstUpdateMs?: number;
  };
  /** How often it was tried, this try included. */
  readonly tries: number;
  /** The commit that the worktree was made from; absent without a worktree. */
  readonly baseCommit?: string;
  /** `git diff --binary` of the worktree against its base after the last turn, new files included; absent without a worktree. */
  readonly patch?: string;
  /** Set when the patch was too large for the line, or is no UTF-8: absolute path of the file that holds it. */
  readonly patchPath?: string;
  readonly check?: {
    readonly exitCode: number | null;
    readonly signal: string | null;
    readonly timedOut: boolean;
    readonly output: string;
  };
  readonly setup?: {
    readonly exitCode: number | null;
    readonly signal: string | null;
    readonly timedOut: boolean;
    readonly output: string;
  };
  readonly errorClass?: ErrorClass;
  /** For people; no secret. */
  readonly error?: string;
  readonly sessionId?: string;
  /** Absolute path of the session's log, where the agent is this server. */
  readonly logPath?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly meta?: JsonObject;
}
