/**
 * What the permissions of a session say about a file that an undo would write. The person has asked for the undo, so nobody is
 * asked again; where a tool's call would be asked about, the undo must have been told to go ahead all the same.
 */
import { type RuledCall, type RuleVerdict, strictest } from '../../shared/permission/compiled-policy.ts';
import { decideAccess, type PolicyContext, type ResolvedAccess } from '../../shared/permission/mode-policy.ts';
import type { PermissionMode } from '../../shared/events.ts';
import { titleLine } from '../display/title-line.ts';
import type { RestoreVerdict } from '../undo/restored-files.ts';

export interface UndoVerdictParts {
  readonly mode: PermissionMode;
  readonly policies: readonly { decide(call: RuledCall): RuleVerdict | undefined }[];
  readonly context: PolicyContext;
  /** Whether the person has rejected this for good. */
  readonly isRejected: (access: ResolvedAccess) => boolean;
}

/** An undo does what this tool does. */
export const undoToolName = 'write';

export function undoVerdict(access: ResolvedAccess, { mode, policies, context, isRejected }: UndoVerdictParts): RestoreVerdict {
  if (isRejected(access)) return { kind: 'deny', why: 'changing it was rejected for good' };
  if (policies.length === 0) return verdictOfMode(mode, access, context);
  const verdict = strictest(policies.map((policy) => policy.decide({ toolName: undoToolName, access })));
  if (verdict === undefined || verdict.action === 'allow') return { kind: 'allow' };
  const rule = `the rule "${titleLine(verdict.rule)}" of the policy`;
  return verdict.action === 'deny' ? { kind: 'deny', why: `${rule} denies it` } : { kind: 'ask', why: `${rule} has it asked about` };
}

function verdictOfMode(mode: PermissionMode, access: ResolvedAccess, context: PolicyContext): RestoreVerdict {
  const verdict = decideAccess(mode, access, context);
  switch (verdict.kind) {
    case 'allow':
    case 'granted':
      return { kind: 'allow' };
    case 'ask':
      return { kind: 'ask', why: clause(verdict.why ?? 'it would be asked about') };
    case 'deny':
    default:
      return { kind: 'deny', why: 'the mode of the session refuses it' };
  }
}

/** A sentence as the end of another one. */
function clause(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, '');
}
