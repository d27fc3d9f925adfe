import * as fc from 'fast-check';
import t from 'tap';
import { type DecodedFrame, FrameDecoder } from '../../../../src/shared/framing/frame-decoder.ts';

const CAP = 64 * 1024;

function decode(chunks: readonly Buffer[], maxFrameBytes = CAP): DecodedFrame[] {
  const frames: DecodedFrame[] = [];
  const decoder = new FrameDecoder({ maxFrameBytes }, (frame) => frames.push(frame));
  for (const chunk of chunks) decoder.push(chunk);
  decoder.end();
  return frames;
}

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const awkward = Buffer.from('{"a":"é漢😀"}\r\n\r\n \t\n{"b":1}\n\ufeff{"c":2}\r\nlast 😀', 'utf8');

t.test('a stream cut in two at every offset gives the same lines', async (t) => {
  const whole = decode([awkward]);
  t.same(whole, [{ line: '{"a":"é漢😀"}' }, { line: '{"b":1}' }, { line: '\ufeff{"c":2}' }, { line: 'last 😀' }]);
  for (let cut = 0; cut <= awkward.length; cut += 1) {
    t.same(decode([awkward.subarray(0, cut), awkward.subarray(cut)]), whole, `cut at ${cut}`);
  }
  t.same(decode(Array.from(awkward, (byte) => Buffer.from([byte]))), whole, 'byte by byte');
});

t.test('any frames, any line endings and any cuts give the frames back', async () => {
  const frame = fc.string({ unit: 'grapheme', maxLength: 60 }).map((text) => JSON.stringify({ text }));
  const ended = fc.array(fc.tuple(frame, fc.constantFrom('\n', '\r\n', '\n\n', '\r\n \r\n')), { maxLength: 20 });
  fc.assert(
    fc.property(ended, fc.array(fc.nat(), { maxLength: 30 }), (lines, cuts) => {
      const bytes = Buffer.from(lines.map(([text, end]) => text + end).join(''), 'utf8');
      const got = decode(cutAt(bytes, cuts));
      const expected = lines.map(([line]) => ({ line }));
      return JSON.stringify(got) === JSON.stringify(expected);
    }),
    { numRuns: 500 },
  );
});

t.test('any bytes at all give the same frames however they are cut, and never a line over the limit', async () => {
  const bytes = fc.array(fc.constantFrom(0x0a, 0x0d, 0x20, 0x41, 0xc3, 0xa9, 0xf0, 0x9f, 0x98, 0x80, 0xff, 0x00), { maxLength: 300 });
  fc.assert(
    fc.property(bytes, fc.array(fc.nat(), { maxLength: 20 }), fc.integer({ min: 1, max: 40 }), (raw, cuts, cap) => {
      const all = Buffer.from(raw);
      const got = decode(cutAt(all, cuts), cap);
      const reference = referenceDecode(all, cap);
      return JSON.stringify(got) === JSON.stringify(reference);
    }),
    { numRuns: 2000 },
  );
});

/** The rules again, written over the whole input at once. */
function referenceDecode(all: Buffer, cap: number): DecodedFrame[] {
  const text = all.toString('latin1');
  return text.split('\n').flatMap((raw): DecodedFrame[] => {
    if (raw.length > cap) return [{ oversized: cap }];
    const line = Buffer.from(raw.endsWith('\r') ? raw.slice(0, -1) : raw, 'latin1').toString('utf8');
    return line.trim() === '' ? [] : [{ line }];
  });
}

t.test('a line over the limit gives one notice, keeps memory flat, and the next line is whole', async (t) => {
  const frames: DecodedFrame[] = [];
  const decoder = new FrameDecoder({ maxFrameBytes: 1000 }, (frame) => frames.push(frame));
  const piece = Buffer.alloc(700, 'x');
  decoder.push(Buffer.from('first\n'));
  for (let i = 0; i < 100_000; i += 1) {
    decoder.push(piece);
    if (decoder.heldBytes > 1000) t.fail('holds more than the limit');
  }
  t.same(frames, [{ line: 'first' }, { oversized: 1000 }], 'the notice does not wait for the newline');
  t.equal(decoder.heldBytes, 0);
  decoder.push(Buffer.from('tail\nsecond\n'));
  t.same(frames.slice(2), [{ line: 'second' }]);
});

t.test('a line of exactly the limit passes, one byte more does not', async (t) => {
  const exact = 'y'.repeat(50);
  t.same(decode([Buffer.from(`${exact}\n${exact}z\nend\n`)], 50), [{ line: exact }, { oversized: 50 }, { line: 'end' }]);
  t.same(decode([Buffer.from(exact), Buffer.from('\n')], 50), [{ line: exact }]);
});

t.test('a line that comes one byte at a time costs linear time and no chunk list', async (t) => {
  const frames: DecodedFrame[] = [];
  const decoder = new FrameDecoder({ maxFrameBytes: 4 * 1024 * 1024 }, (frame) => frames.push(frame));
  const one = Buffer.from('a');
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 3_000_000; i += 1) decoder.push(one);
  const grown = process.memoryUsage().rss - before;
  decoder.push(Buffer.from('\n'));
  const [frame] = frames;
  t.equal(frame !== undefined && 'line' in frame ? frame.line.length : 0, 3_000_000);
  t.ok(grown < 64 * 1024 * 1024, `grew by ${grown} bytes`);
});

t.test('the chunk may be reused by the caller after push', async (t) => {
  const frames: DecodedFrame[] = [];
  const decoder = new FrameDecoder({ maxFrameBytes: CAP }, (frame) => frames.push(frame));
  const chunk = Buffer.from('half');
  decoder.push(chunk);
  chunk.fill('!');
  decoder.push(Buffer.from('way\n'));
  t.same(frames, [{ line: 'halfway' }]);
});

t.test('invalid UTF-8 and NUL bytes become text, and the next line is not touched', async (t) => {
  const frames = decode([Buffer.from([0xff, 0xed, 0xa0, 0x80, 0x00, 0x0a]), Buffer.from('ok\n')]);
  const [first, second] = frames;
  t.match(first, { line: /^\ufffd+\0$/ });
  t.same(second, { line: 'ok' });
});
