/**
 * Text of a server as a model and a person may read it: nothing invisible in it, which could say something to the one
 * that the other does not see. Pure.
 */
import { stripVTControlCharacters } from 'node:util';

/** Controls but line breaks and tabs, format characters (bidi marks, zero-width spaces, tags), private use, lone surrogates. */
const unsafe = /(?:(?![\n\t\u200d])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029\u{e0000}-\u{e0fff}])+/gu;
/** Once more, for a question: a pattern with the flag g remembers where it was. */
const unsafeOnce = new RegExp(unsafe.source, 'u');

/** At most `limit` UTF-16 units, the mark of a cut included. */
export function cleanText(text: string, limit: number): string {
  const clean = stripVTControlCharacters(text.slice(0, limit * 4))
    .replace(/\r\n?/g, '\n')
    .replace(unsafe, '')
    .trim();
  if (clean.length <= limit && text.length <= limit * 4) return clean;
  return `${clean.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Whether the text holds something that {@link cleanText} would take out, line breaks and tabs among it. */
export function hidesSomething(text: string): boolean {
  return /[\n\t]/.test(text) || unsafeOnce.test(text);
}
