/**
 * A child's `session/update`, read: what of it a run wants to know. Pure, and tolerant of anything: an update of an unknown
 * kind, or with members of wrong types, is nothing, or as much as can be understood.
 */
import { cleanLine } from '../../../shared/clean-line.ts';
import type { TodoEntry } from '../../../shared/events.ts';
import type { RenderKind } from '../../../shared/render-intents.ts';
import type { SubagentToolStatus, SubagentUsage } from '../../../shared/subagent-protocol.ts';
import { isRecord, record } from './child-traits.ts';
import { readUsage } from './read-usage.ts';

export type ChildUpdate =
  | { readonly kind: 'text'; readonly text: string; readonly messageId: string | undefined }
  | { readonly kind: 'image'; readonly mimeType: string; readonly data: string }
  /** What a card says now; absent members are as they were. */
  | { readonly kind: 'tool'; readonly callId: string; readonly card: ToolCardPart }
  | { readonly kind: 'plan'; readonly entries: readonly TodoEntry[] }
  /** Of the whole session so far, as much as is known: a child may tell tokens, or US dollars, or both. */
  | { readonly kind: 'usage'; readonly usage?: SubagentUsage; readonly costUsd?: number };

export interface ToolCardPart {
  readonly title?: string;
  readonly toolKind?: RenderKind;
  readonly status?: SubagentToolStatus;
}

const renderKinds: ReadonlySet<string> = new Set<RenderKind>([
  'read',
  'edit',
  'delete',
  'move',
  'search',
  'execute',
  'think',
  'fetch',
  'switch_mode',
  'other',
]);
const toolStatuses: ReadonlySet<string> = new Set<SubagentToolStatus>(['pending', 'in_progress', 'completed', 'failed']);
const maxIdChars = 200;
const maxTitleChars = 200;
const maxPlanEntries = 100;
const maxPlanChars = 500;

export function readUpdate(update: unknown): ChildUpdate | undefined {
  if (!isRecord(update)) return undefined;
  switch (update['sessionUpdate']) {
    case 'agent_message_chunk':
      return readContent(record(update['content']), update['messageId']);
    case 'tool_call':
    case 'tool_call_update':
      return readTool(update);
    case 'plan':
      return readPlan(update['entries']);
    case 'plan_update':
      return readPlan(record(update['plan'])['entries']);
    case 'usage_update':
      return readSpending(update);
    default:
      return undefined;
  }
}

/** What a card says, in an update or in a permission request. */
export function readToolCard(toolCall: Readonly<Record<string, unknown>>): ToolCardPart {
  const { title, kind, status } = toolCall;
  return {
    ...(typeof title === 'string' && title !== '' ? { title: oneLine(title) } : {}),
    ...(typeof kind === 'string' && renderKinds.has(kind) ? { toolKind: kind as RenderKind } : {}),
    ...(typeof status === 'string' && toolStatuses.has(status) ? { status: status as SubagentToolStatus } : {}),
  };
}

function readContent(content: Readonly<Record<string, unknown>>, messageId: unknown): ChildUpdate | undefined {
  const { type, text, data, mimeType } = content;
  if (type === 'text' && typeof text === 'string') {
    return { kind: 'text', text, messageId: typeof messageId === 'string' ? messageId : undefined };
  }
  if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string') return { kind: 'image', mimeType, data };
  return undefined;
}

function readTool(update: Readonly<Record<string, unknown>>): ChildUpdate | undefined {
  const callId = update['toolCallId'];
  if (typeof callId !== 'string' || callId === '') return undefined;
  return { kind: 'tool', callId: callId.slice(0, maxIdChars), card: readToolCard(update) };
}

function readPlan(entries: unknown): ChildUpdate | undefined {
  if (!Array.isArray(entries)) return undefined;
  const read = entries.slice(0, maxPlanEntries).map((entry) => readEntry(record(entry)));
  return { kind: 'plan', entries: read.filter((entry) => entry !== undefined) };
}

function readEntry({ content, status, priority }: Readonly<Record<string, unknown>>): TodoEntry | undefined {
  if (typeof content !== 'string') return undefined;
  const known = status === 'in_progress' || status === 'completed' ? status : 'pending';
  const weight: Pick<TodoEntry, 'priority'> = priority === 'high' || priority === 'low' ? { priority } : {};
  return { content: content.slice(0, maxPlanChars), status: known, ...weight };
}

function readSpending(update: Readonly<Record<string, unknown>>): ChildUpdate | undefined {
  const usage = readUsage(update);
  const { amount, currency } = record(update['cost']);
  const isCost = typeof amount === 'number' && Number.isFinite(amount) && amount >= 0 && currency === 'USD';
  if (usage === undefined && !isCost) return undefined;
  return { kind: 'usage', ...(usage === undefined ? {} : { usage }), ...(isCost ? { costUsd: amount } : {}) };
}

function oneLine(text: string): string {
  const line = cleanLine(text.slice(0, maxTitleChars * 2));
  return line.length > maxTitleChars ? `${line.slice(0, maxTitleChars - 1)}…` : line;
}
