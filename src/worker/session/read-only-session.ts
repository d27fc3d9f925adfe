/**
 * A session that is only looked at, while it is on this thread: its log, projected as it stands and then followed. Has no
 * agent, no lock and no processes, and refuses whatever would change something.
 */
import { ServerError, toWireError } from '../../shared/errors.ts';
import type { LogEvent } from '../../shared/events.ts';
import { type Chosen, chosenAfter } from '../../shared/session-choices.ts';
import type { ChoiceMade, LoadOutcome, SessionApi, SessionTask } from '../../shared/thread-protocol.ts';
import { isLockHeld } from '../../shared/log/session-lock.ts';
import { McpPresenters } from '../mcp/mcp-presenter.ts';
import { Projector } from '../projection/projector.ts';
import { everyExtra, toolRegistryFor } from '../tools/all-tools.ts';
import { LogFollower } from './log-follower.ts';
import { SessionScreen } from './session-screen.ts';
import type { ThreadContext } from './thread-context.ts';
import { TitleFinder } from './title-finder.ts';

/** How often it is looked whether the writer of an open turn is still there. */
const writerLookMs = 1000;

export class ReadOnlySession implements SessionApi {
  /** Fulfils when the session has left the thread. */
  readonly left: Promise<void>;
  readonly #task: SessionTask;
  readonly #thread: ThreadContext;
  readonly #screen: SessionScreen;
  readonly #follower: LogFollower;
  readonly #titles = new TitleFinder();
  readonly #mcp = new McpPresenters();
  #chosen: Chosen;
  readonly #left = new AbortController();
  #leaving: Promise<void> | undefined;
  #turnOpen = false;
  #reportLeft: () => void = () => undefined;

  /** @throws ServerError as {@link LogFollower} */
  constructor(task: SessionTask, thread: ThreadContext) {
    this.#task = task;
    this.#thread = thread;
    this.#screen = createScreen(task, thread, this.#mcp);
    this.#chosen = { mode: task.options.mode ?? task.settings.mode, choices: {}, revision: -1 };
    this.#follower = new LogFollower(task.logPath, (event) => this.#show(event));
    this.left = new Promise((resolve) => {
      this.#reportLeft = resolve;
    });
  }

  get chosen(): Chosen {
    return this.#chosen;
  }

  /** The whole log of now, then a `loaded` completion, then whatever is added. */
  async replay(requestId: number): Promise<void> {
    void this.#replayLog().then((outcome) => {
      this.#thread.outbox.complete({ kind: 'loaded', sessionId: this.#task.sessionId, requestId, outcome });
      if (!outcome.ok || this.#left.signal.aborted) return;
      this.#follower.follow((why) => this.#note(`the log of session ${this.#task.sessionId} is followed no longer: ${why}`));
      this.#watchWriter();
    });
  }

  async prompt(): Promise<void> {
    throw readOnly();
  }

  async steer(): Promise<never> {
    throw readOnly();
  }

  async setMode(): Promise<ChoiceMade> {
    throw readOnly();
  }

  async setChoices(): Promise<ChoiceMade> {
    throw readOnly();
  }

  async rewind(): Promise<never> {
    throw readOnly();
  }

  async host(): Promise<void> {
    throw readOnly();
  }

  async cancel(): Promise<void> {}

  /** It holds no more than what waits to be sent. */
  async endForMemory(): Promise<void> {
    return;
  }

  /** It shows what happens elsewhere at any time, so it never gives its thread up by itself. */
  async park(): Promise<boolean> {
    return false;
  }

  dispose(): Promise<void> {
    this.#left.abort();
    this.#leaving ??= this.#follower.close().finally(() => this.#reportLeft());
    return this.#leaving;
  }

  async #replayLog(): Promise<LoadOutcome> {
    try {
      await this.#follower.readAll();
      if (this.#task.settings.titles !== 'off') this.#screen.showTitle(this.#titles.unlogged);
      // Nobody is left to end what a killed writer had begun, until somebody opens the session to go on with it.
      if (this.#turnOpen && !isLockHeld(this.#task.lockPath)) this.#screen.endCards();
      return { ok: true, chosen: this.#chosen };
    } catch (error) {
      return { ok: false, error: toWireError(error) };
    }
  }

  #show(event: LogEvent): void | Promise<void> {
    // Ends the reading of a long log.
    if (this.#left.signal.aborted) throw readOnly();
    this.#chosen = chosenAfter(this.#chosen, event);
    this.#titles.observe(event);
    this.#mcp.observe(event);
    if (event.type === 'turn/start') this.#turnOpen = true;
    else if (event.type === 'turn/end') this.#turnOpen = false;
    return this.#screen.replay(event, this.#left.signal);
  }

  /** A writer that is killed in the middle of a turn says nothing of it: its cards would stay open for ever. */
  #watchWriter(): void {
    let wasGone = false;
    const timer = setInterval(() => {
      const isGone = this.#turnOpen && !isLockHeld(this.#task.lockPath);
      // Twice: its last lines may just have been on their way.
      if (isGone && wasGone) {
        this.#turnOpen = false;
        this.#screen.endCards();
      }
      wasGone = isGone;
    }, writerLookMs).unref();
    this.#left.signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  }

  #note(text: string): void {
    void this.#thread.main.log('warn', text);
  }
}

function createScreen({ sessionId, cwd, client, settings }: SessionTask, { outbox }: ThreadContext, mcp: McpPresenters): SessionScreen {
  const { profile } = settings;
  const projector = new Projector({
    sessionId,
    cwd,
    client,
    profile,
    settings,
    tools: (name) => toolRegistryFor(settings.subagents, everyExtra).get(name) ?? mcp.get(name),
    replay: true,
  });
  return new SessionScreen({ sessionId, projector, outbox });
}

function readOnly(): ServerError {
  return new ServerError('SESSION_READ_ONLY', 'The session is open only to be looked at.');
}
