/** Permissions: `[permissions]`. */
import type { KeySpec } from '../key-spec.ts';
import { line, milliseconds } from '../value-types.ts';

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
  sandbox: {
    section: 'permissions',
    type: { kind: 'choice', values: ['auto', 'required', 'off'] },
    default: 'auto',
    doc: 'Whether commands run inside bubblewrap: where it works, always (else they are refused), or never. See docs/sandbox.md.',
  },
  sandbox_network: {
    section: 'permissions',
    type: { kind: 'choice', values: ['ask', 'on', 'off'] },
    default: 'ask',
    doc: '`ask`: contained commands have no network but where one asks for it and is allowed that. `off` runs every command without, and refuses it where that cannot be done.',
  },
  sandbox_writable: {
    section: 'permissions',
    type: line(4_000),
    default: undefined,
    defaultText: 'none',
    doc: 'Absolute paths, or such with `~/` before them, with `:` between them, that contained commands may use as if there were no sandbox.',
  },
} as const satisfies Record<string, KeySpec>;
