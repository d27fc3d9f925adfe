/**
 * Text from outside, made safe to look at: what a screen would act on, hide or reorder is shown as a sign that can be seen.
 * Used by terminals, pages and XML alike.
 */

/**
 * Controls other than tab and line feed, a carriage return too; marks that reorder or hide text; tag characters and
 * variation selectors that smuggle text; halves of a surrogate pair, and what is no character at all. Joiners stay: scripts and emoji need them.
 */
const odd =
  // oxlint-disable-next-line no-control-regex -- control characters are what this pattern is for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}\p{Cs}\p{Noncharacter_Code_Point}]/gu;

/**
 * Replaces each odd character by what `mark` makes of its sign. CR LF counts as LF.
 *
 * @param mark gets `ESC` for a control character that has a name, `U+202E` for others
 */
export function replaceOdd(text: string, mark: (sign: string) => string): string {
  const lines = text.includes('\r\n') ? text.replaceAll('\r\n', '\n') : text;
  return lines.replace(odd, (char) => mark(signOf(char)));
}

/** Names rather than the control pictures of Unicode: few fonts have those. */
const controlNames =
  'NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US'.split(' ');

function signOf(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  return controlNames[code] ?? (code === 0x7f ? 'DEL' : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`);
}

/** Plain text with visible signs: `‹ESC›[31m`, `‹U+202E›`. Line feeds and tabs stay. */
export function visibleText(text: string): string {
  return replaceOdd(text, (sign) => `\u2039${sign}\u203a`);
}

/** The same on one line, cut to `maxChars`. */
export function visibleLine(text: string, maxChars: number): string {
  // Cut first: nobody needs a megabyte scanned for one line.
  const line = visibleText(headOf(text, maxChars * 2).trim())
    .replaceAll(/\s+/g, ' ')
    .trim();
  return line.length <= maxChars && text.length <= maxChars * 2 ? line : `${headOf(line, maxChars - 1).trimEnd()}…`;
}

/** At most `chars` of the beginning, no character cut in two. */
export function headOf(text: string, chars: number): string {
  return text.length <= chars ? text : text.slice(0, Math.max(0, chars)).replace(/[\uD800-\uDBFF]$/, '');
}

/** At most `chars` of the end, no character cut in two. */
export function tailOf(text: string, chars: number): string {
  return text.length <= chars ? text : text.slice(text.length - Math.max(0, chars)).replace(/^[\uDC00-\uDFFF]/, '');
}

/** Head and tail with a line between them that says how much is left out. */
export function excerptOf(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const head = headOf(text, Math.ceil(chars * 0.7));
  const tail = tailOf(text, Math.floor(chars * 0.3));
  return `${head}\n… ${text.length - head.length - tail.length} characters left out …\n${tail}`;
}
