/**
 * What main and a session thread say to each other.
 *
 * Four lanes:
 * - the piscina task: one per attached session; it settles when the session leaves its thread;
 * - the session port: comlink calls of main to the session ({@link SessionApi}); its first message is {@link SessionStarted};
 * - the data port, one per thread: batches of finished ndjson with the completions behind them, and credit back;
 * - the control port, one per thread: comlink calls of the thread to main ({@link MainServices}).
 *
 * A completion travels behind the text of its turn on the data port, so a prompt's response cannot overtake its updates.
 */
import type { MessagePort } from 'node:worker_threads';
import type { SessionSettings } from './config.ts';
import type { JsonValue, WireError } from './errors.ts';
import type { BudgetName, PermissionMode, PromptBlock, TurnUsage } from './events.ts';
import type { McpServerSpec } from './mcp-protocol.ts';
import type { ModelSlot, ModelSlotServices, SlotRelease } from './model-slots.ts';
import type { Chosen, SessionChoices } from './session-choices.ts';
import type { Budget, PromptOptions, SessionOptions } from './session-options.ts';
import type { SandboxSettings } from './sandbox.ts';
import type { SubagentActivity, SubagentApi } from './subagent-protocol.ts';
import type { TraceServices } from './turn-trace.ts';
import type { RewindMade, RewindRequest } from './undo-protocol.ts';

/** The payload of a piscina task. */
export interface SessionTask {
  readonly sessionId: string;
  /** Canonical; the same as in the log's header. */
  readonly cwd: string;
  readonly logPath: string;
  readonly lockPath: string;
  /** Absolute directories of this program's own state and settings, which tools may not change unasked. */
  readonly ownDirectories: readonly string[];
  /** The lasting answers about the workspace; absent where none are heeded. `refusals` heeds what was refused, and keeps nothing. */
  readonly grants?: { readonly path: string; readonly use: 'answers' | 'refusals' };
  /** Where outputs too large for a result go. Absolute; made when first needed. */
  readonly spillDir: string;
  /** What its commands are to be kept in, and where the broker says what they are: see `sandbox-slot`. */
  readonly sandbox?: Pick<SandboxSettings, 'use' | 'network'> & { readonly slot: SharedArrayBuffer };
  readonly isolation: 'dedicated' | 'strict' | 'shared';
  /** Names this server process in lock files. */
  readonly serverNonce: string;
  readonly settings: SessionSettings;
  /** What the client asked for; those of the log's header are among them. */
  readonly options: SessionOptions;
  /** What a session that has no event yet begins with; what is chosen later is in its log. */
  readonly choices?: SessionChoices;
  /** The `cwd` as the client calls it, which may be another way to it. */
  readonly givenCwd?: string;
  /** Canonical directories beside the `cwd` that belong to the workspace now; given with each new, load, resume and fork. */
  readonly additionalDirectories?: readonly string[];
  /** Servers whose tools the session gets; given with each new, load, resume and fork. May hold secrets: never logged. */
  readonly mcpServers?: readonly McpServerSpec[];
  /** Works for a session of this server: its updates go to no client, and what it does is reported to main. */
  readonly audience?: 'parent';
  /** Ids of calls that the client was shown by threads which the session has lost: no other call may have them. */
  readonly lostCallIds?: readonly string[];
  /** Sends the log and follows it; takes no lock and writes nothing. */
  readonly readOnly?: true;
  /** It was on a thread before, and the client has not opened it anew since. */
  readonly isBack?: true;
  /** `_meta.terminal_output` and the like, fixed when the session is attached. */
  readonly client: ClientTraits;
  /** One Int32, set by main when it waits for this attach no longer: from then on another thread may have the log. */
  readonly givenUp?: SharedArrayBuffer;
  readonly port: MessagePort;
}

/** What the client said of itself. A member that is absent is not supported. */
export interface ClientTraits {
  /** Shows commands as terminals of its own (`_meta.terminal_output`). */
  readonly terminalOutput: boolean;
  /** `fs/read_text_file`: it may hold a version of a file that is not on the disk. */
  readonly readTextFile?: boolean;
  readonly writeTextFile?: boolean;
  /** `elicitation/create` with forms. */
  readonly elicitationForm?: boolean;
  readonly booleanOptions?: boolean;
  readonly notices?: boolean;
  readonly compaction?: boolean;
}

/** First message on the session port. `ports` is present when the session is the first one on its thread. */
export type SessionStarted =
  | {
      readonly kind: 'started';
      readonly threadId: number;
      readonly ports?: ThreadPorts;
      /** Events in the log, header not counted. */
      readonly eventCount: number;
      /** As the log has it. */
      readonly chosen: Chosen;
    }
  | { readonly kind: 'refused'; readonly error: WireError };

export interface ThreadPorts {
  readonly data: MessagePort;
  readonly control: MessagePort;
  readonly broker: MessagePort;
  /**
   * Three Int32: one that the thread increments every {@link heartbeatMs} while it has turns, with it the KB of its heap and buffers,
   * and the number that the system gave the thread, or 0.
   */
  readonly heartbeat: SharedArrayBuffer;
}

export const heartbeatMs = 200;

/** Bytes of updates a thread may have unwritten before its sessions stop reading their models. */
export const threadCreditBytes = 256 * 1024;
/** Main returns credit in pieces of this size, so that a return does not cost a message per batch. */
export const creditReturnBytes = 64 * 1024;
/** A batch leaves at this many frames or bytes, else at the end of the event-loop turn. */
export const batchFrames = 64;
export const batchBytes = 32 * 1024;

/** Thread → main on the data port. */
export interface DataBatch {
  /** Counts from 1 per thread. */
  readonly batch: number;
  /** Finished frames, each ended by LF. */
  readonly text: string;
  readonly bytes: number;
  readonly frames: number;
  /** Tool cards that these frames open or bring to their terminal status, in order. */
  readonly cards: readonly CardChange[];
  readonly completions: readonly Completion[];
  /** Places at the model's provider that are free again. They travel here because nobody waits for an answer. */
  readonly released?: readonly SlotRelease[];
}

/** Lets main close the cards of a thread that dies in the middle of a call. */
export interface CardChange {
  readonly sessionId: string;
  readonly callId: string;
  readonly open: boolean;
  /** Its terminal runs until it is told to have exited. */
  readonly terminal?: true;
}

/** Main → thread on the data port. */
export interface CreditReturn {
  readonly credit: number;
}

/** The end of something main waits for. `requestId` is main's own number for it. */
export type Completion =
  | { readonly kind: 'turn'; readonly sessionId: string; readonly requestId: number; readonly outcome: TurnOutcome }
  | { readonly kind: 'loaded'; readonly sessionId: string; readonly requestId: number; readonly outcome: LoadOutcome };

export type TurnOutcome =
  | {
      readonly ok: true;
      readonly stopReason: 'end_turn' | 'max_tokens' | 'max_turn_requests' | 'refusal' | 'cancelled';
      readonly usage: TurnUsage;
      /** The turn's last message; only where the profile answers with it. */
      readonly text?: string;
      /** The answer that met the session's output schema. */
      readonly structured?: JsonValue;
      /** The budget that ended the turn. */
      readonly spent?: { readonly budget: BudgetName; readonly scope: 'turn' | 'session' };
      /** What is left of the budgets that the client gave, the tighter of turn and session. */
      readonly left?: Budget;
      /** The turn ended earlier: this is what the log says of it, and nothing was run. */
      readonly stored?: true;
    }
  | {
      readonly ok: false;
      readonly error: WireError;
      /** What the turn used before it failed; absent when none had begun. */
      readonly usage?: TurnUsage;
      /** As far as it came; only where the profile answers with text. */
      readonly text?: string;
      readonly stored?: true;
    };

export type LoadOutcome = { readonly ok: true; readonly chosen: Chosen } | { readonly ok: false; readonly error: WireError };

/** What main calls on an attached session. */
export interface SessionApi {
  /**
   * Starts a turn. Fulfils once accepted; the end comes as a completion. One turn at a time: main keeps the queue.
   *
   * @param slot for the first call of the model; what does not take it gives it back, where this fulfils
   */
  prompt(requestId: number, content: readonly PromptBlock[], options: PromptOptions, slot?: ModelSlot): Promise<void>;
  /**
   * Puts a message into the turn of `requestId` at its next step. `messageId` names it in the log.
   *
   * @throws ServerError INVALID_PARAMS when the session has a message of this id already
   */
  steer(requestId: number, content: readonly PromptBlock[], messageId: string): Promise<SteerOutcome>;
  /**
   * Goes back to before the prompt of a message. For while no prompt runs, and none is started.
   *
   * @throws ServerError SESSION_BUSY, INVALID_PARAMS, LOG_WRITE_FAILED
   */
  rewind(request: RewindRequest): Promise<RewindMade>;
  /** Cancels the running turn, if `requestId` is the running one or omitted. */
  cancel(requestId?: number): Promise<void>;
  /** Effective from the next call of a tool. @throws ServerError LOG_WRITE_FAILED */
  setMode(mode: PermissionMode): Promise<ChoiceMade>;
  /** Members that are absent stay as they are. Effective from the next step. @throws ServerError LOG_WRITE_FAILED */
  setChoices(choices: SessionChoices): Promise<ChoiceMade>;
  /** Sends the whole log as updates, then a `loaded` completion. */
  replay(requestId: number): Promise<void>;
  /**
   * Puts a session that works for this one on this one's thread, which its port is handed to. Fulfils when that session has left.
   */
  host(task: SessionTask): Promise<void>;
  /** Ends the running turn with SESSION_MEMORY: the process or the thread has come to its bound. Without a turn it does nothing. */
  endForMemory(message: string): Promise<void>;
  /** Leaves the thread if idle and without background work; the piscina task then settles. Says whether it left. */
  park(): Promise<boolean>;
  /** Ends the turn as `disposed`, flushes the log, frees the lock and every process; the piscina task then settles. */
  dispose(): Promise<void>;
}

export interface ChoiceMade {
  readonly chosen: Chosen;
  /** The batch that tells the client: main writes that one before it answers. */
  readonly afterBatch: number;
}

/** `full`: too many wait for the next step. `not-running`: the turn has ended, or is none that a person could speak into. */
export type SteerOutcome = 'injected' | 'full' | 'not-running';

export interface PermissionRequest {
  readonly sessionId: string;
  /** Unique per session; names the request in `withdrawPermission`. */
  readonly requestKey: string;
  /** The `session/request_permission` params, ready for the wire. */
  readonly params: object;
  /** The batch that holds the call's `tool_call` update: main writes that one first. */
  readonly afterBatch: number;
  /** The call may have ended long before: what asks was started by it and goes on. */
  readonly outlivesCall?: true;
}

/** `unavailable`: the client failed, is gone, or answered with something that was not offered. */
export type PermissionAnswer =
  | { readonly outcome: 'selected'; readonly optionId: string }
  | { readonly outcome: 'cancelled' | 'unavailable' };

/** A request to the client in the name of a session, other than a permission. */
export interface ClientRequest {
  readonly sessionId: string;
  /** Unique per session; names the request in `withdrawClientRequest`. */
  readonly requestKey: string;
  readonly method: 'fs/read_text_file' | 'fs/write_text_file' | 'elicitation/create';
  /** Ready for the wire; its `sessionId` is the one above. */
  readonly params: object;
  /** The batch that must be on the wire before it; `0` for none. */
  readonly afterBatch: number;
  /** `0` waits for as long as the client takes. */
  readonly timeoutMs: number;
}

/** `result` is what the client sent, unchecked. `code` is JSON-RPC's. */
export type ClientAnswer =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'error'; readonly code: number; readonly message: string }
  /** The client is gone, does not have the method, did not answer in time, or the request was taken back. */
  | { readonly kind: 'unavailable' | 'withdrawn' | 'timeout' };

/** What a session thread calls on main. */
/** The {@link SubagentApi} is that of the provider `self`. */
export interface MainServices extends ModelSlotServices, TraceServices, SubagentApi {
  requestPermission(request: PermissionRequest): Promise<PermissionAnswer>;
  /** The turn was cancelled: `$/cancel_request` goes to the client and a late answer is dropped. */
  withdrawPermission(sessionId: string, requestKey: string): Promise<void>;
  /** Asks the client. Fulfils always; several may be open at once, answered in any order. Only for what {@link ClientTraits} allows. */
  askClient(request: ClientRequest): Promise<ClientAnswer>;
  /** `$/cancel_request` goes to the client and a late answer is dropped. Unknown keys are ignored. */
  withdrawClientRequest(sessionId: string, requestKey: string): Promise<void>;
  /** What a session does that works for another one of this server. */
  reportSubagentActivity(sessionId: string, activities: readonly SubagentActivity[]): Promise<void>;
  /** A session has changed what is chosen for it by itself: a plan was approved, a command was typed. */
  reportChosen(sessionId: string, chosen: Chosen): Promise<void>;
  /** What a session holds now, in bytes; told when it has changed by a megabyte. */
  reportMemory(sessionId: string, bytes: number): Promise<void>;
  /** A line for stderr, subject to the log level. */
  log(level: 'error' | 'warn' | 'info' | 'debug', message: string): Promise<void>;
}
