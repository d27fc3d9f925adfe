import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import t from 'tap';
import { ByteRing } from '../../../../src/worker/broker/byte-ring.ts';
import { OutputCapture } from '../../../../src/worker/broker/output-capture.ts';
import { SpillFile } from '../../../../src/worker/broker/spill-file.ts';
import { orphanedHead, unfinishedTail } from '../../../../src/worker/broker/utf8-cut.ts';
import { testSeed } from '../../../support/test-seed.ts';

const seed = testSeed;
t.comment(`TEST_SEED=${seed}`);

/** Cuts bytes into chunks at arbitrary places. */
const chunksOf = (bytes: fc.Arbitrary<Uint8Array>) =>
  fc.tuple(bytes, fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 40 })).map(([all, sizes]) => {
    const chunks: Buffer[] = [];
    for (let at = 0, index = 0; at < all.length; index += 1) {
      const size = (sizes[index % sizes.length] ?? 0) + 1;
      chunks.push(Buffer.from(all.subarray(at, at + size)));
      at += size;
    }
    return { all: Buffer.from(all), chunks };
  });

const text = fc.string({ unit: 'binary', maxLength: 200 }).map((value) => new TextEncoder().encode(value));

t.test('a ring holds the end of the stream, from any offset', async () => {
  fc.assert(
    fc.property(
      chunksOf(fc.uint8Array({ maxLength: 300 })),
      fc.integer({ min: 1, max: 100 }),
      fc.nat({ max: 300 }),
      (input, capacity, offset) => {
        const ring = new ByteRing(capacity);
        for (const chunk of input.chunks) ring.push(chunk);
        const from = Math.max(offset, input.all.length - capacity);
        return ring.total === input.all.length && ring.since(offset).equals(input.all.subarray(from));
      },
    ),
    { seed, numRuns: 500 },
  );
});

t.test('text comes back whole, or as its true head and tail with the right count between', async () => {
  await fc.assert(
    fc.asyncProperty(chunksOf(text), fc.integer({ min: 2, max: 150 }), async ({ all, chunks }, keepBytes) => {
      const capture = new OutputCapture(keepBytes, undefined);
      for (const chunk of chunks) await capture.write(chunk);
      const output = await capture.finish();
      const whole = all.toString('utf8');
      if (output.totalBytes !== all.length || output.truncated !== all.length > keepBytes) return false;
      if (!output.truncated) return output.text === whole;
      // The mark is found by its count, since the text itself may hold anything.
      for (let head = 0; head <= keepBytes; head += 1) {
        for (let tail = 0; head + tail <= keepBytes; tail += 1) {
          const mark = `\n[... ${all.length - head - tail} bytes left out ...]\n`;
          const made = `${all.toString('utf8', 0, head)}${mark}${all.toString('utf8', all.length - tail)}`;
          if (made === output.text) return !made.includes('\uFFFD') || whole.includes('\uFFFD');
        }
      }
      return false;
    }),
    { seed, numRuns: 150 },
  );
});

t.test('a spill file holds all bytes, up to its cap, however they were cut', async (t) => {
  const directory = t.testdir();
  await fc.assert(
    fc.asyncProperty(chunksOf(fc.uint8Array({ minLength: 20, maxLength: 300 })), fc.integer({ min: 1, max: 400 }), async (input, cap) => {
      const capture = new OutputCapture(10, new SpillFile(directory, cap));
      for (const chunk of input.chunks) await capture.write(chunk);
      const { spillPath } = await capture.finish();
      return spillPath !== undefined && readFileSync(spillPath).equals(input.all.subarray(0, cap));
    }),
    { seed, numRuns: 60 },
  );
});

t.test('a cut through any character is found', async (t) => {
  for (const character of ['a', 'é', '€', '😀']) {
    const bytes = Buffer.from(`x${character}`);
    for (let end = 1; end <= bytes.length; end += 1) {
      t.equal(unfinishedTail(bytes.subarray(0, end)), end === bytes.length ? 0 : end - 1, `${character} to ${end}`);
    }
    const own = Buffer.from(character);
    for (let start = 0; start < own.length; start += 1) {
      t.equal(orphanedHead(own.subarray(start)), start === 0 ? 0 : own.length - start, `${character} from ${start}`);
    }
  }
  t.equal(unfinishedTail(Buffer.from([0xff])), 0);
  t.equal(unfinishedTail(Buffer.from([0x80, 0x80, 0x80, 0x80])), 0);
});
