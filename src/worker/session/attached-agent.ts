/** A session while it is on this thread: its agent, its log and its view, behind the calls that main makes. */
import { ServerError, toWireError } from '../../shared/errors.ts';
import type { LogEvent, PermissionMode, PromptBlock } from '../../shared/events.ts';
import { sessionSecrets } from '../../shared/known-secrets.ts';
import { keepToolSchemas } from '../../shared/log/tool-schemas.ts';
import type { ModelSlot } from '../../shared/model-slots.ts';
import type { Chosen, SessionChoices } from '../../shared/session-choices.ts';
import type { PromptOptions } from '../../shared/session-options.ts';
import type { RewindMade, RewindRequest } from '../../shared/undo-protocol.ts';
import type { ChoiceMade, SessionApi, SessionTask, SteerOutcome, TurnOutcome } from '../../shared/thread-protocol.ts';
import type { ReactLoopAgent } from '../agent/react-loop-agent.ts';
import { type SessionTools, sessionTools } from '../agent/session-tools.ts';
import type { TurnEnd } from '../agent/turn.ts';
import { SlotAhead } from '../model-slots/slot-ahead.ts';
import type { CommandRunner } from '../commands/command-runner.ts';
import { withPaths } from '../commands/prompt-links.ts';
import type { EventLog } from '../log/event-log.ts';
import { createModel } from '../model/create-model.ts';
import type { SessionPermissions } from '../permission/session-permissions.ts';
import { tracerFor, type TurnTracer } from '../telemetry/turn-tracer.ts';
import type { SubagentRuns } from '../subagents/subagent-runs.ts';
import { toolRegistryFor } from '../tools/all-tools.ts';
import type { AttachedHooks } from './attached-hooks.ts';
import { createCommandRunner } from './create-command-runner.ts';
import { createSessionAgent } from './create-session-agent.ts';
import { createSessionPermissions } from './create-session-permissions.ts';
import { KeyedTurns } from './keyed-turns.ts';
import { answerText } from './last-text.ts';
import { replayLog } from './replay-log.ts';
import { SaidMessages } from './said-messages.ts';
import { attachedEvent, type AttachedFacts, noteSharing } from './session-attach.ts';
import { offersPlan, SessionChoosing } from './session-choosing.ts';
import { SessionJournal, type SessionView } from './session-journal.ts';
import { watchMemory } from './session-memory.ts';
import { SessionMcpServers } from './session-mcp-servers.ts';
import { asksPerson } from './session-person.ts';
import { sessionProjector } from './session-projector.ts';
import { SessionTitles } from './session-titles.ts';
import { createSubagentRuns, usableSubagents } from './session-subagents.ts';
import { SessionUndo } from './session-undo.ts';
import { createSessionView } from './session-view.ts';
import { storedTurn } from './stored-turn.ts';
import type { ThreadContext } from './thread-context.ts';
import { turnOutcome } from './turn-outcome.ts';

export class AttachedAgent implements SessionApi {
  /** Fulfils when the session has left the thread. */
  readonly left: Promise<void>;
  readonly endForMemory: SessionApi['endForMemory'];
  readonly #task: SessionTask;
  readonly #thread: ThreadContext;
  readonly #hooks: AttachedHooks;
  readonly #tools: SessionTools;
  readonly #mcp: SessionMcpServers;
  readonly #view: SessionView;
  readonly #journal: SessionJournal;
  readonly #permissions: SessionPermissions;
  readonly #choosing: SessionChoosing;
  readonly #agent: ReactLoopAgent;
  readonly #commands: CommandRunner | undefined;
  readonly #undo: SessionUndo;
  readonly #subagents: SubagentRuns;
  readonly #keyedTurns = new KeyedTurns();
  readonly #said = new SaidMessages();
  readonly #titles: SessionTitles;
  readonly #learn: (event: LogEvent) => void;
  readonly #tracer: TurnTracer | undefined;
  readonly #slotAhead: SlotAhead;
  #runningId: number | undefined;
  #leaving: Promise<void> | undefined;
  #reportLeft: () => void = () => undefined;

  constructor(task: SessionTask, thread: ThreadContext, hooks: AttachedHooks = {}) {
    this.#task = task;
    this.#thread = thread;
    this.#hooks = hooks;
    this.#tools = sessionTools(toolRegistryFor(usableSubagents(task), { plan: offersPlan(task), askUser: asksPerson(task) }), task.options);
    this.#mcp = new SessionMcpServers(task, thread, this.#tools, () => this.#journal);
    const model = createModel(task.settings, task.options.sampling);
    this.left = new Promise((resolve) => (this.#reportLeft = resolve));
    this.#tracer = tracerFor(task, thread.main);
    const projector = sessionProjector(task, this.#mcp.presenterOf, false);
    const screen = createSessionView(task, thread, { projector, tools: this.#mcp.presenterOf });
    this.#view = screen;
    this.#journal = new SessionJournal(sessionSecrets(task), {
      show: (event) => {
        this.#choosing.noteLogged(event);
        this.#keyedTurns.observe(event);
        this.#said.observe(event);
        this.#titles.observe(event);
        this.#mcp.observe(event);
        screen.show(event);
        this.#tracer?.take(event);
        if (event.type === 'request/header') keepToolSchemas(task.logPath, event.data.toolsHash, this.#tools);
      },
      tell: (event) => screen.tell?.(event),
      showChunk: (chunk) => screen.showChunk(chunk),
    });
    this.#learn = (event) => projector.learn(event);
    this.#titles = new SessionTitles(task, {
      record: (event) => this.#journal.append(event),
      askModel: (turn, signal) => this.#agent.askForTitle(turn, signal),
      charge: (usage) => this.#agent.addOutsideUsage(usage),
    });
    this.#permissions = createSessionPermissions(task, thread, { journal: this.#journal, projector });
    const turn = (): number => this.#agent.turn;
    this.#choosing = new SessionChoosing(task, thread, { journal: this.#journal, permissions: this.#permissions, projector, model, turn });
    this.#subagents = createSubagentRuns(task, thread, {
      journal: this.#journal,
      mode: () => this.#permissions.mode,
      onModeSet: (listener) => this.#permissions.onModeSet(listener),
      agent: () => this.#agent,
    });
    this.#undo = new SessionUndo(task, thread, () => {
      return { journal: this.#journal, permissions: this.#permissions, agent: this.#agent, tools: this.#tools };
    });
    const watched = watchMemory(task, thread, { left: this.left, agent: () => this.#agent });
    this.endForMemory = watched.end;
    this.#slotAhead = new SlotAhead((leaseId, report) => thread.outbox.release({ leaseId, report }));
    this.#agent = createSessionAgent(task, thread, {
      slotAhead: this.#slotAhead,
      memory: watched.memory,
      undo: this.#undo,
      tools: this.#tools,
      journal: this.#journal,
      permissions: this.#permissions,
      subagents: this.#subagents,
      live: screen.live,
      model,
      choosing: this.#choosing,
    });
    this.#commands = createCommandRunner(task, thread, {
      agent: this.#agent,
      journal: this.#journal,
      choices: this.#choosing.chosen.control,
      undo: { cwd: task.cwd, rewinder: this.#undo.rewinder },
    });
  }

  get #isBusy(): boolean {
    return this.#agent.status !== 'idle' || this.#commands?.isRunning === true || this.#undo.isRunning;
  }

  /** Whoever is shown only what was committed takes the answer from the response, too. */
  get #answersWithText(): boolean {
    return this.#task.settings.profile === 'automation';
  }

  get chosen(): Chosen {
    return this.#choosing.chosen.current;
  }

  /** Takes in one event of the stored log; all of them, in order, before {@link start}. */
  observe(event: LogEvent): void {
    this.#agent.observe(event);
    this.#learn(event);
    this.#titles.observe(event);
    this.#permissions.observe(event);
    this.#choosing.observe(event);
    this.#keyedTurns.observe(event);
    this.#said.observe(event);
    this.#subagents.observe(event);
    this.#mcp.observe(event);
    this.#tracer?.learn(event);
  }

  /** Once all were taken in. @throws ServerError LOG_CORRUPT */
  settle(log: EventLog): Promise<void> {
    return this.#undo.settleHistory(log);
  }

  /** From here on the session writes its log. @throws ServerError LOG_WRITE_FAILED */
  start(log: EventLog, sandbox: AttachedFacts['sandbox']): void {
    this.#journal.open(log);
    this.#titles.opened();
    const isNew = log.eventCount === 0;
    this.#journal.append(attachedEvent(this.#task, this.#thread, { epoch: log.epoch, sandbox }));
    if (isNew) this.#choosing.begin(this.#task);
    this.#subagents.resume();
    this.#mcp.start();
    noteSharing(this.#task, this.#thread);
  }

  async prompt(requestId: number, content: readonly PromptBlock[], options: PromptOptions, slot?: ModelSlot): Promise<void> {
    if (this.#leaving !== undefined) throw new ServerError('SHUTTING_DOWN', 'The session is leaving its thread.');
    const stored = storedTurn(options.key, {
      keyedTurns: this.#keyedTurns,
      replay: (onEvent) => this.#journal.replayDurable(onEvent),
      answersWithText: this.#answersWithText,
    });
    // Sent again with its key it is answered, and not said twice either.
    if (stored === undefined) this.#said.refuseKnown(options.messageId);
    this.#slotAhead.offer(slot);
    this.#thread.heartbeat.turnStarted();
    if (stored !== undefined) {
      void stored.then((outcome) => this.#answer(requestId, outcome));
      return;
    }
    this.#runningId = requestId;
    const send = (said: readonly PromptBlock[], shown?: readonly PromptBlock[]): void =>
      void this.#agent.send(said, options, shown).then((end) => this.#complete(requestId, end));
    const said = withPaths(content, this.#task);
    if (this.#commands?.take(said, options, { answer: (outcome) => this.#finish(requestId, outcome), send }) !== true) send(said);
  }

  async rewind(request: RewindRequest): Promise<RewindMade> {
    return { outcome: await this.#undo.rewindTo(request, this.#isBusy), afterBatch: this.#thread.outbox.flush() };
  }

  async steer(requestId: number, content: readonly PromptBlock[], messageId: string): Promise<SteerOutcome> {
    if (this.#leaving !== undefined || requestId !== this.#runningId || this.#commands?.isRunning === true) return 'not-running';
    return this.#said.say(messageId, () => this.#agent.steer(withPaths(content, this.#task), messageId));
  }

  async cancel(requestId?: number): Promise<void> {
    if (requestId !== undefined && requestId !== this.#runningId) return;
    this.#commands?.cancel();
    this.#agent.cancel();
    // The background ones, too: who cancels wants everything to stand still.
    this.#subagents.cancelAll();
  }

  async setMode(mode: PermissionMode): Promise<ChoiceMade> {
    await this.#choosing.setMode(mode);
    return { chosen: this.chosen, afterBatch: this.#thread.outbox.flush() };
  }

  async setChoices(choices: SessionChoices): Promise<ChoiceMade> {
    this.#choosing.chosen.setChoices(choices);
    return { chosen: this.chosen, afterBatch: this.#thread.outbox.flush() };
  }

  async replay(requestId: number): Promise<void> {
    const parts = { journal: this.#journal, presenterOf: this.#mcp.presenterOf, titles: this.#titles, chosen: () => this.chosen };
    void replayLog(this.#task, this.#thread, parts).then((outcome) => {
      this.#thread.outbox.complete({ kind: 'loaded', sessionId: this.#task.sessionId, requestId, outcome });
    });
  }

  async host(task: SessionTask): Promise<void> {
    const { host } = this.#hooks;
    if (this.#leaving !== undefined || host === undefined) {
      task.port.close();
      throw new ServerError('SHUTTING_DOWN', 'The session is leaving its thread.');
    }
    await host(task);
  }

  async park(): Promise<boolean> {
    if (this.#isBusy || this.#subagents.live > 0) return false;
    if ((await this.#thread.broker.countBackground(this.#task.sessionId)) > 0) return false;
    this.#leaving ??= this.#leave('parked');
    return true;
  }

  dispose(): Promise<void> {
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  /** One that is parked keeps its MCP servers for a while. */
  async #leave(how?: 'parked'): Promise<void> {
    const { broker } = this.#thread;
    try {
      this.#mcp.stop();
      this.#titles.stop();
      const subagentsGone = this.#subagents.dispose();
      await Promise.all([this.#commands?.dispose(), this.#undo.dispose(), this.#agent.dispose(), this.#subagents.allEnded()]);
      // The release is in a hurry with what a child's own graces would hold up.
      const released = how === 'parked' ? broker.parkOwner(this.#task.sessionId) : broker.releaseOwner(this.#task.sessionId);
      await Promise.all([this.#journal.close(), released, subagentsGone]);
    } catch (error) {
      // The disk may refuse the last barrier: the session leaves all the same.
      void this.#thread.main.log('error', `a session left with a fault: ${toWireError(error).message}`);
    } finally {
      this.#reportLeft();
    }
  }

  #complete(requestId: number, end: TurnEnd): void {
    // A log that could not take the end of the turn has left its cards open.
    this.#view.endCards?.();
    const text = this.#answersWithText && end.text !== undefined ? answerText(end.text) : undefined;
    this.#titles.turnEnded(end);
    this.#finish(requestId, sessionSecrets(this.#task).without(turnOutcome(end, text)));
  }

  #finish(requestId: number, outcome: TurnOutcome): void {
    this.#answer(requestId, outcome);
    if (this.#runningId === requestId) this.#runningId = undefined;
    if (this.#hooks.afterTurn !== undefined) setImmediate(this.#hooks.afterTurn);
  }

  #answer(requestId: number, outcome: TurnOutcome): void {
    this.#slotAhead.giveBack();
    this.#thread.outbox.complete({ kind: 'turn', sessionId: this.#task.sessionId, requestId, outcome });
    this.#thread.heartbeat.turnEnded();
  }
}
