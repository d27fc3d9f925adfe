/**
 * Makes the spans of a session's turns from what its log says, and from nothing else: what happened is in the log, so the
 * loop needs no hooks. Never holds text of a prompt, an answer, an argument or a result.
 */
import type { EventData, LogEvent, TokenUsage } from '../../shared/events.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { attributes } from '../../shared/trace-attributes.ts';
import type { TraceServices, TurnTrace } from '../../shared/turn-trace.ts';
import { type Attributes, type OpenSpan, SpanList } from './span-list.ts';

export interface TurnTracerParts {
  readonly sessionId: string;
  /** Called once per turn, behind its end. Must not throw. */
  readonly report: (trace: TurnTrace) => void;
}

interface TracedTurn {
  readonly root: OpenSpan;
  readonly traceparent: string | undefined;
  readonly spans: SpanList;
  readonly tools: Map<string, OpenSpan>;
  /** The model call under way, or the next attempt that waits for its time. */
  chat: OpenSpan | undefined;
}

/** A tracer that reports to main; `undefined` when nobody collects traces. */
export function tracerFor(
  { sessionId, settings }: Pick<SessionTask, 'sessionId' | 'settings'>,
  main: TraceServices,
): TurnTracer | undefined {
  if (!settings.trace) return undefined;
  // A trace that main cannot take is lost, and nothing else.
  return new TurnTracer({ sessionId, report: (trace) => void main.reportTrace(trace).catch(() => undefined) });
}

/** A model may call a tool anything. */
const longestName = 100;

export class TurnTracer {
  readonly #parts: TurnTracerParts;
  #provider = '';
  #model = '';
  #turn: TracedTurn | undefined;

  constructor(parts: TurnTracerParts) {
    this.#parts = parts;
  }

  /** An event of the stored log: says which model the session speaks to, and starts no trace. */
  learn(event: LogEvent): void {
    if (event.type !== 'request/header') return;
    this.#provider = event.data.provider;
    this.#model = event.data.model;
  }

  /** The next event as it is logged. */
  take(event: LogEvent): void {
    this.learn(event);
    if (event.type === 'turn/start') this.#begin(event.data, event.time);
    else if (this.#turn !== undefined) this.#takeIn(this.#turn, event);
  }

  /** Text, modes, permissions and news of subagents are not the stuff of spans. */
  #takeIn(turn: TracedTurn, event: LogEvent): void {
    if (event.type === 'turn/end') this.#end(turn, event.data, event.time);
    else if (event.type === 'request/header') Object.assign(turn.root.attributes, this.#about());
    else if (event.type.startsWith('tool/')) this.#takeTool(turn, event);
    else this.#takeModel(turn, event);
  }

  #takeModel(turn: TracedTurn, { type, data, time }: LogEvent): void {
    if (type === 'step/start') turn.chat = this.#chat(time, data.step, 1);
    else if (type === 'llm/wait') this.#waited(turn, time, data.waitedMs);
    else if (type === 'assistant/message') this.#answered(turn, data, time);
    if (type !== 'llm/retry') return;
    if (turn.chat !== undefined) turn.spans.close(turn.chat, time, data.code);
    turn.chat = this.#chat(time + data.delayMs, data.step, data.attempt + 1);
  }

  #takeTool(turn: TracedTurn, { type, data, time }: LogEvent): void {
    if (type === 'tool/call') turn.tools.set(data.callId, this.#tool(data, time));
    else if (type === 'tool/start') this.#toolStarted(turn.tools.get(data.callId), time);
    else if (type === 'tool/result') this.#toolEnded(turn, data, time);
  }

  #begin({ turn, traceparent }: EventData['turn/start'], startMs: number): void {
    const root: OpenSpan = { name: 'invoke_agent', operation: 'invoke_agent', startMs, attributes: this.#attributes('invoke_agent') };
    root.attributes[attributes.turn] = turn;
    this.#turn = { root, traceparent, spans: new SpanList(), tools: new Map(), chat: undefined };
  }

  #chat(startMs: number, step: number, attempt: number): OpenSpan {
    const own = { [attributes.step]: step, ...(attempt > 1 ? { [attributes.attempt]: attempt } : {}) };
    return { name: `chat ${this.#model}`.trimEnd(), operation: 'chat', startMs, attributes: { ...this.#attributes('chat'), ...own } };
  }

  /** The call itself begins behind the wait for a place. */
  #waited({ chat }: TracedTurn, time: number, waitedMs: number): void {
    if (chat === undefined) return;
    chat.startMs = Math.max(chat.startMs, time);
    chat.attributes[attributes.slotWaitMs] = waitedMs;
  }

  #answered(turn: TracedTurn, message: EventData['assistant/message'], time: number): void {
    const { chat } = turn;
    if (chat === undefined) return;
    turn.chat = undefined;
    if (message.usage !== undefined) addUsage(chat.attributes, message.usage);
    if (message.model !== undefined) chat.attributes[attributes.responseModel] = message.model;
    chat.attributes[attributes.finishReasons] = [message.finish];
    turn.spans.close(chat, time, message.finish === 'interrupted' ? 'interrupted' : undefined);
  }

  #tool({ callId, name, step }: EventData['tool/call'], startMs: number): OpenSpan {
    const short = name.slice(0, longestName);
    return {
      name: `execute_tool ${short}`,
      operation: 'execute_tool',
      startMs,
      attributes: {
        [attributes.operation]: 'execute_tool',
        [attributes.conversation]: this.#parts.sessionId,
        [attributes.toolName]: short,
        [attributes.toolType]: 'function',
        [attributes.toolCall]: callId,
        [attributes.step]: step,
      },
    };
  }

  /** Before its body runs a call waits for others, and for a permission. */
  #toolStarted(span: OpenSpan | undefined, time: number): void {
    if (span !== undefined) span.attributes[attributes.toolWaitMs] = Math.max(0, time - span.startMs);
  }

  #toolEnded(turn: TracedTurn, { callId, isError, code }: EventData['tool/result'], time: number): void {
    const span = turn.tools.get(callId);
    if (span === undefined) return;
    turn.tools.delete(callId);
    turn.spans.close(span, time, isError ? (code ?? 'TOOL_FAILED') : undefined);
  }

  #end(turn: TracedTurn, { reason, usage }: EventData['turn/end'], time: number): void {
    this.#turn = undefined;
    const why = reason.kind === 'error' ? reason.code : reason.kind;
    if (turn.chat !== undefined) turn.spans.close(turn.chat, time, why);
    for (const span of turn.tools.values()) turn.spans.close(span, time, why);
    addUsage(turn.root.attributes, usage);
    Object.assign(turn.root.attributes, {
      [attributes.steps]: usage.steps,
      [attributes.toolCalls]: usage.toolCalls,
      [attributes.stopReason]: reason.kind,
      ...(usage.costUsd === undefined ? {} : { [attributes.costUsd]: usage.costUsd }),
      ...(usage.firstTokenMs === undefined ? {} : { [attributes.firstTokenMs]: usage.firstTokenMs }),
    });
    const spans = turn.spans.all(turn.root, time, reason.kind === 'error' ? reason.code : undefined);
    const { traceparent } = turn;
    this.#parts.report({ sessionId: this.#parts.sessionId, ...(traceparent === undefined ? {} : { traceparent }), spans });
  }

  #attributes(operation: string): Attributes {
    return { [attributes.operation]: operation, [attributes.conversation]: this.#parts.sessionId, ...this.#about() };
  }

  #about(): Attributes {
    return this.#model === '' ? {} : { [attributes.provider]: this.#provider, [attributes.requestModel]: this.#model };
  }
}

/** The conventions count cache reads as input. */
function addUsage(into: Attributes, usage: TokenUsage): void {
  into[attributes.inputTokens] = usage.inputTokens + usage.cacheReadTokens;
  into[attributes.cacheReadTokens] = usage.cacheReadTokens;
  into[attributes.outputTokens] = usage.outputTokens;
  into[attributes.reasoningTokens] = usage.reasoningTokens;
}
