/**
 * Payload of the event that tells what became of an MCP server of the session.
 */
import type { McpToolNote } from './events.ts';

export interface McpEvents {
  /** What became of an MCP server of the session, where that is not what the log said of it last. */
  'mcp/status': {
    /** As the client calls it. */
    readonly name: string;
    /** `failed`: there was no way to it; `ended`: its program is gone, and the next call starts it again. */
    readonly state: 'connected' | 'failed' | 'ended';
    /** When connected. */
    readonly tools?: readonly McpToolNote[];
    /** Tools that are not offered, and why; the first of them. */
    readonly leftOut?: readonly { readonly tool: string; readonly why: string }[];
    /** Why it failed or ended. */
    readonly error?: string;
  };
}
