/**
 * What the end summary needs of a run: durations, the slowest attempts, the first errors. Kept up event by event, bounded.
 */
import type { ErrorClass, JobResult, JobStatus } from '../job-result.ts';
import type { RunEvent, RunObserver } from '../run-event.ts';
import { reasonText } from './end-text.ts';

const mostSlow = 5;
const mostErrors = 5;

export interface EndedJob {
  readonly key: string;
  readonly status: JobStatus;
  readonly totalMs: number;
}

export interface FailedJob {
  readonly key: string;
  readonly reason: string;
}

export class RunRecord implements RunObserver {
  /** Of the attempts of this run, in milliseconds, as they ended. */
  readonly durations: number[] = [];
  /** Slowest first. */
  readonly slowest: EndedJob[] = [];
  readonly errors = new Map<ErrorClass, number>();
  readonly firstErrors: FailedJob[] = [];
  /** Directories of session logs: one, unless agents keep their logs apart. */
  readonly logDirs = new Set<string>();
  retries = 0;
  /** Attempts whose check was run, and those of them that passed. */
  checked = 0;
  passed = 0;

  onEvent(event: RunEvent): void {
    if (event.type === 'job/retry') this.retries += 1;
    else if (event.type === 'job/end') this.#end(event.result);
  }

  #end(result: JobResult): void {
    const { totalMs } = result.times;
    this.durations.push(totalMs);
    if (result.check !== undefined) this.checked += 1;
    if (result.check !== undefined && result.status === 'passed') this.passed += 1;
    this.#keepSlow({ key: result.key, status: result.status, totalMs });
    if (result.errorClass !== undefined) {
      this.errors.set(result.errorClass, (this.errors.get(result.errorClass) ?? 0) + 1);
      if (this.firstErrors.length < mostErrors) this.firstErrors.push({ key: result.key, reason: reasonText(result) });
    }
    if (result.logPath !== undefined && this.logDirs.size < 2) {
      this.logDirs.add(result.logPath.slice(0, Math.max(0, result.logPath.lastIndexOf('/'))));
    }
  }

  #keepSlow(job: EndedJob): void {
    const at = this.slowest.findIndex((each) => each.totalMs < job.totalMs);
    if (at < 0 && this.slowest.length >= mostSlow) return;
    this.slowest.splice(at < 0 ? this.slowest.length : at, 0, job);
    this.slowest.length = Math.min(this.slowest.length, mostSlow);
  }
}
