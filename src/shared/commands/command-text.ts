/**
 * What a Markdown file says of the command that it makes: front matter between two lines of `---`, then the text of the prompt.
 * Pure.
 */
import { cleanLine } from '../clean-line.ts';

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

/** @param fallback describes a file that says nothing of itself */
export function parseCommandText(text: string, fallback: string): CommandText {
  const { fields, body } = splitFrontMatter(text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n'));
  const described = shortLine(fields.get('description') ?? '', longestDescription);
  const description = described || shortLine(firstLine(body), longestDescription) || shortLine(fallback, longestDescription) || 'Command';
  const hint = shortLine(fields.get('argument-hint') ?? '', longestHint) || (body.search(placeholder) < 0 ? '' : 'arguments');
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

function shortLine(text: string, longest: number): string {
  const line = cleanLine(text.slice(0, longest * 8));
  const characters = Array.from(line);
  return characters.length <= longest ? line : `${characters.slice(0, longest - 1).join('')}…`;
}
