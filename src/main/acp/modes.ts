/**
 * The permission modes as ACP session modes.
 */
import type { SessionModeState } from '@agentclientprotocol/sdk';
import { ServerError } from '../../shared/errors.ts';
import type { PermissionMode } from '../../shared/events.ts';
import { isPermissionMode, permissionModes } from '../../shared/session-choices.ts';

export function modeState(current: PermissionMode): SessionModeState {
  return {
    currentModeId: current,
    availableModes: Object.entries(permissionModes).map(([id, { name, description }]) => ({ id, name, description })),
  };
}

/** @throws ServerError INVALID_PARAMS for an id that is not a mode */
export function parseModeId(modeId: string): PermissionMode {
  if (isPermissionMode(modeId)) return modeId;
  throw new ServerError('INVALID_PARAMS', 'modeId is none of the modes that the session offers.', {
    data: { expected: Object.keys(permissionModes) },
  });
}
