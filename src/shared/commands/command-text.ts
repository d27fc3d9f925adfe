/**
 * What a Markdown file says of the command that it makes: front matter between two lines of `---`, then the text of the prompt.
 * Pure.
 */

export interface CommandText {
  /** One clean line, never empty. */
  readonly description: string;
  readonly hint?: string;
  readonly body: string;
}

const longestDescription = 200;
const longestHint = 80;
const mostFrontLines = 50;

/** Where the words behind the command go: all of them, or one. */
export const placeholder = /\$(?:ARGUMENTS\b|[1-9](?!\d))/g;

/** Controls, format characters (bidi marks, zero-width ones, tags) and halves of pairs: nothing of them may reach a menu. */
const unsafe = /(?:(?!\u200d)[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029])+/gu;

/** @param fallback describes a file that says nothing of itself */
export function parseCommandText(text: string, fallback: string): CommandText {
  const { fields, body } = splitFrontMatter(text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n'));
  const described = cleanLine(fields.get('description') ?? '', longestDescription);
  const description = described || cleanLine(firstLine(body), longestDescription) || cleanLine(fallback, longestDescription) || 'Command';
  const hint = cleanLine(fields.get('argument-hint') ?? '', longestHint) || (body.search(placeholder) < 0 ? '' : 'arguments');
  return { description, body: body.trim(), ...(hint === '' ? {} : { hint }) };
}

function splitFrontMatter(text: string): { readonly fields: ReadonlyMap<string, string>; readonly body: string } {
  const fields = new Map<string, string>();
  if (!text.startsWith('---\n')) return { fields, body: text };
  const lines = text.split('\n', mostFrontLines + 2);
  const end = lines.indexOf('---', 1);
  if (end < 0) return { fields, body: text };
  for (const line of lines.slice(1, end)) {
    const [, key, value] = /^([a-z-]+):\s*(.*)$/.exec(line) ?? [];
    if (key !== undefined && value !== undefined) fields.set(key, unquoted(value.trim()));
  }
  const length = lines.slice(0, end + 1).reduce((sum, line) => sum + line.length + 1, 0);
  return { fields, body: text.slice(length) };
}

function unquoted(value: string): string {
  const quote = value.charAt(0);
  return value.length > 1 && (quote === '"' || quote === "'") && value.endsWith(quote) ? value.slice(1, -1) : value;
}

/** Without the marks of a heading. */
function firstLine(body: string): string {
  const line = body.split('\n', 20).find((one) => one.trim() !== '') ?? '';
  return line.replace(/^#+\s*/, '');
}

function cleanLine(text: string, longest: number): string {
  const line = text
    .slice(0, longest * 8)
    .replace(/[\s\u0085]+/g, ' ')
    .replace(unsafe, '')
    .trim();
  const characters = Array.from(line);
  return characters.length <= longest ? line : `${characters.slice(0, longest - 1).join('')}…`;
}
