/**
 * Wraps program text in a Markdown fence, since editors render the text blocks of a card as Markdown.
 */

/** The fence is longer than any run of backticks in `text`, so the text cannot end it early. Trailing line ends are dropped. */
export function fencedText(text: string, language = ''): string {
  const body = text.replace(/[\r\n]+$/, '');
  let longest = 2;
  for (const run of body.matchAll(/`{3,}/g)) longest = Math.max(longest, run[0].length);
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${body}\n${fence}`;
}
