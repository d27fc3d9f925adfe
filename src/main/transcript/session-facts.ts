/** What is to be said of a session as a whole, gathered while its log is read: counts, usage, cost, the ends of its last turns. */
import type { LogEvent, SessionHeader, TokenUsage, TurnEndReason, TurnUsage } from '../../shared/events.ts';
import { promptTitle, sessionTitle } from '../../shared/log/session-title.ts';

/** Of turns more than this only the last are kept. */
const mostTurns = 1000;

export interface TurnFacts {
  readonly turn: number;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  /** First line of what was asked. */
  prompt: string | undefined;
  endedAt: string | undefined;
  /** `undefined` while it runs, or where the log ends within it. */
  reason: TurnEndReason | undefined;
  usage: TurnUsage | undefined;
}

export class SessionFacts {
  header: SessionHeader | undefined;
  /** The given one, else that of the first prompt. */
  title: string | undefined;
  model: string | undefined;
  mode: string | undefined;
  events = 0;
  turnCount = 0;
  /** The last ones, in order. */
  readonly turns: TurnFacts[] = [];
  readonly tokens = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0 };
  steps = 0;
  toolCalls = 0;
  /** US dollars of all turns; `undefined` when no prices are known. */
  costUsd: number | undefined;

  onHeader(header: SessionHeader): void {
    this.header = header;
    this.mode = header.options?.mode ?? this.mode;
  }

  /** In log order. Throws for data that is not what its type says. */
  onEvent(event: LogEvent): void {
    this.events += 1;
    const { type, data, time } = event;
    if (type === 'turn/start') this.#openTurn(data.turn, time);
    else if (type === 'turn/end') this.#endTurn(data.reason, data.usage, time);
    else if (type === 'user/message') this.#prompt(data.source === 'prompt' ? promptTitle(data.shown ?? data.content) : undefined);
    else if (type === 'request/header') this.model = data.model;
    else if (type === 'mode/change') this.mode = data.mode;
    else if (type === 'session/title') {
      this.title = sessionTitle(data.title) ?? this.title;
      this.#spend(data.usage?.costUsd);
    }
  }

  #openTurn(turn: number, time: number): void {
    this.turnCount += 1;
    this.turns.push({ turn, startedAt: isoTime(time), prompt: undefined, endedAt: undefined, reason: undefined, usage: undefined });
    if (this.turns.length > mostTurns) this.turns.shift();
  }

  #prompt(title: string | undefined): void {
    this.title ??= title;
    const last = this.turns.at(-1);
    if (last !== undefined) last.prompt ??= title;
  }

  #endTurn(reason: TurnEndReason, usage: TurnUsage, time: number): void {
    const last = this.turns.at(-1);
    if (last !== undefined) Object.assign(last, { reason, usage, endedAt: isoTime(time) });
    for (const name of Object.keys(this.tokens) as (keyof TokenUsage)[]) this.tokens[name] += usage[name];
    this.steps += usage.steps;
    this.toolCalls += usage.toolCalls;
    this.#spend(usage.costUsd);
  }

  #spend(usd: number | undefined): void {
    if (usd !== undefined) this.costUsd = (this.costUsd ?? 0) + usd;
  }
}

function isoTime(time: number): string {
  return new Date(time).toISOString();
}
