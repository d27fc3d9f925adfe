/**
 * A session's title: the first line of what its user said first, or of what a model made of it. Pure; the list and the live
 * title use the same rule.
 */
import { stripVTControlCharacters } from 'node:util';
import { cleanLine } from '../clean-line.ts';

const titleLimit = 80;
/** They become blanks, since they part words. */
const controls = /\p{Cc}/gu;

/**
 * The first line of `text` that is not blank, without control characters and marks that reorder text, at most 80 characters
 * long (an ellipsis shows a cut).
 *
 * @returns undefined when nothing printable is left
 */
export function sessionTitle(text: string): string | undefined {
  // Far more than a title needs, so that a prompt of megabytes is not scanned.
  for (const line of text.slice(0, 16 * 1024).split(/\r\n|[\n\r\u2028\u2029]/)) {
    const clean = cleanLine(stripVTControlCharacters(line).replace(controls, ' '));
    if (clean !== '') {
      return shorten(clean);
    }
  }
  return undefined;
}

function shorten(line: string): string {
  const characters = Array.from(line.slice(0, titleLimit * 2 + 2));
  return characters.length <= titleLimit
    ? line
    : `${characters
        .slice(0, titleLimit - 1)
        .join('')
        .trimEnd()}…`;
}

/** The title that a prompt gives, of the first text that was typed. Takes whatever a damaged log holds. */
export function promptTitle(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  const texts = (content as { readonly type?: unknown; readonly text?: unknown }[]).filter((block) => block?.type === 'text');
  for (const { text } of texts) {
    const title = typeof text === 'string' ? sessionTitle(text) : undefined;
    if (title !== undefined) return title;
  }
  return undefined;
}
