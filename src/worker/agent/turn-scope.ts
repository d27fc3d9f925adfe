/**
 * One turn while it runs: why it ends, its signal, its counters, and the only way its parts write to the log.
 *
 * The first reason wins; every later one is dropped, so a cancel that comes too late changes nothing, and it cannot
 * reach the next turn, which has a scope of its own.
 */
import { setMaxListeners } from 'node:events';
import type { JsonValue } from '../../shared/errors.ts';
import type { EventInput, LogEvent, TurnEndReason } from '../../shared/events.ts';
import type { PromptOptions } from '../../shared/session-options.ts';
import type { AgentContext } from './agent-context.ts';
import { type Limit, reasonOf, TurnLimits } from './budget.ts';
import { BudgetNotices } from './budget-notices.ts';
import { errorReason } from './end-reason.ts';
import type { UsageMeter } from './turn-usage.ts';

export class TurnScope {
  readonly turn: number;
  /** What the client asked of this turn. */
  readonly options: PromptOptions;
  readonly usage: UsageMeter;
  readonly limits: TurnLimits;
  readonly notices: BudgetNotices;
  readonly #context: AgentContext;
  readonly #abort = new AbortController();
  #reason: TurnEndReason | undefined;
  #text: string | undefined;
  #isFit = false;
  /** The step that is being prepared or runs, from 1. */
  step = 0;
  /** Set once a summary was tried and failed: the next steps must not pay for the same attempt again. */
  compactionFailed = false;
  /** The answer that met the session's output schema. */
  structured: { readonly value: JsonValue } | undefined;
  /** How often the model was reminded that it owes one, and how often it missed the schema. */
  readonly unmet = { reminders: 0, misses: 0 };

  constructor(context: AgentContext, options: PromptOptions) {
    this.#context = context;
    this.options = options;
    this.turn = context.history.turn + 1;
    this.usage = context.ledger.openTurn();
    const { settings, wallClock, ledger } = context;
    this.limits = new TurnLimits({
      server: settings.budget,
      turn: options.budget,
      session: context.options.budget,
      prices: () => context.model.prices ?? settings.prices,
      usage: this.usage,
      ledger,
      wallClock,
    });
    this.notices = new BudgetNotices({ limits: this.limits.all, lastWords: lastWords(context) });
    setMaxListeners(0, this.#abort.signal); // One listener per running tool call is meant, not a leak.
  }

  /** Aborts when the turn was cut short: cancel, dispose, the end of its time, or an error. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get reason(): TurnEndReason | undefined {
    return this.#reason;
  }

  get ended(): boolean {
    return this.#reason !== undefined;
  }

  /** The last text that the turn has committed. */
  get text(): string | undefined {
    return this.#text;
  }

  /** The conversation has been cut to what may be held: from now on it is the turn that grows. */
  noteFit(): void {
    this.#isFit = true;
  }

  /** Says whether this reason is the one. */
  end(reason: TurnEndReason): boolean {
    if (this.#reason !== undefined) return false;
    this.#reason = reason;
    if (cutsShort(reason)) this.#abort.abort();
    return true;
  }

  /** Ends the turn when a budget leaves no room for another step. Says whether it has ended. */
  endSpent(): boolean {
    return this.#endAt(this.limits.spent());
  }

  /** Ends the turn when a budget leaves no room for another model call of the running step. Says whether it has ended. */
  endSpentInStep(): boolean {
    return this.#endAt(this.limits.spentInStep());
  }

  /** Cuts the turn short when its time is up. Says whether it has ended. */
  endSpentTime(): boolean {
    return this.#endAt(this.limits.spentTime());
  }

  /** For the closing of a turn alone: an end that could not be made durable must not be reported as a success. */
  replaceNaturalEnd(reason: TurnEndReason): void {
    if (this.#reason === undefined || !cutsShort(this.#reason)) this.#reason = reason;
  }

  /**
   * Logs an event and takes it into the history.
   *
   * @throws ServerError LOG_WRITE_FAILED; the turn has then ended with it, so nothing further is dispatched
   */
  record(event: EventInput): LogEvent {
    return this.recordAll([event])[0]!;
  }

  /** {@link record} for several events, which are logged all together or not at all. */
  recordAll(events: readonly EventInput[]): LogEvent[] {
    if (events.length === 0) return [];
    try {
      const logged = this.#context.journal.appendAll(events);
      for (const event of logged) this.#apply(event);
      // Before that an earlier turn is being closed, and what is too large not yet cut.
      if (this.#isFit && this.#context.memory.isOver) this.end(errorReason(this.#context.memory.excess()));
      return logged;
    } catch (error) {
      this.end(errorReason(error));
      throw error;
    }
  }

  /** @throws ServerError LOG_WRITE_FAILED, as {@link record} does */
  async barrier(): Promise<void> {
    try {
      await this.#context.journal.barrier();
    } catch (error) {
      this.end(errorReason(error));
      throw error;
    }
  }

  #apply(event: LogEvent): void {
    const { history, open, ledger, instructions } = this.#context;
    history.apply(event);
    open.apply(event);
    ledger.apply(event);
    instructions?.observe(event);
    if (event.type === 'assistant/message' && event.data.text !== '') this.#text = event.data.text;
  }

  #endAt(limit: Limit | undefined): boolean {
    if (limit !== undefined) this.end(reasonOf(limit));
    return this.ended;
  }
}

function lastWords(context: AgentContext): string {
  return context.tools.finalAnswer === undefined
    ? 'Finish now: say what is done and what is not.'
    : `Finish now: call ${context.tools.finalAnswer.tool.name} with what you have.`;
}

function cutsShort(reason: TurnEndReason): boolean {
  switch (reason.kind) {
    case 'cancelled':
    case 'disposed':
    case 'error':
    case 'interrupted':
      return true;
    case 'max-turn-requests':
      return reason.budget === 'wall-time' || reason.budget === 'deadline';
    case 'completed':
    case 'max-tokens':
    case 'refusal':
      return false;
    default:
      return true;
  }
}
