import { execFileSync } from 'node:child_process';
import * as fc from 'fast-check';
import t from 'tap';
import { matchesArgv, matchesWord, plainArgv } from '../../../src/shared/plain-command.ts';

t.test('plain words are one argv', async (t) => {
  const cases: [string, string[]][] = [
    ['npm test', ['npm', 'test']],
    ['npm', ['npm']],
    ['./run.sh --a=b c,d e@1.0 50% +x', ['./run.sh', '--a=b', 'c,d', 'e@1.0', '50%', '+x']],
    [`git commit -m 'Fix the parser'`, ['git', 'commit', '-m', 'Fix the parser']],
    ['git commit -m "Größe 2, teil: 3"', ['git', 'commit', '-m', 'Größe 2, teil: 3']],
    ['x - --', ['x', '-', '--']],
  ];
  for (const [line, argv] of cases) t.same(plainArgv(line), argv, line);
});

t.test('anything else is not', async (t) => {
  const lines = [
    '',
    ' npm test',
    'npm test ',
    'npm  test',
    'npm\ttest',
    'npm test\n',
    'npm test\nrm x',
    'A=b npm test',
    'A+=b npm test',
    'npm test; rm x',
    'npm test && rm x',
    'npm test | tee x',
    'npm test & rm x',
    'npm test > x',
    'npm test < x',
    'npm test $(rm x)',
    'npm test `rm x`',
    'npm test $X',
    'npm test *.ts',
    'npm test a?c',
    'npm test [ab]',
    'npm test {a,b}',
    'npm test ~',
    'npm test #x',
    'npm test !x',
    'npm test \\x',
    '(npm test)',
    '{ npm test; }',
    '! npm test',
    '~/x',
    '%1',
    '-x',
    ': x',
    `'npm' test`,
    `npm 'a'b`,
    `npm a'b'`,
    `npm 'a`,
    `npm ''`,
    `npm "$X"`,
    `npm 'a;b'`,
    `npm 'a"b'`,
    'npm "a\nb"',
    'npm tést',
    'npm\u00a0test',
    'npm test\0',
    'x'.repeat(9000),
  ];
  for (const line of lines) t.equal(plainArgv(line), undefined, JSON.stringify(line));
});

const metacharacters = [
  '|',
  '&',
  ';',
  '<',
  '>',
  '(',
  ')',
  '$',
  '`',
  '\\',
  '*',
  '?',
  '[',
  ']',
  '#',
  '~',
  '!',
  '{',
  '}',
  '^',
  '\n',
  '\r',
  '\t',
  '\0',
];
const anyCommand = [['*', '...']];
const isAllowed = (line: string): boolean => {
  const argv = plainArgv(line);
  return argv !== undefined && anyCommand.some((pattern) => matchesArgv(pattern, argv));
};

t.test('a command with a metacharacter anywhere never matches, quoted or not', async (t) => {
  const plain = fc.stringMatching(/^[a-z]{1,6}(?: [a-z='"-]{1,6}){0,4}$/);
  const arbitrary = fc.string({ unit: fc.constantFrom(...'ab =-\'"./'.split(''), ...metacharacters), maxLength: 20 });
  const line = fc.tuple(fc.oneof(plain, arbitrary, fc.string({ unit: 'binary' })), fc.constantFrom(...metacharacters), fc.nat());
  const property = fc.property(line, ([text, character, at]) => {
    const place = at % (text.length + 1);
    return !isAllowed(text.slice(0, place) + character + text.slice(place));
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 3000 }));
});

t.test('what is taken as one argv is the same argv for the shell', async (t) => {
  const words = fc.array(fc.string({ unit: fc.constantFrom(...'aZ0_-./=:@%+, \'"é'.split('')), maxLength: 8 }), {
    minLength: 1,
    maxLength: 4,
  });
  const lines: string[] = [];
  fc.assert(
    fc.property(words, (parts) => {
      const line = `printf ${parts.join(' ')}`;
      if (plainArgv(line) !== undefined && lines.length < 400) lines.push(line);
    }),
    { numRuns: 20_000 },
  );
  t.ok(lines.length >= 200, `${lines.length} plain lines`);
  // A function in the place of the program shows the words that the shell hands over.
  const script = `printf() { builtin printf '%s\\0' "$@"; builtin printf '\\1'; }\n${lines.join('\n')}\n`;
  const seen = execFileSync('bash', ['-c', script], { encoding: 'utf8' }).split('\u0001').slice(0, -1);
  t.same(
    seen.map((words) => words.split('\0').slice(0, -1)),
    lines.map((line) => plainArgv(line)?.slice(1)),
  );
});

t.test('a pattern is matched word by word', async (t) => {
  const matches = (pattern: string[], line: string): boolean => matchesArgv(pattern, plainArgv(line) ?? ['not plain']);
  t.ok(matches(['npm', 'test'], 'npm test'));
  t.notOk(matches(['npm', 'test'], 'npm test --x'));
  t.notOk(matches(['npm', 'test'], 'npm'));
  t.ok(matches(['npm', 'run', '...'], 'npm run'));
  t.ok(matches(['npm', 'run', '...'], 'npm run a b'));
  t.notOk(matches(['npm', 'run', '...'], 'npm ran'));
  t.ok(matches(['npm', 'run', 'test:*'], 'npm run test:unit'));
  t.notOk(matches(['npm', 'run', 'test:*'], 'npm run test'));
  t.notOk(matches(['npm', '*'], 'npm a b'));
});

t.test('a star takes any characters, as a regular expression would, and no time at all', async (t) => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.'), maxLength: 8 });
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '.', '/'), maxLength: 12 });
  fc.assert(
    fc.property(letters, text, (pattern, text) => {
      const expected = new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '.*')}$`).test(text);
      return matchesWord(pattern, text) === expected;
    }),
    { numRuns: 3000 },
  );
  t.notOk(matchesWord(`${'a*'.repeat(100)}c`, 'a'.repeat(8000)));
});
