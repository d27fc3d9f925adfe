/**
 * Streams prepared text as a model would, word by word, for the models that have no server behind them.
 *
 * Yields to the event loop, waits for room and ends on abort, so that the agent above meets what it meets with a live model.
 */
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import type { ToolCallRequest } from '../../shared/events.ts';
import { type ModelEvent, ModelFailure, type StreamOptions } from './model-adapter.ts';

/** Deltas between two yields when there is no pace. */
const burst = 64;
/** Of the arguments of one call, in characters: they are no words, and a paced one must not take long. */
const shortestPiece = 16;
const mostPieces = 16;

export class WordStream {
  readonly #sink: (event: ModelEvent) => void;
  readonly #options: StreamOptions;
  readonly #paceMs: number;
  readonly #maxChars: number;
  #sinceYield = 0;
  #textChars = 0;
  #reasoningChars = 0;

  /** @param maxChars what is over it is not sent; see {@link cut} */
  constructor(sink: (event: ModelEvent) => void, options: StreamOptions, limits: { readonly paceMs: number; readonly maxChars: number }) {
    this.#sink = sink;
    this.#options = options;
    this.#paceMs = limits.paceMs;
    this.#maxChars = limits.maxChars;
  }

  get textChars(): number {
    return this.#textChars;
  }

  get reasoningChars(): number {
    return this.#reasoningChars;
  }

  /** Whether the output cap has been reached. */
  get cut(): boolean {
    return this.#textChars + this.#reasoningChars >= this.#maxChars;
  }

  /** @throws ModelFailure ABORTED */
  async words(type: 'text' | 'reasoning', text: string): Promise<void> {
    for (const word of text.match(/\s*\S+\s?/g) ?? []) await this.delta(type, word);
  }

  /** @throws ModelFailure ABORTED */
  async delta(type: 'text' | 'reasoning', text: string): Promise<void> {
    if (this.cut) return;
    this.checkAbort();
    if (type === 'text') this.#textChars += text.length;
    else this.#reasoningChars += text.length;
    this.#sink({ type, text });
    this.#sinceYield += 1;
    if (this.#paceMs > 0) await this.pause(this.#paceMs);
    else if (this.#sinceYield >= burst) {
      this.#sinceYield = 0;
      await nextTick();
    } else return;
    await this.#options.whenWritable();
    this.checkAbort();
  }

  /** A tool call: its name, then its arguments in a few pieces. @throws ModelFailure ABORTED */
  async call({ callId, name, arguments: text }: ToolCallRequest): Promise<void> {
    this.checkAbort();
    this.#sink({ type: 'tool-call-start', callId, name });
    const length = Math.max(shortestPiece, Math.ceil(text.length / mostPieces));
    for (let at = 0; at < text.length; at += length) {
      if (this.#paceMs > 0) await this.pause(this.#paceMs);
      this.#sink({ type: 'tool-call-delta', callId, text: text.slice(at, at + length) });
    }
  }

  /** @throws ModelFailure ABORTED, at once when the signal aborts meanwhile */
  async pause(ms: number): Promise<void> {
    try {
      await sleep(ms, undefined, { signal: this.#options.signal });
    } catch {
      // The only way a sleep rejects is its signal.
      this.checkAbort();
    }
  }

  checkAbort(): void {
    if (this.#options.signal.aborted) throw new ModelFailure('ABORTED', 'The model call was cancelled.');
  }
}
