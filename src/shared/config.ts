/**
 * The settings of a running server, resolved: every value is present and checked.
 *
 * The schema, the defaults, the flags, the variables and the TOML keys stand together in `src/main/config/`. Threads get
 * the parts they need as plain data.
 */
import type { PermissionMode } from './events.ts';

export type Profile = 'editor' | 'automation';
export type Isolation = 'dedicated' | 'strict' | 'shared';
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
      /** Until the first byte of the answer's body. */
      readonly firstByteTimeoutMs: number;
      /** Between two deltas; keep-alive comments do not count. */
      readonly idleTimeoutMs: number;
      readonly maxRetries: number;
    };

/** Limits of one turn. `0` means no limit. */
export interface TurnBudget {
  readonly maxSteps: number;
  readonly maxToolCalls: number;
  /** Input and output tokens of all steps together. */
  readonly maxTokens: number;
  readonly maxWallMs: number;
}

/** What a session thread needs to host a session. Plain data. */
export interface SessionSettings {
  readonly profile: Profile;
  readonly model: ModelConfig;
  readonly systemPrompt: string | undefined;
  readonly mode: PermissionMode;
  /** `0` waits for as long as the client takes. */
  readonly permissionTimeoutMs: number;
  readonly budget: TurnBudget;
  readonly maxParallelToolCalls: number;
  /** Default time limit of one command. */
  readonly commandTimeoutMs: number;
  /** Absolute path of the ripgrep binary; `undefined` when it is not installed. */
  readonly ripgrepPath: string | undefined;
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
  readonly stateDir: string;
  readonly agentName: string;
  readonly agentVersion: string;
  readonly logLevel: LogLevel;
  readonly session: SessionSettings;
}
