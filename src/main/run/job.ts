/**
 * A job of the batch runner: one line of a jobs file, checked. See `docs/runner.md` for the file's form.
 */
import type { JsonObject } from '../../shared/errors.ts';
import type { PermissionMode } from '../../shared/events.ts';
import type { PolicyRules } from '../../shared/policy-rules.ts';
import type { Budget } from '../../shared/session-options.ts';

export interface Job {
  /** Unique in the file; names the job in results. */
  readonly id: string;
  /** 1-based line of the jobs file; `0` for a job from the command line. */
  readonly line: number;
  /** One turn each, in order. At least one, none blank. */
  readonly prompts: readonly string[];
  /** Where it works. */
  readonly place: JobPlace;
  /** A command that makes the place ready, before the session; a failure is an error of class `setup`. */
  readonly setup: readonly string[] | undefined;
  /** A command whose exit 0 means passed; run in the workspace after the last turn. `undefined`: the job can only be completed. */
  readonly check: readonly string[] | undefined;
  readonly setupTimeoutMs: number;
  readonly checkTimeoutMs: number;
  /** Of all turns together. */
  readonly budget: Budget | undefined;
  readonly policy: PolicyRules | undefined;
  readonly mode: PermissionMode | undefined;
  /** Laid over the environment of the session's commands, of setup and of check. */
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** May be run again after side effects. */
  readonly idempotent: boolean;
  /** Seed of its first repeat; each further one has the next number. */
  readonly seed: number;
  /** The line gave the seed. */
  readonly hasSeed: boolean;
  /** Goes first where it is higher, in the runner and at the agent; from -100 to 100. */
  readonly priority: number;
  /** W3C trace context, handed to each turn. */
  readonly traceparent: string | undefined;
  /** Names the line's content: a result is only taken for a job that has the same. */
  readonly hash: string;
  /** Whatever else the line said under `meta`; goes into the result untouched. */
  readonly meta: JsonObject | undefined;
}

export type JobPlace =
  /** An existing directory, shared with whoever else uses it. Absolute. */
  | { readonly kind: 'directory'; readonly cwd: string }
  /** A git worktree of its own, made from `base` and pruned after. `repo` absolute; `subdirectory` relative, inside it. */
  | { readonly kind: 'worktree'; readonly repo: string; readonly base: string; readonly subdirectory: string };

/** One attempt at one job: `--repeat K` makes K of each, with seeds 0 … K-1 (or from the job). */
export interface Attempt {
  readonly job: Job;
  /** From 0. */
  readonly repeat: number;
  /** The key of a result line: `id` for repeat 0, `id#2` for repeat 2. So a file can be run again with more repeats. */
  readonly key: string;
  /** Handed to the session, the setup and the check as `DSH_SEED`, and recorded. The job's seed plus the repeat. */
  readonly seed: number;
  /** Also handed to the model, where the agent takes one: of repeats, and of jobs that gave a seed. */
  readonly modelSeed: number | undefined;
}
