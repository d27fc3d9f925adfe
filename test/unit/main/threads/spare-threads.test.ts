/** Spare threads of a real pool: how many are there once sessions have taken some. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Piscina } from 'piscina';
import t from 'tap';
import { placementFor } from '../../../../src/main/threads/placement.ts';
import { SpareThreads } from '../../../../src/main/threads/spare-threads.ts';

t.test('free threads are started behind those that were taken, up to the most that may be', async (t) => {
  const filename = join(t.testdir({}), 'entry.mjs');
  writeFileSync(filename, 'export default () => new Promise(() => undefined); export const spare = () => undefined;');
  const maxThreads = 4;
  const pool = new Piscina({
    filename,
    minThreads: 2,
    maxThreads,
    concurrentTasksPerWorker: 9,
    loadBalancer: placementFor('dedicated', maxThreads),
    atomics: 'disabled',
    idleTimeout: Number.POSITIVE_INFINITY,
  });
  // The pool alone does not keep the process.
  const alive = setInterval(() => undefined, 1000);
  t.teardown(() => clearInterval(alive));
  t.teardown(() => pool.destroy());
  pool.on('error', () => undefined);
  let attached = 0;
  const config = { isolation: 'dedicated', spareThreads: 2, maxThreads } as const;
  const spares = new SpareThreads({ config, pool, diagnostics: { log: () => undefined } as never, attachedCount: () => attached });
  const attach = (): void => {
    attached += 1;
    pool.run(undefined).catch(() => undefined);
    spares.refillSoon();
  };
  for (const expected of [3, 4]) {
    attach();
    while (pool.threads.length < expected) await once(pool, 'workerCreate');
    t.equal(pool.threads.length, expected, `${attached} taken, two free`);
  }
  attach();
  attach();
  spares.stop();
  t.equal(pool.threads.length, maxThreads);
});
