/**
 * What the local model server is asked to answer. A plan is plain JSON, so that it can travel in a prompt or a header.
 */

export interface PlannedToolCall {
  readonly name: string;
  /** JSON text, sent in pieces; may be broken on purpose. */
  readonly arguments: string;
  readonly id?: string;
}

export type PlannedFault =
  /** The head is sent, then nothing for ever. */
  | { readonly kind: 'stall-before' }
  /** Not even a head is sent. */
  | { readonly kind: 'hang' }
  /** Nothing more after `after` tokens. `keepAliveMs` goes on with comments. */
  | { readonly kind: 'stall-mid'; readonly after: number; readonly keepAliveMs?: number }
  /** The socket is destroyed after `after` tokens. */
  | { readonly kind: 'cut'; readonly after: number }
  /** The socket is destroyed after `after` pieces of tool calls, which need a {@link AnswerPlan.toolDelayMs}. */
  | { readonly kind: 'cut-tools'; readonly after: number }
  /** The body ends cleanly after `after` tokens, without finish_reason and [DONE]. */
  | { readonly kind: 'end-early'; readonly after: number }
  | { readonly kind: 'no-done' }
  | { readonly kind: 'status'; readonly status: number; readonly body?: string; readonly headers?: Readonly<Record<string, string>> }
  /** The socket is reset before any answer. */
  | { readonly kind: 'reset' };

export interface AnswerPlan {
  /** Text deltas; each is one word, see {@link tokenText}. */
  readonly tokens?: number;
  /** Reasoning deltas before them. */
  readonly reasoning?: number;
  readonly reasoningField?: 'reasoning_content' | 'reasoning';
  /** Milliseconds between deltas; `0` is as fast as the socket drains. */
  readonly delayMs?: number;
  /**
   * Each text delta is the time it was sent ({@link monotonicMs}). With `due` the time at which it should have been sent stands before
   * that, with a slash between them: `delayMs` behind the one before it, and the first one `delayMs` behind the reading of the request.
   */
  readonly stamp?: boolean | 'due';
  /** Characters that a stamped delta is filled up to, with slashes. */
  readonly padTo?: number;
  /** Goes on with numbered words, at its `delayMs`, until the server is told to let go. */
  readonly untilReleased?: boolean;
  /** Sent instead of numbered words, one delta per element. */
  readonly text?: readonly string[];
  readonly tools?: readonly PlannedToolCall[];
  /** Milliseconds between the pieces of the tool calls; without it they come in one write. */
  readonly toolDelayMs?: number;
  readonly finish?: string;
  /** `false` sends none; `finish-chunk` puts it on the chunk that carries finish_reason. */
  readonly usage?: object | false;
  readonly usageOn?: 'trailing' | 'finish-chunk';
  /** Raw data lines, sent instead of everything above. */
  readonly raw?: readonly string[];
  /** The body as it is, sent instead of everything else. */
  readonly rawBody?: string;
  /** How its characters become bytes; `latin1` gives bytes that are no UTF-8. */
  readonly rawEncoding?: 'utf8' | 'latin1';
  /** Bytes per write, to split events and characters anywhere. */
  readonly splitBytes?: number;
  readonly crlf?: boolean;
  /** Comments before the first delta. */
  readonly comments?: { readonly count: number; readonly everyMs: number };
  readonly contentType?: string;
  readonly fault?: PlannedFault;
}

/** The text of delta number `index` of a numbered answer. */
export function tokenText(index: number): string {
  return `tok${index} `;
}

/** A conversation's plans: one per model call since the last user message; the last one repeats without its tools. */
export interface PlanDirective {
  readonly plans: readonly AnswerPlan[];
}

interface RequestMessage {
  readonly role: string;
  readonly content?: unknown;
}

function parseDirective(text: string): readonly AnswerPlan[] | undefined {
  const start = text.indexOf('{"');
  if (start < 0) return undefined;
  try {
    const value = JSON.parse(text.slice(start, text.lastIndexOf('}') + 1)) as AnswerPlan & Partial<PlanDirective>;
    return value.plans ?? [value];
  } catch {
    // A prompt that merely holds a brace is no directive.
    return undefined;
  }
}

/** What the agent says by itself stands in brackets: it takes no place of a person's word. */
function isNotice(content: unknown): boolean {
  return typeof content === 'string' && /^\[[^]*\]$/.test(content);
}

/** The plan for a request: from the header `x-answer-plan`, else from the last user message, else 5 tokens. */
export function planForRequest(header: string | undefined, messages: readonly RequestMessage[]): AnswerPlan {
  const last = messages.findLastIndex((message) => message.role === 'user' && !isNotice(message.content));
  const content = messages[last]?.content;
  const plans = parseDirective(header ?? (typeof content === 'string' ? content : '')) ?? [{ tokens: 5 }];
  const answered = messages.slice(last + 1).filter((message) => message.role === 'assistant').length;
  const plan = plans[answered];
  if (plan !== undefined) return plan;
  const { tools: _tools, ...rest } = plans.at(-1) ?? {};
  return rest;
}
