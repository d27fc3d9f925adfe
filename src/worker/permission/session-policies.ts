/** The policies that hold for one session, made ready for its places. */
import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import type { PolicyRules } from '../../shared/policy-rules.ts';
import { CompiledPolicy } from '../../shared/permission/compiled-policy.ts';

export interface SessionPoliciesOptions {
  /** Canonical. */
  readonly cwd: string;
  readonly ownDirectories: readonly string[];
  readonly server: PolicyRules | undefined;
  readonly session: PolicyRules | undefined;
}

/** In the order in which they are named where both say the same. Empty when nothing but the mode decides. */
export function sessionPolicies({ cwd, ownDirectories, server, session }: SessionPoliciesOptions): CompiledPolicy[] {
  if (server === undefined && session === undefined) return [];
  const places = { cwd, home: canonicalHome(), ownDirectories };
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
