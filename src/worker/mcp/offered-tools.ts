/**
 * Which tools of a session's MCP servers its model is offered, and under which names. Pure: the same servers give the same
 * tools under the same names, whatever came first.
 */
import type { McpLeftOut, McpServerStatus, McpToolInfo } from '../../shared/mcp-protocol.ts';
import { toolName } from './tool-names.ts';

/** Of all servers together: some providers refuse a request with more than 128. */
const mostTools = 100;
/** Of all schemas and descriptions together, in UTF-16 units: every request carries them. */
const mostChars = 256 * 1024;

export interface OfferedTool {
  /** The model's name for it. */
  readonly name: string;
  readonly server: string;
  readonly info: McpToolInfo;
}

export interface OfferedTools {
  readonly tools: readonly OfferedTool[];
  /** By server. */
  readonly leftOut: ReadonlyMap<string, readonly McpLeftOut[]>;
}

/** @param partOf the part that a server has in the names of its tools */
export function offeredTools(servers: readonly McpServerStatus[], partOf: (server: string) => string): OfferedTools {
  const tools = new Map<string, OfferedTool>();
  const leftOut = new Map<string, McpLeftOut[]>();
  let chars = 0;
  for (const { name: server, tools: infos } of servers) {
    for (const info of infos) {
      const name = toolName(partOf(server), info.name, tools);
      const size = JSON.stringify(info.parameters).length + info.description.length;
      const why = reasonAgainst(name, tools.size, chars + size);
      if (name === undefined || why !== undefined) {
        leftOut.set(server, [...(leftOut.get(server) ?? []), { tool: info.name, why: why ?? '' }]);
        continue;
      }
      chars += size;
      tools.set(name, { name, server, info });
    }
  }
  return { tools: [...tools.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), leftOut };
}

function reasonAgainst(name: string | undefined, count: number, chars: number): string | undefined {
  if (name === undefined) return 'no name is left for it';
  if (count >= mostTools) return `a session may have ${mostTools} tools of MCP servers`;
  return chars > mostChars ? `the tools of MCP servers may take ${mostChars} characters together` : undefined;
}
