/** MCP servers that clients give to sessions: `[mcp]`. */
import type { KeySpec } from '../key-spec.ts';
import { milliseconds } from '../value-types.ts';

export const mcpKeys = {
  mcp_connect_timeout_ms: {
    section: 'mcp',
    type: milliseconds(100, 600_000),
    default: 30_000,
    doc: 'From the start of an MCP server to its list of tools. Nobody waits for it but the first turn.',
  },
  mcp_first_wait_ms: {
    section: 'mcp',
    type: milliseconds(0, 60_000),
    default: 2_000,
    doc: 'How long the first turn waits for MCP servers that are still being connected to; their tools are added later then.',
  },
  mcp_call_timeout_ms: {
    section: 'mcp',
    type: milliseconds(100, 86_400_000),
    default: 120_000,
    doc: 'Time limit of one call of an MCP tool.',
  },
  mcp_idle_ms: {
    section: 'mcp',
    type: milliseconds(0, 86_400_000),
    default: 600_000,
    doc: 'How long a session that has left its thread keeps its MCP servers, of at most 32 such sessions; 0 ends them with the thread, and starts none before the first prompt.',
  },
} as const satisfies Record<string, KeySpec>;
