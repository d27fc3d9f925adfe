import t from 'tap';
import { fitPower } from '../../../bench/growth/fit.ts';

const sizes = [1, 10, 100, 1000];

t.test('the exponent of a power is found, whatever its factor', async (t) => {
  for (const exponent of [0, 0.5, 1, 2]) {
    const fit = fitPower(sizes.map((size) => ({ size, cost: 7 * size ** exponent })));
    t.ok(Math.abs(fit.exponent - exponent) < 1e-9, `${exponent}`);
    t.ok(Math.abs(fit.factor - 7) < 1e-9, 'the factor');
  }
});

t.test('noise that goes both ways leaves the exponent about where it is', async (t) => {
  const noisy = sizes.map((size, index) => ({ size, cost: size * (index % 2 === 0 ? 1.1 : 0.9) }));
  t.ok(Math.abs(fitPower(noisy).exponent - 1) < 0.05);
});

t.test('a cost of nothing, as of memory that was given back, is left out', async (t) => {
  const points = [{ size: 1, cost: -3 }, { size: 5, cost: 0 }, ...sizes.slice(1).map((size) => ({ size, cost: 2 * size }))];
  t.ok(Math.abs(fitPower(points).exponent - 1) < 1e-9);
});

t.test('one size alone has no exponent', async (t) => {
  t.ok(Number.isNaN(fitPower([{ size: 3, cost: 1 }]).exponent));
  t.ok(Number.isNaN(fitPower([]).exponent));
});
