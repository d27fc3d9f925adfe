/**
 * One clean line out of any text: the one rule for titles, names and entries of menus that come from outside.
 *
 * They stand beside permission buttons, and a client may print them to a terminal or inside Markdown: nothing here may move a
 * cursor, hide text, turn its direction or disguise one thing as another. Pure.
 */
import { stripVTControlCharacters } from 'node:util';

const blanks = /[\s\u0085]+/g;
/** Blanks of any kind become one space each; what is hidden goes. Whoever calls bounds the length, before and after. */
export function cleanLine(text: string): string {
  return stripVTControlCharacters(text).replace(blanks, ' ').replace(hidden(), '').trim();
}

let pattern: RegExp | undefined;

/**
 * Controls, format characters (bidi marks and isolates, zero-width spaces, tags, BOM), fillers and variation selectors that
 * Unicode says may go unshown, private use, halves of pairs and line separators. What holds composed emoji together stays.
 *
 * Made when it is first used: the classes of Unicode take half a millisecond of a start.
 */
function hidden(): RegExp {
  return (pattern ??= /(?:(?!\u200d|\ufe0f)[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{DI}\u2028\u2029])+/gu);
}
