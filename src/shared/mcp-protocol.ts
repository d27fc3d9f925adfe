/**
 * MCP servers of a session: what a client gives to reach one. The connections live in the broker, which owns processes.
 */

export type McpServerSpec =
  | {
      readonly type: 'stdio';
      readonly name: string;
      /** Absolute. */
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
