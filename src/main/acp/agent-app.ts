/**
 * The ACP methods of this server: a table from method to what it does, on the SDK's agent app.
 *
 * The SDK parses the params and owns JSON-RPC; updates never pass through here. Handlers hold no state: sessions do.
 */
import { type AgentApp, agent, methods } from '@agentclientprotocol/sdk';
import type { ServerConfig } from '../../shared/config.ts';
import type { Diagnostics } from '../diagnostics.ts';
import type { SessionTable } from '../sessions/session-table.ts';
import { setSessionConfigOption } from './config-options.ts';
import { Connection } from './connection.ts';
import { authenticate, initializeResponse, statusMethod } from './initialize.ts';
import { prompt } from './prompt-method.ts';
import { answering } from './rpc-errors.ts';
import { listSessions, loadSession, newSession, resumeSession, setSessionMode } from './session-methods.ts';

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
  const connection = new Connection(config.profile);

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
        connection.initialize(params);
        parts.onInitialize();
        return initializeResponse(config, connection.profile);
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
      answering(diagnostics, ({ params }) => newSession(parts, connection, params)),
    )
    .onRequest(
      methods.agent.session.load,
      answering(diagnostics, ({ params }) => loadSession(parts, connection, params)),
    )
    .onRequest(
      methods.agent.session.resume,
      answering(diagnostics, ({ params }) => resumeSession(parts, connection, params)),
    )
    .onRequest(
      methods.agent.session.list,
      answering(diagnostics, ({ params }) => listSessions(parts, connection, params)),
    )
    .onRequest(
      statusMethod,
      anyParams,
      answering(diagnostics, async () => (await parts.sessions()).status()),
    )
    .onRequest(
      methods.agent.session.setMode,
      answering(diagnostics, ({ params }) => setSessionMode(parts, connection, params)),
    )
    .onRequest(
      methods.agent.session.setConfigOption,
      answering(diagnostics, ({ params }) => setSessionConfigOption(parts, connection, params)),
    )
    .onRequest(
      methods.agent.session.close,
      answering(diagnostics, async ({ params }) => {
        await (await parts.sessions()).close(params.sessionId);
        return {};
      }),
    );
}
