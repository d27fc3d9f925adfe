/**
 * What a client may ask of one session or one prompt beyond ACP: the checked content of `_meta["dsh-acp"]` in
 * `session/new`, `session/load`, `session/resume` and `session/prompt`. Plain data.
 */
import type { JsonObject } from './errors.ts';
import type { PermissionMode } from './events.ts';
import type { PolicyRules } from './policy-rules.ts';

/** Limits that a client sets. A member that is absent limits nothing; the server's own limits hold beside it. */
export interface Budget {
  /** Epoch milliseconds at which the work must have ended. ISO 8601 on the wire. */
  readonly deadline?: number;
  readonly maxWallMs?: number;
  readonly maxSteps?: number;
  readonly maxToolCalls?: number;
  /** Input, cache reads included, and output. */
  readonly maxTokens?: number;
  /** US dollars, by the prices that hold. */
  readonly maxCostUsd?: number;
}

/** How a model draws its words. A member that is absent is not sent: the provider's own default holds then. */
export interface Sampling {
  readonly temperature?: number;
  readonly topP?: number;
  /** Providers take it as a wish: equal seeds make equal answers likely, not certain. */
  readonly seed?: number;
}

/** US dollars per million tokens. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
}

/** Those of the provider's peak hours, which are the dearest; alone where the time makes no difference. */
export interface Prices extends TokenPrices {
  /** Holds outside of the peak hours. */
  readonly offPeak?: TokenPrices;
}

/** Kept in the log's header: they hold for the session wherever it is attached later. */
export interface StoredSessionOptions {
  /** Of all turns of the session together. */
  readonly budget?: Budget;
  /** Holds beside the server's own policy; where both speak, the stricter word counts. */
  readonly policy?: PolicyRules;
  /** Stands behind the instructions to the model. */
  readonly persona?: string;
  /** The only tools the session has, by name. */
  readonly tools?: readonly string[];
  /** JSON Schema that the final answer of each turn must meet. */
  readonly outputSchema?: JsonObject;
  /** How many delegations stand above this session; `0` for one that a client opened itself. */
  readonly depth?: number;
  /** The depth at which nothing may be delegated any more; a provider's own `max_depth` can only be lower. */
  readonly maxDepth?: number;
  /** Laid over the server's own, member by member. */
  readonly sampling?: Sampling;
  /** What the session starts in; later changes are in the log. */
  readonly mode?: PermissionMode;
}

export interface SessionOptions extends StoredSessionOptions {
  /** Laid over the environment of commands. May hold secrets: never logged, and to be given again with a load or resume. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface PromptOptions {
  /** Of this turn alone. */
  readonly budget?: Budget;
  /** Idempotence: a prompt with a key that the session has seen is never run again. */
  readonly key?: PromptKey;
  /** Higher goes first where turns or model calls wait; `0` by default, from -100 to 100. */
  readonly priority?: number;
  /** W3C trace context of the caller. */
  readonly traceparent?: string;
  /** Under which the prompt is logged; a fresh one when absent. */
  readonly messageId?: string;
}

export interface PromptKey {
  /** The client's own word, 1 to 200 characters. */
  readonly id: string;
  /** SHA-256 of the prompt's content: the same key with another one is a mistake of the client. */
  readonly payload: string;
}
