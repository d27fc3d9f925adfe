/** What a command would run in, as far as that can be known before it is decided on, and what a yes to it then gives it. */
import type { KnownConditions } from '../../shared/permission/command-grant.ts';
import type { ResolvedAccess } from '../../shared/permission/mode-policy.ts';
import { commandNetwork, type SandboxState } from '../../shared/sandbox.ts';
import type { ToolAccess } from '../tools/tool.ts';
import { askOnce } from './ask-once.ts';
import type { CommandBounds } from './permission-gate.ts';

export interface CommandConditionsParts {
  /** Absent where commands are kept in nothing. */
  readonly state: (() => Promise<SandboxState>) | undefined;
  /** What a rule says of this command. */
  readonly network?: 'none' | 'any' | undefined;
  readonly signal: AbortSignal;
}

/** The same access; that of a command with its conditions. Never rejects; ends soon after `signal` aborts. */
export async function withConditions(access: ResolvedAccess, parts: CommandConditionsParts): Promise<ResolvedAccess> {
  return access.kind === 'execute' ? { ...access, conditions: await conditionsOf(access.network, parts) } : access;
}

async function conditionsOf(asks: boolean | undefined, { state, network, signal }: CommandConditionsParts): Promise<KnownConditions> {
  if (state === undefined) return { contained: false, network: network === 'none' ? 'off' : 'on' };
  const found = await askOnce(state, { signal, timeoutMs: 0 });
  if (found.kind !== 'answered') return 'unknown';
  return { contained: found.answer.kind === 'bubblewrap', network: commandNetwork(found.answer, { bound: network, asks }) };
}

/**
 * A yes for a contained command is none for another one: should the sandbox be gone when it starts, it does not. A yes to a command that
 * asks for the network gives it that.
 */
export function boundsOfConditions(access: ResolvedAccess): CommandBounds {
  const conditions = access.kind === 'execute' ? access.conditions : undefined;
  if (typeof conditions !== 'object' || !conditions.contained) return {};
  const isGiven = access.kind === 'execute' && access.network === true && conditions.network === 'on';
  return { sandbox: 'required', ...(isGiven ? ({ network: 'any' } as const) : {}) };
}

/**
 * For a command that no person said yes to just now. One that runs on beside a person's own work is not followed so: what appears meanwhile may
 * be the person's.
 *
 * @param unattended nobody works in this workspace but programs
 */
export function unaskedBounds(access: ResolvedAccess | ToolAccess, unattended: boolean): CommandBounds {
  return access.kind === 'execute' && (unattended || access.background !== true) ? { unasked: true } : {};
}

/** In full access a person has given all of it, the network included; for work without a person nobody has. */
export function fullAccessBounds(access: ResolvedAccess | ToolAccess, unattended: boolean): CommandBounds {
  if (access.kind !== 'execute') return {};
  return { ...(unattended ? {} : ({ network: 'any' } as const)), ...unaskedBounds(access, unattended) };
}
