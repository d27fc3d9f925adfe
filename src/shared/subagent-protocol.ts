/**
 * Delegating to another agent: what a session thread asks of whoever runs the child.
 *
 * Two parties serve {@link SubagentApi}: the broker thread (children that are processes and speak ACP) and main (the
 * provider `self`: another session of this server). The semantics are the same. A run belongs to an owner (a session id);
 * only that owner can see or end it. News is fetched by long poll ({@link SubagentApi.awaitSubagent}), so that no lane back
 * to the session is needed and a dead thread costs nothing.
 */
import type { TaskAnswer } from './broker-protocol.ts';
import type { ErrorCode, JsonObject, JsonValue } from './errors.ts';
import type { PermissionMode, TodoEntry, TokenUsage } from './events.ts';
import type { RenderKind } from './render-intents.ts';

/** The provider that runs a session of this server and no process. */
export const selfProvider = 'self';

export type SubagentPermission = 'reject' | 'allow' | 'ask';

/** One configured provider. `command` is absent for {@link selfProvider} alone. */
export interface SubagentProvider {
  /** `[a-z][a-z0-9-]*`, unique. */
  readonly name: string;
  /** When to choose this one; the model reads it. */
  readonly description: string | undefined;
  readonly command: string | undefined;
  readonly args: readonly string[];
  /** Absolute; `undefined` is the delegating session's cwd. */
  readonly cwd: string | undefined;
  /** `allow` picks an allow-once by kind; `ask` passes the question up to this server's own client. */
  readonly permission: SubagentPermission;
  /** Laid over the scrubbed environment. May hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** `scrub` removes what looks like a secret; `allow` passes only the names in `envAllow` (`*` at the end stands for any). */
  readonly envMode: 'scrub' | 'allow';
  readonly envAllow: readonly string[];
  /** From the closing of stdin to TERM. */
  readonly disposeEofGraceMs: number;
  /** From TERM to KILL. */
  readonly disposeGraceMs: number;
  /** From the request to a ready remote session, the wait for a place among `maxRunning` included. */
  readonly startTimeoutMs: number;
  /** A run whose child says nothing for this long ends with an error; `0` waits for ever. */
  readonly idleTimeoutMs: number;
  /** Runs of this provider at once, over all sessions. */
  readonly maxRunning: number;
  /** Delegations below a session that a client opened. */
  readonly maxDepth: number;
  /** Warm children kept; `0` starts a process per run. */
  readonly poolSize: number;
  readonly poolIdleMs: number;
  /** Start-time options: refused when the child does not advertise them. */
  readonly persona: string | undefined;
  readonly tools: readonly string[] | undefined;
  readonly outputSchema: JsonObject | undefined;
}

export interface SubagentRequest {
  /** The delegating session. */
  readonly owner: string;
  /** Minted by the caller in its own namespace; unique. The child's session id never leaves whoever runs it. */
  readonly runId: string;
  readonly provider: string;
  readonly prompt: string;
  /** The delegating session's canonical cwd; the provider's own `cwd` comes first. */
  readonly cwd: string;
  /** Depth of the child: its parent's plus one. */
  readonly depth: number;
  /** The parent's own cap of the depth, where it has one; the child gets the lower of this and its provider's. */
  readonly maxDepth?: number;
  /** The mode to start in, where the child takes one. Given to {@link selfProvider} alone: a process has a mode of its own. */
  readonly mode?: PermissionMode;
  /** The parent's deadline in epoch milliseconds, for a child that takes one. */
  readonly deadline?: number;
  /** Tokens and dollars that the parent has left, for a child that takes a budget. */
  readonly maxTokens?: number;
  readonly maxCostUsd?: number;
  /** Steps and tool calls that the client has left the parent, for the same. */
  readonly maxSteps?: number;
  readonly maxToolCalls?: number;
  /** W3C trace context of the turn that delegates; given to {@link selfProvider} alone. */
  readonly traceparent?: string;
  /** Where images of the child are put. Absolute. */
  readonly spillDir: string;
}

/** `completed` is a success; everything else is an error to the parent's model, with the partial output. */
export type SubagentStopReason = 'completed' | 'max-tokens' | 'refusal' | 'aborted' | 'error';

export type SubagentStarted =
  | {
      readonly ok: true;
      readonly capabilities: SubagentCapabilities;
      /** Of a child that is a session of this server. */
      readonly logPath?: string;
    }
  /** Nothing is left running. `message` is for the model, as it is. */
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string };

/** What the child enforces by itself. */
export interface SubagentCapabilities {
  readonly persona: boolean;
  readonly tools: boolean;
  readonly depth: boolean;
  readonly outputSchema: boolean;
  /** The remote session starts fresh. */
  readonly inheritsParentContext: false;
}

export interface SubagentResult {
  readonly stopReason: SubagentStopReason;
  /** The child's last message for `completed` (all its text where it does not mark messages), all that came otherwise. Bounded. */
  readonly output: string;
  /** The structured answer, where one was asked for. */
  readonly structured?: JsonValue;
  readonly usage?: SubagentUsage;
  /** Why, for `error`; at most 4,096 bytes of UTF-8, no secret. */
  readonly diagnostic?: string;
  readonly durationMs: number;
  /** The log of a child that is a session of this server. Absolute. */
  readonly logPath?: string;
}

export interface SubagentUsage extends TokenUsage {
  readonly costUsd?: number;
}

/** What the child does meanwhile. */
export type SubagentActivity =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'tool';
      readonly childCallId: string;
      readonly title: string;
      readonly toolKind: RenderKind;
      readonly status: SubagentToolStatus;
    }
  | { readonly kind: 'plan'; readonly entries: readonly TodoEntry[] }
  /** Written to a file of the parent's session. */
  | { readonly kind: 'image'; readonly mimeType: string; readonly bytes: number; readonly path: string }
  /** Of the run so far, all together. */
  | { readonly kind: 'usage'; readonly usage: SubagentUsage };

export type SubagentToolStatus = 'pending' | 'in_progress' | 'completed' | 'failed';

/** A question of the child that its provider passes up. */
export interface SubagentQuestion {
  readonly questionId: string;
  readonly title: string;
  readonly toolKind: RenderKind;
  /** What the child sent as the call's input, bounded. */
  readonly rawInput?: JsonValue;
  /** Text blocks of the child's card, bounded. */
  readonly content: readonly string[];
}

export type SubagentNews = {
  /** Goes up with everything that happens; to be given with the next poll. */
  readonly seq: number;
  /** What happened since the given seq; older activity than the bound is counted in `dropped`. */
  readonly activities: readonly SubagentActivity[];
  readonly dropped: number;
  /** Those that wait for an answer now. */
  readonly questions: readonly SubagentQuestion[];
  /** There once the run has ended; then it is the last news. */
  readonly result?: SubagentResult;
};

export interface SubagentApi {
  /**
   * Starts a run. Fulfils when a remote session is ready and the prompt is on its way: from then on the run is the
   * caller's to dispose. A failure or a cancel before that fulfils only once nothing of the child is left.
   */
  startSubagent(request: SubagentRequest): Promise<SubagentStarted>;
  /** News after `seq`; waits up to `waitMs` for some. */
  awaitSubagent(owner: string, runId: string, seq: number, waitMs: number): Promise<TaskAnswer<SubagentNews>>;
  /** Asks the child to stop; the run settles `aborted` at once, with what came. Also ends a start that is under way. */
  cancelSubagent(owner: string, runId: string): Promise<void>;
  /** Answers a question once; `true` allows exactly that call. A late or second answer is dropped. */
  answerSubagent(owner: string, runId: string, questionId: string, allow: boolean): Promise<void>;
  /** Ends the run and forgets it; fulfils when nothing of it is left, or a child went back to its pool. Idempotent. */
  disposeSubagent(owner: string, runId: string): Promise<void>;
  /** Runs of the owner that have not ended. */
  countSubagents(owner: string): Promise<number>;
}
