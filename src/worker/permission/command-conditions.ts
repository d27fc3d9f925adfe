/** What a command would run in, as far as that can be known before it is decided on. */
import type { KnownConditions } from '../../shared/permission/command-grant.ts';
import type { ResolvedAccess } from '../../shared/permission/mode-policy.ts';
import type { SandboxState } from '../../shared/sandbox.ts';
import { askOnce } from './ask-once.ts';
import type { CommandBounds } from './permission-gate.ts';

export interface CommandConditionsParts {
  /** Absent where commands are kept in nothing. */
  readonly state: (() => Promise<SandboxState>) | undefined;
  /** What a rule says of this command. */
  readonly network?: 'none' | undefined;
  readonly signal: AbortSignal;
}

/** The same access; that of a command with its conditions. Never rejects; ends soon after `signal` aborts. */
export async function withConditions(access: ResolvedAccess, parts: CommandConditionsParts): Promise<ResolvedAccess> {
  return access.kind === 'execute' ? { ...access, conditions: await conditionsOf(parts) } : access;
}

async function conditionsOf({ state, network, signal }: CommandConditionsParts): Promise<KnownConditions> {
  const isCut = network === 'none';
  if (state === undefined) return { contained: false, network: isCut ? 'off' : 'on' };
  const found = await askOnce(state, { signal, timeoutMs: 0 });
  if (found.kind !== 'answered') return 'unknown';
  const { kind, network: ofAll } = found.answer;
  return { contained: kind === 'bubblewrap', network: isCut || ofAll === 'off' ? 'off' : 'on' };
}

/** A yes for a contained command is none for another one: should the sandbox be gone when it starts, it does not. */
export function boundsOfConditions(access: ResolvedAccess): CommandBounds {
  const isContained = access.kind === 'execute' && typeof access.conditions === 'object' && access.conditions.contained;
  return isContained ? { sandbox: 'required' } : {};
}
