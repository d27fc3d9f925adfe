/** Secrets in a text that comes in pieces: wherever it is cut, what is passed on is the same, and never more of a secret than two characters. */
import t from 'tap';
import { SecretValues } from '../../../src/shared/secret-values.ts';
import { testSeed } from '../../support/test-seed.ts';

const secrets = ['sk-abc-12345678', 'sk-abc-12345678-long', 'aaaaaaab1', 'ünïcode-1234', 'line one\nline 2'];
const values = new SecretValues(secrets);

function through(pieces: readonly string[]): string[] {
  const stream = values.stream();
  const shown = pieces.map((piece) => stream?.take(piece) ?? piece);
  return [...shown, stream?.end() ?? ''];
}

/** Chosen so that beginnings, repetitions and near misses of secrets meet. */
const texts = [
  'The key is sk-abc-12345678, keep it.',
  'sk-abc-12345678-long and sk-abc-12345678-lone and sk-abc-1234567',
  'sk-sk-abc-12345678sk-abc-12345678',
  'aaaaaaaaaaab1 aaaaaab1 aaaaaaab',
  'ünïcode-1234 ünïcode-123',
  'line one\nline 2 and line one\nline 3',
  'asks tasks skis aa sk- ü s',
];

t.test('cut at any one place, and character by character', async (t) => {
  const wrong: string[] = [];
  const check = (pieces: readonly string[], whole: string): void => {
    const shown = through(pieces).join('');
    if (!isSame(shown, whole) || secrets.some((secret) => shown.includes(secret))) wrong.push(`${pieces.join('|')}: ${shown}`);
  };
  for (const text of texts) {
    const whole = values.inText(text);
    for (let cut = 0; cut <= text.length; cut += 1) check([text.slice(0, cut), text.slice(cut)], whole);
    check(text.split(''), whole);
  }
  t.same(wrong, []);
});

/** Up to two characters of a secret may stand before its mark. */
function isSame(shown: string, whole: string): boolean {
  const [parts, wanted] = [shown.split('[redacted]'), whole.split('[redacted]')];
  return parts.length === wanted.length && parts.every((part, index) => isAlike(part, wanted[index] ?? '', index < parts.length - 1));
}

function isAlike(part: string, wanted: string, isBeforeMark: boolean): boolean {
  if (part === wanted) return true;
  const more = part.slice(wanted.length);
  return isBeforeMark && part.startsWith(wanted) && more.length <= 2 && secrets.some((secret) => secret.startsWith(more));
}

t.test('a thousand texts of a seed, cut at random', async (t) => {
  t.comment(`TEST_SEED=${testSeed}`);
  const random = seeded(testSeed);
  const words = [...secrets, 'sk-abc-', 'aaa', ' ', 's', 'a', 'line ', '-long', 'x'];
  const found: string[] = [];
  for (let round = 0; round < 1000; round += 1) {
    const text = Array.from({ length: 8 }, () => words[Math.trunc(random() * words.length)]).join('');
    const pieces: string[] = [];
    for (let at = 0; at < text.length; ) {
      const length = 1 + Math.trunc(random() * 6);
      pieces.push(text.slice(at, at + length));
      at += length;
    }
    const shown = through(pieces).join('');
    if (secrets.some((secret) => shown.includes(secret)) || !isSame(shown, values.inText(text))) found.push(text);
  }
  t.same(found, []);
});

function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

t.test('a piece in which no secret begins is passed on as it is, and one that may go on is held back but for two characters', async (t) => {
  const stream = values.stream();
  const piece = 'no word here';
  t.equal(stream?.take(piece), piece);
  t.equal(stream?.take(' sk-'), ' sk', 'the dash waits');
  t.equal(stream?.take('abc-1234'), '', 'so does the rest');
  t.equal(stream?.take('9!'), '-abc-12349!', 'it was none');
  t.equal(stream?.take(' sk-abc'), ' sk');
  t.equal(stream?.end(), '-abc', 'the text is over');
  t.equal(new SecretValues([]).stream(), undefined, 'without secrets there is nothing to do');
});

t.test('an unfinished text loses an end that may be the beginning of a secret', async (t) => {
  t.equal(values.inUnfinished('a sk-abc-12345678 b sk-abc-1'), 'a [redacted] b sk');
  t.equal(values.inUnfinished('plain'), 'plain');
});

t.test('data without secrets is given back itself', async (t) => {
  const data = { list: ['x'], more: undefined };
  t.equal(values.without(data), data);
  t.same(values.without({ text: 'sk-abc-12345678', n: 1 }), { text: '[redacted]', n: 1 });
});
