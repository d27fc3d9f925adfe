/**
 * One clean line for titles. They come from commands, paths and tool names, so from the model and from file names.
 */
import { cleanLine } from '../../shared/clean-line.ts';

export const maxTitleLength = 200;

/** Makes one visible line of at most {@link maxTitleLength} UTF-16 units; `fallback` when nothing visible is left. */
export function titleLine(text: string, fallback = ''): string {
  // Longer input than this cannot reach the title; the patterns need not read it.
  const line = cleanLine(text.slice(0, maxTitleLength * 8));
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
