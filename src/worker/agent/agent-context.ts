/**
 * What an agent is made with: everything outside the loop, in one typed record. The loop reaches the world through this
 * and through nothing else, so a test can stand in for any part of it.
 */
import type { SessionSettings } from '../../shared/config.ts';
import type { SessionOptions } from '../../shared/session-options.ts';
import type { SessionMemory } from '../memory/session-memory.ts';
import type { ModelAdapter, ModelFailure, ToolSchema } from '../model/model-adapter.ts';
import type { PermissionGate } from '../permission/permission-gate.ts';
import type { SessionInstructions } from '../workspace/session-instructions.ts';
import type { AnyTool, ToolContext } from '../tools/tool.ts';
import type { FileSnapshots } from '../undo/file-snapshots.ts';
import type { WorkspaceWatch } from '../undo/workspace/workspace-watch.ts';
import type { Sleep } from './abortable-sleep.ts';
import type { History } from './history.ts';
import type { Inbox } from './inbox.ts';
import type { Journal } from './journal.ts';
import type { LiveView } from './live-view.ts';
import type { ModelSlots } from './model-slots.ts';
import type { OpenRecords } from './open-records.ts';
import type { SessionLedger } from './session-ledger.ts';
import type { SessionTools } from './session-tools.ts';

export type ParsedArguments =
  | { readonly ok: true; readonly args: unknown }
  /** `text` is what the model reads as the call's result. */
  | { readonly ok: false; readonly code: string; readonly text: string };

/** The tools of a session, as far as the loop needs them. */
export interface ToolSet {
  get(name: string): AnyTool | undefined;
  schemas(): readonly ToolSchema[];
  /** Changes when any schema changes. */
  hash(): string;
  /** Parses and checks the raw arguments of a known tool. Never throws. */
  parseArguments(name: string, raw: string): ParsedArguments;
}

/** Milliseconds to wait before the next attempt, after `attempt` (from 1) failed; `undefined` gives up. */
export type NextDelay = (attempt: number, failure: ModelFailure, random: () => number) => number | undefined;

export interface AgentDependencies {
  readonly sessionId: string;
  /** Canonical and absolute. */
  readonly cwd: string;
  readonly model: ModelAdapter;
  /** All that there are; the agent offers those that the session's options leave. */
  readonly tools: ToolSet;
  readonly journal: Journal;
  readonly permissions: PermissionGate;
  readonly toolParts: Pick<ToolContext, 'broker' | 'editor' | 'files' | 'roots' | 'spillDir' | 'person' | 'plan' | 'subagents'>;
  readonly settings: Pick<
    SessionSettings,
    'systemPrompt' | 'budget' | 'prices' | 'maxParallelToolCalls' | 'commandTimeoutMs' | 'ripgrepPath'
  >;
  /** What the client asked of this session. The agent acts on `budget`, `persona`, `tools` and `outputSchema`. */
  readonly options: SessionOptions;
  /** Reads the instruction files of the workspace; absent where they are not to be read. */
  readonly instructions?: SessionInstructions;
  /** Asked for a place before every model call. */
  readonly modelSlots: ModelSlots;
  readonly nextDelay: NextDelay;
  /** What the model has to hear before its next step; asked once for each. Absent where there is never anything. */
  readonly stepNotice?: () => string | undefined;
  /** Keeps what files hold before tools change them; absent where nothing is kept. */
  readonly snapshots?: Pick<FileSnapshots, 'keep' | 'noteActual'>;
  /** Finds out what commands change; absent where that is not asked for. */
  readonly workspaceWatch?: Pick<WorkspaceWatch, 'around'>;
  /** Counts what the session holds; absent where nobody bounds it. */
  readonly memory?: SessionMemory;
  /** Attempts a model call may take, the first included; told to the client with every retry. */
  readonly maxAttempts: number;
  /** `undefined` when there is room for more streamed text; else a promise for it. An aborted `signal` ends the wait at once. */
  readonly whenWritable: (signal: AbortSignal) => Promise<void> | undefined;
  /** Shows what is not logged; absent where nobody looks. */
  readonly live?: LiveView;
  /** Ids of calls that were shown on a thread that was lost, and that no log may hold. */
  readonly lostCallIds?: readonly string[];
  /** A fresh, unique id for a message. */
  readonly newId: () => string;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
  /** Epoch milliseconds: deadlines are given by the clock on the wall. */
  readonly wallClock: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  readonly sleep: Sleep;
}

/** The dependencies with what one agent remembers between its turns. */
export interface AgentContext extends AgentDependencies {
  readonly tools: SessionTools;
  readonly memory: SessionMemory;
  readonly ledger: SessionLedger;
  readonly history: History;
  readonly open: OpenRecords;
  readonly inbox: Inbox;
  /** Ids under which calls were shown on this thread, logged or not. */
  readonly shownCalls: Set<string>;
}
