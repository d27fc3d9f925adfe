/**
 * Makes any text safe to stand in a title: one line, nothing that could move a cursor or reorder what a person reads.
 *
 * Titles are shown beside permission buttons, so a path or a command must not be able to disguise itself.
 */
import { stripVTControlCharacters } from 'node:util';

const maxTitleLength = 200;
const scanLimit = 4000;

/** Controls, format characters (bidi marks and isolates, zero-width joiners, tags, BOM), lone surrogates and line separators. */
const unsafeCharacters = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]+/gu;

/** One line of at most 200 characters without control, bidi or invisible characters; runs of blanks become one space. */
export function cleanTitle(text: string): string {
  const line = stripVTControlCharacters(text.slice(0, scanLimit))
    .replace(/[\s\u0085]+/g, ' ')
    .replace(unsafeCharacters, '')
    .trim();
  const characters = Array.from(line);
  if (characters.length <= maxTitleLength) {
    return line;
  }
  return `${characters.slice(0, maxTitleLength - 1).join('')}…`;
}
