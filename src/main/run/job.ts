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
  /** `id` when every job runs once, `id#2` for repeat 2. The key of a result line. */
  readonly key: string;
  /** Handed to the session as `DSH_SEED` and recorded; equal for equal files and options. */
  readonly seed: number;
}
