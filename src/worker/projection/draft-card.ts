/**
 * The card of a call that the model still writes: its name at first, then what the tool makes of the arguments so far.
 */
import type { ToolCall, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { JsonObject, JsonValue } from '../../shared/errors.ts';
import type { ArgumentsDraft, ToolCallDraft } from '../../shared/render-intents.ts';
import { titleLine } from '../display/title-line.ts';
import { type CallCard, locations, textContent, toolLabel } from './call-card.ts';
import { ContentBudget, capJson } from './size-caps.ts';
import type { ToolPresenter } from './tool-cards.ts';

/** A draft is replaced many times: each of them is small. */
const draftBytes = 4 * 1024;

export type DraftCard = Pick<ToolCall, 'toolCallId' | 'title' | 'name' | 'kind' | 'content' | 'locations' | 'rawInput'>;

export interface DraftContext {
  readonly callId: string;
  readonly toolName: string;
  readonly cwd: string;
  readonly presenter: ToolPresenter | undefined;
}

/** Never throws: a presenter that does leaves the tool's name. */
export function draftCard(draft: ArgumentsDraft, { callId, toolName, cwd, presenter }: DraftContext): DraftCard {
  const view = presentDraft(presenter, draft, cwd) ?? { title: toolName, kind: 'other' };
  const name = toolLabel(toolName);
  const rawInput = view.rawInput === false ? undefined : argumentsSoFar(draft);
  const budget = new ContentBudget(draftBytes);
  return {
    toolCallId: callId,
    title: titleLine(view.title, name),
    name,
    kind: view.kind,
    ...(view.content === undefined ? {} : { content: view.content.map((text) => textContent(text, budget)) }),
    ...locations(view.locations),
    ...(rawInput === undefined ? {} : { rawInput: capJson(rawInput, draftBytes) }),
  };
}

function presentDraft(presenter: ToolPresenter | undefined, draft: ArgumentsDraft, cwd: string): ToolCallDraft | undefined {
  try {
    return presenter?.presentDraft?.(draft, { cwd });
  } catch {
    // The tool could not make sense of what there is so far.
    return undefined;
  }
}

function argumentsSoFar({ members, growing }: ArgumentsDraft): JsonObject | undefined {
  const all: Record<string, JsonValue> = growing === undefined ? members : { ...members, [growing.name]: growing.value };
  return Object.keys(all).length === 0 ? undefined : all;
}

type Members = Omit<ToolCallUpdate, 'toolCallId'>;

/** What of a draft's card is no longer as it was shown; `undefined` when nothing is. */
export function changedMembers(before: DraftCard, after: DraftCard): Members | undefined {
  const changed: Members = {};
  if (after.title !== before.title) changed.title = after.title;
  if (after.kind !== before.kind) changed.kind = after.kind ?? null;
  if (differs(after.content, before.content)) changed.content = after.content ?? [];
  if (differs(after.locations, before.locations)) changed.locations = after.locations ?? [];
  if (differs(after.rawInput, before.rawInput)) changed.rawInput = after.rawInput ?? null;
  return Object.keys(changed).length === 0 ? undefined : changed;
}

/** What turns a draft's card into that of the call: all of it, and nothing left of what the draft alone had. */
export function settledMembers(draft: DraftCard, card: CallCard): Members {
  const { toolCallId: _same, ...members } = card;
  return {
    ...(draft.content === undefined ? {} : { content: [] }),
    ...(draft.locations === undefined ? {} : { locations: [] }),
    ...(draft.rawInput === undefined ? {} : { rawInput: null }),
    ...members,
  };
}

function differs(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) !== JSON.stringify(b);
}
