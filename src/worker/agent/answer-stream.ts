/**
 * One attempt at one answer: shows its deltas and keeps what was shown, so that an answer cut short can be kept as far
 * as the person saw it.
 */
import { type ModelEvent, ModelFailure, type ModelFinish } from '../model/model-adapter.ts';
import { bytesPerChar } from '../memory/session-memory.ts';
import type { AgentContext } from './agent-context.ts';
import { CallNames } from './call-names.ts';
import { errorReason } from './end-reason.ts';
import type { ModelQuestion } from './model-call.ts';
import { abandoned, settleOrAbandon } from './settle-or-abandon.ts';
import { TextBuffer } from './text-buffer.ts';
import type { TurnScope } from './turn-scope.ts';

/** What has been streamed. */
export interface PartialAnswer {
  readonly messageId: string;
  readonly text: string;
  readonly reasoning: string;
  /** Ids under which calls were shown, by those of the model. */
  readonly shownCalls: ReadonlyMap<string, string>;
}

/** An answer longer than this is cut, and counts as one that ran out of tokens. In characters. */
const longestAnswer = 8 * 1024 * 1024;

export class AnswerStream {
  readonly #context: AgentContext;
  readonly #scope: TurnScope;
  readonly #question: ModelQuestion;
  readonly #messageId: string;
  readonly #names: CallNames;
  readonly #letGo: () => void;
  #tooLong = false;
  readonly #text = new TextBuffer();
  readonly #reasoning = new TextBuffer();
  #closed = false;

  constructor(context: AgentContext, scope: TurnScope, question: ModelQuestion) {
    this.#context = context;
    this.#scope = scope;
    this.#question = question;
    this.#messageId = context.newId();
    this.#names = new CallNames(context, scope);
    this.#letGo = context.memory.hold('answer', () => bytesPerChar * (this.#text.length + this.#reasoning.length));
  }

  partial(): PartialAnswer {
    return {
      messageId: this.#messageId,
      text: this.#text.toString(),
      reasoning: this.#reasoning.toString(),
      shownCalls: this.#names.shown,
    };
  }

  /** Fulfils with the end of the answer, or with the error that stood in its way. Called once. */
  async run(): Promise<ModelFinish | Error> {
    const settled = await this.#settle();
    this.#closed = true;
    this.#letGo();
    return this.#tooLong ? { reason: 'length', toolCalls: [] } : settled;
  }

  async #settle(): Promise<ModelFinish | Error> {
    const { signal } = this.#scope;
    const { model, sleep } = this.#context;
    const options = { signal, whenWritable: () => this.#context.whenWritable(signal) };
    try {
      const answer = model.stream(this.#question.request, (event) => this.#take(event), options);
      const settled = await settleOrAbandon(answer, signal, sleep);
      return settled === abandoned ? new ModelFailure('ABORTED', 'The model did not stop when it was asked to.') : settled;
    } catch (error) {
      return error instanceof Error ? error : new Error('The model adapter failed.', { cause: error });
    }
  }

  #take(event: ModelEvent): void {
    // What comes after the end of the turn is not shown, so it must not be kept either.
    if (this.#closed || this.#scope.ended || this.#tooLong) return;
    if (event.type === 'tool-call-start' || event.type === 'tool-call-delta') {
      if (this.#question.shown) this.#draft(event);
      return;
    }
    if (event.text === '') return;
    (event.type === 'text' ? this.#text : this.#reasoning).append(event.text);
    if (this.#question.shown) this.#show(event.type, event.text);
    if (this.#text.length + this.#reasoning.length <= longestAnswer) return;
    this.#tooLong = true;
    // A sink that throws ends the call; what it throws is not looked at.
    throw new Error('the answer is too long');
  }

  /** Where nobody looks nothing is shown, so no id is taken either. */
  #draft(event: Extract<ModelEvent, { callId: string }>): void {
    const { live } = this.#context;
    if (live === undefined) return;
    if (event.type === 'tool-call-start') {
      const callId = this.#names.name(event.callId);
      if (callId !== undefined) live.draft({ kind: 'named', callId, name: event.name });
      return;
    }
    const callId = this.#names.shown.get(event.callId);
    if (callId !== undefined) live.draft({ kind: 'arguments', callId, text: event.text });
  }

  /** A thought and a message are two messages to a client, so each has an id of its own. */
  #show(kind: 'text' | 'reasoning', text: string): void {
    const messageId = kind === 'text' ? this.#messageId : `${this.#messageId}-thought`;
    this.#scope.usage.noteShown();
    try {
      this.#context.journal.delta({ turn: this.#scope.turn, step: this.#question.step, messageId, kind, text });
    } catch (error) {
      // Thrown into the adapter it would look like a failure of the model.
      this.#scope.end(errorReason(error));
    }
  }
}
