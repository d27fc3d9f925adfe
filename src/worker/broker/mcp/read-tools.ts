/**
 * The tools of a server, from the pages of its list: each checked by itself, so that a bad one costs none of the others.
 */
import type { McpLeftOut, McpToolInfo } from '../../../shared/mcp-protocol.ts';
import { checkToolSchema } from './check-schema.ts';
import { cleanText, hidesSomething } from './clean-text.ts';
import { toolPrint } from './launch-print.ts';

/** Of one server; more are left out. */
export const mostToolsPerServer = 100;
/** Pages of one list. */
const mostPages = 20;
const longestName = 128;
const longestDescription = 4000;
const longestCursor = 4096;

export interface ToolList {
  readonly tools: readonly McpToolInfo[];
  readonly leftOut: readonly McpLeftOut[];
}

/** Asks for one page. What comes back is whatever the server sent. */
export type AskForPage = (cursor: string | undefined) => Promise<Readonly<Record<string, unknown>>>;

interface Page {
  readonly tools?: unknown;
  readonly nextCursor?: unknown;
}

/** Rejects as `ask` does, or when the server gives no list. Sorted by name. */
export async function readTools(ask: AskForPage, launch: string): Promise<ToolList> {
  const found = new Map<string, McpToolInfo>();
  const leftOut: McpLeftOut[] = [];
  let cursor: string | undefined;
  let listed = 0;
  for (let page = 0; page < mostPages; page += 1) {
    const { tools, nextCursor }: Page = await ask(cursor);
    if (!Array.isArray(tools)) throw new Error('it gave no list of tools');
    for (const value of tools.slice(0, 10 * mostToolsPerServer)) takeTool(value, launch, found, leftOut);
    listed += tools.length;
    if (typeof nextCursor !== 'string' || nextCursor.length > longestCursor || listed > 10 * mostToolsPerServer) break;
    cursor = nextCursor;
  }
  const sorted = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const over = sorted.slice(mostToolsPerServer);
  if (over.length > 0) leftOut.push({ tool: `${over.length} more`, why: `a server may have ${mostToolsPerServer}` });
  return { tools: sorted.slice(0, mostToolsPerServer), leftOut: bounded(leftOut) };
}

function takeTool(value: unknown, launch: string, found: Map<string, McpToolInfo>, leftOut: McpLeftOut[]): void {
  const { name, description, inputSchema, annotations } = record(value);
  if (typeof name !== 'string' || name === '' || name.length > longestName || hidesSomething(name)) {
    leftOut.push({ tool: shownName(name), why: 'its name is missing, too long, or holds hidden characters' });
    return;
  }
  if (found.has(name)) {
    leftOut.push({ tool: name, why: 'its name comes twice' });
    return;
  }
  const checked = checkToolSchema(inputSchema);
  if (!checked.ok) {
    leftOut.push({ tool: name, why: checked.why });
    return;
  }
  const tool = {
    name,
    description: typeof description === 'string' ? cleanText(description, longestDescription) : '',
    parameters: checked.schema,
    hints: readHints(annotations),
  };
  found.set(name, { ...tool, print: toolPrint(launch, tool) });
}

function readHints(annotations: unknown): McpToolInfo['hints'] {
  const { readOnlyHint, destructiveHint, openWorldHint } = record(annotations);
  return {
    ...(typeof readOnlyHint === 'boolean' ? { readOnly: readOnlyHint } : {}),
    ...(typeof destructiveHint === 'boolean' ? { destructive: destructiveHint } : {}),
    ...(typeof openWorldHint === 'boolean' ? { openWorld: openWorldHint } : {}),
  };
}

const mostLeftOut = 20;

function bounded(leftOut: readonly McpLeftOut[]): McpLeftOut[] {
  if (leftOut.length <= mostLeftOut) return [...leftOut];
  const rest = leftOut.length - mostLeftOut;
  return [...leftOut.slice(0, mostLeftOut), { tool: `${rest} more`, why: 'for such reasons' }];
}

function shownName(name: unknown): string {
  const shown = typeof name === 'string' ? cleanText(name, 60).replaceAll(/[\n\t]/g, ' ') : '';
  return shown === '' ? 'a tool without a name' : shown;
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
