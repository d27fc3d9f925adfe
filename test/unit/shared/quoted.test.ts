import { array, assert, dictionary, oneof, property, string } from 'fast-check';
import t from 'tap';
import { quoted } from '../../../src/shared/quoted.ts';
import { testSeed } from '../../support/test-seed.ts';

t.test('what a person reads holds nothing that a terminal obeys or hides, and can be read back', async (t) => {
  t.equal(quoted('plain é 漢 😀'), '"plain é 漢 😀"');
  t.equal(quoted('a\u007f\u0085\u009b2J\u202e\u2028\u{e0041}"\n'), '"a\\u007f\\u0085\\u009b2J\\u202e\\u2028\\udb40\\udc41\\"\\n"');
  t.equal(quoted({ a: [1, null] }), '{"a":[1,null]}');
  t.equal(quoted(undefined), 'undefined');
  const units = string({ unit: 'binary' });
  assert(
    property(oneof(units, array(units), dictionary(units, units)), (value) => {
      const text = quoted(value);
      t.notMatch(text, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      t.same(JSON.parse(text), value);
    }),
    { seed: testSeed, numRuns: 300 },
  );
});
