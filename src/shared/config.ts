/**
 * The settings of a running server, resolved: every value is present and checked.
 *
 * The schema, the defaults, the flags, the variables and the TOML keys stand together in `src/main/config/`. Threads get
 * the parts they need as plain data.
 */
import type { PermissionMode } from './events.ts';
import type { McpTimes } from './mcp-protocol.ts';
import type { PolicyRules } from './policy-rules.ts';
import type { SandboxSettings } from './sandbox.ts';
import type { Prices, Sampling } from './session-options.ts';
import type { SubagentProvider } from './subagent-protocol.ts';

export type Profile = 'editor' | 'automation';
export type Isolation = 'dedicated' | 'strict' | 'shared';
/** `model` falls back on the prompt wherever the model cannot be asked, or gives nothing of use. */
export type TitleSource = 'prompt' | 'model' | 'off';
export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug';

/** Which model answers, and how to reach it. Holds a key: never log or echo it. */
export type ModelConfig =
  | { readonly kind: 'scripted' /** Milliseconds between streamed words. */; readonly paceMs: number }
  | { readonly kind: 'replay' /** Absolute path of a recorded stream. */; readonly path: string }
  | {
      readonly kind: 'openai-compatible';
      /** `deepseek` sends DeepSeek's thinking fields; `generic` sends only what every server takes. */
      readonly dialect: 'deepseek' | 'generic';
      readonly baseUrl: string;
      readonly model: string;
      readonly apiKey: string | undefined;
      readonly contextWindow: number;
      readonly maxOutputTokens: number;
      readonly thinking: 'off' | 'low' | 'high' | 'max';
      /** Whether prompts may hold images; absent goes by what is known of the model's name. See `model-images.ts`. */
      readonly images?: 'on' | 'off';
      /** Of sessions that say nothing else; absent sends nothing. */
      readonly sampling?: Sampling;
      /** Until the first byte of the answer's body. */
      readonly firstByteTimeoutMs: number;
      /** Between two deltas; keep-alive comments do not count. */
      readonly idleTimeoutMs: number;
      readonly maxRetries: number;
      /** A provider that wants to be left alone for longer is not called again for this answer. */
      readonly maxRetryAfterMs: number;
    };

export interface OfferedModel {
  /** As it is sent. */
  readonly name: string;
  /** `undefined` when nobody said what its tokens cost. */
  readonly prices?: Prices | undefined;
}

/** The server's own limits of one turn; a client's come on top. `0` means no limit. */
export interface TurnBudget {
  readonly maxSteps: number;
  readonly maxToolCalls: number;
  /** Input and output tokens of all steps together. */
  readonly maxTokens: number;
  /** US dollars. */
  readonly maxCostUsd: number;
  readonly maxWallMs: number;
}

/** Of the MCP servers that clients give to sessions. `firstWaitMs`: how long the first turn waits for those that are being connected to. */
export interface McpSettings extends McpTimes {
  readonly firstWaitMs: number;
}

/** What a session thread needs to host a session. Plain data. */
export interface SessionSettings {
  readonly profile: Profile;
  readonly model: ModelConfig;
  /** What a client may choose beside the configured model, at the same server; absent leaves no choice. */
  readonly models?: readonly OfferedModel[];
  readonly systemPrompt: string | undefined;
  /** Whether the model is given the instruction files of the workspace. */
  readonly instructions: 'auto' | 'off';
  /** The instruction file of the person who runs the server, absolute; it need not exist. `undefined` for a user without a home. */
  readonly userInstructions: string | undefined;
  /** Absolute directory of the person's own slash commands, for every workspace. */
  readonly userCommands?: string | undefined;
  /** Whether files go through a client that offers to read and to write them. */
  readonly clientFiles: 'auto' | 'off';
  /** What a session is called after its first turn. */
  readonly titles: TitleSource;
  readonly mode: PermissionMode;
  /** `0` waits for as long as the client takes. */
  readonly permissionTimeoutMs: number;
  readonly budget: TurnBudget;
  /** What the session may hold in its thread; absent bounds it by what each part is bound to. */
  readonly maxSessionBytes?: number;
  readonly maxParallelToolCalls: number;
  /** Frames of streamed text a second and session; `0` sends it as it comes. */
  readonly maxUpdatesPerSecond: number;
  /** Default time limit of one command. */
  readonly commandTimeoutMs: number;
  readonly mcp: McpSettings;
  /** Absolute path of the ripgrep binary; `undefined` when it is not installed. */
  readonly ripgrepPath: string | undefined;
  /** The rules of unattended work; `undefined` leaves everything to the mode. */
  readonly policy: PolicyRules | undefined;
  /** `undefined` when nobody said what tokens cost: then no cost is counted, and a cost budget is refused. */
  readonly prices: Prices | undefined;
  /** Values of this server's own environment that are secrets: in nothing that is logged or shown. Never log or echo them. */
  readonly environmentSecrets?: readonly string[];
  /** The agents that this one may delegate to; without any there is no `subagent` tool. */
  readonly subagents: readonly SubagentProvider[];
  /** What an undo knows of beside the conversation: what file tools change, also what commands change, or nothing. */
  readonly undo: 'files' | 'workspace' | 'off';
  /** Whether turns are traced for OpenTelemetry. */
  readonly trace: boolean;
}

/** The settings of a session that hang on the key to its model. Holds a key: never log or echo it. */
export type ModelAccess = Pick<SessionSettings, 'model' | 'models' | 'prices'>;

/** How many model calls run at once over all sessions, by provider key. */
export interface LimiterConfig {
  readonly maxConcurrency: number;
  /** Calls at once at the start and after an overload; grows with every success. */
  readonly slowStart: number;
  /** The longest time for which a provider's wish holds all calls back. */
  readonly maxPauseMs: number;
}

export interface ServerConfig {
  readonly profile: Profile;
  readonly isolation: Isolation;
  readonly maxThreads: number;
  /** Idle threads kept ready in `dedicated` and `strict`. */
  readonly spareThreads: number;
  readonly maxRunningTurns: number;
  readonly overlap: 'queue' | 'reject';
  readonly maxQueuedPrompts: number;
  readonly maxFrameBytes: number;
  /** An idle session leaves its thread after this long; `0` keeps it until the thread is wanted. */
  readonly parkAfterMs: number;
  readonly attachTimeoutMs: number;
  /** A thread that has turns and shows no heartbeat for this long is ended. */
  readonly stuckThreadMs: number;
  /** From `session/cancel` to the end of a thread that does not react. */
  readonly cancelGraceMs: number;
  readonly shutdownGraceMs: number;
  /** A client that reads nothing for this long is taken as gone. */
  readonly stalledReaderMs: number;
  /** Heap and buffers of one session thread. */
  readonly maxThreadBytes: number;
  /** Resident memory of the process. */
  readonly maxRssBytes: number;
  readonly stateDir: string;
  /** Of the commands of all sessions. */
  readonly sandbox: SandboxSettings;
  /** Every session is only looked at. */
  readonly lookOnly: boolean;
  readonly agentName: string;
  readonly agentVersion: string;
  readonly logLevel: LogLevel;
  readonly limiter: LimiterConfig;
  /** Loopback port of the Prometheus endpoint; `undefined` opens none. `0` takes a free one. */
  readonly metricsPort: number | undefined;
  /** A process of its own holds the connection. */
  readonly supervise: boolean;
  /** Within a minute. */
  readonly maxRestarts: number;
  /** Milliseconds; `0` for never. A server below a supervisor that gives no sign of life for so long is killed. */
  readonly stuckServerMs: number;
  /** Base URL of an OTLP/HTTP collector; `undefined` exports nothing. */
  readonly otlpEndpoint: string | undefined;
  readonly session: SessionSettings;
}
