/**
 * The words in which `bash_output` and `bash_kill` speak of a background task.
 */
import type { BackgroundStatus } from '../../shared/broker-protocol.ts';
import { ServerError } from '../../shared/errors.ts';
import type { ToolOutcome } from './tool.ts';

/** A task the caller has no right to, or that is not there. */
export function refusedTask(taskId: string, code: 'NOT_FOUND' | 'FOREIGN'): ToolOutcome {
  return code === 'FOREIGN'
    ? { text: `task ${taskId} belongs to another session`, isError: true, code: 'TASK_FOREIGN' }
    : { text: `there is no task ${taskId}; bash with run_in_background gives the id of a task`, isError: true, code: 'TASK_NOT_FOUND' };
}

export function statusLine(status: BackgroundStatus): string {
  if (status.state === 'running') return '[status: running]';
  if (status.signal !== null) return `[status: killed by ${status.signal}]`;
  return `[status: completed, exit code: ${status.exitCode ?? 'unknown'}]`;
}

/** The status in plain data, for the log and the card. */
export function statusMeta(status: BackgroundStatus): { state: string; exitCode: number | null; signal: string | null } {
  if (status.state === 'running') return { state: 'running', exitCode: null, signal: null };
  return { state: status.state, exitCode: status.exitCode, signal: status.signal };
}

/** Runs the body; a broker that is lost or going down is an outcome, not a throw. */
export async function withBroker(body: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    return await body();
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    return { text: `The task could not be reached: ${error.message}`, isError: true, code: error.code };
  }
}
