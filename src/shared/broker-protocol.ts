/**
 * What session threads and main ask of the broker, the thread that owns child processes.
 *
 * The calls travel over comlink, one port per caller. Every process belongs to an owner (a session id); only that owner
 * can read or end it. Errors cross as {@link WireError} inside the result where a caller must tell them apart.
 */
import type { McpApi } from './mcp-protocol.ts';
import type { SandboxSettings, SandboxState } from './sandbox.ts';
import type { SubagentApi, SubagentProvider } from './subagent-protocol.ts';

/** A command as argv: never a shell line, unless `command` is a shell that was asked for. */
export interface CommandSpec {
  readonly owner: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** Laid over the scrubbed environment. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * `none` starts the command without a network; where that cannot be done it is not started (`spawnError`). `any` gives it one where the
   * settings leave that to whoever decides on the command.
   */
  readonly network?: 'none' | 'any';
  /** Nobody was asked about it: files that other programs trust, and that were not there, are moved out of the workspace behind it. */
  readonly unasked?: true;
  /**
   * Canonical directories that the command may write: it is kept in a sandbox, and under limits, as the settings say. Absent for
   * programs of our own, which are kept in nothing.
   */
  readonly roots?: readonly string[];
  /** `required`: without a sandbox it is not started, where the settings would let it, too. */
  readonly sandbox?: 'required';
  /** How much of each stream is kept in memory: the head and the tail together. */
  readonly keepBytes: number;
  /** Where the whole output goes once it outgrows `keepBytes`; `undefined` spills nothing. Absolute directory. */
  readonly spillDir?: string;
  readonly spillMaxBytes?: number;
}

export interface RunRequest extends CommandSpec {
  /** Unique per caller; names the run in `cancelRun`. */
  readonly runId: string;
  /** `0` means no limit. */
  readonly timeoutMs: number;
  /** How much of both streams together, in order of arrival, is kept for {@link BrokerApi.readRun} and the result; absent keeps none. */
  readonly showBytes?: number;
}

/** What a running command has written since the last look, in order of arrival. Valid UTF-8; a mark says where something is left out. */
export interface RunOutput {
  readonly text: string;
  /** The command has ended: the rest is in its result. */
  readonly over: boolean;
}

/** One captured stream. `text` is valid UTF-8: head, a mark that says how much is missing, tail. */
export interface CapturedOutput {
  readonly text: string;
  readonly totalBytes: number;
  readonly truncated: boolean;
  readonly spillPath?: string;
}

/** Why a command had no network: the settings, a rule of the policy, or nobody who gave it one. */
export type NetworkOff = 'settings' | 'rule' | 'unasked';

export interface MovedFile {
  /** Where it was. Absolute. */
  readonly path: string;
  /** Where it is now. */
  readonly to: string;
}

/** Files that other programs trust and that have appeared while a contained command ran: at most a few of each kind. */
export interface ControlNews {
  /** Absolute; they are still there. */
  readonly controlFiles?: readonly string[];
  readonly movedFiles?: readonly MovedFile[];
}

export interface BackgroundStarted {
  readonly taskId: string;
  readonly networkOff?: NetworkOff;
}

export interface RunResult extends ControlNews {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly cancelled: boolean;
  /** Set when the process could not be started at all, for example `ENOENT`. */
  readonly spawnError?: string;
  readonly spawnCode?: 'SANDBOX_UNAVAILABLE';
  /** It ran in a sandbox. */
  readonly contained?: true;
  readonly networkOff?: NetworkOff;
  readonly stdout: CapturedOutput;
  readonly stderr: CapturedOutput;
  /** Both streams as they came; only where `showBytes` was given. */
  readonly shown?: CapturedOutput;
  /** What no {@link BrokerApi.readRun} has given of it; absent when nobody has read. */
  readonly unread?: string;
  readonly durationMs: number;
}

export interface SpawnFailure {
  readonly spawnError: string;
  readonly spawnCode?: 'SANDBOX_UNAVAILABLE';
}

export type BackgroundStatus =
  | { readonly state: 'running' }
  | { readonly state: 'exited'; readonly exitCode: number | null; readonly signal: string | null };

export interface BackgroundOutput extends ControlNews {
  /** What came since the last read, bounded. */
  readonly text: string;
  readonly droppedBytes: number;
  readonly status: BackgroundStatus;
  readonly spillPath?: string;
}

/** `NOT_FOUND` and `FOREIGN` (another session's task) are answers, not throws. */
export type TaskAnswer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly code: 'NOT_FOUND' | 'FOREIGN' };

export interface BrokerApi extends SubagentApi, McpApi {
  /** Runs to the end. Fulfils after the process group is proven gone; never rejects for what the command did. */
  run(request: RunRequest): Promise<RunResult>;
  /**
   * What a run has written since the last call. Waits up to `waitMs` for more, or for the end. `undefined` for a run that is
   * not there, or that shows nothing. Each byte is given once, by this or as the `unread` part of the result.
   */
  readRun(owner: string, runId: string, waitMs: number): Promise<RunOutput | undefined>;
  /** Ends a run: TERM, a short grace, KILL to its group. Unknown ids are ignored. */
  cancelRun(owner: string, runId: string): Promise<void>;
  startBackground(spec: CommandSpec): Promise<BackgroundStarted | SpawnFailure>;
  readBackground(owner: string, taskId: string, waitMs: number): Promise<TaskAnswer<BackgroundOutput>>;
  killBackground(owner: string, taskId: string): Promise<TaskAnswer<BackgroundStatus & ControlNews>>;
  /** How many background tasks of the owner still run. */
  countBackground(owner: string): Promise<number>;
  /** Whether a command can be started without a network here. */
  canCutNetwork(): Promise<boolean>;
  /** What commands are kept in here. Found by a real try at the first call. Never rejects by itself. */
  sandboxState(): Promise<SandboxState>;
  /**
   * What `owner` starts from now on carries the mark of `parent`, and of that one's parents, too: whoever clears up behind a
   * server that was killed finds it by either. Holds until the owner is released.
   */
  adopt(owner: string, parent: string): Promise<void>;
  /** Ends every process of the owner and proves it; its subagents with short graces. */
  releaseOwner(owner: string): Promise<void>;
  /** The same, but for its MCP servers: the session may come back soon, and they are kept for a while. */
  parkOwner(owner: string): Promise<void>;
  /** Ends every process there is and proves it; later calls are refused. */
  shutdown(): Promise<void>;
}

/** main → broker thread, plain messages on its parent port. */
export interface BrokerConnect {
  readonly kind: 'connect';
  readonly port: import('node:worker_threads').MessagePort;
}

/** broker thread → main: process groups, so that main can end them should the broker itself die. */
export type BrokerNotice =
  | { readonly kind: 'group-started'; readonly pgid: number; readonly owner: string }
  | { readonly kind: 'group-ended'; readonly pgid: number }
  | { readonly kind: 'sandbox-found'; readonly state: SandboxState };

/** What the broker thread is started with. */
export interface BrokerThreadData {
  /** Unique to this server process; every child carries it in its environment. */
  readonly mark: string;
  /** Environment variables that children never get, whatever they are called: the one that holds the model's key. */
  readonly withheldVariables: readonly string[];
  readonly sandbox: SandboxSettings;
  /** Where {@link BrokerApi.sandboxState} is left for session threads; see `sandbox-slot`. */
  readonly sandboxSlot: SharedArrayBuffer;
  /** Memory of a `SpawnGate`, which every start of a child goes through. */
  readonly spawnGate: SharedArrayBuffer;
  /** Absolute directories of this program's own state and settings. */
  readonly ownDirectories: readonly string[];
  /** Those without a command are not the broker's. May hold secrets. */
  readonly subagents: readonly SubagentProvider[];
  /** How this server calls itself towards its subagents. */
  readonly agentInfo: { readonly name: string; readonly version: string };
}
