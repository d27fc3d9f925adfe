/**
 * A value from outside within a sentence that a person reads in a terminal or an editor: as JSON writes it, and nothing in it hidden.
 */

let pattern: RegExp | undefined;

/** What JSON leaves as it is and a terminal obeys or does not show. Made when it is first used: the classes of Unicode take their time. */
function hidden(): RegExp {
  return (pattern ??= /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu);
}

/** On one line. Controls, format characters and line separators are escapes, so that the text can be read back; `undefined` is said so. */
export function quoted(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).replace(hidden(), escapes);
}

/** Of a pair that makes one character, each half has an escape. */
function escapes(character: string): string {
  return Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');
}
