/**
 * A session as main sees it: its prompts in order, and the thread it is on, if any.
 *
 * A session is not a thread. It is attached when a turn, a load or a mode change needs it, parked when idle, and revived
 * from its log after a thread's death: attaching is one act for all of them.
 */
import { existsSync } from 'node:fs';
import type { Profile, ServerConfig } from '../../shared/config.ts';
import { fromWireError, ServerError } from '../../shared/errors.ts';
import type { PermissionMode, PromptBlock } from '../../shared/events.ts';
import type { SessionPaths } from '../../shared/log/session-paths.ts';
import type { PromptOptions, SessionOptions } from '../../shared/session-options.ts';
import type { ClientTraits, LoadOutcome } from '../../shared/thread-protocol.ts';
import type { AttachedSession } from '../threads/attached-session.ts';
import { endOrphans } from '../threads/end-orphans.ts';
import type { ServerCounters } from '../telemetry/server-counters.ts';
import type { SessionWorkspace } from '../threads/session-task.ts';
import type { SessionThreads } from '../threads/session-threads.ts';
import type { Admission } from './admission.ts';
import { CrashCounter } from './crash-counter.ts';
import type { PromptResult } from './pending-prompt.ts';
import { PromptQueue } from './prompt-queue.ts';
import type { ServerFigures } from './server-status.ts';
import type { TurnWatch } from './turn-watch.ts';

export interface SessionParts {
  readonly config: ServerConfig;
  readonly threads: SessionThreads;
  readonly admission: Admission;
  readonly turns: TurnWatch;
  readonly counters: ServerCounters;
  /** What `_status` says beside sessions. */
  readonly figures: () => ServerFigures;
  /**
   * When all threads are taken, asks one idle session to leave its own; one that would not is put into `unwilling`. Undefined
   * when there is room, or nobody left to ask: the caller attaches at once then, before another newcomer counts the same thread.
   */
  readonly makeRoom: (unwilling: Set<Session>) => Promise<void> | undefined;
  /** A session has another mode now. Fulfils when those that work for it have it, too; never rejects. */
  readonly modeChanged: (sessionId: string, mode: PermissionMode) => Promise<void>;
  /** Whether the id is that of a session that works for another one now. */
  readonly worksForAnother: (sessionId: string) => boolean;
  /** How many work for another one now. */
  readonly delegated: () => number;
}

export interface SessionIdentity {
  readonly id: string;
  readonly cwd: string;
  readonly paths: SessionPaths;
  /** Fixed at creation or load, so that a later `initialize` cannot split a call from its result. */
  readonly client: ClientTraits;
  /** What of the session's events this connection is shown. */
  readonly profile: Profile;
  readonly options: SessionOptions;
  readonly workspace?: SessionWorkspace;
  /** The session it works for, whose thread it is put on. */
  readonly beside?: AttachedSession;
}

export class Session {
  readonly identity: SessionIdentity;
  mode: PermissionMode;
  /** Monotonic milliseconds of the last end of work; the longest idle session is parked first. */
  idleSince = performance.now();
  readonly #parts: SessionParts;
  /** Only while there is a prompt: most open sessions of a large run have none. */
  #prompts: PromptQueue | undefined;
  readonly #crashes = new CrashCounter();
  #attached: AttachedSession | undefined;
  #attaching: Promise<AttachedSession> | undefined;
  #parking: Promise<boolean> | undefined;
  /** Loads and changes of mode that are under way: they hold the thread as a turn does. */
  #errands = 0;
  #closed = false;

  constructor(identity: SessionIdentity, parts: SessionParts) {
    this.identity = identity;
    this.#parts = parts;
    this.mode = identity.options.mode ?? parts.config.session.mode;
  }

  get attached(): AttachedSession | undefined {
    return this.#attached;
  }

  /** True when the session holds a thread that it does not need now. */
  get isIdleOnThread(): boolean {
    const hasWork = this.unsettledPrompts > 0 || this.#errands > 0;
    return this.#attached !== undefined && !hasWork && this.#attaching === undefined && this.#parking === undefined;
  }

  get unsettledPrompts(): number {
    return this.#prompts?.size ?? 0;
  }

  /**
   * Queues a prompt behind the earlier ones of this session and answers with its end. Aborting `signal` cancels only this
   * request.
   *
   * @throws ServerError as {@link PromptQueue.add}; SHUTTING_DOWN
   */
  prompt(content: readonly PromptBlock[], options: PromptOptions, signal: AbortSignal): Promise<PromptResult> {
    if (this.#closed) throw new ServerError('SHUTTING_DOWN', 'The session is being closed and takes no new prompt.');
    this.#prompts ??= this.#createQueue();
    return this.#prompts.add(content, options, signal);
  }

  /** Ends the running turn and drops the queued ones: each answers `cancelled`. */
  cancel(): void {
    this.#prompts?.cancel();
  }

  /** Also of the sessions that work for this one. @throws ServerError ATTACH_FAILED or what the log refuses with */
  async setMode(mode: PermissionMode): Promise<void> {
    await this.#errand(async () => {
      const attached = await this.#attach();
      await attached.call((api) => api.setMode(mode));
    });
    this.mode = mode;
    await this.#parts.modeChanged(this.identity.id, mode);
  }

  /** Attaches the session and sends its whole history as updates; fulfils behind the last of them. */
  replay(): Promise<void> {
    return this.#errand(() => this.#replayNow());
  }

  /** Attaches the session and sends nothing: its log is read, so that a bad one is refused now and not at the first prompt. */
  resume(): Promise<void> {
    return this.#errand(async () => {
      this.mode = (await this.#open()).mode;
    });
  }

  /** Leaves the thread if idle there and without background work. Says whether it left. */
  park(): Promise<boolean> {
    const attached = this.#attached;
    if (attached === undefined || !this.isIdleOnThread) return Promise.resolve(false);
    this.#parking = (async () => {
      const left = await attached.call((api) => api.park());
      if (left === false) return false;
      await attached.departure;
      return true;
    })()
      .catch(() => false)
      .finally(() => {
        this.#parking = undefined;
      });
    return this.#parking;
  }

  /** `session/close`: cancels, waits for every answer, then leaves the thread. */
  async close(): Promise<void> {
    this.#closed = true;
    this.cancel();
    await this.#prompts?.allAnswered();
    await this.#leaveThread();
  }

  /** Teardown: prompts answer `cancelled` at once, their turns end `disposed`, the log is flushed. */
  async dispose(): Promise<void> {
    this.#closed = true;
    this.#prompts?.abandon();
    await this.#leaveThread();
  }

  /** The server itself failed: prompts answer with the error. */
  fail(error: ServerError): void {
    this.#prompts?.fail(error);
  }

  #createQueue(): PromptQueue {
    const queue = new PromptQueue({
      ...this.#parts,
      sessionId: this.identity.id,
      attached: () => this.#attached,
      attach: () => this.#attach(),
      onEnded: () => {
        this.idleSince = performance.now();
        // Its last turn has unwound: the next prompt cannot overtake it in a queue of its own.
        if (queue.size === 0 && this.#prompts === queue) this.#prompts = undefined;
      },
    });
    return queue;
  }

  /** A session that is on no thread yet waits for a slot as a turn does: where threads are not shared none may be free. */
  async #errand(work: () => Promise<void>): Promise<void> {
    const counted = async (): Promise<void> => {
      this.#errands += 1;
      try {
        await work();
      } finally {
        // Before the slot is given on: who gets it may want this session's thread.
        this.#errands -= 1;
        this.idleSince = performance.now();
      }
    };
    const hasThread = this.#attached !== undefined || this.#attaching !== undefined;
    await (hasThread ? counted() : this.#parts.admission.admit(counted));
  }

  async #replayNow(): Promise<void> {
    const attached = await this.#open();
    const { requestId, end } = this.#parts.threads.completions.expectLoad();
    try {
      await attached.call((api) => api.replay(requestId));
      const outcome = await Promise.race([end, attached.departure.then(lostWhileLoading)]);
      if (!outcome.ok) throw fromWireError(outcome.error);
      this.mode = outcome.mode;
    } finally {
      this.#parts.threads.completions.forget(requestId);
    }
  }

  /** The first attach of a stored session. */
  async #open(): Promise<AttachedSession> {
    const { id, paths } = this.identity;
    // Only a server that was killed leaves its lock; who attaches the session has taken it over.
    const wasLeftLocked = existsSync(paths.lock);
    const attached = await this.#attach();
    if (wasLeftLocked) endOrphans(id);
    return attached;
  }

  async #attach(): Promise<AttachedSession> {
    await this.#parking;
    // Parking ends a close, too: who waited for it must not bring the session back onto a thread.
    if (this.#closed) throw new ServerError('SHUTTING_DOWN', 'The session is being closed.');
    if (this.#attached !== undefined) return this.#attached;
    this.#attaching ??= this.#attachNow().finally(() => {
      this.#attaching = undefined;
    });
    return await this.#attaching;
  }

  async #attachNow(): Promise<AttachedSession> {
    if (this.#crashes.tooMany) {
      throw new ServerError('SESSION_FAILED', 'This session has ended its thread three times within a minute.');
    }
    const unwilling = new Set<Session>();
    for (let room = this.#parts.makeRoom(unwilling); room !== undefined; room = this.#parts.makeRoom(unwilling)) await room;
    const { id, ...place } = this.identity;
    const attached = await this.#parts.threads.attach({ sessionId: id, ...place }).catch((error: unknown) => {
      // A log that breaks every thread it is replayed on must not be tried for ever.
      if (error instanceof ServerError && error.data?.['threadEnded'] === true) this.#crashes.add();
      throw error;
    });
    this.#attached = attached;
    void attached.departure.then((how) => {
      if (how.kind === 'lost') this.#crashes.add();
      if (this.#attached === attached) this.#attached = undefined;
    });
    return attached;
  }

  async #leaveThread(): Promise<void> {
    await this.#parking;
    const attached = this.#attaching === undefined ? this.#attached : await this.#attaching.catch(() => undefined);
    if (attached === undefined) return;
    await attached.call((api) => api.dispose()).catch(() => undefined);
    await attached.departure;
  }
}

function lostWhileLoading(): LoadOutcome {
  return { ok: false, error: { code: 'THREAD_LOST', message: 'The thread ended while the session was being loaded.' } };
}
