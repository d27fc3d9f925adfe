/**
 * One clean line for titles.
 *
 * Titles come from commands, paths and tool names, so from the model and from file names, and they stand beside permission
 * buttons. A client may print them to a terminal or inside Markdown: nothing here may move a cursor, hide text, turn its
 * direction or disguise one thing as another.
 */
import { stripVTControlCharacters } from 'node:util';

export const maxTitleLength = 200;

const blanks = /[\s\u0085]+/g;
/**
 * Controls, format characters (bidi marks and isolates, zero-width spaces, tags, BOM), lone surrogates and line separators.
 * The zero-width joiner stays: it holds composed emoji together.
 */
const unsafeCharacters = /(?:(?!\u200d)[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029])+/gu;

/** Makes one visible line of at most {@link maxTitleLength} UTF-16 units; `fallback` when nothing visible is left. */
export function titleLine(text: string, fallback = ''): string {
  // Longer input than this cannot reach the title; the patterns need not read it.
  const line = stripVTControlCharacters(text.slice(0, maxTitleLength * 8))
    .replace(blanks, ' ')
    .replace(unsafeCharacters, '')
    .trim();
  if (line === '') return fallback;
  return line.length <= maxTitleLength ? line : `${sliceWhole(line, maxTitleLength - 1)}…`;
}

/** The first `length` UTF-16 units of a text, one less where that would cut a character in half. */
export function sliceWhole(text: string, length: number): string {
  if (length >= text.length) return text;
  const last = text.charCodeAt(length - 1);
  const cutsPair = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, cutsPair ? length - 1 : length);
}
