import { pathToFileURL } from 'node:url';
import t from 'tap';

interface Outcome {
  passed: number;
  failed: number;
  skipped: number;
  failures: { name: string; lines: string[] }[];
}

// The script is plain JavaScript outside the compiled tree, reached from the project's root.
const { createTapCounter, createTapReader }: any = await import(pathToFileURL('scripts/tap-count.mjs').href);

function count(text: string): Outcome {
  const counter = createTapCounter('file');
  for (const line of text.split('\n')) counter.line(line);
  return counter.end();
}

t.test('innermost tests are counted once', async (t) => {
  const text = `TAP version 14
# Subtest: outer
    # Subtest: first
        ok 1 - a
        ok 2 - b
        1..2
    ok 1 - first # time=1ms

    # Subtest: second
        ok 1 - a
        1..1
    ok 2 - second # time=1ms
    1..2
ok 1 - outer # time=3ms
1..1
# time=5ms`;
  t.match(count(text), { passed: 2, failed: 0, skipped: 0, failures: [] });
});

t.test('a failure is named by its way, with its diagnostics, and counted once', async (t) => {
  const text = `# Subtest: outer
    # Subtest: inner
        not ok 1 - the sum
          ---
          diff: |
            -1
            ok 7 - not a point
          ...
        1..1
    not ok 1 - inner # time=1ms
    1..1
not ok 1 - outer
1..1`;
  const outcome = count(text);
  t.match(outcome, { passed: 0, failed: 1 });
  t.same(
    outcome.failures.map((failure) => failure.name),
    ['file > outer > inner > the sum'],
  );
  t.match(outcome.failures[0]?.lines.join('\n'), /ok 7 - not a point/);
});

t.test('a failure of its own in a block with subtests is not lost', async (t) => {
  const text = `# Subtest: outer
    # Subtest: inner
        ok 1 - fine
        1..1
    ok 1 - inner
    not ok 2 - own assertion
    1..2
not ok 1 - outer
1..1`;
  t.match(count(text), { passed: 1, failed: 1, failures: [{ name: 'file > outer > own assertion' }] });
});

t.test('a file that stops in the middle, or has fewer points than planned, fails', async (t) => {
  t.match(count('# Subtest: one\n    ok 1 - a\n    1..1\nok 1 - one\n# Subtest: two\n    ok 1 - b'), { passed: 1 });
  t.ok(count('# Subtest: one\n    ok 1 - a\n    1..1\nok 1 - one').failed > 0);
  t.ok(count('').failed > 0);
  t.equal(count('ok 1 - a\n1..2').failed, 1);
  t.equal(count('ok 1 - a\n1..1\nBail out! gone').failed, 1);
});

t.test('skipped and open tests are neither passed nor failed', async (t) => {
  t.match(count('ok 1 - a # SKIP no reason\nnot ok 2 - b # TODO later\nok 3 - c\n1..3'), { passed: 1, failed: 0, skipped: 2 });
});

t.test('a test without assertions passes by ending, unless its end says that it was skipped', async (t) => {
  t.match(count('# Subtest: property\n    1..0\nok 1 - property\n1..1'), { passed: 1, failed: 0, skipped: 0 });
  t.match(count('# Subtest: late\n    1..0 # reason\nok 1 - late # SKIP reason\n1..1'), { passed: 0, failed: 0, skipped: 1 });
  t.match(count('1..0 # no tests found'), { passed: 0, skipped: 1 });
});

/** What a process wrote that ran these files: the outcome of each, and those it did not come to. */
function readFiles(files: string[], text: string, problem?: string): { outcomes: [file: string, outcome: Outcome][]; left: string[] } {
  const outcomes: [string, Outcome][] = [];
  const reader = createTapReader(files, (file: string, outcome: Outcome) => outcomes.push([file, outcome]));
  for (const line of text.split('\n')) reader.line(line);
  if (problem !== undefined) reader.end(problem);
  return { outcomes, left: reader.left };
}

const firstOfGroup = `TAP version 14
# Subtest: a.test.js
    # Subtest: outer
        not ok 1 - the sum
          ---
          diff: |
            -1
          ...
        1..1
    not ok 1 - outer
    1..1
not ok 1 - a.test.js # time=3ms
  ---
  at:
      ok 7 - not a point
  ...
`;

t.test('each file of a group has its own outcome, under its own name', async (t) => {
  const text = `${firstOfGroup}
# Subtest: b.test.js
    ok 1 - fine
    # Subtest: inner
        ok 1 - fine
        1..1
    ok 2 - inner
    1..2
ok 2 - b.test.js # time=3ms
1..2`;
  const { outcomes, left } = readFiles(['a.test.js', 'b.test.js'], text);
  t.match(outcomes, [
    ['a.test.js', { passed: 0, failed: 1, failures: [{ name: 'a.test > outer > the sum' }] }],
    ['b.test.js', { passed: 1, failed: 0, failures: [] }],
  ]);
  t.same(left, []);
});

t.test('a process that dies fails the file it was at, and says which it did not come to', async (t) => {
  const text = `${firstOfGroup}# Subtest: b.test.js\n    ok 1 - fine\n`;
  const { outcomes, left } = readFiles(['a.test.js', 'b.test.js', 'c.test.js'], text, 'ended with 134');
  t.same(
    outcomes.map(([file, { failed }]) => [file, failed]),
    [
      ['a.test.js', 1],
      ['b.test.js', 1],
    ],
  );
  t.same(left, ['c.test.js']);
  t.equal(readFiles(['a.test.js', 'b.test.js'], firstOfGroup, 'ended with 1').outcomes.length, 1, 'the next file is not blamed');
  t.match(readFiles(['a.test.js'], 'ok 1 - fine\n1..1\n', 'ended with 1').outcomes, [
    ['a.test.js', { failed: 1, failures: [{ lines: ['ended with 1'] }] }],
  ]);
});

t.test('a file of a group fails when only tap says so', async (t) => {
  const text = '# Subtest: a.test.js\n    ok 1 - fine\n    1..1\nnot ok 1 - a.test.js # timeout\n';
  t.match(readFiles(['a.test.js', 'b.test.js'], text).outcomes, [['a.test.js', { failed: 1, failures: [{ lines: [/timeout/] }] }]]);
});
