/**
 * The provider `self`: serves the calls of {@link SubagentApi} with further sessions of this server.
 *
 * Knows every run by its id and who it belongs to; a session that works for another is in no table of the connection, so
 * no client can name it. Delegating costs a file's header and an attach to a thread that is there already.
 */
import type { ServerConfig } from '../../shared/config.ts';
import { type ErrorCode, ServerError, toWireError } from '../../shared/errors.ts';
import type { PermissionMode } from '../../shared/events.ts';
import type { TaskAnswer } from '../../shared/broker-protocol.ts';
import {
  selfProvider,
  type SubagentActivity,
  type SubagentApi,
  type SubagentCapabilities,
  type SubagentNews,
  type SubagentProvider,
  type SubagentRequest,
  type SubagentStarted,
} from '../../shared/subagent-protocol.ts';
import { ProviderSlots } from '../../shared/subagents/provider-slots.ts';
import type { PermissionAnswer, PermissionRequest } from '../../shared/thread-protocol.ts';
import type { Session } from '../sessions/session.ts';
import type { SessionParts } from '../sessions/session-parts.ts';
import { canonicalDirectory } from '../sessions/working-directory.ts';
import { createChildSession } from './child-session.ts';
import { SelfRun } from './self-run.ts';
import { startInTime } from './start-in-time.ts';

export interface SelfProviderParts extends Omit<SessionParts, 'admission' | 'makeRoom'> {
  readonly config: ServerConfig;
  /** Tells the broker whom a session works for. */
  readonly adopt: (sessionId: string, parentId: string) => Promise<void>;
  /** A session of the connection. */
  readonly findSession: (id: string) => Session | undefined;
}

const capabilities: SubagentCapabilities = { persona: true, tools: true, depth: true, outputSchema: true, inheritsParentContext: false };
/** A longer poll asks again. */
const longestPollMs = 60_000;

/** A run from the request to the end of what it leaves. */
interface Entry {
  readonly owner: string;
  /** Aborts a start that is under way. */
  readonly stop: AbortController;
  run: SelfRun | undefined;
  /** A session that is on its way to its thread, also when it comes too late. Never rejects. */
  attaching: Promise<void> | undefined;
  /** Fulfils when nothing is left. */
  gone: Promise<void>;
}

export class SelfProvider implements SubagentApi {
  readonly #parts: SelfProviderParts;
  readonly #provider: SubagentProvider | undefined;
  readonly #entries = new Map<string, Entry>();
  /** Runs by the id of their session. */
  readonly #bySession = new Map<string, SelfRun>();
  /** Ids of the sessions that were made and have not left. */
  readonly #sessionIds = new Set<string>();
  /** By depth: whoever waits for a slot holds at most one of the depth above, so nobody waits for himself. */
  readonly #slots = new Map<number, ProviderSlots>();
  #closing = false;

  constructor(parts: SelfProviderParts) {
    this.#parts = parts;
    this.#provider = parts.config.session.subagents.find(({ name }) => name === selfProvider);
  }

  async startSubagent(request: SubagentRequest): Promise<SubagentStarted> {
    const provider = this.#provider;
    if (provider === undefined || request.provider !== selfProvider)
      return refuse('INVALID_PARAMS', `there is no agent ${request.provider}`);
    if (this.#closing) return refuse('SHUTTING_DOWN', 'the server is going down');
    if (request.depth > provider.maxDepth) return refuse('OVERLOADED', `agents are nested ${provider.maxDepth} deep already`);
    const stop = new AbortController();
    const entry: Entry = { owner: request.owner, stop, run: undefined, attaching: undefined, gone: Promise.resolve() };
    this.#entries.set(request.runId, entry);
    const starting = this.#start(request, provider, entry);
    entry.gone = starting.then(async () => await (entry.run?.over ?? entry.attaching));
    const started = await starting;
    // What came too late is known until it is gone, so that its owner's end waits for it.
    if (!started.ok) void entry.gone.then(() => this.#entries.delete(request.runId));
    return started;
  }

  async awaitSubagent(owner: string, runId: string, seq: number, waitMs: number): Promise<TaskAnswer<SubagentNews>> {
    const entry = this.#entries.get(runId);
    if (entry?.run === undefined) return { ok: false, code: 'NOT_FOUND' };
    if (entry.owner !== owner) return { ok: false, code: 'FOREIGN' };
    return { ok: true, value: await entry.run.news.since(seq, Math.min(waitMs, longestPollMs)) };
  }

  async cancelSubagent(owner: string, runId: string): Promise<void> {
    const entry = this.#own(owner, runId);
    entry?.stop.abort();
    entry?.run?.cancel();
  }

  async answerSubagent(owner: string, runId: string, questionId: string, allow: boolean): Promise<void> {
    this.#own(owner, runId)?.run?.questions.answer(questionId, allow);
  }

  async disposeSubagent(owner: string, runId: string): Promise<void> {
    const entry = this.#own(owner, runId);
    if (entry === undefined) return;
    entry.stop.abort();
    entry.run?.cancel();
    await entry.gone;
    this.#entries.delete(runId);
  }

  async countSubagents(owner: string): Promise<number> {
    return [...this.#entries.values()].filter((entry) => entry.owner === owner && (entry.run?.isRunning ?? !entry.stop.signal.aborted))
      .length;
  }

  /** What a session did that works for another one. */
  take(sessionId: string, activities: readonly SubagentActivity[]): void {
    this.#bySession.get(sessionId)?.take(activities);
  }

  /** The answer to a permission request; `undefined` when its session is none of these. */
  decide(request: PermissionRequest): Promise<PermissionAnswer> | undefined {
    return this.#bySession.get(request.sessionId)?.questions.decide(request);
  }

  withdraw(sessionId: string, requestKey: string): void {
    this.#bySession.get(sessionId)?.questions.withdraw(requestKey);
  }

  /** Sessions that work for another one now. */
  get sessionCount(): number {
    return this.#sessionIds.size;
  }

  /** Whether the session works for another one now. */
  isRunning(sessionId: string): boolean {
    return this.#sessionIds.has(sessionId);
  }

  /**
   * What works for a session goes on in its mode, and what works for that in turn. A run whose session cannot take it is
   * ended. Never rejects.
   */
  async followMode(owner: string, mode: PermissionMode): Promise<void> {
    const runs = [...this.#entries.values()].flatMap((entry) =>
      entry.owner === owner && entry.run?.isRunning === true ? [entry.run] : [],
    );
    await Promise.all(runs.map((run) => run.session.setMode(mode).catch(() => run.cancel())));
  }

  /** Ends all runs of a session that lost its thread, or is going. Never rejects. */
  async releaseOwner(owner: string): Promise<void> {
    const runs = [...this.#entries].filter(([, entry]) => entry.owner === owner);
    await Promise.all(runs.map(([runId]) => this.disposeSubagent(owner, runId)));
  }

  /** Refuses new runs and ends all. Never rejects. */
  async close(): Promise<void> {
    this.#closing = true;
    const owners = new Set([...this.#entries.values()].map(({ owner }) => owner));
    await Promise.all([...owners].map((owner) => this.releaseOwner(owner)));
  }

  #own(owner: string, runId: string): Entry | undefined {
    const entry = this.#entries.get(runId);
    return entry?.owner === owner ? entry : undefined;
  }

  /** Never rejects. The slot is held until nothing of the run is left. */
  async #start(request: SubagentRequest, provider: SubagentProvider, entry: Entry): Promise<SubagentStarted> {
    const { signal } = entry.stop;
    const deadline = performance.now() + provider.startTimeoutMs;
    const release = await this.#slotsOf(request.depth, provider).take(signal, provider.startTimeoutMs);
    if (release === undefined) {
      if (signal.aborted) return aborted;
      return refuse(
        'OVERLOADED',
        `${provider.maxRunning} runs of ${selfProvider} are under way, and none ended within ${provider.startTimeoutMs} ms`,
      );
    }
    const attached = this.#attachChild(request, provider, signal);
    entry.attaching = attached.then(
      () => undefined,
      () => undefined,
    );
    try {
      // The signal is what sends a session away that is ready later.
      const inTime = await startInTime(attached, deadline - performance.now(), () => entry.stop.abort());
      if (inTime === undefined)
        return refuse('SUBAGENT_FAILED', `${selfProvider} had no session ready within ${provider.startTimeoutMs} ms`);
      const session = inTime.value;
      if (session === undefined) return aborted;
      entry.run = this.#follow(new SelfRun({ request, provider: this.#underPolicy(provider, session), session }));
      void entry.run.over.then(release);
      return { ok: true, capabilities, logPath: session.identity.paths.log };
    } catch (error) {
      const { code, message } = toWireError(error);
      return refuse(code, message);
    } finally {
      if (entry.run === undefined) void entry.attaching.then(release);
    }
  }

  /** A session on its thread, ready for its prompt; `undefined` when it is not wanted any more. */
  async #attachChild(request: SubagentRequest, provider: SubagentProvider, signal: AbortSignal): Promise<Session | undefined> {
    const cwd = await canonicalDirectory(provider.cwd ?? request.cwd);
    const parent = this.#parts.findSession(request.owner) ?? this.#bySession.get(request.owner)?.session;
    const beside = parent?.attached;
    if (parent === undefined || beside === undefined) throw new ServerError('THREAD_LOST', 'The session that delegates is on no thread.');
    if (signal.aborted) return undefined;
    let seen = parent.mode;
    const session = createChildSession({ request, provider, cwd, parent, beside }, this.#parts);
    const { id } = session.identity;
    this.#sessionIds.add(id);
    try {
      await Promise.all([session.resume(), this.#parts.adopt(id, request.owner)]);
      // It is no run yet that could have followed.
      for (; seen !== parent.mode; seen = session.mode) await session.setMode(parent.mode);
    } catch (error) {
      await this.#dispose(session);
      throw error;
    }
    if (!signal.aborted) return session;
    await this.#dispose(session);
    return undefined;
  }

  async #dispose(session: Session): Promise<void> {
    await session.dispose().finally(() => this.#sessionIds.delete(session.identity.id));
  }

  /** What a rule has asked is for the client: no setting answers it with yes. */
  #underPolicy(provider: SubagentProvider, { identity }: Session): SubagentProvider {
    const hasPolicy = identity.options.policy !== undefined || this.#parts.config.session.policy !== undefined;
    return hasPolicy && provider.permission === 'allow' ? { ...provider, permission: 'ask' } : provider;
  }

  #follow(run: SelfRun): SelfRun {
    const { id } = run.session.identity;
    this.#bySession.set(id, run);
    void run.over.then(() => {
      this.#bySession.delete(id);
      this.#sessionIds.delete(id);
    });
    return run;
  }

  #slotsOf(depth: number, { maxRunning }: SubagentProvider): ProviderSlots {
    const slots = this.#slots.get(depth) ?? new ProviderSlots(maxRunning);
    this.#slots.set(depth, slots);
    return slots;
  }
}

const aborted = refuse('REQUEST_CANCELLED', 'subagent request was aborted before the ACP child started');

function refuse(code: ErrorCode, message: string): SubagentStarted {
  return { ok: false, code, message };
}
