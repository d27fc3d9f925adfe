import t from 'tap';
import { canonicalDirectory, lookAtDirectory } from '../../../../src/main/sessions/working-directory.ts';

t.test('a file system that does not answer holds up its own requests alone, and not for long', async (t) => {
  let asked = 0;
  const look = (): Promise<never> => {
    asked += 1;
    return new Promise(() => undefined);
  };
  const late = { ok: false as const, fault: 'does not answer: its file system may be out of reach.' };
  const answers = await Promise.all(Array.from({ length: 8 }, () => lookAtDirectory('/hung', { look, deadlineMs: 5 })));
  t.strictSame(
    answers,
    answers.map(() => late),
  );
  t.strictSame(await lookAtDirectory('/hung', { look, deadlineMs: 1 }), late);
  t.equal(asked, 1, 'one thread of the pool is lost, however often it is asked about');
  t.equal(await canonicalDirectory('/'), '/', 'others are looked at meanwhile');
});
