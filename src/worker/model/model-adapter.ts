/**
 * The one interface behind which every model stands.
 *
 * Deltas go to a sink, not through an async iterator: one promise per token is the dearest part of a token's way.
 */
import type { TokenUsage, ToolCallRequest } from '../../shared/events.ts';
import type { PromptPart } from '../../shared/prompt-text.ts';
import type { SessionChoices } from '../../shared/session-choices.ts';
import type { Prices, Sampling } from '../../shared/session-options.ts';

export type ModelMessage =
  /** `parts` is there where the message holds images; `text` is the same with marks in their place. */
  | { readonly role: 'user'; readonly text: string; readonly parts?: readonly PromptPart[] }
  | { readonly role: 'assistant'; readonly text: string; readonly reasoning: string; readonly toolCalls: readonly ToolCallRequest[] }
  | { readonly role: 'tool'; readonly callId: string; readonly text: string };

/** `parameters` is a JSON Schema (draft 2020-12) of an object. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly parameters: object;
}

export interface ModelRequest {
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ToolSchema[];
  /** Caps this answer below the configured maximum. */
  readonly maxOutputTokens?: number;
  /** Answers without thinking first, where the model can be told so. */
  readonly thinking?: 'off';
}

export type ModelEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** The model has named a tool; its arguments follow in pieces, and are handed over whole in {@link ModelFinish}. */
  | { readonly type: 'tool-call-start'; readonly callId: string; readonly name: string }
  /** More of the arguments' JSON text. Comes behind the start of its call, and only to show how far the model is. */
  | { readonly type: 'tool-call-delta'; readonly callId: string; readonly text: string };

export interface ModelFinish {
  readonly reason: 'stop' | 'tool-calls' | 'length' | 'refusal';
  /** In the model's order. With reason `length` the last one may be cut: never execute any. */
  readonly toolCalls: readonly ToolCallRequest[];
  readonly usage?: TokenUsage;
  /** The model name that the provider reported. */
  readonly model?: string;
}

export interface StreamOptions {
  readonly signal: AbortSignal;
  /** `undefined` when there is room for more; else a promise for it. Asked once per piece of the body. */
  readonly whenWritable: () => Promise<void> | undefined;
}

export interface ModelAdapter {
  readonly provider: string;
  readonly model: string;
  /** In tokens. */
  readonly contextWindow: number;
  /** Whether it is sent the images of a prompt, and not a mark in their place. Absent: it is not. */
  readonly takesImages?: boolean;
  /** What every request says of it; absent where nothing is said. */
  readonly sampling?: Sampling | undefined;
  /** What its tokens cost; absent where that does not hang on the model. */
  readonly prices?: Prices | undefined;
  /** Takes note of what was chosen for the session; absent where nothing can be chosen. */
  choose?(choices: SessionChoices): void;
  /** Called when a step begins: what was chosen meanwhile holds from now on. */
  takeChoice?(): void;
  /**
   * Streams one answer. Deltas reach `sink` in order, all of them before the promise settles.
   *
   * @throws ModelFailure for everything that goes wrong, abort included (code `ABORTED`)
   */
  stream(request: ModelRequest, sink: (event: ModelEvent) => void, options: StreamOptions): Promise<ModelFinish>;
}

export type ModelFailureCode =
  | 'ABORTED'
  | 'AUTH'
  | 'QUOTA'
  | 'RATE_LIMIT'
  | 'INVALID_REQUEST'
  | 'CONTEXT_WINDOW'
  | 'SERVER'
  | 'TRANSPORT'
  | 'TIMEOUT'
  | 'STREAM_CLOSED'
  | 'MALFORMED_RESPONSE'
  | 'EMPTY_RESPONSE'
  | 'SCRIPT_MISMATCH';

/** Why an answer failed. `message` is for people and holds no key and no request text. */
export class ModelFailure extends Error {
  readonly code: ModelFailureCode;
  readonly status: number | undefined;
  /** What the provider asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ModelFailureCode, message: string, options: { status?: number; retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ModelFailure';
    this.code = code;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }
}
