import t from 'tap';
import { linear, Samples } from '../../../bench/growth/curve.ts';

const plan = { what: 'a cost', unit: 'ms', over: 'sizes', most: linear };

t.test('a curve has the median and the extremes of each size, smallest size first', async (t) => {
  const samples = new Samples();
  samples.add(100, 210, 190);
  samples.add(10, 20, 30, 10);
  samples.add(100, 200);
  t.strictSame(samples.curve(plan).points, [
    { size: 10, cost: 20, low: 10, high: 30 },
    { size: 100, cost: 200, low: 190, high: 210 },
  ]);
});

t.test('the exponent is of the sizes that cost, and not of what is there without them', async (t) => {
  const samples = new Samples();
  for (const size of [1, 10, 100, 1000, 10_000]) samples.add(size, 50 + size);
  const whole = samples.curve(plan).exponent;
  const dominant = samples.curve({ ...plan, from: 100 }).exponent;
  t.ok(whole < 0.7 && dominant > 0.9 && dominant < 1.01, `${whole} ${dominant}`);
});

t.test('two sizes alone give no exponent', async (t) => {
  const samples = new Samples();
  samples.add(1, 1);
  samples.add(10, 100);
  t.ok(Number.isNaN(samples.curve(plan).exponent));
});
