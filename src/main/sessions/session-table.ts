/**
 * All open sessions of the connection: creates, loads, finds, parks and closes them. Main's only map from a session id to
 * anything.
 */
import { isAbsolute, resolve } from 'node:path';
import { ServerError } from '../../shared/errors.ts';
import type { SessionHeader } from '../../shared/events.ts';
import { deleteSession } from '../../shared/log/delete-session.ts';
import { forkSession } from '../../shared/log/fork-session.ts';
import { type ListOptions, listSessions, type SessionPage } from '../../shared/log/list-sessions.ts';
import { readSessionHeader } from '../../shared/log/read-header.ts';
import { createSessionFile, isSessionId, sessionPaths } from '../../shared/log/session-paths.ts';
import type { Chosen } from '../../shared/session-choices.ts';
import type { SessionOptions } from '../../shared/session-options.ts';
import type { SessionWorkspace } from '../threads/session-task.ts';
import { endOrphans } from '../threads/end-orphans.ts';
import { newHeader } from './new-header.ts';
import { ReadOnlyViews } from './read-only-views.ts';
import { type ServerStatus, serverStatus } from './server-status.ts';
import { Session } from './session.ts';
import type { SessionIdentity, SessionParts } from './session-parts.ts';
import { SessionsOnThreads } from './sessions-on-threads.ts';
import { canonicalDirectory } from './working-directory.ts';

/** How the connection sees its sessions. */
export type ConnectionView = Pick<SessionIdentity, 'client' | 'profile' | 'access'>;

/** A stored session that is to be opened. */
export interface WantedSession {
  readonly id: string;
  readonly cwd: string;
  readonly view: ConnectionView;
  readonly workspace?: SessionWorkspace;
}

/** Of a session to be made. */
interface GivenSession {
  readonly workspace?: SessionWorkspace;
  readonly id?: string | undefined;
}

export interface SessionTableParts {
  /** Names this server in lock files. */
  readonly serverNonce: string;
}

export class SessionTable {
  readonly #parts: SessionParts & SessionTableParts;
  readonly #sessions = new Map<string, Session>();
  readonly #onThreads = new SessionsOnThreads();
  readonly #views: ReadOnlyViews;
  /** Ids between the request to load or delete them and its end, which is awaited here. */
  readonly #loading = new Map<string, Promise<void>>();
  #parkTimer: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(parts: Omit<SessionParts, 'makeRoom' | 'onThreads'> & SessionTableParts) {
    this.#parts = { ...parts, makeRoom: (unwilling) => this.#makeRoom(unwilling), onThreads: this.#onThreads };
    this.#views = new ReadOnlyViews(this.#parts);
    const { parkAfterMs } = parts.config;
    if (parkAfterMs > 0) this.#parkTimer = setInterval(() => this.#parkIdle(parkAfterMs), Math.max(250, parkAfterMs / 4)).unref();
  }

  status(): ServerStatus {
    return serverStatus(this.#parts.config.isolation, this.#sessions.values(), this.#parts);
  }

  /** Writes the session's header and opens it; no thread is touched. @throws ServerError CWD_INVALID, LOG_WRITE_FAILED, SHUTTING_DOWN */
  async create(cwd: string, view: ConnectionView, options: SessionOptions, given: GivenSession = {}): Promise<Session> {
    this.#refuseWhenClosing();
    const canonicalCwd = await canonicalDirectory(cwd);
    const { config } = this.#parts;
    const header = newHeader(canonicalCwd, options, config, given.id);
    this.#refuseWhenClosing();
    const { workspace = {} } = given;
    const paths = createSessionFile(config.stateDir, header);
    const session = this.#open({ id: header.id, cwd: canonicalCwd, paths, ...view, options, workspace });
    this.#parts.mcp?.openAhead(session.identity);
    this.#parts.sessionMade?.();
    return session;
  }

  /**
   * Opens a stored session and sends its history; fulfils behind the last update. Distinct ids load in parallel.
   *
   * @throws ServerError SESSION_NOT_FOUND, SESSION_ALREADY_OPEN, CWD_INVALID, CWD_MISMATCH, LOG_CORRUPT, LOG_VERSION,
   * SESSION_LOCKED, SHUTTING_DOWN; nothing stays open then
   */
  load(wanted: WantedSession, given: Pick<SessionOptions, 'env' | 'mode'>): Promise<Session> {
    return this.#openStored(wanted, given, (session) => session.replay());
  }

  /** The same without the history: nothing is sent. @throws ServerError as {@link load} */
  resume(wanted: WantedSession, given: Pick<SessionOptions, 'env' | 'mode'>): Promise<Session> {
    return this.#openStored(wanted, given, (session) => session.resume());
  }

  /**
   * Opens a new session that begins with the history of a stored one, open or not, up to its last finished turn. Sends nothing.
   *
   * @throws ServerError as {@link load}, but never SESSION_ALREADY_OPEN or SESSION_LOCKED; LOG_WRITE_FAILED. Nothing is left then
   */
  async fork(wanted: WantedSession, given: Pick<SessionOptions, 'env' | 'mode'>, ownId?: string): Promise<Session> {
    this.#refuseWhenClosing();
    const { config } = this.#parts;
    const { header, canonicalCwd } = await this.#checkStored(wanted.id, wanted.cwd);
    const own = newHeader(canonicalCwd, header.options ?? {}, config, ownId);
    await forkSession({ stateDir: config.stateDir, sourceId: wanted.id, header: own });
    try {
      return await this.resume({ ...wanted, id: own.id }, given);
    } catch (error) {
      await this.#erase(own.id).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Deletes a session with all that belongs to it, and closes it first if it is open here: its prompts answer `cancelled`.
   * Fulfils for a session that there is not.
   *
   * @throws ServerError SESSION_LOCKED while another server has it open; SESSION_ALREADY_OPEN for one that works for another;
   *   LOG_WRITE_FAILED, SHUTTING_DOWN
   */
  async delete(id: string): Promise<void> {
    if (!isSessionId(id)) return;
    this.#refuseWorking(id);
    await this.#loading.get(id);
    await this.#views.close(id);
    if (this.#sessions.has(id)) await this.close(id);
    await this.#reserved(id, () => this.#erase(id));
  }

  /**
   * Opens a session only to be looked at, also one that another server has open: sends its log, then follows it. Says what is chosen.
   * Nothing works in its directory, which may be gone: its name is enough.
   *
   * @throws ServerError as {@link load}, but never SESSION_LOCKED; OVERLOADED where no thread may be held for it
   */
  view(id: string, cwd: string, view: ConnectionView): Promise<Chosen> {
    return this.#reserved(id, async () => {
      const header = readSessionHeader(this.#parts.config.stateDir, id);
      if (!isAbsolute(cwd) || resolve(cwd) !== header.cwd) await this.#checkStored(id, cwd);
      const paths = sessionPaths(this.#parts.config.stateDir, id);
      return await this.#views.open({ id, cwd: header.cwd, paths, ...view, options: header.options ?? {} });
    });
  }

  /** A page of the stored sessions, open or not, newest first. @throws ServerError INVALID_PARAMS for a bad cursor */
  list(options: ListOptions): Promise<SessionPage> {
    const { stateDir, session } = this.#parts.config;
    return listSessions(stateDir, { ...options, titles: session.titles !== 'off' });
  }

  /** @throws ServerError SESSION_NOT_FOUND; SESSION_READ_ONLY for one that was opened only to be looked at */
  get(id: string): Session {
    if (this.#views.has(id)) {
      throw new ServerError('SESSION_READ_ONLY', 'The session is open only to be looked at.', { data: { sessionId: id } });
    }
    const session = this.#sessions.get(id);
    if (session === undefined || this.#loading.has(id)) throw sessionNotFound(id);
    return session;
  }

  find(id: string): Session | undefined {
    return this.#loading.has(id) ? undefined : this.#sessions.get(id);
  }

  async close(id: string): Promise<void> {
    if (this.#views.has(id)) return await this.#views.close(id);
    const session = this.get(id);
    await session.close();
    this.#sessions.delete(id);
  }

  /** Refuses new work and disposes every session in parallel. */
  async disposeAll(): Promise<void> {
    this.#closing = true;
    clearInterval(this.#parkTimer);
    await Promise.allSettled([this.#views.closeAll(), ...[...this.#sessions.values()].map((session) => session.dispose())]);
    this.#sessions.clear();
  }

  failAll(error: ServerError): void {
    for (const session of this.#sessions.values()) session.fail(error);
  }

  async #openStored(
    wanted: WantedSession,
    { mode, env }: Pick<SessionOptions, 'env' | 'mode'>,
    start: (session: Session) => Promise<void>,
  ): Promise<Session> {
    const { id, cwd, view, workspace = {} } = wanted;
    return await this.#reserved(id, async () => {
      this.#refuseWorking(id);
      const { header, canonicalCwd } = await this.#checkStored(id, cwd);
      const options = { ...header.options, ...(env === undefined ? {} : { env }) };
      const session = this.#open({
        id,
        cwd: canonicalCwd,
        paths: sessionPaths(this.#parts.config.stateDir, id),
        ...view,
        options,
        workspace,
      });
      try {
        await start(session);
        if (mode !== undefined) await session.setMode(mode);
        this.#refuseWhenClosing();
      } catch (error) {
        this.#sessions.delete(id);
        await session.dispose();
        throw error;
      }
      return session;
    });
  }

  /** Its lock would not keep it apart: that keeps other servers away. */
  #refuseWorking(id: string): void {
    if (!this.#parts.worksForAnother(id)) return;
    const message = 'This session works for another one; until it has ended it can be looked at alone.';
    throw new ServerError('SESSION_ALREADY_OPEN', message, { data: { sessionId: id } });
  }

  #erase(id: string): Promise<void> {
    const { config, serverNonce } = this.#parts;
    return deleteSession({ stateDir: config.stateDir, id, serverNonce, onOrphaned: endOrphans });
  }

  /** Keeps the id for this act alone while it is under way. */
  async #reserved<T>(id: string, act: () => Promise<T>): Promise<T> {
    this.#refuseWhenClosing();
    if (!isSessionId(id)) throw sessionNotFound(id);
    if (this.#sessions.has(id) || this.#views.has(id) || this.#loading.has(id)) {
      throw new ServerError('SESSION_ALREADY_OPEN', 'This session is open, or being loaded, on this connection.', {
        data: { sessionId: id },
      });
    }
    let finish: () => void = () => undefined;
    this.#loading.set(id, new Promise((resolve) => (finish = resolve)));
    try {
      return await act();
    } finally {
      this.#loading.delete(id);
      finish();
    }
  }

  async #checkStored(id: string, cwd: string): Promise<{ readonly header: SessionHeader; readonly canonicalCwd: string }> {
    const header = readSessionHeader(this.#parts.config.stateDir, id);
    const canonicalCwd = await canonicalDirectory(cwd);
    if (canonicalCwd !== header.cwd) {
      throw new ServerError('CWD_MISMATCH', 'The session was created in another working directory than the one asked for.', {
        data: { sessionId: id },
      });
    }
    this.#refuseWhenClosing();
    return { header, canonicalCwd };
  }

  #open(identity: SessionIdentity): Session {
    const session = new Session(identity, this.#parts);
    this.#sessions.set(identity.id, session);
    return session;
  }

  #refuseWhenClosing(): void {
    if (this.#closing) throw new ServerError('SHUTTING_DOWN', 'The server is shutting down and takes no new work.');
  }

  /** With every thread taken, the session that has been idle longest gives its thread up. */
  #makeRoom(unwilling: Set<Session>): Promise<void> | undefined {
    const { threads, config } = this.#parts;
    if (config.isolation === 'shared' || !threads.isFull) return undefined;
    const idlest = this.#onThreads.idlest(unwilling);
    if (idlest === undefined) return undefined;
    return idlest.park().then((left) => {
      // It has background work: the next idlest one is asked.
      if (!left) unwilling.add(idlest);
    });
  }

  #parkIdle(afterMs: number): void {
    const limit = performance.now() - afterMs;
    for (const session of this.#onThreads.idle()) {
      if (session.idleSince < limit) void session.park();
    }
  }
}

function sessionNotFound(id: string): ServerError {
  return new ServerError('SESSION_NOT_FOUND', 'There is no session with this id.', { data: { sessionId: id.slice(0, 200) } });
}
