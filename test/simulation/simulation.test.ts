/** The simulation itself is what it claims to be: the same each time; and its first seeds find nothing wrong. */
import t from 'tap';
import { planOf } from './plan.ts';
import { runPlan, runSeed, shrink } from './run-seed.ts';
import { firstFailure, onceFailed } from './seeds.ts';

t.test('the same seed gives the same history', async (t) => {
  for (const seed of [3, 8, 44, 172, 253]) {
    const [first, , again] = [await runSeed(seed), await runSeed(seed + 1), await runSeed(seed)];
    t.equal(again.hash, first.hash, `seed ${seed}`);
    t.same(again.history, first.history);
  }
  t.not((await runSeed(3)).hash, (await runSeed(4)).hash);
});

t.test('a failure is made smaller: acts that it does not need are left out', async (t) => {
  // Without an end of input the server does not stop: a failure that needs no act at all.
  const plan = planOf(8);
  const broken = { ...plan, acts: plan.acts.filter(({ kind }) => kind !== 'end-of-input') };
  const found = await runPlan(broken);
  t.match(found.complaints[0], 'did not stop');
  const { plan: smaller, outcome } = await shrink(broken);
  t.match(outcome.complaints[0], 'did not stop');
  t.ok(smaller.acts.length < broken.acts.length, `${broken.acts.length} acts became ${smaller.acts.length}`);
});

t.test('seeds 1 to 250 keep what the protocol and the log promise', async (t) => {
  t.equal(await firstFailure(1, 251), undefined);
});

t.test('seeds that once showed a fault show it no more', async (t) => {
  for (const [seed, what] of onceFailed) t.equal(await firstFailure(seed, seed + 1), undefined, what);
});
