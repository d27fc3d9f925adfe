/**
 * `session/fork`: a new session with the history of another one. Not part of ACP's stable version yet, so the SDK neither
 * routes it by itself nor checks its params.
 */
import type { ResumeSessionResponse } from '@agentclientprotocol/sdk';
import * as z from 'zod/v4';
import type { AgentAppParts } from './agent-app.ts';
import { choicesFor } from './config-options.ts';
import type { Connection } from './connection.ts';
import { refusal } from './meta/extension.ts';
import { openSessionOptions } from './meta/session-options.ts';
import { readParams } from './read-params.ts';
import { givenId, refuseWhereOneOnlyLooks } from './session-methods.ts';
import { sessionWorkspace } from './session-workspace.ts';

export const forkMethod = 'session/fork';

const pairs = z.lazy(() => z.array(z.object({ name: z.string(), value: z.string() })).nullable());

/** As the SDK takes them with the methods that it knows. */
const mcpServer = z.lazy(() =>
  z.union([
    z.object({ type: z.enum(['http', 'sse']), name: z.string(), url: z.string(), headers: pairs }),
    z.object({
      type: z.literal('stdio').optional(),
      name: z.string(),
      command: z.string(),
      args: z.array(z.string()).nullable(),
      env: pairs,
    }),
  ]),
);

const paramsSchema = z.lazy(() =>
  z.object({
    sessionId: z.string(),
    cwd: z.string(),
    additionalDirectories: z.array(z.string()).nullable().exactOptional(),
    mcpServers: z.array(mcpServer).nullable().exactOptional(),
    _meta: z.record(z.string(), z.unknown()).nullable().exactOptional(),
  }),
);

type ForkSessionResponse = ResumeSessionResponse & { readonly sessionId: string };

export async function forkSession(parts: AgentAppParts, connection: Connection, given: unknown): Promise<ForkSessionResponse> {
  connection.refuseUnlessEditor(forkMethod);
  refuseWhereOneOnlyLooks(parts);
  const params = readParams(paramsSchema, given);
  const workspace = await sessionWorkspace(params, connection.profile);
  const { readOnly, ...options } = openSessionOptions(params);
  if (readOnly === true) throw refusal('readOnly', 'a fork is a session to go on with.');
  await parts.credentials.refresh();
  const wanted = { id: params.sessionId, cwd: params.cwd, view: connection.view, workspace };
  const session = await (await parts.sessions()).fork(wanted, options, await givenId(parts, params));
  const choices = choicesFor(session.settings, connection.view, session.chosen);
  return parts.commands.behind({ sessionId: session.identity.id, ...choices }, session);
}
