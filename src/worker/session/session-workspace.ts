/**
 * What a session is given of its workspace: the instruction files in it, and what the client's editor has of its files.
 */
import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, relative } from 'node:path';
import { isInside } from '../../shared/path-inside.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { workspaceRoots } from '../../shared/workspace-roots.ts';
import { ClientFiles } from '../workspace/client-files.ts';
import { EditorFiles } from '../workspace/editor-files.ts';
import { SessionInstructions } from '../workspace/session-instructions.ts';
import type { ThreadContext } from './thread-context.ts';

/** `undefined` where the client does not offer both to read and to write, and where the setting turns it off. */
export function createEditorFiles(
  task: SessionTask,
  { main, outbox, broker }: Pick<ThreadContext, 'main' | 'outbox' | 'broker'>,
  work: { readonly live: number },
): EditorFiles | undefined {
  const { sessionId, client, settings } = task;
  if (settings.clientFiles === 'off' || client.readTextFile !== true || client.writeTextFile !== true) return undefined;
  return new EditorFiles({
    roots: workspaceRoots(task),
    client: new ClientFiles({
      sessionId,
      spell: (path) => clientSpelling(path, task),
      ask: (request) => main.askClient(request),
      withdraw: (requestKey) => main.withdrawClientRequest(sessionId, requestKey),
      flush: () => outbox.flush(),
      onGivenUp: (why) => void main.log('info', `session ${sessionId} works on the disk alone from now on: ${why}`),
    }),
    isWorkRunning: async () => work.live > 0 || (await broker.countBackground(sessionId)) > 0,
    wallClock: () => Date.now(),
  });
}

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

/** A client knows its files by its own way to the workspace, which may lead through links. */
function clientSpelling(path: string, { cwd, givenCwd }: Pick<SessionTask, 'cwd' | 'givenCwd'>): string {
  return givenCwd !== undefined && isInside(cwd, path) ? join(givenCwd, relative(cwd, path)) : path;
}

function canonicalHome(): string | undefined {
  try {
    return realpathSync.native(homedir());
  } catch {
    // A user without a home: directories are then looked at up to the repository's root alone.
    return undefined;
  }
}
