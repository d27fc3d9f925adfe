/**
 * One clean line for a card's title.
 *
 * Titles come from commands, paths and tool names, so from the model and from file names. A client may print them to a
 * terminal or inside Markdown: nothing here may move a cursor, hide text or turn its direction.
 */

export const maxTitleLength = 200;

/* oxlint-disable no-control-regex -- control characters are what these patterns are for */
/** CSI and OSC sequences as wholes: dropping only ESC would leave `[31m` behind. */
const terminalSequence = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?/g;
const lineBreak = /[\r\n\t\v\f\u0085\u2028\u2029]+/g;
/** C0, C1, soft hyphen, bidi marks and overrides, zero width spaces, variation-free joiners aside, and tag characters. */
const invisible = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;
/* oxlint-enable no-control-regex */

/** Makes one visible line of at most {@link maxTitleLength} UTF-16 units; `fallback` when nothing visible is left. */
export function titleLine(text: string, fallback: string): string {
  // Longer input than this cannot reach the title; the patterns need not read it.
  const line = text
    .slice(0, maxTitleLength * 8)
    .replace(terminalSequence, '')
    .replace(lineBreak, ' ')
    .replace(invisible, '')
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
