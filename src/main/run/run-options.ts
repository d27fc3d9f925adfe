/** Everything a run is told, checked. */
import type { SessionDefaults } from './agent/job-session.ts';
import type { JobSource } from './jobs/job-source.ts';
import type { Attempt } from './job.ts';
import type { RunObserver } from './run-event.ts';

export interface RunOptions {
  readonly jobs: JobSource;
  /** Absolute; `undefined` keeps no results file. */
  readonly resultsPath: string | undefined;
  readonly concurrency: number;
  /** Result lines stand in the order of the jobs file at any moment. */
  readonly ordered: boolean;
  readonly repeat: number;
  readonly shuffleSeed: number | undefined;
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly retryErrors: boolean;
  readonly force: boolean;
  readonly failFast: boolean;
  /** US dollars, of all results in the file together. */
  readonly maxCostUsd: number | undefined;
  readonly maxTimeMs: number | undefined;
  readonly keepWorktrees: boolean;
  /** Absolute; shared by all runs. */
  readonly worktreeDir: string;
  readonly agent: RunAgent;
  readonly defaults: SessionDefaults;
  /** Names of variables that setup and check must not get, beside those with our prefix. */
  readonly withheld: readonly string[];
  /** @param attempts all of them; absent when they are too many to be held */
  readonly observers: (attempts: readonly Attempt[] | undefined) => readonly RunObserver[];
  /** A line for people, on stderr. */
  readonly notice: (text: string) => void;
  /** Of this program. */
  readonly version: string;
}

export interface RunAgent {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** Where it keeps its logs, if it is this program and was told so. Absolute. */
  readonly stateDir: string | undefined;
  readonly setup: RunSetup;
}

/** What results of one file must have in common to be compared. No secret. */
export interface RunSetup {
  /** Of this program as the agent, as are the next three. */
  readonly model?: string;
  readonly baseUrl?: string;
  readonly profile?: string;
  readonly isolation?: string;
  /** Names the rules of the policy file. */
  readonly policy?: string;
  /** Names the command line of another agent. */
  readonly command?: string;
}
