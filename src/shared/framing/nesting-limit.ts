/**
 * Refuses JSON that is nested too deep, before it is parsed.
 *
 * The parser itself survives any depth, but whoever walks the result by recursion (validation, structured clone,
 * stringify) does not, and megabytes of brackets cost the parser many times their size.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const isOpener = (code: number): boolean => code === 0x5b || code === 0x7b;
const isCloser = (code: number): boolean => code === 0x5d || code === 0x7d;

/**
 * True if arrays and objects in `text` stand more than `limit` deep. Text inside strings does not count and is skipped at
 * the speed of `indexOf`, so a large embedded image costs little. Need not be valid JSON.
 */
export function isNestedDeeperThan(text: string, limit: number): boolean {
  if (text.length <= limit) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (isOpener(code)) {
      depth += 1;
      if (depth > limit) return true;
    } else if (isCloser(code)) {
      depth -= 1;
    }
  }
  return false;
}

/** Index of the closing quote of the string that opens at `open`, or the end of the text. */
function endOfString(text: string, open: number): number {
  let close = text.indexOf('"', open + 1);
  while (close !== -1) {
    let before = close - 1;
    while (before > open && text.charCodeAt(before) === BACKSLASH) before -= 1;
    // An even run of backslashes escapes itself and leaves the quote a quote.
    if ((close - before) % 2 === 1) return close;
    close = text.indexOf('"', close + 1);
  }
  return text.length;
}
