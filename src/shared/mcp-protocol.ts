/**
 * MCP servers of a session: what a client gives to reach one, and what a session thread asks of the broker, where the
 * connections live, since they are processes and sockets.
 *
 * Everything a server says is untrusted: the broker checks, cleans and bounds it before it crosses a thread.
 */
import type { JsonObject } from './errors.ts';

export type McpServerSpec =
  | {
      readonly type: 'stdio';
      /** Unique in its session. */
      readonly name: string;
      /** Absolute; or a bare name, which is looked up in the absolute directories of PATH that lie outside the workspace. */
      readonly command: string;
      readonly args: readonly string[];
      /** May hold secrets. */
      readonly env: Readonly<Record<string, string>>;
    }
  | {
      readonly type: 'http' | 'sse';
      readonly name: string;
      readonly url: string;
      /** May hold secrets. */
      readonly headers: Readonly<Record<string, string>>;
    };

/** Milliseconds. */
export interface McpTimes {
  /** From the start of a server to its list of tools. */
  readonly connectMs: number;
  /** Of one call. */
  readonly callMs: number;
  /** What a session on no thread keeps its servers for; `0` ends them with the thread. */
  readonly idleMs: number;
}

export interface McpOpenRequest {
  /** The session. */
  readonly owner: string;
  readonly servers: readonly McpServerSpec[];
  /** Canonical directories of the session: the first is where servers are started, all are what they are told as roots. */
  readonly directories: readonly string[];
  readonly times: McpTimes;
  /** Absolute; where results go that are too large. Made when first needed. */
  readonly spillDir: string;
  /** Nobody is there yet to call them: they are started only where there is room for that, and ended when nobody comes. */
  readonly ahead?: true;
}

export type McpServerState = 'connecting' | 'connected' | 'failed' | 'ended';

/** A tool as its server describes it, checked, cleaned and bounded. */
export interface McpToolInfo {
  /** As the server knows it. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly parameters: JsonObject;
  /** What the server says of it. Never a permission. */
  readonly hints: { readonly readOnly?: boolean; readonly destructive?: boolean; readonly openWorld?: boolean };
  /** Changes with the launch definition of its server and with the tool itself; tells nothing of either. */
  readonly print: string;
}

/** A tool that is not offered. Both are fit to be shown. */
export interface McpLeftOut {
  readonly tool: string;
  readonly why: string;
}

export interface McpServerStatus {
  readonly name: string;
  readonly state: McpServerState;
  /** Those of the last list; still there when the server has ended, since a call starts it again. */
  readonly tools: readonly McpToolInfo[];
  readonly leftOut: readonly McpLeftOut[];
  /** Why it failed or ended: for people, without secrets. */
  readonly error?: string;
}

export interface McpNews {
  /** Grows with every change. */
  readonly seq: number;
  /** In the order of the request. */
  readonly servers: readonly McpServerStatus[];
  /** The session has no servers any more: nothing more will come. */
  readonly closed?: true;
}

export interface McpCallRequest {
  readonly owner: string;
  /** Unique per owner; names the call in `cancelMcpCall`. */
  readonly callId: string;
  readonly server: string;
  readonly tool: string;
  readonly args: JsonObject;
}

export type McpCallResult =
  /** `text` is bounded; what did not fit stands whole in the file that it names. */
  | { readonly kind: 'result'; readonly text: string; readonly isError: boolean }
  /** `text` says what happened, for the model. */
  | { readonly kind: 'failed'; readonly code: McpFailureCode; readonly text: string };

export type McpFailureCode = 'MCP_UNAVAILABLE' | 'MCP_FAILED' | 'MCP_TIMEOUT' | 'ABORTED';

export interface McpApi {
  /**
   * Begins to connect to the servers and returns at once. Those that run already with the same definition are kept; all are
   * ended when a definition has changed.
   */
  openMcp(request: McpOpenRequest): Promise<void>;
  /** What has become of the servers: at once when it is newer than `seq`, else at the next change, or after `waitMs`. */
  awaitMcp(owner: string, seq: number, waitMs: number): Promise<McpNews>;
  /** Fulfils always. A server that has ended is started again first, at most once. */
  callMcpTool(request: McpCallRequest): Promise<McpCallResult>;
  /** The server is told; the call fulfils as ABORTED at once. Unknown ids are ignored. */
  cancelMcpCall(owner: string, callId: string): Promise<void>;
}
