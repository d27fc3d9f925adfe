/**
 * A tool's call view as the members of an ACP tool call. Switches on the view's card; never knows a tool by name.
 */
import { isAbsolute, resolve } from 'node:path';
import type { ToolCall, ToolCallContent, ToolCallLocation } from '@agentclientprotocol/sdk';
import type { JsonValue } from '../../shared/errors.ts';
import type { FileDiff, FileLocation, ToolCallView } from '../../shared/render-intents.ts';
import { fencedText } from '../display/fenced-text.ts';
import { ContentBudget, capJson } from './size-caps.ts';
import { titleLine } from '../display/title-line.ts';

const maxLocations = 64;
/** The protocol counts lines in 32 bits. */
const mostLine = 0xffff_ffff;

export interface CallCardContext {
  readonly callId: string;
  readonly toolName: string;
  /** The session's canonical working directory. */
  readonly cwd: string;
  /** Whether the client draws terminals from `_meta`. */
  readonly terminalOutput: boolean;
  /** The parsed arguments, or their text when they are not JSON. */
  readonly rawInput: JsonValue;
}

/** The members that a `tool_call` and a permission request's `toolCall` share. */
export type CallCard = Pick<ToolCall, 'toolCallId' | 'title' | 'name' | 'kind' | 'content' | 'locations' | 'rawInput' | '_meta'>;

/**
 * Builds the card of a call. Sizes are bounded; paths stay absolute.
 *
 * @throws TypeError when a presenter gave something that is not a view
 */
export function callCard(view: ToolCallView, context: CallCardContext): CallCard {
  const base = {
    toolCallId: context.callId,
    title: titleLine(view.title, toolLabel(context.toolName)),
    name: toolLabel(context.toolName),
  };
  switch (view.card) {
    case 'generic': {
      const budget = new ContentBudget();
      return {
        ...base,
        kind: view.kind ?? 'other',
        ...(view.content === undefined ? {} : { content: view.content.map((text) => textContent(text, budget)) }),
        ...locations(view.locations),
        rawInput: capJson(view.rawInput ?? context.rawInput),
      };
    }
    case 'terminal':
      return { ...base, kind: 'execute', ...terminalContent(view, context), rawInput: capJson(context.rawInput) };
    case 'diff':
      // The diff shows what the arguments hold; a second copy as raw input would only double the frame.
      return { ...base, kind: 'edit', content: diffContent(view.diffs, new ContentBudget()), ...locations(view.locations ?? view.diffs) };
    default:
      view satisfies never;
      throw new TypeError('a call view has one of the cards generic, terminal and diff');
  }
}

/** What is shown for a call whose tool is unknown, or whose presenter failed: its name and its arguments. */
export function fallbackCallCard(context: CallCardContext): CallCard {
  return callCard({ card: 'generic', title: context.toolName }, context);
}

/** A tool's name as the model wrote it, made fit to be shown. */
export function toolLabel(toolName: string): string {
  return titleLine(toolName, 'tool call');
}

/** One text block of a card. */
export function textContent(text: string, budget: ContentBudget): ToolCallContent {
  return { type: 'content', content: { type: 'text', text: budget.take(text) } };
}

/** Diffs as content. One that has no room is named instead: half a diff would show an edit that was never made. */
export function diffContent(diffs: readonly FileDiff[], budget: ContentBudget): ToolCallContent[] {
  return diffs.map((diff) => {
    if (budget.reserve([diff.path, diff.oldText ?? '', diff.newText])) {
      return { type: 'diff', path: diff.path, oldText: diff.oldText, newText: diff.newText };
    }
    return textContent(`The change of ${diff.path} is too large to show (${diff.newText.length} characters).`, budget);
  });
}

type TerminalView = Extract<ToolCallView, { card: 'terminal' }>;

function terminalContent(view: TerminalView, context: CallCardContext): Pick<CallCard, 'content' | '_meta'> {
  const budget = new ContentBudget();
  const content: ToolCallContent[] = [];
  if (view.description !== undefined && view.description.trim() !== '') content.push(textContent(view.description, budget));
  // A title is one short line. Whoever allows a command must be able to read all of it.
  if (titleLine(view.title, '') !== view.title) content.push(textContent(fencedText(view.title, 'sh'), budget));
  if (!context.terminalOutput) return content.length === 0 ? {} : { content };
  content.push({ type: 'terminal', terminalId: context.callId });
  return { content, _meta: { terminal_info: { terminal_id: context.callId, cwd: terminalCwd(view.cwd, context.cwd) } } };
}

function terminalCwd(viewCwd: string | undefined, sessionCwd: string): string {
  if (viewCwd === undefined) return sessionCwd;
  return isAbsolute(viewCwd) ? viewCwd : resolve(sessionCwd, viewCwd);
}

/** Locations as members of a card; none for an empty list. @throws TypeError for a place that no file has */
export function locations(list: readonly FileLocation[] | undefined): { locations?: ToolCallLocation[] } {
  if (list === undefined || list.length === 0) return {};
  if (!list.every(isPlace)) throw new TypeError('a location has a path, and a line from 0');
  return { locations: list.slice(0, maxLocations).map(({ path, line }) => (line === undefined ? { path } : { path, line })) };
}

function isPlace({ path, line }: FileLocation): boolean {
  return typeof path === 'string' && (line === undefined || (Number.isInteger(line) && line >= 0 && line <= mostLine));
}
