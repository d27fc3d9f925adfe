/** What a try at a job came to, as the status of a result. Pure. */
import type { AgentFault } from '../agent/agent-fault.ts';
import type { CommandOutcome } from '../command.ts';
import type { ErrorClass, JobStatus } from '../job-result.ts';

export interface Verdict {
  readonly status: JobStatus;
  readonly errorClass?: ErrorClass;
  readonly error?: string;
  /** Whether the same may come out otherwise another time. */
  readonly retryable: boolean;
}

export interface Evidence {
  readonly fault: AgentFault | undefined;
  readonly stopReason: string | undefined;
  /** The runner's own limit ended the turn. */
  readonly limited: boolean;
  /** `undefined` when the job has none, or when it was not run. */
  readonly check: CommandOutcome | undefined;
}

/** Stop reasons of turns that were ended before the agent was done. */
const spent = new Set(['max_turn_requests', 'max_tokens']);

export function judge({ fault, stopReason, limited, check }: Evidence): Verdict {
  if (fault !== undefined && !limited) return errorVerdict(fault.errorClass, fault.message, fault.retryable);
  if (check?.spawnError !== undefined) return errorVerdict('check', `the check ${check.spawnError}`, false);
  const passed = check !== undefined && check.exitCode === 0 && !check.timedOut;
  if (passed) return { status: 'passed', retryable: false };
  if (limited || (stopReason !== undefined && spent.has(stopReason))) return { status: 'budget', retryable: false };
  if (stopReason === 'cancelled') return { status: 'cancelled', retryable: false };
  if (check !== undefined) return { status: 'failed', retryable: false };
  if (stopReason === 'refusal') return errorVerdict('model', 'the model refused to answer', false);
  return { status: 'completed', retryable: false };
}

export function errorVerdict(errorClass: ErrorClass, error: string, retryable: boolean): Verdict {
  return { status: 'error', errorClass, error, retryable };
}
