import * as fc from 'fast-check';
import t from 'tap';
import { globPattern } from '../../../src/shared/glob-pattern.ts';

/** What a glob says, told by a regular expression: short, and slow on what is meant to be. */
function reference(pattern: string): RegExp | undefined {
  let depth = 0;
  let alternatives = 0;
  const source = pattern.replace(/^\.?\//, '').replace(/\*\*\/|\*+|\?|\[[!^]?\]?[^\]/]*\]|\\[^]|[^]/gu, (piece) => {
    if (piece === '**/') return '(?:[^]*/)?';
    if (piece.startsWith('*')) return piece.length > 1 ? '[^]*' : '[^/]*';
    if (piece === '?') return '[^/]';
    if (piece.startsWith('[') && piece.length > 1) {
      const negated = /^\[[!^]/.test(piece);
      const members = piece.slice(negated ? 2 : 1, -1).replace(/[\\\]^[&~|]/g, '\\$&');
      return negated ? `(?!/)[^${members}]` : `[${members}]`;
    }
    if (piece === '{') {
      depth += 1;
      return '(?:';
    }
    if (piece === '}' && depth > 0) {
      depth -= 1;
      return ')';
    }
    if (piece === ',' && depth > 0) {
      alternatives += 1;
      return '|';
    }
    return (piece.length > 1 && piece.startsWith('\\') ? piece.slice(1) : piece).replace(
      /[^]/gu,
      (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`,
    );
  });
  if (depth !== 0 || alternatives > 64) return undefined;
  try {
    return new RegExp(`^${pattern.includes('/') ? source : `(?:[^]*/)?${source}`}$`, 'u');
  } catch {
    return undefined;
  }
}

t.test('a glob means what it always meant', async (t) => {
  const piece = fc.constantFrom(
    'a',
    'b',
    '.',
    '/',
    '*',
    '**',
    '**/',
    '?',
    '[ab]',
    '[!a]',
    '[a-b.]',
    '[z-a]',
    '[',
    ']',
    '{',
    '}',
    ',',
    '\\*',
    '\\',
    'é',
    '😀',
    '{a,b}',
    '^',
    '$',
    '(',
    '|',
    '+',
  );
  const glob = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));
  const path = fc
    .array(fc.constantFrom('a', 'b', '.', '/', '*', 'é', '😀', ',', '}', '\n', '^', 'ab'), { maxLength: 8 })
    .map((parts) => parts.join(''));
  let matched = 0;
  const property = fc.property(glob, fc.array(path, { minLength: 1, maxLength: 6 }), (glob, paths) => {
    const [pattern, expected] = [globPattern(glob), reference(glob)];
    if ((pattern === undefined) !== (expected === undefined)) return false;
    return paths.every((path) => {
      if (expected?.test(path) === true) matched += 1;
      return pattern?.test(path) === expected?.test(path);
    });
  });
  fc.assert(property, { numRuns: 3000 });
  t.ok(matched > 200, `${matched} matches`);
});

t.test('no path and no glob makes a match take long', async (t) => {
  const started = process.cpuUsage();
  const deep = `${'a/'.repeat(2000)}x`;
  for (const [glob, path] of [
    ['*a*a*a*a*a*a*a*b', 'a'.repeat(255)],
    ['**/a/**/a/**/a/**/a/**/b', deep],
    ['**/*a*/**/*a*/**/*b', deep],
    ['{a,aa}'.repeat(30), 'a'.repeat(60)],
    [`${'*a'.repeat(500)}b`, 'a'.repeat(4000)],
  ] as const) {
    t.equal(globPattern(`./${glob}`)?.test(path), glob.startsWith('{'), glob.slice(0, 30));
  }
  const { user, system } = process.cpuUsage(started);
  t.ok((user + system) / 1e6 < 5, 'the shortest of them would take a regular expression longer than the test may run');
});
