/**
 * The ACP methods of this server: a table from method to what it does, on the SDK's agent app.
 *
 * The SDK parses the params and owns JSON-RPC; updates never pass through here. Handlers hold no state: sessions do.
 */
import { isAbsolute } from 'node:path';
import {
  type AgentApp,
  agent,
  type InitializeRequest,
  type ListSessionsResponse,
  type LoadSessionRequest,
  type LoadSessionResponse,
  methods,
  type NewSessionRequest,
  type NewSessionResponse,
  type PromptRequest,
  type PromptResponse,
} from '@agentclientprotocol/sdk';
import type { ServerConfig } from '../../shared/config.ts';
import { ServerError } from '../../shared/errors.ts';
import type { Diagnostics } from '../diagnostics.ts';
import type { ConnectionView, SessionTable } from '../sessions/session-table.ts';
import { authenticate, clientTraits, initializeResponse, requireCredentials, statusMethod } from './initialize.ts';
import { modeState, parseModeId } from './modes.ts';
import { promptContent } from './prompt-content.ts';
import { answering } from './rpc-errors.ts';

export interface AgentAppParts {
  readonly config: ServerConfig;
  readonly diagnostics: Diagnostics;
  /** The open sessions, once the threads have been started. */
  readonly sessions: () => Promise<SessionTable>;
  /** The same, without waiting: a notification cannot concern a session that is not there yet. */
  readonly sessionsIfStarted: () => SessionTable | undefined;
  readonly onInitialize: () => void;
}

/** Takes whatever params a client sends with a method that has none. */
const anyParams = { parse: (): undefined => undefined };

export function createAgentApp(parts: AgentAppParts): AgentApp {
  const { config, diagnostics } = parts;
  let client: InitializeRequest | undefined;

  // Prompt and cancel stand first: each registered handler costs every later one an await per frame.
  return agent({ name: config.agentName })
    .onRequest(
      methods.agent.session.prompt,
      answering(diagnostics, ({ params, signal }) => prompt(parts, params, signal)),
    )
    .onNotification(methods.agent.session.cancel, ({ params }) => parts.sessionsIfStarted()?.find(params.sessionId)?.cancel())
    .onRequest(
      methods.agent.initialize,
      answering(diagnostics, ({ params }) => {
        client = params;
        parts.onInitialize();
        return initializeResponse(config);
      }),
    )
    .onRequest(
      methods.agent.authenticate,
      answering(diagnostics, ({ params }) => {
        authenticate(params.methodId, config.session.model);
        return {};
      }),
    )
    .onRequest(
      methods.agent.session.new,
      answering(diagnostics, ({ params }) => newSession(parts, params, client)),
    )
    .onRequest(
      methods.agent.session.load,
      answering(diagnostics, ({ params }) => loadSession(parts, params, client)),
    )
    .onRequest(
      methods.agent.session.list,
      answering(diagnostics, async ({ params }): Promise<ListSessionsResponse> => {
        // A filter that no session can meet is a mistake of the client, and would look like an empty list.
        if (typeof params.cwd === 'string' && !isAbsolute(params.cwd)) {
          throw new ServerError('INVALID_PARAMS', 'cwd must be an absolute path.', { data: { field: 'cwd' } });
        }
        const page = await (await parts.sessions()).list({ cwd: params.cwd ?? undefined, cursor: params.cursor ?? undefined });
        const sessions = page.sessions.map(({ id, cwd, title, updatedAt }) => {
          return { sessionId: id, cwd, updatedAt, ...(title === undefined ? {} : { title }) };
        });
        return { sessions, ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }) };
      }),
    )
    .onRequest(
      statusMethod,
      anyParams,
      answering(diagnostics, async () => (await parts.sessions()).status()),
    )
    .onRequest(
      methods.agent.session.setMode,
      answering(diagnostics, async ({ params }) => {
        const session = (await parts.sessions()).get(params.sessionId);
        await session.setMode(parseModeId(params.modeId));
        return {};
      }),
    )
    .onRequest(
      methods.agent.session.close,
      answering(diagnostics, async ({ params }) => {
        await (await parts.sessions()).close(params.sessionId);
        return {};
      }),
    );
}

/** The session is looked up before anything is awaited, so that prompts keep the order in which they came. */
async function prompt(parts: AgentAppParts, params: PromptRequest, signal: AbortSignal): Promise<PromptResponse> {
  const content = promptContent(params.prompt);
  const sessions = parts.sessionsIfStarted() ?? (await parts.sessions());
  const { stopReason, usage } = await sessions.get(params.sessionId).prompt(content, {}, signal);
  return { stopReason, _meta: { 'dsh-acp': { usage: { ...usage } } } };
}

async function newSession(
  parts: AgentAppParts,
  params: NewSessionRequest,
  client: InitializeRequest | undefined,
): Promise<NewSessionResponse> {
  refuseUnsupported(params);
  requireCredentials(parts.config.session.model);
  const session = await (await parts.sessions()).create(params.cwd, viewOf(parts, client), {});
  return { sessionId: session.identity.id, modes: modeState(session.mode) };
}

async function loadSession(
  parts: AgentAppParts,
  params: LoadSessionRequest,
  client: InitializeRequest | undefined,
): Promise<LoadSessionResponse> {
  refuseUnsupported(params);
  const session = await (await parts.sessions()).load(params.sessionId, params.cwd, viewOf(parts, client), {});
  return { modes: modeState(session.mode) };
}

function viewOf({ config }: AgentAppParts, client: InitializeRequest | undefined): ConnectionView {
  return { client: clientTraits(client), profile: config.profile };
}

function refuseUnsupported(params: NewSessionRequest | LoadSessionRequest): void {
  if (params.mcpServers.length > 0) {
    throw new ServerError('INVALID_PARAMS', 'mcpServers must be empty: this server does not connect to MCP servers.', {
      data: { field: 'mcpServers' },
    });
  }
  if ((params.additionalDirectories?.length ?? 0) > 0) {
    throw new ServerError('INVALID_PARAMS', 'additionalDirectories must be empty: a session works in its cwd.', {
      data: { field: 'additionalDirectories' },
    });
  }
}
