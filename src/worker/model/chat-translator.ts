/**
 * Translates one streamed chat completion into model events. Knows nothing of sockets, so that a recorded stream and a live one are
 * the same thing here.
 *
 * The hot path: `take` runs once per token.
 */
import type { TokenUsage } from '../../shared/events.ts';
import { toTokenUsage } from './chat-usage.ts';
import { DeltaTemplate, type SoleText } from './delta-template.ts';
import { type ModelEvent, ModelFailure, type ModelFinish } from './model-adapter.ts';
import { codeForStreamError, quoteProvider, readProviderError } from './model-errors.ts';
import { ToolCallJoiner, type ToolCallPiece } from './tool-call-joiner.ts';

/** `progress`: a delta came. `quiet`: nothing a reader would notice. `done`: the stream has said that it is over. */
export type TakeResult = 'progress' | 'quiet' | 'done';

interface ChatDelta {
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
  readonly reasoning?: unknown;
  readonly refusal?: unknown;
  readonly tool_calls?: readonly ToolCallPiece[] | null;
}

interface ChatChunk {
  readonly model?: unknown;
  readonly choices?: readonly { readonly delta?: ChatDelta | null; readonly finish_reason?: unknown }[] | null;
  readonly usage?: object | null;
  readonly error?: unknown;
  readonly object?: unknown;
}

export interface ChatTranslatorOptions {
  /** Call ids that this session has used; see {@link ToolCallJoiner}. */
  readonly usedCallIds: () => Set<string>;
  readonly sink: (event: ModelEvent) => void;
  /** Only to take it out of a provider's words. */
  readonly apiKey: string | undefined;
}

export class ChatTranslator {
  readonly #sink: (event: ModelEvent) => void;
  readonly #calls: ToolCallJoiner;
  readonly #apiKey: string | undefined;
  readonly #template = new DeltaTemplate(readSoleText);
  #spoke = false;
  #refused = false;
  #done = false;
  #finishReason: string | undefined;
  #usage: TokenUsage | undefined;
  #model: string | undefined;

  constructor(options: ChatTranslatorOptions) {
    this.#sink = options.sink;
    this.#apiKey = options.apiKey;
    this.#calls = new ToolCallJoiner(options.usedCallIds, options.sink);
  }

  /**
   * Takes the data of one server-sent event. Deltas reach the sink before it returns.
   *
   * @throws ModelFailure MALFORMED_RESPONSE, or the code of an `error` object
   */
  take(data: string): TakeResult {
    if (this.#done) return 'done';
    if (data === '[DONE]') {
      this.#done = true;
      return 'done';
    }
    const quick = this.#template.match(data);
    if (quick !== undefined) {
      this.#sink({ type: this.#template.type, text: quick });
      return 'progress';
    }
    return this.#takeChunk(data, parseChunk(data));
  }

  /**
   * The outcome, once the stream is over.
   *
   * @throws ModelFailure STREAM_CLOSED when the stream never said why it ended, EMPTY_RESPONSE, MALFORMED_RESPONSE, SERVER
   */
  finish(): ModelFinish {
    if (this.#finishReason === undefined) {
      throw new ModelFailure('STREAM_CLOSED', 'The model server ended its stream before the answer was complete.');
    }
    const reason = this.#mapReason(this.#finishReason);
    const toolCalls = this.#calls.finish(reason === 'length' || reason === 'refusal');
    if (!this.#spoke && toolCalls.length === 0 && (reason === 'stop' || reason === 'tool-calls')) {
      throw new ModelFailure('EMPTY_RESPONSE', 'The model server sent an answer without text and without tool calls.');
    }
    return {
      // Servers say `stop` beside tool calls, and `tool_calls` without any; what came decides.
      reason: reason === 'stop' || reason === 'tool-calls' ? (toolCalls.length > 0 ? 'tool-calls' : 'stop') : reason,
      toolCalls,
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
      ...(this.#model === undefined ? {} : { model: this.#model }),
    };
  }

  #takeChunk(data: string, chunk: ChatChunk): TakeResult {
    if (this.#model === undefined && typeof chunk.model === 'string') this.#model = chunk.model;
    if (chunk.error != null || chunk.object === 'error') this.#throwProviderError(chunk);
    // On the finish chunk or in a trailing one without choices; the last one counts.
    if (typeof chunk.usage === 'object' && chunk.usage !== null) this.#usage = toTokenUsage(chunk.usage);
    const choice = chunk.choices?.[0];
    if (choice == null) return 'quiet';
    const progress = choice.delta != null && this.#takeDelta(choice.delta);
    const sole = progress ? soleTextOf(chunk) : undefined;
    if (sole !== undefined) this.#template.learn(data, sole);
    if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '') {
      this.#finishReason = choice.finish_reason;
      return 'progress';
    }
    return progress ? 'progress' : 'quiet';
  }

  #takeDelta(delta: ChatDelta): boolean {
    let progress = false;
    const reasoning = reasoningOf(delta);
    if (typeof reasoning === 'string' && reasoning !== '') {
      this.#sink({ type: 'reasoning', text: reasoning });
      progress = true;
    }
    if (typeof delta.content === 'string' && delta.content !== '') {
      this.#sink({ type: 'text', text: delta.content });
      progress = true;
    }
    if (typeof delta.refusal === 'string' && delta.refusal !== '') {
      this.#refused = true;
      this.#sink({ type: 'text', text: delta.refusal });
      progress = true;
    }
    if (progress) this.#spoke = true;
    if (Array.isArray(delta.tool_calls)) {
      for (const piece of delta.tool_calls as readonly unknown[]) {
        if (typeof piece !== 'object' || piece === null) throw malformed('a tool call that is not an object');
        this.#calls.add(piece);
        progress = true;
      }
    }
    return progress;
  }

  #mapReason(reason: string): ModelFinish['reason'] {
    if (this.#refused) return 'refusal';
    switch (reason) {
      case 'stop':
        return 'stop';
      case 'tool_calls':
      case 'function_call':
        return 'tool-calls';
      case 'length':
        return 'length';
      case 'content_filter':
        return 'refusal';
      case 'insufficient_system_resource':
      case 'error':
      case 'abort':
        throw new ModelFailure('SERVER', `The model server broke its answer off (${reason}).`);
      default:
        throw malformed(`the unknown finish reason "${quoteProvider(reason, this.#apiKey).slice(0, 40)}"`);
    }
  }

  #throwProviderError(chunk: ChatChunk): never {
    const error = readProviderError(chunk) ?? { message: '', words: '', status: undefined };
    const quote = quoteProvider(error.message, this.#apiKey);
    throw new ModelFailure(
      codeForStreamError(error),
      `The model server reported an error in its stream${quote === '' ? '.' : `: ${quote}`}`,
      error.status === undefined ? {} : { status: error.status },
    );
  }
}

function malformed(what: string): ModelFailure {
  return new ModelFailure('MALFORMED_RESPONSE', `The model server sent ${what}.`);
}

function parseChunk(data: string): ChatChunk {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    // The parser's text would quote the stream; it says nothing a person could use.
    throw malformed('an event that is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed('an event that is not a JSON object');
  return value;
}

/** A server that sends both names sends the same text twice. */
function reasoningOf(delta: ChatDelta): unknown {
  return typeof delta.reasoning_content === 'string' ? delta.reasoning_content : delta.reasoning;
}

/** What the chunk adds, when it does nothing else that this translator looks at. */
function soleTextOf(chunk: ChatChunk): SoleText | undefined {
  const choice = chunk.choices?.[0];
  const delta = choice?.delta;
  if (delta == null || chunk.usage != null || chunk.error != null || chunk.object === 'error') return undefined;
  if (choice?.finish_reason || delta.tool_calls != null || delta.refusal) return undefined;
  const { content } = delta;
  const reasoning = reasoningOf(delta);
  if (typeof content === 'string' && content !== '') return reasoning ? undefined : { type: 'text', text: content };
  return typeof reasoning === 'string' && reasoning !== '' && !content ? { type: 'reasoning', text: reasoning } : undefined;
}

function readSoleText(data: string): SoleText | undefined {
  try {
    return soleTextOf(parseChunk(data));
  } catch {
    // The text stood somewhere else than in a string of the chunk; the caller tries the next place.
    return undefined;
  }
}
