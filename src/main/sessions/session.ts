/**
 * A session as main sees it: its prompts in order, and the thread it is on, if any.
 *
 * A session is not a thread. It is attached when a turn, a load or a mode change needs it, parked when idle, and revived
 * from its log after a thread's death: attaching is one act for all of them.
 */
import { existsSync } from 'node:fs';
import type { SessionSettings } from '../../shared/config.ts';
import type { Remote } from '../../shared/comlink.ts';
import { fromWireError, ServerError } from '../../shared/errors.ts';
import type { PermissionMode, PromptBlock } from '../../shared/events.ts';
import type { Chosen, SessionChoices } from '../../shared/session-choices.ts';
import type { PromptOptions } from '../../shared/session-options.ts';
import type { ChoiceMade, SessionApi } from '../../shared/thread-protocol.ts';
import type { RewindOutcome, RewindRequest } from '../../shared/undo-protocol.ts';
import type { AttachedSession } from '../threads/attached-session.ts';
import { endOrphans } from '../threads/end-orphans.ts';
import { ChosenState } from './chosen-state.ts';
import { CrashCounter } from './crash-counter.ts';
import type { PromptResult } from './pending-prompt.ts';
import { PromptQueue } from './prompt-queue.ts';
import type { SessionIdentity, SessionParts } from './session-parts.ts';
import { rewind } from './rewinding.ts';
import { steer, type Steered, type SteeredMessage } from './steering.ts';

export class Session {
  readonly identity: SessionIdentity;
  readonly #chosen: ChosenState;
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
  /** The client has seen it on a thread since it opened it. */
  #isBack = false;
  #closed = false;

  constructor(identity: SessionIdentity, parts: SessionParts) {
    this.identity = identity;
    this.#parts = parts;
    this.#chosen = new ChosenState(identity.options.mode ?? parts.config.session.mode, identity.choices);
  }

  get mode(): PermissionMode {
    return this.#chosen.current.mode;
  }

  get chosen(): Chosen {
    return this.#chosen.current;
  }

  /** Those of the server, with what the session began with over them. */
  get settings(): SessionSettings {
    return { ...this.#parts.config.session, ...this.identity.access };
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

  /** Puts a message into the running turn, or starts one with it. @throws ServerError as {@link steer} and {@link prompt} */
  async steer(message: SteeredMessage, signal: AbortSignal): Promise<Steered> {
    return await steer(message, signal, {
      front: () => this.#prompts?.front,
      attached: () => this.#attached,
      start: ({ content, messageId }) => this.prompt(content, { messageId }, signal),
    });
  }

  /** Goes back to before the prompt of a message. @throws ServerError SHUTTING_DOWN; as {@link rewind} */
  async rewind(request: RewindRequest): Promise<RewindOutcome> {
    if (this.#closed) throw new ServerError('SHUTTING_DOWN', 'The session is being closed.');
    this.#prompts ??= this.#createQueue();
    return await rewind(request, { queue: this.#prompts, errand: (work) => this.#errand(work), attach: () => this.#attach() });
  }

  /** Ends the running turn and drops the queued ones: each answers `cancelled`. */
  cancel(): void {
    this.#prompts?.cancel();
  }

  /**
   * Also of the sessions that work for this one. Fulfils behind the updates that tell the client.
   *
   * @throws ServerError ATTACH_FAILED, THREAD_LOST, LOG_WRITE_FAILED, or what the log refuses with
   */
  async setMode(mode: PermissionMode): Promise<void> {
    if (mode === this.mode && this.#isAtRest) return;
    await this.#choose((api) => api.setMode(mode));
    await this.#parts.modeChanged(this.identity.id, this.mode);
  }

  /** Members that are absent stay as they are. Fulfils and throws as {@link setMode}. */
  async setChoices(choices: SessionChoices): Promise<void> {
    const { current } = this.#chosen;
    const isSame = Object.entries(choices).every(([name, value]) => current.choices[name as keyof SessionChoices] === value);
    if (isSame && this.#isAtRest) return;
    await this.#choose((api) => api.setChoices(choices));
  }

  /** The session has chosen by itself. */
  tookChoice(chosen: Chosen): void {
    if (this.#chosen.take(chosen)) void this.#parts.modeChanged(this.identity.id, chosen.mode);
  }

  /** Attaches the session and sends its whole history as updates; fulfils behind the last of them. */
  replay(): Promise<void> {
    return this.#errand(() => this.#replayNow());
  }

  /** Attaches the session and sends nothing: its log is read, so that a bad one is refused now and not at the first prompt. */
  resume(): Promise<void> {
    return this.#errand(async () => {
      this.#chosen.take((await this.#open()).chosen);
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

  /** Nothing is on a thread that could change what is chosen: what main knows is what the log says. */
  get #isAtRest(): boolean {
    return this.#attached === undefined && this.#attaching === undefined && this.#errands === 0;
  }

  async #choose(call: (api: Remote<SessionApi>) => Promise<ChoiceMade>): Promise<void> {
    await this.#errand(async () => {
      const attached = await this.#attach();
      const made = await attached.call(call);
      if (made === undefined) throw new ServerError('THREAD_LOST', 'The thread ended before the change was made.');
      this.#chosen.take(made.chosen);
      await attached.lane.batchTaken(made.afterBatch);
    });
  }

  #createQueue(): PromptQueue {
    const queue = new PromptQueue({
      ...this.#parts,
      sessionId: this.identity.id,
      slotAhead: this.identity.workspace?.mcpServers === undefined ? this.#parts.slotAhead : undefined,
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
      const outcome = await attached.orDeparture(end);
      if ('kind' in outcome) throw new ServerError('THREAD_LOST', 'The thread ended while the session was being loaded.');
      if (!outcome.ok) throw fromWireError(outcome.error);
      this.#chosen.take(outcome.chosen);
    } finally {
      this.#parts.threads.completions.forget(requestId);
    }
  }

  /** The first attach of a stored session. */
  async #open(): Promise<AttachedSession> {
    const { id, paths, workspace } = this.identity;
    // Only a server that was killed leaves its lock; who attaches the session has taken it over.
    const wasLeftLocked = existsSync(paths.lock);
    this.#isBack = false;
    const attached = await this.#attach();
    // MCP servers outlive a thread, so those of a server that was killed may be there without a lock.
    if (wasLeftLocked || workspace?.mcpServers !== undefined) endOrphans(id, this.#parts.mcp?.ownMark);
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
    const attached = await this.#parts.threads.attach({ sessionId: id, ...place, isBack: this.#isBack }).catch((error: unknown) => {
      // A log that breaks every thread it is replayed on must not be tried for ever.
      if (error instanceof ServerError && error.data?.['threadEnded'] === true) this.#crashes.add();
      throw error;
    });
    this.#attached = attached;
    this.#parts.onThreads?.add(this, attached);
    this.#isBack = true;
    void attached.departure.then((how) => {
      if (how.kind === 'lost') this.#crashes.add();
      if (this.#attached === attached) this.#attached = undefined;
    });
    return attached;
  }

  async #leaveThread(): Promise<void> {
    await this.#parking;
    const attached = this.#attaching === undefined ? this.#attached : await this.#attaching.catch(() => undefined);
    await attached?.call((api) => api.dispose()).catch(() => undefined);
    await attached?.departure;
    // Those that were started ahead, or kept while it was parked.
    await this.#parts.mcp?.release(this.identity);
  }
}
