/**
 * `_session/rewind`, a method of our own: takes a session back to before a prompt, with what the file tools did since. The
 * conversation says so in a note; its answer has the same in parts.
 */
import * as z from 'zod/v4';
import type { RewindOutcome } from '../../shared/undo-protocol.ts';
import type { AgentAppParts } from './agent-app.ts';
import { readParams } from './read-params.ts';

export const rewindMethod = '_session/rewind';

const paramsSchema = z.lazy(() =>
  z.strictObject({
    sessionId: z.string(),
    messageId: z.string().min(1).max(128),
    files: z.boolean().nullish(),
    force: z.boolean().nullish(),
    _meta: z.unknown().optional(),
  }),
);

/**
 * Answers behind the note.
 *
 * @throws ServerError INVALID_PARAMS for a message that is no part of the conversation, and for files in a mode that changes none;
 * SESSION_NOT_FOUND; SESSION_READ_ONLY; SESSION_BUSY while a prompt runs or waits; ATTACH_FAILED, THREAD_LOST, LOG_WRITE_FAILED
 */
export async function rewindSession(parts: AgentAppParts, given: unknown): Promise<object> {
  const { sessionId, messageId, files, force } = readParams(paramsSchema, given);
  const sessions = parts.sessionsIfStarted() ?? (await parts.sessions());
  return rewindResponse(await sessions.get(sessionId).rewind({ messageId, files: files ?? true, force: force ?? false }));
}

function rewindResponse({ turns, files, notUndone }: RewindOutcome): object {
  return { turns, files, notUndone };
}
