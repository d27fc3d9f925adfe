/**
 * The permission modes as ACP session modes.
 */
import type { SessionModeState } from '@agentclientprotocol/sdk';
import { ServerError } from '../../shared/errors.ts';
import type { PermissionMode } from '../../shared/events.ts';

const modes: Record<PermissionMode, { readonly name: string; readonly description: string }> = {
  ask: { name: 'Ask', description: 'Commands ask first, and so do writes outside the workspace or to control files.' },
  'accept-edits': { name: 'Accept edits', description: 'File edits run without asking, control files excepted; commands ask.' },
  'read-only': { name: 'Read only', description: 'Nothing is changed and no command runs.' },
  plan: { name: 'Plan', description: 'Reads and searches only, until you approve a plan.' },
  'full-access': { name: 'Full access', description: 'Everything runs without asking.' },
};

export function modeState(current: PermissionMode): SessionModeState {
  return {
    currentModeId: current,
    availableModes: Object.entries(modes).map(([id, { name, description }]) => ({ id, name, description })),
  };
}

/** @throws ServerError INVALID_PARAMS for an id that is not a mode */
export function parseModeId(modeId: string): PermissionMode {
  if (Object.hasOwn(modes, modeId)) return modeId as PermissionMode;
  throw new ServerError('INVALID_PARAMS', 'modeId is none of the modes that the session offers.', {
    data: { expected: Object.keys(modes) },
  });
}
