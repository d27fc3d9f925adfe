/**
 * What a turn did and when, for OpenTelemetry: made by the session thread when a trace endpoint is set, sent to main at the
 * turn's end, exported there. Names follow the GenAI conventions of OpenTelemetry.
 */

export interface SpanRecord {
  /** `invoke_agent`, `chat {model}`, `execute_tool {name}`. */
  readonly name: string;
  readonly operation: 'invoke_agent' | 'chat' | 'execute_tool';
  /** Epoch milliseconds. */
  readonly startMs: number;
  readonly endMs: number;
  /** Index of the parent in {@link TurnTrace.spans}; absent for the turn itself. */
  readonly parent?: number;
  readonly attributes: Readonly<Record<string, string | number | boolean | string[]>>;
  /** The catalogue code or reason of a failure. */
  readonly error?: string;
}

export interface TurnTrace {
  readonly sessionId: string;
  /** W3C trace context of the prompt. */
  readonly traceparent?: string;
  /** The turn first; bounded, the oldest steps go first. */
  readonly spans: readonly SpanRecord[];
}

/** Part of what a thread calls on main. */
export interface TraceServices {
  reportTrace(trace: TurnTrace): Promise<void>;
}
