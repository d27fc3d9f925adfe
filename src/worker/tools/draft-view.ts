/**
 * How calls are shown while the model still writes them. Pure; the arguments may be anything so far.
 */
import { resolve } from 'node:path';
import type { ArgumentsDraft, PresentContext, RenderKind, ToolCallDraft } from '../../shared/render-intents.ts';
import { displayPath } from '../display/display-path.ts';

/** A text argument that is complete. */
export function completeText({ members }: ArgumentsDraft, name: string): string | undefined {
  const value = members[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A text argument as far as it is there; an ellipsis stands for what is still to come. */
export function textSoFar(draft: ArgumentsDraft, name: string): string | undefined {
  const { growing } = draft;
  if (growing?.name === name && typeof growing.value === 'string' && growing.value !== '') return `${growing.value}…`;
  return completeText(draft, name);
}

/** A call on one file: the verb, and the path once it is there. */
export function fileDraft(draft: ArgumentsDraft, verb: string, kind: RenderKind, { cwd }: PresentContext): ToolCallDraft {
  const path = completeText(draft, 'file_path');
  if (path === undefined) return { title: verb, kind };
  return { title: `${verb} ${displayPath(path, cwd)}`, kind, locations: [{ path: resolve(cwd, path) }] };
}

/** A change of one file. Its card will be a diff; until then it says how much of the new text is there. */
export function changeDraft(draft: ArgumentsDraft, verb: string, textName: string, context: PresentContext): ToolCallDraft {
  const file = fileDraft(draft, verb, 'edit', context);
  const text = textSoFar(draft, textName);
  const content = text === undefined ? {} : { content: [`${text.length} characters of new text so far.`] };
  return { ...file, ...content, rawInput: false };
}

/** A search: the verb and what is looked for. */
export function searchDraft(draft: ArgumentsDraft, verb: string): ToolCallDraft {
  const pattern = textSoFar(draft, 'pattern');
  return { title: pattern === undefined ? verb : `${verb} ${pattern}`, kind: 'search' };
}
