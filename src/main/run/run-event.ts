/**
 * What a run tells whoever watches it: the live view, the plain lines, `--json`, and the report's time line.
 * Every event has the moment at which it happened, in epoch milliseconds.
 */
import type { JobResult, JobUsage } from './job-result.ts';

export type JobState = 'waiting' | 'preparing' | 'running' | 'checking' | 'ended';

export type RunEvent =
  | {
      readonly type: 'run/start';
      readonly time: number;
      /** Attempts to run now. */
      readonly total: number;
      /** Attempts whose results were there already. */
      readonly done: number;
      readonly concurrency: number;
      readonly agent: string;
    }
  | { readonly type: 'job/state'; readonly time: number; readonly key: string; readonly state: JobState }
  /** A turn of the job has ended; what it used alone. */
  | {
      readonly type: 'job/turn';
      readonly time: number;
      readonly key: string;
      readonly turn: number;
      readonly usage?: JobUsage;
      readonly costUsd?: number;
    }
  /** Text that the job's session showed; sizes only, for rates. */
  | { readonly type: 'job/progress'; readonly time: number; readonly key: string; readonly chars: number }
  | {
      readonly type: 'job/retry';
      readonly time: number;
      readonly key: string;
      readonly tries: number;
      readonly delayMs: number;
      readonly reason: string;
    }
  | { readonly type: 'job/end'; readonly time: number; readonly result: JobResult }
  /** No new attempts are started; `why` for people. */
  | { readonly type: 'run/draining'; readonly time: number; readonly why: string }
  | { readonly type: 'run/end'; readonly time: number; readonly outcome: RunOutcome };

export interface RunOutcome {
  /** Attempts of the whole file: the sum of {@link byStatus} and {@link notRun}. */
  readonly total: number;
  /** By status, only those that occur. Results of earlier runs of the same file are counted too. */
  readonly byStatus: Readonly<Record<string, number>>;
  /** Attempts that were not run. One that was cancelled is counted in {@link byStatus} and has no line: the next run runs it. */
  readonly notRun: number;
  /** Lines of the jobs file that were left out as wrong (`--skip-invalid`); absent when there are none. */
  readonly invalid?: number;
  readonly wallMs: number;
  readonly usage: JobUsage;
  readonly costUsd?: number;
  /** Why it ended early; absent when everything was run. */
  readonly stopped?: StopCause;
}

/** `agent`: it could not be started, again and again, or has no key that works. `results`: the results file could not be written. */
export type StopCause = 'signal' | 'max-cost' | 'max-time' | 'fail-fast' | 'agent' | 'results';

export interface RunObserver {
  /** Called in order, synchronously; must not throw and must not hold the runner up. */
  onEvent(event: RunEvent): void;
  /** Called once, behind the last event; may write files and take its time. */
  finish?(outcome: RunOutcome): Promise<void>;
}
