/**
 * Blind changes of bytes, for inputs that nobody thought of.
 */
import type { Random } from './random.ts';

const tokens: readonly Buffer[] = [
  '\n',
  '\r\n',
  '\r',
  '\u0000',
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  'null',
  '1e999',
  '-',
  '\\ud800',
  '"__proto__":{},',
  'data:',
  'data: [DONE]\n\n',
  ':\n\n',
  '\ufeff',
  '\u2028',
].map((text) => Buffer.from(text));
const badBytes: readonly Buffer[] = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0x80]].map(
  (bytes) => Buffer.from(bytes),
);

/** One to four changes: a flipped bit, a cut, a copy, a token or bad UTF-8 put in, a piece of `other`. The result is at most `most` bytes. */
export function mutate(random: Random, bytes: Buffer, other: Buffer, most: number): Buffer {
  let result = bytes;
  for (let left = 1 + random.below(4); left > 0; left -= 1) result = change(random, result, other);
  return result.subarray(0, most);
}

function change(random: Random, bytes: Buffer, other: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  const end = Math.min(bytes.length, at + 1 + random.below(random.chance(3) ? 200 : 8));
  const replace = (middle: Buffer, to = at): Buffer => Buffer.concat([bytes.subarray(0, at), middle, bytes.subarray(to)]);
  switch (random.below(9)) {
    case 0: {
      const flipped = Buffer.from(bytes);
      if (at < flipped.length) flipped[at] = flipped[at]! ^ (1 << random.below(8));
      return flipped;
    }
    case 1:
      return replace(Buffer.alloc(0), end);
    case 2:
      return bytes.subarray(0, at);
    case 3:
      return replace(bytes.subarray(at, end));
    case 4:
      return replace(random.pick(tokens));
    case 5:
      return replace(random.pick(badBytes), random.chance(2) ? end : at);
    case 6: {
      const from = random.below(other.length);
      return replace(other.subarray(from, from + random.below(other.length - from) + 1), random.chance(2) ? end : at);
    }
    case 7:
      return replace(Buffer.from([random.below(256)]), Math.min(bytes.length, at + 1));
    default:
      return replace(Buffer.alloc(1 + random.below(300), bytes.subarray(at, end).length === 0 ? 'x' : bytes.subarray(at, end)));
  }
}

/** Cuts into pieces anywhere; `every` cuts behind each byte. */
export function pieces(random: Random, bytes: Buffer, every = false): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = every ? 1 : 1 + random.below(random.chance(3) ? 4 : 500);
    parts.push(bytes.subarray(at, at + size));
    at += size;
  }
  return parts;
}
