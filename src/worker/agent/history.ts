/**
 * What the model sees, rebuilt from logged events and from nothing else: whoever replays the log gets the same messages.
 *
 * Holds no file and writes no event. It never parts a call from its result, and always answers every call.
 */
import type { EventData, LogEvent } from '../../shared/events.ts';
import type { ModelMessage } from '../model/model-adapter.ts';
import { type AnswerUnit, answerUnit, type HistoryUnit, messagesOf, summaryUnit, unitChars, userUnit } from './history-unit.ts';
import { prunedText } from './pruned-text.ts';
import { TokenEstimator } from './token-estimator.ts';

/** The oldest units, as far as a summary may replace them. */
export interface HistoryPrefix {
  readonly throughSeq: number;
  readonly messages: readonly ModelMessage[];
  readonly tokens: number;
}

export class History {
  readonly #estimator = new TokenEstimator();
  readonly #callIds = new Set<string>();
  /** Units by call id, as long as they are part of the history. */
  readonly #answers = new Map<string, AnswerUnit>();
  #units: HistoryUnit[] = [];
  #chars = 0;
  #turn = 0;
  #header: EventData['request/header'] | undefined;

  /** The number of the last turn that started; `0` before the first. */
  get turn(): number {
    return this.#turn;
  }

  /** The last logged header. */
  get header(): EventData['request/header'] | undefined {
    return this.#header;
  }

  /** Whether a call of this session, in the history or dropped from it, had this id. */
  hasCall(callId: string): boolean {
    return this.#callIds.has(callId);
  }

  /** Takes in the next event, live or replayed, in log order. Costs the same however long the log is. */
  apply(event: LogEvent): void {
    switch (event.type) {
      case 'turn/start':
        this.#turn = event.data.turn;
        return;
      case 'turn/end':
        if (event.data.reason.kind === 'refusal') this.#dropTurn(event.data.turn);
        return;
      case 'request/header':
        this.#header = event.data;
        return;
      case 'user/message':
        this.#push(userUnit(event.seq, event.data));
        return;
      case 'assistant/message':
        this.#applyAnswer(event.seq, event.data);
        return;
      case 'tool/result':
        this.#applyResult(event.seq, event.data);
        return;
      case 'history/pruned':
        for (const callId of event.data.callIds) this.#prune(callId, event.data.keepChars);
        return;
      case 'history/compacted':
        this.#compact(event.data);
        return;
      case 'assistant/chunk':
      case 'command/run':
      case 'file/snapshot':
      case 'instructions/read':
      case 'llm/retry':
      case 'llm/wait':
      case 'mode/change':
      case 'options/change':
      case 'permission/asked':
      case 'permission/decided':
      case 'step/end':
      case 'step/start':
      case 'subagent/activity':
      case 'subagent/end':
      case 'subagent/start':
      case 'thread/attached':
      case 'session/title':
      case 'todo/write':
      case 'tool/call':
      case 'tool/start':
        return; // For people and for the client; no model reads these.
    }
  }

  /** The messages of the next request. */
  messages(): ModelMessage[] {
    return messagesOf(this.#units);
  }

  /** Estimated tokens of a request with this history and `envelopeChars` of system text and tool schemas. */
  estimateTokens(envelopeChars: number): number {
    return this.#estimator.tokens(this.#chars + envelopeChars, this.#countedImages);
  }

  /** Estimated tokens of a text that is to join the history. */
  tokensOf(chars: number): number {
    return this.#estimator.tokens(chars);
  }

  /** Tells the estimator how large a request with this history really was. */
  calibrate(envelopeChars: number, reportedTokens: number): void {
    this.#estimator.calibrate(this.#chars + envelopeChars, reportedTokens);
  }

  /** Calls whose result is longer than `minChars`, leaving out the last `keepAnswers` answers that made calls. */
  prunableCalls(minChars: number, keepAnswers: number): string[] {
    const answers = this.#units.filter((unit): unit is AnswerUnit => unit.kind === 'answer' && unit.results.size > 0);
    const old = answers.slice(0, Math.max(0, answers.length - keepAnswers));
    return old.flatMap((unit) => [...unit.results].filter(([, text]) => text.length > minChars).map(([callId]) => callId));
  }

  /** The oldest whole units that leave about `keepTokens` of the newest; `undefined` when nothing new could be replaced. */
  prefix(keepTokens: number): HistoryPrefix | undefined {
    let cut = this.#units.length;
    let kept = 0;
    while (cut > 0) {
      const unit = this.#units[cut - 1];
      if (unit === undefined) break;
      kept += this.#estimator.tokens(unitChars(unit));
      if (kept > keepTokens && cut < this.#units.length) break;
      cut -= 1;
    }
    const units = this.#units.slice(0, cut);
    const last = units.at(-1);
    if (last === undefined || last.turn < 0) return undefined;
    const chars = units.reduce((sum, unit) => sum + unitChars(unit), 0);
    return { throughSeq: last.lastSeq, messages: messagesOf(units), tokens: this.#estimator.tokens(chars) };
  }

  #push(unit: HistoryUnit): void {
    this.#units.push(unit);
    this.#chars += unitChars(unit);
  }

  #applyAnswer(seq: number, data: EventData['assistant/message']): void {
    const unit = answerUnit(seq, data);
    this.#push(unit);
    for (const { callId } of data.toolCalls) {
      this.#callIds.add(callId);
      this.#answers.set(callId, unit);
    }
  }

  #applyResult(seq: number, data: EventData['tool/result']): void {
    const unit = this.#answers.get(data.callId);
    if (unit === undefined || unit.results.has(data.callId)) return;
    unit.lastSeq = seq;
    this.#resize(unit, () => unit.results.set(data.callId, data.text));
  }

  #prune(callId: string, keepChars: number): void {
    const unit = this.#answers.get(callId);
    const text = unit?.results.get(callId);
    if (unit === undefined || text === undefined) return;
    this.#resize(unit, () => unit.results.set(callId, prunedText(text, keepChars)));
  }

  #resize(unit: HistoryUnit, change: () => void): void {
    this.#chars -= unitChars(unit);
    change();
    this.#chars += unitChars(unit);
  }

  #compact(data: EventData['history/compacted']): void {
    const kept = this.#units.filter((unit) => unit.lastSeq > data.throughSeq);
    for (const unit of this.#units) if (unit.lastSeq <= data.throughSeq) this.#forget(unit);
    this.#units = kept;
    const summary = summaryUnit(data.throughSeq, data.summary);
    this.#units.unshift(summary);
    this.#chars += unitChars(summary);
  }

  /** A refused prompt and what followed it are never sent again, else every later request would be refused too. */
  #dropTurn(turn: number): void {
    for (let unit = this.#units.at(-1); unit?.turn === turn; unit = this.#units.at(-1)) {
      this.#forget(unit);
      this.#units.pop();
    }
  }

  #forget(unit: HistoryUnit): void {
    this.#chars -= unitChars(unit);
    if (unit.kind === 'answer') for (const callId of unit.message?.toolCalls.map((call) => call.callId) ?? []) this.#answers.delete(callId);
  }
}
