/**
 * The `toolCall` of a permission request: all that a client needs to show, since many show nothing but this.
 *
 * A diff stands first: some clients look at the first block alone. Why the call is asked about stands last, behind what it is.
 */
import type { ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk';
import { fencedText } from '../display/fenced-text.ts';
import type { PermissionCall } from '../permission/permission-gate.ts';
import { type CallCard, textContent } from './call-card.ts';
import { capJson, ContentBudget } from './size-caps.ts';

export interface PermissionCard {
  readonly toolCall: ToolCallUpdate;
  /** A terminal's content outlives its result, so what stands in it only for the question is to be taken out again. */
  readonly lingers: boolean;
}

/** @param members the call's own card */
export function permissionCard(call: PermissionCall, members: CallCard, reason: string | undefined): PermissionCard {
  const own = members.content ?? [];
  const budget = new ContentBudget();
  const command = wholeCommand(call, members);
  const content: ToolCallContent[] = [
    ...(command === undefined ? own : [textContent(command, budget), ...own.filter((block) => !isText(block, titleBlock(call)))]),
    ...(reason === undefined ? [] : [textContent(reason, budget)]),
  ];
  return {
    // The content of a request replaces the card's: what was in it must stay in it.
    toolCall: { ...members, ...kindAsked(call), rawInput: members.rawInput ?? capJson(call.rawInput), status: 'pending', content },
    lingers: own.some(({ type }) => type === 'terminal') && (command !== undefined || reason !== undefined),
  };
}

/** What a tool of an MCP server does is known to that server alone; a client that allows by kind must not take its word. */
function kindAsked({ access }: PermissionCall): Pick<ToolCallUpdate, 'kind'> {
  return access.kind === 'mcp' ? { kind: 'other' } : {};
}

/** The command as it would run, where the card does not show exactly that: a title is one line, without what a screen would not show. */
function wholeCommand({ access }: PermissionCall, { title, content = [] }: CallCard): string | undefined {
  if (access.kind !== 'execute') return undefined;
  if (title === access.command && content.some(({ type }) => type === 'terminal')) return undefined;
  const fenced = fencedText(access.command, 'sh');
  return content.some((block) => isText(block, fenced)) ? undefined : fenced;
}

/** How a card shows a title that is too long for one. */
function titleBlock({ view }: PermissionCall): string {
  return fencedText(view.title, 'sh');
}

function isText(block: ToolCallContent, text: string): boolean {
  return block.type === 'content' && block.content.type === 'text' && block.content.text === text;
}
