/**
 * Values that programs get wrong: texts, numbers, names of members, and JSON made of them.
 */
import type { Random } from './random.ts';

export const texts: readonly string[] = [
  '',
  ' ',
  'a',
  'src/a.ts',
  '/etc/passwd',
  '../../up',
  '/ws/project/../project2/a',
  '/proc/self/environ',
  '-rf',
  '~/x',
  '$(id)',
  '`id`',
  'a\nb',
  'a\r\nb',
  'a\tb',
  'nul\u0000nul',
  '\u001b[31mred\u001b[0m',
  '\u001b]0;title\u0007',
  '\u0085\u2028\u2029',
  '\u202egnp.exe',
  '\u2066hidden\u2069',
  '\u200b\u200d\ufeff',
  '\u{e0041}\u{e0042}',
  '\ud800',
  '\udc00x',
  '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
  'e\u0301\u0301\u0301',
  '[x](javascript:alert(1))',
  '```\n# not a fence\n```',
  '__proto__',
  'constructor',
  'toString',
  '{"a":1}',
  '%s%n%x',
  'C:\\Windows\\x',
  '*'.repeat(50),
  '['.repeat(300),
  '('.repeat(300),
  '{a,b}'.repeat(12),
  '\u00e4'.repeat(700),
  'x'.repeat(5000),
  '\u{1f600}'.repeat(1000),
];

export const numbers: readonly number[] = [
  0, -0, 1, -1, 2, 0.5, -0.5, 1e-320, 255, 256, 65_535, 65_536, 2_147_483_647, 2_147_483_648, 4_294_967_296, 9_007_199_254_740_991,
  9_007_199_254_740_992, -9_007_199_254_740_992, 1e21, 1e308,
];

export const memberNames: readonly string[] = [
  'a',
  '',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '_meta',
  '0',
  '\u0000',
];

/** Numbers and the like as JSON text that no value of JavaScript is written as. */
const oddLiterals: readonly string[] = [
  '1e400',
  '-1e400',
  '-0',
  '1E+2',
  '0.0',
  '123456789012345678901234567890',
  '"\\ud800"',
  '"\\u0000"',
  '{"a":1,"a":2}',
];

/** JSON text of any value, up to `depth` deep. */
export function hostileJson(random: Random, depth = 2): string {
  switch (random.below(depth > 0 ? 9 : 6)) {
    case 0:
      return JSON.stringify(random.pick(texts));
    case 1:
      return JSON.stringify(random.pick(numbers));
    case 2:
      return random.pick(['null', 'true', 'false']);
    case 3:
      return random.pick(oddLiterals);
    case 4:
      return JSON.stringify(random.pick(texts) + random.pick(texts));
    case 5:
      return String(random.bits() - 2_147_483_648);
    case 6:
      return `[${random.list(4, () => hostileJson(random, depth - 1)).join(',')}]`;
    case 7:
      return nested(random.pick([2, 20, 200]), random);
    default:
      return objectText(random.list(4, () => [random.pick(memberNames), hostileJson(random, depth - 1)]));
  }
}

export function objectText(members: readonly (readonly [string, string])[]): string {
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
}

/** JSON that whoever walks it by recursion does not survive. */
export function deepJson(random: Random): string {
  return nested(random.pick([1500, 20_000]), random);
}

function nested(depth: number, random: Random): string {
  return random.chance(2) ? '['.repeat(depth) + ']'.repeat(depth) : '{"a":'.repeat(depth) + '1' + '}'.repeat(depth);
}

/** JSON text in which one place, anywhere, holds another value, is gone, or is there twice. */
export function spoilJson(random: Random, value: unknown): string {
  const places = countPlaces(value);
  const target = random.below(places);
  const how = random.below(4);
  let at = -1;
  const write = (one: unknown): string => {
    at += 1;
    if (at === target && how !== 2) return hostileJson(random);
    if (Array.isArray(one)) return `[${one.map((item) => write(item)).join(',')}]`;
    if (typeof one !== 'object' || one === null) return JSON.stringify(one) ?? 'null';
    const members: [string, string][] = [];
    for (const [name, item] of Object.entries(one)) {
      const place = at + 1;
      const text = write(item);
      if (place === target && how === 2) {
        if (random.chance(2)) continue;
        members.push([name, hostileJson(random)]);
      }
      members.push([place === target && how === 3 && random.chance(2) ? random.pick(memberNames) : name, text]);
    }
    return objectText(members);
  };
  return write(value);
}

function countPlaces(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((sum, item) => sum + countPlaces(item), 1);
}
