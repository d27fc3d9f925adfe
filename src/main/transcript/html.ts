/**
 * HTML by tagged templates. Every value that is put in is escaped, whatever it is; only what a template made goes in as it is.
 */
import { replaceOdd, visibleText } from '../run/view/visible-text.ts';

/** Text that is HTML. Only {@link html}, {@link shown} and {@link trusted} make it. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

export type HtmlValue = Html | string | number | undefined | readonly HtmlValue[];

/** Values stand in text or in quoted attributes; `undefined` is nothing, a list is its parts. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let text = strings[0] ?? '';
  for (let index = 0; index < values.length; index += 1) text += valueText(values[index]) + (strings[index + 1] ?? '');
  return new Html(text);
}

/** Text of our own that must not be escaped: a style sheet, a script. */
export function trusted(text: string): Html {
  return new Html(text);
}

/** Text from outside for a place where elements may stand: characters that a screen would act on or hide are marked. */
export function shown(text: string): Html {
  // Escaped first: a mark's own tags must stay.
  return new Html(replaceOdd(escapeHtml(text), (sign) => `<b class="c">${sign}</b>`));
}

/** A block in which white space counts. */
export function preformatted(text: string, className = ''): Html {
  // A parser drops the first line feed behind the tag, so there is one to drop.
  return html`<pre class="${className}">
${shown(text)}</pre>`;
}

function valueText(value: HtmlValue): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return visibleText(escapeHtml(value));
  return value.map(valueText).join('');
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? char);
}
