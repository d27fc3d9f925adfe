/**
 * What all turns of the session have used together, for the budget of the session.
 *
 * It counts by the log's events, live and replayed ones alike, so that a session which is attached again has the same
 * sums; only the running turn counts by its meter. What a subagent uses between two turns belongs to the next one.
 */
import { type LogEvent, noUsage, type TurnUsage } from '../../shared/events.ts';
import type { SubagentUsage } from '../../shared/subagent-protocol.ts';
import { costOf, exactUsd } from './cost.ts';
import { addSubagentUsage, checkedSubagentUsage } from './subagent-usage.ts';
import { type PriceClock, tokensOf, UsageMeter } from './turn-usage.ts';

export interface SessionSums {
  readonly steps: number;
  readonly toolCalls: number;
  /** Guesses and subagents included. */
  readonly tokens: number;
  /** US dollars, guesses and subagents included. */
  readonly costUsd: number;
  readonly elapsedMs: number;
}

export class SessionLedger {
  readonly #now: () => number;
  readonly #clock: PriceClock;
  /** Of the turns that have ended. */
  #ended: SessionSums = { steps: 0, toolCalls: 0, tokens: 0, costUsd: 0, elapsedMs: 0 };
  #meter: UsageMeter | undefined;
  /** What subagents used since the last turn ended. */
  #between: SubagentUsage | undefined;
  /** What the log says subagents used in the turn that is open in it. */
  #inTurn: SubagentUsage | undefined;
  #turnOpen = false;
  #lastTurn: TurnUsage | undefined;

  constructor(now: () => number, clock: PriceClock) {
    this.#now = now;
    this.#clock = clock;
  }

  /** Of the last turn that ended, as the log has it. */
  get lastTurn(): TurnUsage | undefined {
    return this.#lastTurn;
  }

  /** Whether anybody said what tokens cost. */
  get isPriced(): boolean {
    return this.#clock.prices() !== undefined;
  }

  /** The meter of a turn whose start is logged next; it begins with what subagents used since the last one. */
  openTurn(): UsageMeter {
    const meter = new UsageMeter(this.#now, this.#clock);
    // It goes from here with the logged start: a turn whose start cannot be written must not take it away.
    if (this.#between !== undefined) meter.addSubagent(this.#between);
    this.#meter = meter;
    return meter;
  }

  /** The running turn's meter is read for the last time: what comes now belongs to the next turn. */
  sealTurn(): void {
    this.#meter = undefined;
  }

  /** Charges the running turn, or the next one. */
  addSubagentUsage(usage: SubagentUsage): void {
    const checked = checkedSubagentUsage(usage, this.#clock.prices());
    if (this.#meter === undefined) this.#between = addSubagentUsage(this.#between, checked);
    else this.#meter.addSubagent(checked);
  }

  /** What was used beside all turns. */
  addOutside(usage: SubagentUsage): void {
    const { tokens, costUsd } = this.#ended;
    this.#ended = { ...this.#ended, tokens: tokens + tokensOf(usage), costUsd: exactUsd(costUsd + (usage.costUsd ?? 0)) };
  }

  /** The ended turns and the running one. */
  sums(): SessionSums {
    const { steps, toolCalls, tokens, costUsd, elapsedMs } = this.#ended;
    const between = this.#between ?? noUsage;
    return {
      steps: steps + (this.#meter?.steps ?? 0),
      toolCalls: toolCalls + (this.#meter?.toolCalls ?? 0),
      tokens: tokens + tokensOf(between) + (this.#meter?.spentTokens ?? 0),
      costUsd: exactUsd(costUsd + (this.#between?.costUsd ?? 0) + (this.#meter?.costUsd ?? 0)),
      elapsedMs: elapsedMs + (this.#meter?.elapsedMs ?? 0),
    };
  }

  /** Takes in the next event of the log, live or replayed, in order. */
  apply(event: LogEvent): void {
    if (event.type === 'turn/start') {
      this.#turnOpen = true;
      this.#inTurn = this.#between;
      this.#between = undefined;
    } else if (event.type === 'subagent/end') {
      if (event.data.usage !== undefined) this.#note(checkedSubagentUsage(event.data.usage, this.#clock.prices()));
    } else if (event.type === 'session/title') {
      if (event.data.usage !== undefined) this.addOutside(event.data.usage);
    } else if (event.type === 'turn/end') {
      this.#lastTurn = event.data.usage;
      this.#add(event.data.reason.kind === 'interrupted' ? this.#withSubagents(event.data.usage) : event.data.usage);
      this.#turnOpen = false;
      this.#inTurn = undefined;
    }
  }

  #note(usage: SubagentUsage): void {
    if (this.#turnOpen) this.#inTurn = addSubagentUsage(this.#inTurn, usage);
    else this.#between = addSubagentUsage(this.#between, usage);
  }

  /** The end of an interrupted turn was written by repair, which knows of no subagents. */
  #withSubagents(usage: TurnUsage): TurnUsage {
    return usage.subagents !== undefined || this.#inTurn === undefined ? usage : { ...usage, subagents: this.#inTurn };
  }

  #add(usage: TurnUsage): void {
    const { subagents } = usage;
    const tokens = tokensOf(usage) + (usage.guessedTokens ?? 0) + (subagents === undefined ? 0 : tokensOf(subagents));
    const ended = this.#ended;
    this.#ended = {
      steps: ended.steps + usage.steps,
      toolCalls: ended.toolCalls + usage.toolCalls,
      tokens: ended.tokens + tokens,
      costUsd: exactUsd(ended.costUsd + (usage.costUsd ?? this.#costWithout(usage))),
      elapsedMs: ended.elapsedMs + usage.elapsedMs,
    };
  }

  /** Of a turn whose end names no cost: it was interrupted, or ran before prices were known. At the dearest hour. */
  #costWithout(usage: TurnUsage): number {
    const prices = this.#clock.prices();
    const own = prices === undefined ? 0 : costOf(prices, usage);
    return own + (usage.subagents?.costUsd ?? 0);
  }
}
