/**
 * What ran in undone turns beside the file tools, in words: whatever that changed stays changed, and whoever undoes must know.
 */
import { titleLine } from '../display/title-line.ts';
import type { ToolAccess } from '../tools/tool.ts';
import type { StartedCall } from './log-timeline.ts';

/** Each is at most a title long, and says the same thing once. */
export function workNotUndone(
  started: readonly StartedCall[],
  accessOf: (toolName: string, args: unknown) => ToolAccess | undefined,
): string[] {
  const open = started.filter(({ recorded }) => !recorded);
  return [...new Set(open.flatMap((call) => wordsFor(call, accessOf) ?? []))];
}

function wordsFor(
  { name, arguments: text, failed }: StartedCall,
  accessOf: (toolName: string, args: unknown) => ToolAccess | undefined,
): string | undefined {
  const access = accessIn(text, (args) => accessOf(name, args));
  switch (access?.kind) {
    case 'none':
    case 'read':
      return undefined;
    // Nothing was kept before the change.
    case 'write':
      return failed ? undefined : titleLine(`${name} ${access.paths.join(', ')}`);
    case 'execute':
      return titleLine(access.command, name);
    case 'delegate':
      return titleLine(`the subagent ${access.provider}`);
    case 'mcp':
      return titleLine(`${access.tool} of the MCP server ${access.server}`);
    case undefined:
    default:
      return titleLine(name, 'a tool');
  }
}

function accessIn(text: string, accessOf: (args: unknown) => ToolAccess | undefined): ToolAccess | undefined {
  try {
    return accessOf(JSON.parse(text));
  } catch {
    return undefined; // Its tool is gone, or takes other arguments now.
  }
}
