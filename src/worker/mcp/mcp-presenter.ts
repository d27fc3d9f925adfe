/**
 * How calls of MCP tools are shown: live, and again from a log, where no server is there to ask. What the log says of the
 * tools is enough for that. Pure.
 */
import type { JsonValue } from '../../shared/errors.ts';
import type { EventInput, McpToolNote } from '../../shared/events.ts';
import type { RenderKind, ToolCallView, ToolResultView } from '../../shared/render-intents.ts';
import type { McpToolInfo } from '../../shared/mcp-protocol.ts';
import { fencedText } from '../display/fenced-text.ts';
import { sliceWhole, titleLine } from '../display/title-line.ts';
import type { AnyTool } from '../tools/tool.ts';
import { mcpPrefix } from './tool-names.ts';

type Presenter = Pick<AnyTool, 'presentCall' | 'presentResult'>;

/** Arguments that say best what a call is about, the best first. */
const salientNames = ['path', 'file', 'file_path', 'filename', 'uri', 'url', 'query', 'q', 'name', 'title', 'id', 'command', 'text'];
const longestSalient = 80;
const longestArguments = 8 * 1024;

/** `server` and `tool` as they call themselves. */
export function mcpPresenter({ server, tool, kind }: { server: string; tool: string; kind: RenderKind }): Presenter {
  return {
    presentCall: (args): ToolCallView => {
      const salient = salientArgument(args);
      const title = `${titleLine(server, 'MCP')}: ${titleLine(tool, 'tool')}${salient === '' ? '' : ` (${salient})`}`;
      return { card: 'generic', title, kind, rawInput: args as JsonValue, content: argumentsText(args) };
    },
    presentResult: (_args, outcome): ToolResultView => ({ card: 'generic', content: [outcome.text] }),
  };
}

/** What the server hints at, for the icon alone. That a tool only reads is not taken from it: some clients allow reads unseen. */
export function kindOf(hints: McpToolInfo['hints']): 'fetch' | 'other' {
  return hints.destructive !== true && hints.openWorld === true ? 'fetch' : 'other';
}

/** Whoever is asked must see what the tool is to be given, and many clients show the text of a card alone. */
function argumentsText(args: unknown): string[] {
  const text = JSON.stringify(args, null, 2) ?? '';
  if (text === '{}') return [];
  return [
    fencedText(
      text.length <= longestArguments ? text : `${sliceWhole(text, longestArguments)}… (${text.length} characters in all)`,
      'json',
    ),
  ];
}

function salientArgument(args: unknown): string {
  if (typeof args !== 'object' || args === null) return '';
  const entries = Object.entries(args).filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].trim() !== '');
  const named = salientNames.map((name) => entries.find(([key]) => key === name)).find((entry) => entry !== undefined);
  const [, value] = named ?? entries[0] ?? ['', ''];
  const line = titleLine(value);
  return line.length <= longestSalient ? line : `${titleLine(line.slice(0, longestSalient - 1))}…`;
}

/** The presenters of a session's log, by the model's names for the tools. */
export class McpPresenters {
  readonly #known = new Map<string, Presenter>();

  /** All events of the log, in order; others than those of servers are no concern of it. */
  observe(event: EventInput): void {
    if (event.type !== 'mcp/status') return;
    const { name: server, tools = [] } = event.data;
    for (const note of tools) this.#known.set(note.name, presenterOf(server, note));
  }

  /** Also for a tool that the log says nothing of, as long as its name is that of one. */
  get(name: string): Presenter | undefined {
    const known = this.#known.get(name);
    if (known !== undefined || !name.startsWith(mcpPrefix)) return known;
    const [server = '', ...tool] = name.slice(mcpPrefix.length).split('__');
    return mcpPresenter({ server, tool: tool.join('__'), kind: 'other' });
  }
}

function presenterOf(server: string, { tool, kind }: McpToolNote): Presenter {
  // Logs of earlier releases have hints to reading.
  return mcpPresenter({ server, tool, kind: kind === 'fetch' ? 'fetch' : 'other' });
}
