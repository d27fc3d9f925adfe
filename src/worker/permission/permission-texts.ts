/**
 * What the model reads when a call did not get its permission. Each case has its own text, since each calls for another
 * next step: a person said no, the turn is over, or nobody could be asked.
 */
import type { PermissionDecision } from './permission-gate.ts';

export type Refusal = Extract<PermissionDecision, { allowed: false }>;

export const refusals = {
  rejected: {
    allowed: false,
    code: 'PERMISSION_DENIED',
    text: 'The user rejected this call, so nothing was done. Do not try the same by another way; go on without it or ask the user what they want instead.',
  },
  cancelled: {
    allowed: false,
    code: 'PERMISSION_CANCELLED',
    text: 'The turn was cancelled while this call waited for permission, so nothing was done.',
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
