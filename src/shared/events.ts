/**
 * The event log's vocabulary: what one line of a session's log can say.
 *
 * Line 1 is a {@link SessionHeader}; every later line is a {@link LogEvent} with a contiguous `seq` from 0. What a model
 * sees is rebuilt from these lines and from nothing else. The JSON schema of the same vocabulary is
 * `schemas/event-log.schema.json`; a test checks that both agree.
 */
import type { CallEvents } from './call-events.ts';
import type { JsonObject, JsonValue } from './errors.ts';
import type { McpEvents } from './mcp-events.ts';
import type { SandboxReport } from './sandbox.ts';
import type { SessionChoices } from './session-choices.ts';
import type { Budget, Sampling, StoredSessionOptions } from './session-options.ts';
import type { SubagentUsage } from './subagent-protocol.ts';
import type { FileSnapshotData, HistoryRewoundData, UndoStartData, WorkspaceObservedData } from './undo-events.ts';

export const logVersion = 1;

export interface SessionHeader {
  readonly type: 'session';
  readonly version: number;
  readonly id: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** Canonical absolute path of the session's working directory. */
  readonly cwd: string;
  readonly agent: { readonly name: string; readonly version: string };
  /** What the client asked for when it made the session; absent when it asked for nothing. */
  readonly options?: StoredSessionOptions;
  /** The session whose history this one began with: its events up to and including `seq`, -1 for none. */
  readonly forkedFrom?: ForkOrigin;
}

export interface ForkOrigin {
  readonly sessionId: string;
  readonly seq: number;
}

/** Disjoint buckets, in tokens: `input` excludes cache reads; `output` includes reasoning. */
export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly reasoningTokens: number;
}

/** `plan` is read-only until the person approves a plan. */
export type PermissionMode = 'ask' | 'accept-edits' | 'read-only' | 'full-access' | 'plan';

/** A prompt's blocks after flattening: text, and links as bracketed text. */
export interface PromptText {
  readonly type: 'text';
  readonly text: string;
}

export interface PromptLink {
  readonly type: 'resource_link';
  readonly uri: string;
  readonly name: string;
  /** Of a file of the workspace, as its tools take it. */
  readonly path?: string;
  /** The lines of it that are meant: `12` or `12-20`. */
  readonly lines?: string;
}

/** `data` is base64, bounded when it comes in. */
export interface PromptImage {
  readonly type: 'image';
  readonly mimeType: string;
  readonly data: string;
  readonly uri?: string;
}

/** A text resource that the client put into the prompt itself. */
export interface PromptResource {
  readonly type: 'resource';
  readonly uri: string;
  readonly text: string;
  readonly mimeType?: string;
}

export type PromptBlock = PromptText | PromptLink | PromptImage | PromptResource;

/** Raw call as the model made it. `arguments` is the JSON text, possibly broken. */
export interface ToolCallRequest {
  readonly callId: string;
  readonly name: string;
  readonly arguments: string;
}

/** Why a turn ended. The first terminal reason wins. */
export type TurnEndReason =
  | { readonly kind: 'completed' }
  | { readonly kind: 'max-tokens' }
  /** A budget is spent: of the turn, or of all turns of the session together. */
  | { readonly kind: 'max-turn-requests'; readonly budget: BudgetName; readonly scope?: 'session' }
  | { readonly kind: 'refusal' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'disposed' }
  | { readonly kind: 'error'; readonly code: string; readonly message: string }
  /** Written only by repair, for a turn whose end never reached the log. */
  | { readonly kind: 'interrupted' };

export type BudgetName = 'steps' | 'tool-calls' | 'wall-time' | 'deadline' | 'tokens' | 'cost';

/** What a turn has used, counted from its start. */
export interface TurnUsage extends TokenUsage {
  readonly steps: number;
  readonly toolCalls: number;
  readonly elapsedMs: number;
  /** Estimate of what model calls used whose provider reported nothing, beside the numbers above. Counts in budgets. */
  readonly guessedTokens?: number;
  /** US dollars by the configured prices, guesses and subagents included; absent when no prices are known. */
  readonly costUsd?: number;
  /** From the turn's start to the first text or thought. */
  readonly firstTokenMs?: number;
  /** What subagents used beside the numbers above. */
  readonly subagents?: SubagentUsage;
}

export interface TodoEntry {
  readonly content: string;
  readonly status: 'pending' | 'in_progress' | 'completed';
  /** Absent means medium. */
  readonly priority?: 'high' | 'medium' | 'low';
}

/** How much of the model's window the conversation fills now, in whole tokens; `used` is never greater than `size`. */
export interface ContextUse {
  readonly used: number;
  readonly size: number;
  /** US dollars of the whole session so far; absent when no prices are known. */
  readonly costUsd?: number;
}

/** A tool of an MCP server that the model is offered. */
export interface McpToolNote {
  /** The model's name for it. */
  readonly name: string;
  /** The server's. */
  readonly tool: string;
  /** How its calls are shown; absent means other. */
  readonly kind?: 'read' | 'fetch' | 'other';
}

/** Event name → payload. One place for both the types and the documentation. */
export interface EventData extends CallEvents, McpEvents {
  /** The session was put on a thread. `epoch` grows by one each time and fences an older writer. */
  'thread/attached': {
    readonly epoch: number;
    readonly threadId: number;
    readonly isolation: 'dedicated' | 'strict' | 'shared';
    readonly pid: number;
    /** How many other sessions were on the thread. */
    readonly sharedWith: number;
    /** Directories that belong to the workspace beside the `cwd`, for as long as the session is on this thread; absent when there are none. */
    readonly additionalDirectories?: readonly string[];
    /** What commands are kept in, as the server has tried it. Of each command its result says what it was. */
    readonly sandbox?: SandboxReport;
  };
  'turn/start': {
    readonly turn: number;
    /** The client's idempotence key, and the hash of what it stood for. */
    readonly key?: string;
    readonly payload?: string;
    readonly budget?: Budget;
    readonly traceparent?: string;
  };
  'turn/end': {
    readonly turn: number;
    readonly reason: TurnEndReason;
    readonly usage: TurnUsage;
    /** The answer that met the session's output schema. */
    readonly structured?: JsonValue;
  };
  'user/message': {
    readonly turn: number;
    readonly messageId: string;
    readonly source: 'prompt' | 'steer' | 'notice';
    readonly content: readonly PromptBlock[];
    /** What the person typed, where a command made `content` of it. */
    readonly shown?: readonly PromptBlock[];
  };
  /** A slash command was answered here, between turns. No model sees it. */
  'command/run': {
    readonly messageId: string;
    readonly name: string;
    /** What the person typed. */
    readonly content: readonly PromptBlock[];
    /** Markdown; empty where the command was cancelled. */
    readonly output: { readonly messageId: string; readonly text: string };
    readonly isError: boolean;
  };
  'step/start': { readonly turn: number; readonly step: number };
  'step/end': { readonly turn: number; readonly step: number; readonly context?: ContextUse };
  /** What the next requests carry beside the messages. Logged at the first request and when it changes. */
  'request/header': {
    readonly provider: string;
    readonly model: string;
    readonly system: string;
    readonly tools: readonly string[];
    readonly toolsHash: string;
    /** As it is sent, the session's and the server's together; absent when nothing is. */
    readonly sampling?: Sampling;
  };
  /** Instruction files of the workspace, as the model knows them from here on. Logged when that changes; all files, each time. */
  'instructions/read': {
    readonly turn: number;
    /** Where it reads them: all in the system text of the next header, or the changed ones in the `user/message` before this event. */
    readonly given: 'system' | 'notice';
    /** `digest` is the beginning of the SHA-256 of the text that was given, in hex. */
    readonly files: readonly { readonly path: string; readonly digest: string; readonly bytes: number; readonly clipped?: true }[];
  };
  /** Streamed text, merged for about 100 ms. Never part of the model's history: `assistant/message` is. */
  'assistant/chunk': {
    readonly turn: number;
    readonly step: number;
    readonly messageId: string;
    readonly kind: 'text' | 'reasoning';
    readonly text: string;
  };
  'assistant/message': {
    readonly turn: number;
    readonly step: number;
    readonly messageId: string;
    readonly text: string;
    readonly reasoning: string;
    readonly toolCalls: readonly ToolCallRequest[];
    readonly finish: 'stop' | 'tool-calls' | 'length' | 'refusal' | 'interrupted';
    readonly usage?: TokenUsage;
    /** The model name that the provider reported. */
    readonly model?: string;
  };
  /** The call is taken up: before its permission is asked, and also when it is to be refused. Nothing has run yet. */
  'tool/call': { readonly turn: number; readonly step: number; readonly callId: string; readonly name: string; readonly arguments: string };
  /** The tool's body runs next, as soon as this line is on the disk. A call without it has changed nothing. */
  'tool/start': { readonly turn: number; readonly step: number; readonly callId: string };
  'tool/result': {
    readonly turn: number;
    readonly step: number;
    readonly callId: string;
    /** What the model reads. */
    readonly text: string;
    readonly isError: boolean;
    readonly code?: string;
    /** What the tool's presenter needs beside the text: exit status, diffs, paths. */
    readonly meta?: JsonObject;
  };
  'mode/change': { readonly mode: PermissionMode };
  /** What was chosen beside the mode; what is absent stays as it was. Effective from the next step. */
  'options/change': SessionChoices;
  'todo/write': { readonly todos: readonly TodoEntry[] };
  'llm/retry': {
    readonly turn: number;
    readonly step: number;
    readonly attempt: number;
    readonly maxAttempts: number;
    readonly delayMs: number;
    readonly code: string;
    readonly message: string;
  };
  /** A model call had to wait for a place at its provider. */
  'llm/wait': { readonly turn: number; readonly step: number; readonly position: number; readonly waitedMs: number };
  /** The text of an older tool result was cut in the model's history; the original stays in the log above. */
  'history/pruned': {
    readonly callIds: readonly string[];
    readonly keepChars: number;
    /** User messages whose images the model gets as a mark from now on. */
    readonly messageIds?: readonly string[];
  };
  /** Messages up to and including `throughSeq` are replaced by `summary` in the model's history. */
  'history/compacted': {
    readonly throughSeq: number;
    readonly summary: string;
    readonly usage?: TokenUsage;
    /** With the summary in place. */
    readonly context?: ContextUse;
  };
  'file/snapshot': FileSnapshotData;
  'workspace/observed': WorkspaceObservedData;
  'undo/start': UndoStartData;
  'history/rewound': HistoryRewoundData;
  /** What the session is called, on one line of at most 80 characters. The last one counts. */
  'session/title': {
    readonly title: string;
    readonly source: 'prompt' | 'model';
    /** What asking the model for it used, also where its answer was of no use. Counts for the session, not for a turn. */
    readonly usage?: SubagentUsage;
  };
}

export type EventType = keyof EventData;

export type EventInput = { [T in EventType]: { readonly type: T; readonly data: EventData[T] } }[EventType];

/** One line of the log after the header. `time` is epoch milliseconds; order is by `seq`, never by `time`. */
export type LogEvent = EventInput & { readonly seq: number; readonly time: number };

export const noUsage: TokenUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0 };
