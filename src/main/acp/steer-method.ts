/**
 * `_session/steer`, a method of our own: a message for the turn that runs. Answered at once when that turn has it; where nothing ran
 * it is a prompt, and answered as one.
 */
import { randomUUID } from 'node:crypto';
import type { ContentBlock } from '@agentclientprotocol/sdk';
import * as z from 'zod/v4';
import type { Steered, SteerRefusal } from '../sessions/steering.ts';
import type { AgentAppParts } from './agent-app.ts';
import { promptContent, sessionPromptKinds } from './prompt-content.ts';
import { promptResponse } from './prompt-method.ts';
import { readParams } from './read-params.ts';

export const steerMethod = '_session/steer';

const longestMessageId = 128;
const meta = { _meta: z.unknown().optional() };

/** Blocks as ACP has them, as far as they are looked at. */
const contentBlock = z.lazy(() =>
  z.discriminatedUnion('type', [
    z.object({ type: z.literal('text'), text: z.string() }),
    z.object({ type: z.literal('resource_link'), uri: z.string(), name: z.string() }),
    z.object({ type: z.literal('image'), data: z.string(), mimeType: z.string(), uri: z.string().nullish() }),
    z.object({ type: z.literal('audio'), data: z.string(), mimeType: z.string() }),
    z.object({
      type: z.literal('resource'),
      resource: z.union([
        z.object({ uri: z.string(), text: z.string(), mimeType: z.string().nullish() }),
        z.object({ uri: z.string(), blob: z.string(), mimeType: z.string().nullish() }),
      ]),
    }),
  ]),
);

const paramsSchema = z.lazy(() =>
  z.strictObject({
    sessionId: z.string(),
    prompt: z.array(contentBlock),
    messageId: z.string().min(1).max(longestMessageId).nullish(),
    ...meta,
  }),
);

const refusals: Record<SteerRefusal, string> = {
  full: 'Too many messages wait for the next step of this turn; send it again later.',
  cancelled: 'The turn that it was sent into was cancelled.',
  'not-begun': 'The turn that it was sent into failed before it began.',
};

/**
 * The session is looked up before anything is awaited, so that messages keep the order in which they came.
 *
 * @throws ServerError INVALID_PARAMS, EMPTY_PROMPT, UNSUPPORTED_CONTENT, SESSION_NOT_FOUND; as `steer` in `sessions/steering.ts`
 */
export async function steer(parts: AgentAppParts, given: unknown, signal: AbortSignal): Promise<object> {
  const params = readParams(paramsSchema, given);
  const messageId = params.messageId ?? randomUUID();
  const sessions = parts.sessionsIfStarted() ?? (await parts.sessions());
  const session = sessions.get(params.sessionId);
  const content = promptContent(params.prompt as ContentBlock[], sessionPromptKinds(session));
  return steerResponse(messageId, await session.steer({ content, messageId }, signal));
}

function steerResponse(messageId: string, steered: Steered): object {
  switch (steered.outcome) {
    case 'injected':
      return { outcome: 'injected', messageId };
    case 'started':
      return { outcome: 'started', messageId, ...promptResponse(steered.result) };
    case 'refused':
      return { outcome: 'refused', reason: steered.reason, message: refusals[steered.reason] };
    default:
      return steered satisfies never;
  }
}
