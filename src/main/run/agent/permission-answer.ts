/**
 * Answers an agent that asks for permission, where no person is there: by the policies, else by the mode. What is not clearly granted is refused.
 *
 * What a call does is known here only as far as the agent says it. It is decided as a call of this server would be, and what that would ask a
 * person is refused; a rule that asks or denies holds as well where it cannot be known whether it is meant.
 */
import { homedir } from 'node:os';
import type { RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk';
import type { PermissionMode } from '../../../shared/events.ts';
import { CompiledPolicy } from '../../../shared/permission/compiled-policy.ts';
import { decideAccess, type ResolvedAccess, refusedByMode } from '../../../shared/permission/mode-policy.ts';
import type { PolicyRule, PolicyRules } from '../../../shared/policy-rules.ts';
import { canonical, type KnownCall, knownCall } from './known-call.ts';

export interface PermissionRules {
  /** Each must allow. Without any, the mode decides. */
  readonly policies: readonly PolicyRules[];
  readonly mode: PermissionMode;
  /** Of the session. Absolute. */
  readonly cwd: string;
}

export function answerPermission({ options, toolCall }: RequestPermissionRequest, rules: PermissionRules): RequestPermissionResponse {
  const kinds = isAllowed(toolCall, rules) ? (['allow_once'] as const) : (['reject_once', 'reject_always'] as const);
  const option = kinds.map((kind) => options.find((one) => one.kind === kind)).find((one) => one !== undefined);
  return option === undefined ? { outcome: { outcome: 'cancelled' } } : { outcome: { outcome: 'selected', optionId: option.optionId } };
}

export function isGrant(answer: RequestPermissionResponse, { options }: RequestPermissionRequest): boolean {
  const { outcome } = answer;
  return outcome.outcome === 'selected' && options.some(({ optionId, kind }) => optionId === outcome.optionId && kind === 'allow_once');
}

function isAllowed(toolCall: RequestPermissionRequest['toolCall'], { policies, mode, cwd: given }: PermissionRules): boolean {
  const cwd = canonical(given);
  if (cwd === undefined) return false;
  const call = knownCall(toolCall, cwd);
  if (policies.length === 0) return allowedByMode(mode, call.access, cwd);
  if (call.access === undefined || refusedByMode(mode, call.access) !== undefined) return false;
  const { name: toolName = '', access } = call;
  return policies.every((policy) => {
    const rules = policy.rules.map((rule) => (rule.action === 'allow' ? rule : whereUnknown(rule, call)));
    const verdict = new CompiledPolicy({ ...policy, rules }, { cwd, home: canonical(homedir()) }).decide({ toolName, access });
    if (verdict === undefined) return policy.fallback === 'allow';
    // Nobody here can cut the network of another agent's command.
    return verdict.action === 'allow' && (access.kind !== 'execute' || verdict.network !== 'none');
  });
}

/** What a rule that restricts says where the tool's name, or the program of a command, cannot be known: it may be meant. */
function whereUnknown(rule: PolicyRule, { name, isPlain }: KnownCall): PolicyRule {
  const { tools, ...anyTool } = rule;
  const named = tools === undefined || name !== undefined ? rule : anyTool;
  if (named.commands === undefined || isPlain) return named;
  const { commands: _commands, paths: _paths, ...anyCommand } = named;
  return { ...anyCommand, access: ['execute'] };
}

function allowedByMode(mode: PermissionMode, access: ResolvedAccess | undefined, cwd: string): boolean {
  if (mode === 'full-access') return true;
  switch (access?.kind) {
    case 'none':
      return true;
    case 'read':
    case 'write':
      if (access.kind === 'write' && mode !== 'accept-edits') return false;
      // Which file it is may be left unsaid; one that is named must be one that this server would not ask about.
      return access.paths.length === 0 || decideAccess(mode, access, { cwd, grants: new Set() }).kind === 'allow';
    case 'execute':
    case 'delegate':
    case 'mcp':
    case undefined:
    default:
      return false;
  }
}
