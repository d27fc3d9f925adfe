/**
 * What every file made from a run's results has in common: it is told what the results are in all, then given each, then closed.
 */
import type { JobResult } from '../job-result.ts';
import type { RunOutcome } from '../run-event.ts';
import type { ResultStats } from './result-stats.ts';
import type { TimeLine } from './time-line.ts';

/** An attempt of the run that has no result. */
export interface UnrunAttempt {
  readonly key: string;
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface RunFacts {
  readonly outcome: RunOutcome;
  readonly stats: ResultStats;
  readonly timeLine: TimeLine;
  readonly agent: string;
  readonly resultsPath: string;
  /** Known ones only: fewer than `outcome.notRun` when nobody said what was to be run. */
  readonly unrun: readonly UnrunAttempt[];
  /** What the job was asked, where that is known. */
  readonly promptsOf: (result: JobResult) => readonly string[] | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
}

export interface RunExporter {
  /** For messages and the summary. */
  readonly name: string;
  readonly path: string;
  open(facts: RunFacts): Promise<void>;
  /** In the order of the results file. */
  add(result: JobResult): Promise<void>;
  /** The file stands whole at its path once this has fulfilled. */
  close(): Promise<void>;
  /** Leaves no part of a file behind. */
  abandon(): Promise<void>;
}
