/**
 * Whatever a text holds, a page shows it as text, and the whole of it.
 */
import { array, assert, constantFrom, integer, oneof, property, string } from 'fast-check';
import t from 'tap';
import { html, preformatted, shown } from '../../../../src/main/transcript/html.ts';
import { visibleLine, visibleText } from '../../../../src/main/run/view/visible-text.ts';
import { attributeOf, charOf, parsePage, textOf, withClass } from '../../../support/parse-page.ts';

/** Texts that like to break out, in any order, among others. */
const hostile = constantFrom(
  '<script>alert(1)</script>',
  '</pre>',
  '</style>',
  '<!--',
  ']]>',
  '&lt;',
  '&#x3c;',
  '"',
  "' onload='x",
  '\u0000',
  '\u001b[2J',
  '\u202e',
  '\u{e0041}',
  '\ud800',
  '\udc00',
  '\r',
  '\r\n',
  '\n',
  '‹ESC›',
  '👩‍👩‍👧',
  '日本',
);
const anyText = array(oneof(hostile, string({ unit: 'binary' }), string()), { maxLength: 12 }).map((pieces) => pieces.join(''));

const wrap = (body: { text: string }) => `<!doctype html><html><head><title>t</title></head><body>${body.text}</body></html>`;

t.test('any text comes out of a page as it went in, in text and in blocks', async () => {
  assert(
    property(anyText, (text) => {
      const page = parsePage(wrap(html`<div class="a">${shown(text)}</div>${preformatted(text, 'b')}<div class="last">end</div>`));
      const expected = text.replaceAll('\r\n', '\n');
      const [first, second] = [withClass(page, 'a')[0]!, withClass(page, 'b')[0]!];
      return (
        page.errors.length === 0 &&
        textOf(first) === expected &&
        textOf(second) === expected &&
        withClass(page, 'last').length === 1 &&
        page.elements.every(({ tagName }) => ['html', 'head', 'title', 'body', 'div', 'pre', 'b'].includes(tagName))
      );
    }),
    { numRuns: 500 },
  );
});

t.test('any text stays inside its attribute', async () => {
  assert(
    property(anyText, (text) => {
      const page = parsePage(wrap(html`<p class="a" title="${text}">x</p>`));
      const [element] = withClass(page, 'a');
      return page.errors.length === 0 && element?.attrs.length === 2 && attributeOf(element, 'title') === visibleText(text);
    }),
    { numRuns: 300 },
  );
});

t.test('a line for a screen has no character that a screen acts on, and its length is bounded', async () => {
  assert(
    property(anyText, integer({ min: 1, max: 60 }), (text, length) => {
      const line = visibleLine(text, length);
      // oxlint-disable-next-line no-control-regex -- what must not be there
      return line.length <= length && !/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]|\p{Cs}/u.test(line);
    }),
    { numRuns: 500 },
  );
});

t.test('signs name what they stand for', async (t) => {
  t.equal(visibleText('\u001b[31m\u202e\u007f\u0000'), '‹ESC›[31m‹U+202E›‹DEL›‹NUL›');
  for (const sign of ['ESC', 'U+202E', 'DEL', 'NUL']) t.equal(visibleText(charOf(sign)), `‹${sign}›`);
  t.equal(visibleText('a\tb\nc'), 'a\tb\nc');
  t.equal(visibleText('👩‍👩‍👧 سلام'), '👩‍👩‍👧 سلام', 'what scripts and emoji need stays');
});
