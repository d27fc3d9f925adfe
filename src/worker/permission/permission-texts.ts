/**
 * What the model reads when a call did not get its permission. Each case has its own text, since each calls for another
 * next step: a person said no, the turn is over, or nobody could be asked.
 */
import { fallbackRuleName } from '../../shared/policy-rules.ts';
import type { PermissionDecision } from './permission-gate.ts';

export type Refusal = Extract<PermissionDecision, { allowed: false }>;

export const refusals = {
  rejected: {
    allowed: false,
    code: 'PERMISSION_DENIED',
    text: 'The user rejected this call, so nothing was done. Do not try the same by another way; go on without it or ask the user what they want instead.',
  },
  /** An answer of now. */
  rejectedForGood: {
    allowed: false,
    code: 'PERMISSION_DENIED',
    text: 'The user rejected this call for good, so nothing was done: the very same call is refused in this workspace from now on. Do not repeat it, and do not try the same by another way; go on without it or ask the user what they want instead.',
  },
  /** An answer of earlier. */
  keptRejection: {
    allowed: false,
    code: 'PERMISSION_DENIED',
    text: 'The user has rejected this very call for good in this workspace, so it was refused without asking again, and nothing was done. Do not repeat it, and do not try the same by another way. Go on without it; if it cannot be done without, say so in your answer: the user can take the rejection back with `dsh-acp grants`.',
  },
  cancelled: {
    allowed: false,
    code: 'PERMISSION_CANCELLED',
    text: 'The turn was cancelled while this call waited for permission, so nothing was done.',
  },
  /** A client may say `cancelled` of a question alone; the turn goes on then. */
  unanswered: {
    allowed: false,
    code: 'PERMISSION_CANCELLED',
    text: 'The client gave no answer to this request; nothing was done. Go on without it.',
  },
  unavailable: {
    allowed: false,
    code: 'PERMISSION_UNAVAILABLE',
    text: 'No valid answer to the permission request came from the client, so the call was refused and nothing was done. Go on without it.',
  },
  timeout: {
    allowed: false,
    code: 'PERMISSION_UNAVAILABLE',
    text: 'Nobody answered the permission request in time, so the call was refused and nothing was done. Go on without it.',
  },
  fault: {
    allowed: false,
    code: 'PERMISSION_UNAVAILABLE',
    text: 'A fault of the server kept the permission from being asked for or recorded, so the call was refused and nothing was done.',
  },
} as const satisfies Record<string, Refusal>;

export function denied(text: string): Refusal {
  return { allowed: false, code: 'PERMISSION_DENIED', text };
}

const noWayRound =
  'Do not try to get around it by another command, path or tool; go on without it, or say in your answer what you would have needed.';

/** A rule said no. `rule` as the log names it. */
export function deniedByPolicy(rule: string, why: string | undefined): Refusal {
  const reason = isFallback(rule)
    ? `No rule of the policy allows this call (${rule})`
    : `The rule "${rule}" of the policy denies this call`;
  return denied(`${reason}, so nothing was done.${why === undefined ? '' : ` ${why}`} ${noWayRound}`);
}

/** A rule allows the command without a network only, and this system has no way to run it so. */
export function networkNotCut(rule: string): Refusal {
  return denied(
    `The rule "${rule}" of the policy allows this command only with its network cut off, which this system cannot do, so nothing was done. ${noWayRound}`,
  );
}

/** A rule allows the command in a sandbox only, and this system has none. */
export function noSandboxFor(rule: string): Refusal {
  return denied(
    `The rule "${rule}" of the policy allows this command only in a sandbox, which this system does not have, so nothing was done. ${noWayRound}`,
  );
}

/** The same refusal, for a question that a rule demanded. */
export function askedByPolicy(refusal: Refusal, rule: string): Refusal {
  const demand = isFallback(rule)
    ? `No rule of the policy allows this call without a question (${rule}).`
    : `The rule "${rule}" of the policy demands the question.`;
  return { ...refusal, text: `${refusal.text} ${demand} ${noWayRound}` };
}

/** For the person who is asked. */
export function reasonOfRule(rule: string, why: string | undefined): string {
  const demand = isFallback(rule) ? 'No rule of the policy covers this call.' : `The rule "${rule}" of the policy asks for your word.`;
  return why === undefined ? demand : `${demand} ${why}`;
}

function isFallback(rule: string): boolean {
  return rule === fallbackRuleName || rule.endsWith(`:${fallbackRuleName}`);
}
