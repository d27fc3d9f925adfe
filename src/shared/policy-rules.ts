/**
 * The rules of an unattended run: what a call may do where no person is there to be asked.
 *
 * The file's format, its checks and its evaluation are described in `docs/policy.md`. The first rule that matches a call
 * decides; a call that no rule matches gets `fallback`. Where policies differ, of the server and of a session, the stricter
 * word counts.
 */

export const policyActions = ['allow', 'ask', 'deny'] as const;
export type PolicyAction = (typeof policyActions)[number];

export const policyAccessKinds = ['read', 'write', 'execute', 'delegate', 'mcp', 'none'] as const;
export type PolicyAccessKind = (typeof policyAccessKinds)[number];

/** What logs and messages call the absence of a matching rule; no rule may have this name. */
export const fallbackRuleName = 'fallback';

/**
 * A rule matches when all the members that it has match. One without any matches every call; but one that allows and names
 * no `paths` speaks of the session's cwd only: of files in it, and of `commands` that run there.
 */
export interface PolicyRule {
  /** For logs and messages; `rule 3` when it was not named. */
  readonly name: string;
  readonly action: PolicyAction;
  /** Tool names; `*` stands for any characters. */
  readonly tools?: readonly string[];
  /** What the call does. */
  readonly access?: readonly PolicyAccessKind[];
  /**
   * Globs over canonical paths, relative ones to the session's cwd. A call with several paths is decided path by path, and
   * the strictest word counts. Matches only calls that name files; beside `commands`, the directory of the command.
   */
  readonly paths?: readonly string[];
  /**
   * Commands as argv patterns, one list per command: each element a word with `*` for any characters, a last element `...`
   * for any further words. Matches only a command line that is plainly one argv: no shell syntax in it.
   */
  readonly commands?: readonly (readonly string[])[];
  /** Names of subagent providers; `*` stands for any characters. Matches only calls that delegate. */
  readonly providers?: readonly string[];
  /** What an allowed command may reach: `none` cuts its network off, and denies it where that cannot be done; `any` gives it one in the sandbox, too. */
  readonly network?: 'any' | 'none';
  /** `required` denies an allowed command where it cannot run in a sandbox; with the server's own setting at `off` always. */
  readonly sandbox?: 'required';
}

export interface PolicyRules {
  readonly rules: readonly PolicyRule[];
  /** For a call that no rule matches, unless it touches nothing; `deny` unless the file says otherwise. */
  readonly fallback: PolicyAction;
  /** How long an `ask` waits for the client before it counts as a no; the session's own timeout when absent. */
  readonly askTimeoutMs?: number;
}
