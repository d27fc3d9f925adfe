/**
 * Replaces exact text inside a file's text, whatever the file's line endings are. Pure.
 *
 * Matching happens on text with LF only; positions are mapped back, so bytes outside the matches stay exactly as they were,
 * also in files that mix line endings.
 */

/** Longest text that a replacement may grow to, in UTF-16 units. */
const maxResultLength = 16 * 1024 * 1024;
const listedLines = 10;

export interface TextEdit {
  readonly oldString: string;
  readonly newString: string;
  readonly replaceAll: boolean;
}

export type EditResult =
  | {
      readonly ok: true;
      /** The whole new text, with the file's own line endings. */
      readonly raw: string;
      /** Both sides with LF only, for showing. */
      readonly before: string;
      readonly after: string;
      readonly replacements: number;
    }
  | { readonly ok: false; readonly reason: 'none' | 'too-large' }
  | { readonly ok: false; readonly reason: 'ambiguous'; readonly matches: number; readonly lines: readonly number[] };

/** Applies the edit to `raw`. `oldString` must not be empty unless `raw` is. */
export function applyEdit(raw: string, edit: TextEdit): EditResult {
  const before = raw.replaceAll('\r\n', '\n');
  const oldString = edit.oldString.replaceAll('\r\n', '\n');
  const starts = raw === '' && oldString === '' ? [0] : findAll(before, oldString);
  if (starts.length === 0) {
    return { ok: false, reason: 'none' };
  }
  if (starts.length > 1 && !edit.replaceAll) {
    return { ok: false, reason: 'ambiguous', matches: starts.length, lines: lineNumbers(before, starts.slice(0, listedLines)) };
  }
  const newString = raw.includes('\n') ? edit.newString.replaceAll('\r\n', '\n') : edit.newString;
  if (raw.length + starts.length * (newString.length - oldString.length) > maxResultLength) {
    return { ok: false, reason: 'too-large' };
  }
  const written = usesCrlf(raw) ? newString.replaceAll('\n', '\r\n') : newString;
  const toRaw = positionMap(raw);
  return {
    ok: true,
    raw: splice(raw, starts, oldString.length, written, toRaw),
    before,
    after: splice(before, starts, oldString.length, newString, (index) => index),
    replacements: starts.length,
  };
}

/** Starts of the matches, left to right, not overlapping. */
function findAll(text: string, wanted: string): number[] {
  const starts: number[] = [];
  if (wanted === '') {
    return starts;
  }
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
    starts.push(at);
  }
  return starts;
}

/** Whether most line ends are CRLF. */
function usesCrlf(raw: string): boolean {
  let crlf = 0;
  let bare = 0;
  for (let at = raw.indexOf('\n'); at !== -1; at = raw.indexOf('\n', at + 1)) {
    if (raw[at - 1] === '\r') {
      crlf += 1;
    } else {
      bare += 1;
    }
  }
  return crlf > bare;
}

/** Position in the LF text → position in `raw`. Must be asked with growing positions. */
function positionMap(raw: string): (index: number) => number {
  let nextPair = raw.indexOf('\r\n');
  let removed = 0;
  return (index) => {
    // The pair at raw position p is the newline at p - removed in the LF text.
    while (nextPair !== -1 && nextPair - removed < index) {
      removed += 1;
      nextPair = raw.indexOf('\r\n', nextPair + 2);
    }
    return index + removed;
  };
}

function splice(text: string, starts: readonly number[], length: number, replacement: string, map: (index: number) => number): string {
  const pieces: string[] = [];
  let done = 0;
  for (const start of starts) {
    pieces.push(text.slice(done, map(start)), replacement);
    done = map(start + length);
  }
  pieces.push(text.slice(done));
  return pieces.join('');
}

/** Line numbers, from 1, of ascending positions. */
function lineNumbers(text: string, positions: readonly number[]): number[] {
  const numbers: number[] = [];
  let line = 1;
  let scanned = 0;
  for (const position of positions) {
    for (let at = text.indexOf('\n', scanned); at !== -1 && at < position; at = text.indexOf('\n', at + 1)) {
      line += 1;
      scanned = at + 1;
    }
    numbers.push(line);
  }
  return numbers;
}
