/**
 * XML by hand as far as JUnit needs it: every text is valid XML 1.0 afterwards, whatever it was.
 */
import { excerptOf, visibleText } from '../view/visible-text.ts';

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\n': '&#10;', '\t': '&#9;' };

/** For an attribute in double quotes; line feeds and tabs survive the parser's normalization. */
export function xmlAttribute(text: string): string {
  return visibleText(text).replace(/[&<>"\n\t]/g, (char) => entities[char] ?? char);
}

/** For an element's content, cut to `maxChars`. */
export function xmlText(text: string, maxChars: number): string {
  return visibleText(excerptOf(text, maxChars)).replace(/[&<>]/g, (char) => entities[char] ?? char);
}
