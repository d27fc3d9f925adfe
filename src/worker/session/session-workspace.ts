/**
 * What a session is given of its workspace: its directories, and the instruction files in them.
 */
import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { SessionInstructions } from '../workspace/session-instructions.ts';
import type { ThreadContext } from './thread-context.ts';

/** `undefined` where the setting turns them off. */
export function createSessionInstructions(task: SessionTask, { main }: Pick<ThreadContext, 'main'>): SessionInstructions | undefined {
  const { cwd, additionalDirectories = [], settings, sessionId } = task;
  if (settings.instructions === 'off') return undefined;
  return new SessionInstructions({
    cwd,
    additionalDirectories: additionalDirectories.filter((directory) => directory !== cwd),
    home: canonicalHome(),
    userFile: settings.userInstructions,
    onLate: () =>
      void main.log('info', `session ${sessionId}: the workspace did not answer in time, so its instruction files are left out`),
  });
}

function canonicalHome(): string | undefined {
  try {
    return realpathSync.native(homedir());
  } catch {
    // A user without a home: directories are then looked at up to the repository's root alone.
    return undefined;
  }
}
