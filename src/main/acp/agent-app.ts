/**
 * The ACP methods of this server: a table from method to what it does, on the SDK's agent app.
 *
 * The SDK parses the params and owns JSON-RPC; updates never pass through here. Handlers hold no state: sessions do.
 */
import { type AgentApp, agent, methods } from '@agentclientprotocol/sdk';
import type { ServerConfig } from '../../shared/config.ts';
import type { Diagnostics } from '../diagnostics.ts';
import type { SessionTable } from '../sessions/session-table.ts';
import { AuthMethods, type Launch } from './auth/auth-methods.ts';
import type { Credentials } from './auth/credentials.ts';
import type { CommandLists } from './command-lists.ts';
import { setSessionConfigOption } from './config-options.ts';
import { Connection } from './connection.ts';
import { forkMethod, forkSession } from './fork-method.ts';
import { initializeResponse, statusMethod } from './initialize.ts';
import { prompt } from './prompt-method.ts';
import { rewindMethod, rewindSession } from './rewind-method.ts';
import { answering } from './rpc-errors.ts';
import { steer, steerMethod } from './steer-method.ts';
import { deleteSession, listSessions, loadSession, newSession, resumeSession, setSessionMode } from './session-methods.ts';

export interface AgentAppParts {
  readonly config: ServerConfig;
  readonly diagnostics: Diagnostics;
  readonly credentials: Credentials;
  readonly launch: Launch;
  /** What a supervisor says in `_meta` is believed. */
  readonly isSupervised: boolean;
  /** The open sessions, once the threads have been started. */
  readonly sessions: () => Promise<SessionTable>;
  /** The same, without waiting: a notification cannot concern a session that is not there yet. */
  readonly sessionsIfStarted: () => SessionTable | undefined;
  readonly onInitialize: () => void;
  readonly commands: Pick<CommandLists, 'behind' | 'promptBegins'>;
}

/** Takes whatever params a client sends with a method that has none. */
const anyParams = { parse: (): undefined => undefined };
/** For methods of our own that check their params themselves. */
const rawParams = { parse: (params: unknown): unknown => params };

export function createAgentApp(parts: AgentAppParts): AgentApp {
  const { config, diagnostics, credentials } = parts;
  const connection = new Connection(config.profile, credentials);
  const auth = new AuthMethods(parts.launch);

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
        auth.initialize(params.clientCapabilities);
        parts.onInitialize();
        return initializeResponse(config, connection.profile, auth.list(credentials.keyVariable));
      }),
    )
    .onRequest(
      methods.agent.authenticate,
      answering(diagnostics, async ({ params }) => {
        await auth.authenticate(params.methodId, credentials);
        return {};
      }),
    )
    .onRequest(
      methods.agent.logout,
      answering(diagnostics, async () => {
        await credentials.signOut();
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
      steerMethod,
      rawParams,
      answering(diagnostics, ({ params, signal }) => steer(parts, params, signal)),
    )
    .onRequest(
      forkMethod,
      rawParams,
      answering(diagnostics, ({ params }) => forkSession(parts, connection, params)),
    )
    .onRequest(
      methods.agent.session.delete,
      answering(diagnostics, ({ params }) => deleteSession(parts, connection, params)),
    )
    .onRequest(
      rewindMethod,
      rawParams,
      answering(diagnostics, ({ params }) => rewindSession(parts, params)),
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
