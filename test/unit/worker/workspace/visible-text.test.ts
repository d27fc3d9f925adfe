import { assert as check, property, string } from 'fast-check';
import t from 'tap';
import { visibleLine, visibleText } from '../../../../src/worker/workspace/visible-text.ts';

t.test('what shows nothing, or turns the direction of text, is written out', async (t) => {
  const cases: [name: string, text: string, shown: string][] = [
    ['zero width space', 'a\u200bb', 'a‹U+200B›b'],
    ['right-to-left override', '\u202eabc', '‹U+202E›abc'],
    ['isolate', 'a\u2067b\u2069', 'a‹U+2067›b‹U+2069›'],
    ['tags', 'x\u{e0049}\u{e0067}y', 'x‹U+E0049›‹U+E0067›y'],
    ['variation selectors', 'a\ufe01\u{e0100}b', 'a‹U+FE01›‹U+E0100›b'],
    ['filler', 'a\u3164b', 'a‹U+3164›b'],
    ['soft hyphen and joiner', 'a\u00adb\u200dc', 'a‹U+00AD›b‹U+200D›c'],
    ['escape sequence', '\u001b[31mred', '‹U+001B›[31mred'],
    ['bare carriage return', 'real\rfake', 'real‹U+000D›fake'],
    ['half of a pair', '\ud800', '‹U+D800›'],
    ['line separator', 'a\u2028b', 'a‹U+2028›b'],
  ];
  for (const [name, text, shown] of cases) t.equal(visibleText(text), shown, name);
});

t.test('what a person sees stays as it is', async (t) => {
  for (const text of ['', 'plain\n\ttext', 'Привет שלום مرحبا 日本語', '❤️ 👩‍💻 👩🏽‍💻 ❤️‍🔥 1️⃣', '‹U+200B›']) t.equal(visibleText(text), text);
  t.equal(visibleText('a\r\nb'), 'a\nb');
  t.equal(visibleLine('/a\nb\tc'), '/a‹U+000A›b‹U+0009›c');
});

t.test('a long run of hidden characters is counted, not spelt', async (t) => {
  const shown = visibleText(`x${'\u{e0041}'.repeat(10_000)}y`);
  t.match(shown, /^x(?:‹U\+E0041›){8}‹and 9992 more hidden characters›y$/);
});

t.test('nothing hidden is left, whatever the text (property)', async (t) => {
  const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{DI}]/u;
  check(
    property(string({ unit: 'binary', maxLength: 40 }), (text) => {
      const left = visibleLine(text).replace(
        /\p{Extended_Pictographic}[\ufe0f\u200d\p{Extended_Pictographic}\p{Emoji_Modifier}]*|[\d#*]\ufe0f/gu,
        '',
      );
      return !hidden.test(left);
    }),
  );
  t.pass();
});
