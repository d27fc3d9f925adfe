/**
 * What the model sees, rebuilt from logged events and from nothing else: whoever replays the log gets the same messages.
 *
 * Holds no file and writes no event. It never parts a call from its result, and always answers every call.
 */
import type { EventData, LogEvent } from '../../shared/events.ts';
import { bytesPerChar } from '../memory/session-memory.ts';
import type { ModelMessage } from '../model/model-adapter.ts';
import {
  type AnswerUnit,
  answerUnit,
  dropImages,
  type HistoryUnit,
  messagesOf,
  summaryUnit,
  unitChars,
  unitImages,
  type UserUnit,
  userUnit,
} from './history-unit.ts';
import { type HistoryPrefix, prefixOf } from './history-cuts.ts';
import { prunedText } from './pruned-text.ts';
import { Rewinds } from './rewinds.ts';
import { TokenEstimator } from './token-estimator.ts';

/** An id and its place in a set. */
const bytesPerCallId = 100;

export class History {
  readonly rewinds = new Rewinds();
  readonly #takesImages: () => boolean;
  readonly #estimator = new TokenEstimator();
  readonly #callIds = new Set<string>();
  /** Units by call id, as long as they are part of the history. */
  readonly #answers = new Map<string, AnswerUnit>();
  #units: HistoryUnit[] = [];
  #chars = 0;
  #cutThrough: number | undefined;
  /** Of the units now, whether the model takes them or not. */
  #images = { count: 0, chars: 0 };
  #turn = 0;
  #header: EventData['request/header'] | undefined;

  /** @param takesImages whether the model of the next request is sent images: only then they count */
  constructor(takesImages: () => boolean = () => false) {
    this.#takesImages = takesImages;
  }

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
        this.#endTurn(event.data);
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
        this.rewinds.noteChange(event.seq);
        for (const callId of event.data.callIds) this.#prune(callId, event.data.keepChars);
        this.#dropImages((unit) => event.data.messageIds?.includes(unit.messageId ?? '') === true);
        return;
      case 'history/compacted':
        this.rewinds.noteChange(event.seq);
        this.#compact(event.data);
        return;
      case 'history/rewound':
        if (this.rewinds.add({ seq: event.seq, base: event.data.base })) this.#cutAt(event.data.base);
        return;
      case 'assistant/chunk':
      case 'command/run':
      case 'file/snapshot':
      case 'instructions/read':
      case 'llm/retry':
      case 'llm/wait':
      case 'mcp/status':
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
      case 'undo/start':
      case 'workspace/observed':
        return; // For people and for the client; no model reads these.
    }
  }

  /** What all of it takes in memory, at most. */
  get bytes(): number {
    return bytesPerChar * (this.#chars + this.#images.chars) + bytesPerCallId * this.#callIds.size;
  }

  /** Up to which event {@link cut} has left units out that the log does not yet say are gone. */
  get cutThrough(): number | undefined {
    return this.#cutThrough;
  }

  /** Lets the units up to `throughSeq` go from memory, at event `seq`. */
  cut(throughSeq: number, seq: number): void {
    this.rewinds.noteChange(seq);
    this.#dropThrough(throughSeq);
    this.#cutThrough = throughSeq;
  }

  /** Takes the messages of another history, which was made of the events that still count. */
  adopt(other: History): void {
    this.#units = other.#units;
    this.#chars = other.#chars;
    this.#images = other.#images;
    this.#cutThrough = undefined;
    this.#answers.clear();
    for (const [callId, unit] of other.#answers) this.#answers.set(callId, unit);
    this.rewinds.madeAnew();
  }

  /** In order; for whoever asks what may be cut. */
  get units(): readonly HistoryUnit[] {
    return this.#units;
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
    this.#estimator.calibrate(this.#chars + envelopeChars, reportedTokens, this.#countedImages);
  }

  /** Characters of base64 that a request sends as images. */
  get imageChars(): number {
    return this.#takesImages() ? this.#images.chars : 0;
  }

  /**
   * The oldest whole units that leave about `keepTokens` of the newest, at least one; `0` leaves none. `undefined` when nothing new
   * could be replaced.
   */
  prefix(keepTokens: number): HistoryPrefix | undefined {
    return prefixOf(this.#units, keepTokens, (chars, images) => this.#estimator.tokens(chars, this.#counted(images)));
  }

  get #countedImages(): number {
    return this.#counted(this.#images.count);
  }

  #counted(images: number): number {
    return this.#takesImages() ? images : 0;
  }

  #push(unit: HistoryUnit): void {
    this.#units.push(unit);
    this.#resize(unit, 1);
  }

  #resize(unit: HistoryUnit, sign: 1 | -1): void {
    this.#chars += sign * unitChars(unit);
    const { count, chars } = unitImages(unit);
    if (count > 0) this.#images = { count: this.#images.count + sign * count, chars: this.#images.chars + sign * chars };
  }

  /**
   * The provider will refuse every later request for an image that it has refused once: those of the turn, or, where it has none,
   * all, which another model may have taken.
   */
  #endTurn({ turn, reason }: EventData['turn/end']): void {
    if (reason.kind === 'refusal') this.#dropTurn(turn);
    if (reason.kind !== 'error' || reason.code !== 'INVALID_REQUEST') return;
    const before = this.#images.count;
    this.#dropImages((unit) => unit.turn === turn);
    if (this.#images.count === before) this.#dropImages(() => true);
  }

  #dropImages(which: (unit: UserUnit) => boolean): void {
    if (this.#images.count === 0) return;
    for (const unit of this.#units) {
      if (unit.kind === 'user' && unitImages(unit).count > 0 && which(unit)) this.#change(unit, () => dropImages(unit));
    }
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
    this.#change(unit, () => unit.results.set(data.callId, data.text));
  }

  #prune(callId: string, keepChars: number): void {
    const unit = this.#answers.get(callId);
    const text = unit?.results.get(callId);
    if (unit === undefined || text === undefined) return;
    this.#change(unit, () => unit.results.set(callId, prunedText(text, keepChars)));
  }

  #change(unit: HistoryUnit, change: () => void): void {
    this.#resize(unit, -1);
    change();
    this.#resize(unit, 1);
  }

  #compact(data: EventData['history/compacted']): void {
    this.#dropThrough(data.throughSeq);
    this.#cutThrough = undefined;
    const summary = summaryUnit(data.throughSeq, data.summary);
    this.#units.unshift(summary);
    this.#resize(summary, 1);
  }

  #dropThrough(throughSeq: number): void {
    const kept = this.#units.filter((unit) => unit.lastSeq > throughSeq);
    for (const unit of this.#units) if (unit.lastSeq <= throughSeq) this.#forget(unit);
    this.#units = kept;
  }

  /** A refused prompt and what followed it are never sent again, else every later request would be refused too. */
  #dropTurn(turn: number): void {
    for (let unit = this.#units.at(-1); unit?.turn === turn; unit = this.#units.at(-1)) {
      this.#forget(unit);
      this.#units.pop();
    }
  }

  /** Leaves out what was said from event `base` on. */
  #cutAt(base: number): void {
    for (let unit = this.#units.at(-1); unit !== undefined && unit.lastSeq >= base; unit = this.#units.at(-1)) {
      this.#forget(unit);
      this.#units.pop();
    }
  }

  #forget(unit: HistoryUnit): void {
    this.#resize(unit, -1);
    if (unit.kind === 'answer') for (const callId of unit.message?.toolCalls.map((call) => call.callId) ?? []) this.#answers.delete(callId);
  }
}
