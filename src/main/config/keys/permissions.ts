/** Permissions: `[permissions]`. */
import type { KeySpec } from '../key-spec.ts';
import { milliseconds } from '../value-types.ts';

export const permissionsKeys = {
  permission_mode: {
    section: 'permissions',
    type: { kind: 'choice', values: ['ask', 'accept-edits', 'read-only', 'full-access', 'plan'] },
    default: 'ask',
    doc: 'What a new session may do without asking.',
  },
  permission_timeout_ms: {
    section: 'permissions',
    type: milliseconds(),
    default: undefined,
    defaultText: '0; 300000 for the automation profile',
    doc: 'How long an unanswered permission request waits before it counts as refused; 0 waits for ever.',
  },
  policy_file: {
    section: 'permissions',
    type: { kind: 'path' },
    default: undefined,
    doc: 'Rules for unattended work (TOML or JSON): what is allowed, asked about or denied. See docs/policy.md.',
  },
} as const satisfies Record<string, KeySpec>;
