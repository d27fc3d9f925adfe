/**
 * What a tool is: a schema for the model, a body, a statement of what it touches, and the way it wants to be shown.
 */
import type { BrokerApi } from '../../shared/broker-protocol.ts';
import type { JsonObject } from '../../shared/errors.ts';
import type { TodoEntry } from '../../shared/events.ts';
import type { ArgumentsDraft, PresentContext, ToolCallDraft, ToolCallView, ToolResultView } from '../../shared/render-intents.ts';
import type { PlanApproval } from '../permission/plan-approval.ts';
import type { SubagentRuns } from '../subagents/subagent-runs.ts';
import type { EditorFiles } from '../workspace/editor-files.ts';
import type { PersonQuestions } from './ask-user-channel.ts';
import type { FileObservations } from './file-observations.ts';

/** What a call would touch. The permission policy decides on this, never on the tool's name. Paths are absolute. */
export type ToolAccess =
  | { readonly kind: 'none' }
  | { readonly kind: 'read'; readonly paths: readonly string[] }
  | { readonly kind: 'write'; readonly paths: readonly string[] }
  | { readonly kind: 'execute'; readonly command: string; readonly cwd: string; readonly background?: true; readonly network?: true }
  /** Hands work to another agent. */
  | { readonly kind: 'delegate'; readonly provider: string }
  /** Reaches whatever a server of the client's choice reaches. `print` changes with the server and with the tool. */
  | { readonly kind: 'mcp'; readonly server: string; readonly tool: string; readonly print: string };

/** The outcome of a call. `text` is what the model reads; `meta` is what `presentResult` needs, plain and bounded. */
export interface ToolOutcome {
  readonly text: string;
  readonly isError: boolean;
  readonly code?: string;
  readonly meta?: JsonObject;
}

/** A file that is about to be changed. */
export interface FileChange {
  /** Canonical. */
  readonly path: string;
  /** For words to whoever asked for it. */
  readonly shownPath: string;
  /** The whole new content; `null` removes the file. */
  readonly data: Buffer | null;
  /** The version on the disk that must be in place, or `undefined` when there must be no file. */
  readonly expected: string | undefined;
  /** What is replaced, where that is not what the disk holds. */
  readonly before?: Buffer;
}

/** What the editor made of a change while it saved it. */
export interface ActualChange {
  /** Canonical. */
  readonly path: string;
  readonly put: Buffer;
  readonly actual: Buffer;
}

export interface ToolContext {
  readonly sessionId: string;
  readonly callId: string;
  /** The session's canonical working directory. */
  readonly cwd: string;
  /** All directories of the workspace, canonical, `cwd` first; `cwd` alone when absent. */
  readonly roots?: readonly string[];
  readonly signal: AbortSignal;
  readonly broker: BrokerApi;
  /** Which files this session has read, and in which version. */
  readonly files: FileObservations;
  /**
   * Keeps what a file holds, so that the change can be undone: awaited before every change of a file. Absent where nothing is kept.
   * @throws FsFault: the change must not be made then
   */
  readonly keepBefore?: (change: FileChange) => Promise<void>;
  /** Says that a change which was kept came out otherwise than it was put: an undo then knows what is its own. */
  readonly noteActual?: (change: ActualChange) => void;
  /** The client's own versions of files; absent where it has none. */
  readonly editor?: EditorFiles;
  /** Where outputs too large for a result go. */
  readonly spillDir: string;
  readonly commandTimeoutMs: number;
  readonly ripgrepPath: string | undefined;
  /** What the client lays over the environment of commands. May hold secrets: never logged, never shown. */
  readonly env: Readonly<Record<string, string>>;
  /** `none`: the policy allowed this call only with its network cut off. `any`: the network was given to this call. */
  readonly network?: 'none' | 'any';
  /** `required`: the policy allowed this call only in a sandbox. */
  readonly sandbox?: 'required';
  /** Nobody was asked about this call. */
  readonly unasked?: true;
  /** The runs of the session's subagents; absent where it may not delegate. */
  readonly subagents?: SubagentRuns;
  /** The way out of plan mode; absent where there is nobody to approve a plan. */
  readonly plan?: Pick<PlanApproval, 'present'>;
  /** Puts questions to the person; absent where the client shows no forms. */
  readonly person?: Pick<PersonQuestions, 'ask'>;
  /** Shows what the call's command writes while it runs; absent where nobody looks. */
  readonly live?: LiveOutput;
  /** Replaces the session's plan. */
  writeTodos(todos: readonly TodoEntry[]): void;
  /** What the running turn may still use, by the tightest budget of it and of the session. */
  budgetLeft(): BudgetLeft;
  /** W3C trace context that the client gave with the prompt. */
  readonly traceparent?: string | undefined;
}

/** The way of a running command's output to the client's card. */
export interface LiveOutput {
  /** Least time between two pieces, and before the first, in milliseconds. */
  readonly paceMs: number;
  /** `undefined` while there is room for more; else a promise for it. */
  whenWritable(): Promise<void> | undefined;
  /** Adds to what was shown. Together with `output` of the result it must be the output once: see `presentResult`. */
  show(text: string): void;
}

/** A member that is absent is not limited. */
export interface BudgetLeft {
  /** Epoch milliseconds at which the turn ends, by a deadline or by a limit of its time. */
  readonly deadline?: number;
  readonly maxTokens?: number;
  /** US dollars. */
  readonly maxCostUsd?: number;
  readonly maxSteps?: number;
  readonly maxToolCalls?: number;
}

/** `Args` has been checked against `parameters` before any of these is called. */
export interface Tool<Args> {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments: an object, `additionalProperties: false`. */
  readonly parameters: object;
  /** True when the call may run beside others of the same step. Anything else is a barrier. */
  isParallelSafe(args: Args): boolean;
  access(args: Args, context: { readonly cwd: string }): ToolAccess;
  /** Never throws for what the world did: a missing file is an outcome. Ends soon after `signal` aborts. */
  execute(args: Args, context: ToolContext): Promise<ToolOutcome>;
  /** What to show while the model still writes the arguments; where it is missing, the tool's name. Pure; given anything. */
  presentDraft?(draft: ArgumentsDraft, context: PresentContext): ToolCallDraft;
  /** Pure and replay-safe. */
  presentCall(args: Args, context: PresentContext): ToolCallView;
  /** Pure and replay-safe. */
  presentResult(args: Args, outcome: ToolOutcome, context: PresentContext): ToolResultView;
}

/** A tool as the registry holds it, whatever its arguments are: they have been checked against the schema before any call. */
export type AnyTool = Tool<unknown>;
