import t from 'tap';
import type { Job } from '../../../../src/main/run/job.ts';
import { Attempts } from '../../../../src/main/run/jobs/attempts.ts';
import type { JobSource } from '../../../../src/main/run/jobs/job-source.ts';

function source(ids: readonly string[], priorities: Readonly<Record<string, number>> = {}): JobSource {
  return {
    name: 'test',
    count: ids.length,
    fileHash: undefined,
    problems: [],
    invalid: 0,
    id: (index) => ids[index] ?? '',
    hash: (index) => `hash of ${ids[index]}`,
    priority: (index) => priorities[ids[index] ?? ''] ?? 0,
    indexOf: (id) => (ids.includes(id) ? ids.indexOf(id) : undefined),
    job: async (index) => ({ id: ids[index], seed: 40, hasSeed: ids[index] === 'seeded' }) as Job,
    close: async () => undefined,
  };
}

const none = () => false;
const keys = (attempts: Attempts, order: Uint32Array) => [...order].map((index) => attempts.key(index));

t.test('repeat 0 has the key of its job, so a file can be run again with more repeats', async (t) => {
  const once = new Attempts(source(['a', 'b']), 1);
  const thrice = new Attempts(source(['a', 'b']), 3);
  t.same(keys(once, once.order(none, undefined)), ['a', 'b']);
  t.same(keys(thrice, thrice.order(none, undefined)), ['a', 'a#1', 'a#2', 'b', 'b#1', 'b#2']);
  t.match(await thrice.attempt(5), { key: 'b#2', repeat: 2, seed: 42, modelSeed: 42, job: { id: 'b' } });
  t.equal((await once.attempt(1)).modelSeed, undefined, 'a model is told a seed only where somebody asked for one');
  t.equal((await new Attempts(source(['seeded']), 1).attempt(0)).modelSeed, 40);
  t.equal(thrice.hash(4), 'hash of b');
  for (let index = 0; index < thrice.count; index += 1) t.equal(thrice.indexOf(thrice.key(index)), index);
  t.same(
    ['c', 'a#0', 'a#3', 'a#1#1', ''].map((key) => thrice.indexOf(key)),
    Array(5).fill(undefined),
  );
});

t.test('the order leaves out what is done, and is drawn by the seed alone', async (t) => {
  const ids = Array.from({ length: 50 }, (_, index) => `j${index}`);
  const attempts = new Attempts(source(ids), 1);
  const rest = attempts.order((index) => index % 2 === 0, undefined);
  t.same(
    [...rest],
    Array.from({ length: 25 }, (_, index) => 2 * index + 1),
  );
  const first = [...attempts.order(none, 7)];
  t.same([...attempts.order(none, 7)], first);
  t.notSame([...attempts.order(none, 8)], first);
  t.same(
    [...first].sort((a, b) => a - b),
    Array.from({ length: 50 }, (_, index) => index),
  );
});

t.test('higher priorities start first; equals keep their order', async (t) => {
  const attempts = new Attempts(source(['a', 'b', 'c', 'd'], { b: 5, d: 5, c: -1 }), 1);
  t.same(keys(attempts, attempts.order(none, undefined)), ['b', 'd', 'a', 'c']);
});
