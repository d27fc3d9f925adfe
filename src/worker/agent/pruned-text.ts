/**
 * Shortens a text to its head and tail with a mark that says how much is gone. Never cuts a character in two.
 */

/** Head and tail share the room four to one, since results mostly say what they are at their start. */
export function prunedText(text: string, keepChars: number): string {
  if (text.length <= keepChars) return text;
  const tail = Math.floor(keepChars / 5);
  const head = headOf(text, keepChars - tail);
  const end = text.slice(text.length - tail).replace(/^[\uDC00-\uDFFF]/, '');
  return `${head}\n[${text.length - head.length - end.length} characters left out here]\n${end}`;
}

/** At most `chars` of the beginning. */
export function headOf(text: string, chars: number): string {
  return text.length <= chars ? text : text.slice(0, chars).replace(/[\uD800-\uDBFF]$/, '');
}
