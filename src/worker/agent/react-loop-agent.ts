/**
 * The agent of one session: takes prompts, runs them as turns one after another, and says how each ended.
 *
 * Stands on its own: it knows no protocol, no thread and no file. Everything it does goes through its dependencies.
 */
import type { ServerError } from '../../shared/errors.ts';
import type { LogEvent, PromptBlock, TurnEndReason } from '../../shared/events.ts';
import type { PromptOptions } from '../../shared/session-options.ts';
import type { SteerOutcome } from '../../shared/thread-protocol.ts';
import type { SubagentUsage } from '../../shared/subagent-protocol.ts';
import type { ToolContext } from '../tools/tool.ts';
import { boundReplay } from '../memory/history-memory.ts';
import { SessionMemory } from '../memory/session-memory.ts';
import type { AgentContext, AgentDependencies } from './agent-context.ts';
import { type Compaction, compactNow } from './compaction.ts';
import { errorReason } from './end-reason.ts';
import { History } from './history.ts';
import { Inbox } from './inbox.ts';
import { OpenRecords } from './open-records.ts';
import { rebuiltHistory } from './rebuilt-history.ts';
import { SessionLedger } from './session-ledger.ts';
import { sessionTools } from './session-tools.ts';
import { runSteps, runTurn, type TurnEnd, type TurnWork } from './turn.ts';
import { askForTitle, type TitleAnswer, type TitledTurn } from './title-call.ts';
import { TurnScope } from './turn-scope.ts';
import { noTurnUsage } from './turn-usage.ts';
import { type UsageReport, usageReport } from './usage-report.ts';

/** `disposed` is final. `running` spans queued turns and the closing of the last one. */
export type AgentStatus = 'idle' | 'running' | 'disposed';

interface QueuedTurn {
  readonly work: TurnWork;
  readonly options: PromptOptions;
  readonly resolve: (end: TurnEnd) => void;
}

export class ReactLoopAgent {
  readonly #context: AgentContext;
  readonly #queue: QueuedTurn[] = [];
  #status: AgentStatus = 'idle';
  #scope: TurnScope | undefined;
  /** Whether the running turn answers a person: one about the conversation itself has no step that could take their word. */
  #takesSteers = false;
  #drained: Promise<void> = Promise.resolve();
  #disposal: Promise<void> | undefined;

  constructor(dependencies: AgentDependencies) {
    const { tools, options, now, settings, wallClock, model } = dependencies;
    this.#context = {
      ...dependencies,
      tools: sessionTools(tools, options),
      memory: dependencies.memory ?? new SessionMemory(),
      ledger: new SessionLedger(now, { prices: () => model.prices ?? settings.prices, wallClock }),
      history: new History(() => model.takesImages === true),
      open: new OpenRecords(),
      inbox: new Inbox(),
      shownCalls: new Set(dependencies.lostCallIds),
    };
    const { memory, history, inbox } = this.#context;
    memory.hold('history', () => history.bytes);
    memory.hold('waiting', () => inbox.bytes);
  }

  get status(): AgentStatus {
    return this.#status;
  }

  /** The model's history, for whoever rewinds it while no turn runs. */
  get history(): History {
    return this.#context.history;
  }

  /**
   * The history of right before event `end`, made anew from the log that `replay` reads, within the same bounds.
   *
   * @throws what `replay` throws
   */
  historyAt(end: number, replay: (onEvent: (event: LogEvent) => void) => Promise<void>): Promise<History> {
    const { history, memory } = this.#context;
    return rebuiltHistory(history.rewinds.list, end, replay, (made, seq) => boundReplay(made, memory.limitBytes, seq));
  }

  /** What file tools go through, for whoever changes files while no turn runs. */
  get fileParts(): Pick<ToolContext, 'files' | 'editor'> {
    const { files, editor } = this.#context.toolParts;
    return { files, ...(editor === undefined ? {} : { editor }) };
  }

  /** An undo has logged this, past the turns: files, and what the model was told, may be as they once were. */
  noteUndo(event: LogEvent): void {
    this.#context.instructions?.observe(event);
    this.#context.toolParts.editor?.noteWork();
  }

  /** The number of the last turn that started; `0` before the first. */
  get turn(): number {
    return this.#context.history.turn;
  }

  /** Takes in one event of an existing log. Call for all of them, in order, before the first `send`. */
  observe(event: LogEvent): void {
    this.#context.history.apply(event);
    boundReplay(this.#context.history, this.#context.memory.limitBytes, event.seq);
    this.#context.open.apply(event);
    this.#context.ledger.apply(event);
    this.#context.instructions?.observe(event);
  }

  /**
   * Starts a turn, or queues it behind those that came before. Fulfils when this very turn has ended and its end is in
   * the log; exactly once. Never rejects: an error turn ends with reason `error`. The turn has begun when this returns
   * if none was running, so a `cancel` right behind it cancels it.
   *
   * @param shown what the person typed, where a command made `content` of it
   */
  send(content: readonly PromptBlock[], options: PromptOptions = {}, shown?: readonly PromptBlock[]): Promise<TurnEnd> {
    const prompt = { content, ...(shown === undefined ? {} : { shown }) };
    return this.#enqueue({ prompt, run: runSteps }, options);
  }

  /**
   * Replaces the conversation by a summary of it, which keeps what `instructions` ask for: a turn without a prompt, bound by the
   * same limits and ended by the same `cancel`. `compaction` is absent where something else has ended the turn. Never rejects.
   */
  async compact(instructions: string): Promise<{ readonly end: TurnEnd; readonly compaction: Compaction | undefined }> {
    let compaction: Compaction | undefined;
    const run = async (context: AgentContext, scope: TurnScope): Promise<void> => {
      compaction = await compactNow(context, scope, instructions);
    };
    const end = await this.#enqueue({ run }, {});
    return { end, compaction };
  }

  /** What the session has used. */
  usage(): UsageReport {
    return usageReport(this.#context);
  }

  #enqueue(work: TurnWork, options: PromptOptions): Promise<TurnEnd> {
    if (this.#status === 'disposed') return Promise.resolve(unstarted({ kind: 'disposed' }));
    const ended = new Promise<TurnEnd>((resolve) => this.#queue.push({ work, options, resolve }));
    if (this.#status === 'idle') {
      this.#status = 'running';
      this.#drained = this.#drain();
    }
    return ended;
  }

  /**
   * Adds a message to the running turn at its next step; what no step takes any more is logged at the turn's end. `not-running`
   * also where the turn has ended and is only being closed.
   */
  steer(content: readonly PromptBlock[], messageId?: string): SteerOutcome {
    if (this.#scope === undefined || this.#scope.ended || !this.#takesSteers) return 'not-running';
    return this.#context.inbox.addSteer(content, messageId) ? 'injected' : 'full';
  }

  /** Tells the model something at its next step, in this turn or a later one. Starts nothing. */
  notice(text: string): void {
    this.#context.inbox.addNotice(text);
  }

  /**
   * Charges what a subagent has used to the running turn, or to the next one; always to the session. To be called in the
   * same moment as its `subagent/end` is logged, so that a replayed log gives the same sums.
   */
  addSubagentUsage(usage: SubagentUsage): void {
    this.#context.ledger.addSubagentUsage(usage);
  }

  /** Asks the model what to call the session, beside all turns. Never rejects; see {@link askForTitle}. */
  askForTitle(turn: TitledTurn, signal: AbortSignal): Promise<TitleAnswer | undefined> {
    return askForTitle(this.#context, turn, signal);
  }

  /** Charges the session for what was used beside its turns, in the same moment as that is logged. */
  addOutsideUsage(usage: SubagentUsage): void {
    this.#context.ledger.addOutside(usage);
  }

  /**
   * Ends the running turn and every queued one as `cancelled`. A turn that has already ended, or is only being closed,
   * keeps its reason; an idle agent stays as it is.
   */
  cancel(): void {
    this.#stop({ kind: 'cancelled' });
  }

  /** Ends the running turn for what it holds: a turn that has already ended keeps its reason. `why` says where the bound was. */
  endForMemory(why: ServerError): void {
    this.#scope?.end(errorReason(why));
  }

  /** Ends everything as `disposed`, for good. Fulfils when the running turn has closed its log. Memoised. */
  dispose(): Promise<void> {
    this.#disposal ??= this.#dispose();
    return this.#disposal;
  }

  /** Fulfils when nothing runs and nothing is queued, work included that was sent meanwhile. */
  async whenIdle(): Promise<void> {
    for (let drained: Promise<void> | undefined; drained !== this.#drained; ) {
      drained = this.#drained;
      await drained;
    }
  }

  #stop(reason: TurnEndReason): void {
    for (const queued of this.#queue.splice(0)) queued.resolve(unstarted(reason));
    this.#scope?.end(reason);
  }

  async #dispose(): Promise<void> {
    this.#status = 'disposed';
    this.#stop({ kind: 'disposed' });
    await this.#drained;
  }

  /** From one turn to the next nothing is awaited, so there is no moment at which a cancel could miss both. */
  async #drain(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#scope = new TurnScope(this.#context, next.options);
      this.#takesSteers = next.work.prompt !== undefined;
      const end = await runTurn(this.#context, this.#scope, next.work);
      this.#scope = undefined;
      next.resolve(end);
    }
    if (this.#status === 'running') this.#status = 'idle';
  }
}

function unstarted(reason: TurnEndReason): TurnEnd {
  return { turn: 0, reason, usage: noTurnUsage };
}
