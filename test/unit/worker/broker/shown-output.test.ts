import * as fc from 'fast-check';
import t from 'tap';
import { ShownOutput } from '../../../../src/worker/broker/shown-output.ts';

/** Two streams, cut anywhere, also inside characters, and read at any moment. */
const anyScript = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ to: fc.constantFrom('stdout' as const, 'stderr' as const), size: fc.integer({ min: 1, max: 7 }) }),
    },
    { weight: 1, arbitrary: fc.constant('read' as const) },
  ),
  { maxLength: 80 },
);
const anyText = fc.string({ unit: fc.constantFrom('a', 'é', '€', '😀', '\n'), minLength: 1, maxLength: 60 });

t.test('what was read and what was not are together the output, once, cut between whole characters', async () => {
  await fc.assert(
    fc.asyncProperty(anyText, anyText, anyScript, fc.boolean(), async (out, err, script, isRead) => {
      const output = new ShownOutput(1_000_000);
      const left = { stdout: Buffer.from(out), stderr: Buffer.from(err) };
      const write = (to: 'stdout' | 'stderr', size: number): void => {
        output[to](left[to].subarray(0, size));
        left[to] = left[to].subarray(size);
      };
      let seen = '';
      const read = async (): Promise<void> => {
        const piece = await output.read(0);
        if (piece.text.includes('\ufffd')) throw new Error('half a character was shown');
        seen += piece.text;
      };
      for (const step of script) {
        if (step !== 'read') write(step.to, step.size);
        else if (isRead) await read();
      }
      if (isRead) await read();
      write('stdout', Infinity);
      write('stderr', Infinity);
      const { shown, unread } = await output.finish();
      if ((unread !== undefined) !== isRead) throw new Error('what is unread is told to those who read, and to nobody else');
      const units = (all: string): string => Array.from(all).sort().join('');
      if (units(shown.text) !== units(out + err)) throw new Error('something is lost or doubled');
      return !isRead || seen + unread === shown.text;
    }),
    { numRuns: 200 },
  );
});

t.test('whoever falls behind finds a mark in place of what is gone, with its size', async (t) => {
  const output = new ShownOutput(20);
  output.stdout(Buffer.from('0123456789'));
  t.strictSame(await output.read(0), { text: '0123456789', over: false });
  output.stdout(Buffer.from('abcdefghijklmnopqrstuvwxyz'));
  t.strictSame(await output.read(0), { text: '\n[... 16 bytes left out ...]\nqrstuvwxyz', over: false });
  output.stderr(Buffer.from('A'));
  const { shown, unread } = await output.finish();
  t.equal(unread, 'A');
  t.match(shown, { text: '0123456789\n[... 17 bytes left out ...]\nrstuvwxyzA', totalBytes: 37, truncated: true });
});

t.test('a reader waits for the first byte, or for the end', async (t) => {
  const output = new ShownOutput(100);
  const first = output.read(60_000);
  output.stderr(Buffer.from('x'));
  t.strictSame(await first, { text: 'x', over: false });
  const last = output.read(60_000);
  await output.finish();
  t.strictSame(await last, { text: '', over: true });
  t.strictSame(await output.read(60_000), { text: '', over: true }, 'nobody waits behind the end');
});
