/**
 * Figures over all results of a run, those of earlier runs of the same file included.
 */
import type { ErrorClass, JobResult, JobStatus } from '../job-result.ts';
import { addUsage, noTotals } from '../view/run-tally.ts';

/** How often a job passed, over its repeats. */
interface Repeats {
  runs: number;
  passed: number;
}

export interface DurationOf {
  readonly ms: number;
  readonly status: JobStatus;
}

export class ResultStats {
  count = 0;
  /** Attempts whose check was run, and those of them that passed. */
  checked = 0;
  passed = 0;
  readonly byStatus = new Map<JobStatus, number>();
  readonly byErrorClass = new Map<ErrorClass, number>();
  readonly durations: DurationOf[] = [];
  readonly usage = noTotals();
  costUsd: number | undefined;
  /** Sum of durations. */
  totalMs = 0;
  readonly #repeats = new Map<string, Repeats>();

  add(result: JobResult): void {
    this.count += 1;
    bump(this.byStatus, result.status);
    if (result.errorClass !== undefined) bump(this.byErrorClass, result.errorClass);
    this.durations.push({ ms: result.times.totalMs, status: result.status });
    this.totalMs += result.times.totalMs;
    if (result.usage !== undefined) addUsage(this.usage, result.usage);
    if (result.costUsd !== undefined) this.costUsd = (this.costUsd ?? 0) + result.costUsd;
    if (result.check !== undefined) this.#addCheck(result);
  }

  of(status: JobStatus): number {
    return this.byStatus.get(status) ?? 0;
  }

  /** `undefined` when nothing was checked, or no job has more than one checked attempt. */
  repeats(): RepeatFigures | undefined {
    const jobs = [...this.#repeats.values()];
    if (!jobs.some(({ runs }) => runs > 1)) return undefined;
    const share = (holds: (job: Repeats) => boolean) => jobs.filter(holds).length / jobs.length;
    return {
      jobs: jobs.length,
      mean: jobs.reduce((sum, { runs, passed }) => sum + passed / runs, 0) / jobs.length,
      atLeastOnce: share(({ passed }) => passed > 0),
      always: share(({ runs, passed }) => passed === runs),
    };
  }

  #addCheck({ id, status }: JobResult): void {
    this.checked += 1;
    if (status === 'passed') this.passed += 1;
    const job = this.#repeats.get(id) ?? { runs: 0, passed: 0 };
    job.runs += 1;
    if (status === 'passed') job.passed += 1;
    this.#repeats.set(id, job);
  }
}

export interface RepeatFigures {
  /** Jobs with a check. */
  readonly jobs: number;
  /** Mean over jobs of the share of their attempts that passed. */
  readonly mean: number;
  /** Share of jobs that passed in one attempt or more. */
  readonly atLeastOnce: number;
  /** Share of jobs that passed in all attempts. */
  readonly always: number;
}

function bump<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
