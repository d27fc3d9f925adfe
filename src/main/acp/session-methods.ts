/**
 * The methods that make, open, list and change sessions: what each checks and what it answers. They hold no state.
 */
import { isAbsolute, resolve } from 'node:path';
import {
  type DeleteSessionRequest,
  type DeleteSessionResponse,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type LoadSessionRequest,
  type LoadSessionResponse,
  methods,
  type NewSessionRequest,
  type NewSessionResponse,
  type ResumeSessionRequest,
  type ResumeSessionResponse,
  type SetSessionModeRequest,
  type SetSessionModeResponse,
} from '@agentclientprotocol/sdk';
import { ServerError } from '../../shared/errors.ts';
import { givenSessionId } from '../../shared/supervised.ts';
import type { AgentAppParts } from './agent-app.ts';
import { choicesFor } from './config-options.ts';
import type { Connection } from './connection.ts';
import { lookAtDirectory } from '../sessions/working-directory.ts';
import { refusal, type WithMeta } from './meta/extension.ts';
import { newSessionOptions, openSessionOptions } from './meta/session-options.ts';
import { parseModeId } from './modes.ts';
import { sessionWorkspace } from './session-workspace.ts';

export async function newSession(parts: AgentAppParts, connection: Connection, params: NewSessionRequest): Promise<NewSessionResponse> {
  refuseWhereOneOnlyLooks(parts);
  const workspace = await sessionWorkspace(params, connection.profile);
  const access = await parts.credentials.refresh();
  const options = await newSessionOptions(params, { ...parts.config.session, ...access, ...workspace, asksPerson: connection.asksPerson });
  parts.credentials.require();
  const sessions = await parts.sessions();
  const id = await givenId(parts, params);
  const session = await sessions.create(params.cwd, connection.view, options, { workspace, id });
  const choices = choicesFor(session.settings, connection.view, session.chosen);
  return parts.commands.behind({ sessionId: session.identity.id, ...choices }, session);
}

export async function loadSession(parts: AgentAppParts, connection: Connection, params: LoadSessionRequest): Promise<LoadSessionResponse> {
  connection.refuseUnlessEditor(methods.agent.session.load);
  const workspace = await sessionWorkspace(params, connection.profile);
  const { readOnly, ...options } = openSessionOptions(params);
  const sessions = await parts.sessions();
  if (readOnly === true || parts.config.lookOnly) {
    if (Object.keys(options).length > 0) throw refusal('readOnly', 'a session that is only looked at takes neither mode nor env.');
    return choicesFor(parts.config.session, connection.view, await sessions.view(params.sessionId, params.cwd, connection.view));
  }
  await parts.credentials.refresh();
  const session = await sessions.load({ id: params.sessionId, cwd: params.cwd, view: connection.view, workspace }, options);
  return parts.commands.behind(choicesFor(session.settings, connection.view, session.chosen), session);
}

export async function resumeSession(
  parts: AgentAppParts,
  connection: Connection,
  params: ResumeSessionRequest,
): Promise<ResumeSessionResponse> {
  refuseWhereOneOnlyLooks(parts);
  const workspace = await sessionWorkspace(params, connection.profile);
  const { readOnly, ...options } = openSessionOptions(params);
  if (readOnly === true) throw refusal('readOnly', 'nothing is shown by session/resume; use session/load.');
  await parts.credentials.refresh();
  const session = await (await parts.sessions()).resume(
    { id: params.sessionId, cwd: params.cwd, view: connection.view, workspace },
    options,
  );
  return parts.commands.behind(choicesFor(session.settings, connection.view, session.chosen), session);
}

export async function listSessions(
  parts: AgentAppParts,
  connection: Connection,
  params: ListSessionsRequest,
): Promise<ListSessionsResponse> {
  connection.refuseUnlessEditor(methods.agent.session.list);
  // A filter that no session can meet is a mistake of the client, and would look like an empty list.
  if (typeof params.cwd === 'string' && !isAbsolute(params.cwd)) {
    throw new ServerError('INVALID_PARAMS', 'cwd must be an absolute path.', { data: { field: 'cwd' } });
  }
  const table = await parts.sessions();
  const cwd = typeof params.cwd === 'string' ? await storedName(params.cwd) : undefined;
  const page = await table.list({ cwd, cursor: params.cursor ?? undefined });
  const sessions = page.sessions.map(({ id, cwd, title, updatedAt }) => {
    // Known of open sessions alone: nothing of it is stored to be given back.
    const { additionalDirectories } = table.find(id)?.identity.workspace ?? {};
    return {
      sessionId: id,
      cwd,
      updatedAt,
      ...(title === undefined ? {} : { title }),
      ...(additionalDirectories === undefined ? {} : { additionalDirectories: [...additionalDirectories] }),
    };
  });
  return { sessions, ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }) };
}

/** As a session has it: without links. That of a directory which is gone is taken as it is: its sessions are still there. */
async function storedName(cwd: string): Promise<string> {
  const found = await lookAtDirectory(cwd);
  return found.ok ? found.path : resolve(cwd);
}

/** Of a session that may be open, here or not at all. Fulfils for one that there is not. */
export async function deleteSession(
  parts: AgentAppParts,
  connection: Connection,
  { sessionId }: DeleteSessionRequest,
): Promise<DeleteSessionResponse> {
  connection.refuseUnlessEditor(methods.agent.session.delete);
  refuseWhereOneOnlyLooks(parts);
  await (await parts.sessions()).delete(sessionId);
  return {};
}

export async function setSessionMode(
  parts: AgentAppParts,
  connection: Connection,
  params: SetSessionModeRequest,
): Promise<SetSessionModeResponse> {
  connection.refuseUnlessEditor(methods.agent.session.setMode);
  await (await parts.sessions()).get(params.sessionId).setMode(parseModeId(params.modeId));
  return {};
}

/** @throws ServerError SESSION_READ_ONLY when the server was started only to look at sessions */
export function refuseWhereOneOnlyLooks({ config }: AgentAppParts): void {
  if (!config.lookOnly) return;
  const message = 'This server was started only to look at sessions (look_only): use session/load.';
  throw new ServerError('SESSION_READ_ONLY', message, { data: { setting: 'look_only' } });
}

/** The id that a session to be made shall have. What a server made under it, and died before it could say so, is removed. */
export async function givenId({ isSupervised, sessions }: AgentAppParts, params: WithMeta): Promise<string | undefined> {
  const id = isSupervised ? givenSessionId(params) : undefined;
  if (id !== undefined) await (await sessions()).delete(id);
  return id;
}
