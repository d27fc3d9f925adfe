/** The policies that hold for one session, made ready for its places. */
import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import type { PolicyRules } from '../../shared/policy-rules.ts';
import { CompiledPolicy } from '../../shared/permission/compiled-policy.ts';

export interface SessionPoliciesOptions {
  /** Canonical. */
  readonly cwd: string;
  /** The workspace: canonical, `cwd` among them. */
  readonly roots?: readonly string[];
  readonly ownDirectories: readonly string[];
  readonly server: PolicyRules | undefined;
  readonly session: PolicyRules | undefined;
}

/** In the order in which they are named where both say the same. Empty when nothing but the mode decides. */
export function sessionPolicies({ cwd, roots = [cwd], ownDirectories, server, session }: SessionPoliciesOptions): CompiledPolicy[] {
  if (server === undefined && session === undefined) return [];
  const places = { cwd, roots, home: canonicalHome(), ownDirectories };
  return [
    ...(server === undefined ? [] : [new CompiledPolicy(server, places)]),
    ...(session === undefined ? [] : [new CompiledPolicy(session, places, 'session:')]),
  ];
}

function canonicalHome(): string | undefined {
  try {
    return realpathSync.native(homedir());
  } catch {
    // This user has none: globs that begin with ~/ are then not placed.
    return undefined;
  }
}
