/**
 * Where a session is put and what its thread is told: the payload of its piscina task.
 */
import type { MessagePort } from 'node:worker_threads';
import type { ModelAccess, Profile, ServerConfig } from '../../shared/config.ts';
import { clientSecrets } from '../../shared/known-secrets.ts';
import type { SessionPaths } from '../../shared/log/session-paths.ts';
import { grantsPath } from '../../shared/permission/grants-file.ts';
import type { McpServerSpec } from '../../shared/mcp-protocol.ts';
import type { SessionChoices } from '../../shared/session-choices.ts';
import type { SessionOptions } from '../../shared/session-options.ts';
import type { ClientTraits, SessionTask } from '../../shared/thread-protocol.ts';
import type { Diagnostics } from '../diagnostics.ts';
import type { AttachedSession } from './attached-session.ts';

/** What a client gives beside the `cwd` with each new, load, resume and fork. Nothing of it is kept in the log. */
export interface SessionWorkspace {
  /** The `cwd` in the client's own words. */
  readonly givenCwd?: string;
  /** Canonical. */
  readonly additionalDirectories?: readonly string[];
  /** May hold secrets. */
  readonly mcpServers?: readonly McpServerSpec[];
}

export interface SessionPlace {
  readonly sessionId: string;
  readonly cwd: string;
  readonly paths: SessionPaths;
  readonly client: ClientTraits;
  readonly profile: Profile;
  readonly options: SessionOptions;
  readonly access?: ModelAccess;
  /** What a session that has no event yet begins with. */
  readonly choices?: SessionChoices;
  /** It works below an editor's session: what the person refused there for good is refused here, too. */
  readonly heedsRefusals?: boolean;
  readonly workspace?: SessionWorkspace;
  /** The session it works for: it is put on that one's thread, and nothing of it is written to the client. */
  readonly beside?: AttachedSession;
  /** Only to be looked at: its lock and its processes are not ours to clear. */
  readonly readOnly?: true;
  /** It was on a thread before, and the client has not opened it anew since. */
  readonly isBack?: boolean;
}

export interface ServerPlace {
  readonly config: ServerConfig;
  readonly serverNonce: string;
  /** Absolute directories of this program's own state and settings. */
  readonly ownDirectories: readonly string[];
  /** Where the broker says what commands are kept in; starts it. */
  readonly sandboxSlot?: () => SharedArrayBuffer;
  readonly diagnostics?: Pick<Diagnostics, 'keepOut'>;
}

export function sessionTask(
  place: SessionPlace,
  { config, serverNonce, ownDirectories, sandboxSlot, diagnostics }: ServerPlace,
  port: MessagePort,
): SessionTask {
  diagnostics?.keepOut(secretsOf(place));
  return {
    sessionId: place.sessionId,
    cwd: place.cwd,
    logPath: place.paths.log,
    lockPath: place.paths.lock,
    spillDir: place.paths.spillDir,
    ownDirectories,
    ...grantsFor(place, config),
    ...(sandboxSlot === undefined ? {} : { sandbox: { use: config.sandbox.use, network: config.sandbox.network, slot: sandboxSlot() } }),
    isolation: config.isolation,
    serverNonce,
    settings: { ...config.session, ...place.access, profile: place.profile },
    options: place.options,
    ...(place.choices === undefined ? {} : { choices: place.choices }),
    ...place.workspace,
    ...(place.readOnly === true ? { readOnly: true } : {}),
    ...(place.isBack === true ? { isBack: true } : {}),
    ...(place.beside === undefined ? {} : { audience: 'parent' }),
    client: place.client,
    givenUp: new SharedArrayBuffer(4),
    port,
  };
}

/** Those that come with the session: the server knows its own. */
function secretsOf({ access, options, workspace }: SessionPlace): string[] {
  const key = access?.model.kind === 'openai-compatible' ? access.model.apiKey : undefined;
  return [...(key === undefined ? [] : [key]), ...clientSecrets(options.env, workspace?.mcpServers)];
}

/** The person's lasting answers are an editor's: a program decides by itself, and must not depend on what somebody once answered. */
function grantsFor({ cwd, profile, heedsRefusals, readOnly }: SessionPlace, { stateDir }: ServerConfig): Pick<SessionTask, 'grants'> {
  if (readOnly === true || (profile !== 'editor' && heedsRefusals !== true)) return {};
  return { grants: { path: grantsPath(stateDir, cwd), use: profile === 'editor' ? 'answers' : 'refusals' } };
}
