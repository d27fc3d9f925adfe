/** Markdown fences for text that may itself hold fences. */

/** The text in one fenced block, with a fence longer than any run of backticks in it. Trailing line ends are dropped. */
export function fenceText(text: string, language: 'console' | 'sh'): string {
  const body = text.replace(/[\r\n]+$/, '');
  let longest = 2;
  for (const run of body.matchAll(/`{3,}/g)) longest = Math.max(longest, run[0].length);
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${body}\n${fence}`;
}
