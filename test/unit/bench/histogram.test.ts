import t from 'tap';
import { LatencyHistogram } from '../../../bench/load/histogram.ts';

t.test('percentiles are right to a thousandth over five decades', async (t) => {
  const histogram = new LatencyHistogram();
  for (let i = 1; i <= 10_000; i += 1) histogram.record(i / 10);
  const { p50, p95, p99, max } = histogram.percentiles();
  for (const [found, expected] of [
    [p50, 500],
    [p95, 950],
    [p99, 990],
  ] as const) {
    t.ok(Math.abs(found - expected) / expected < 0.002, `${found} for ${expected}`);
  }
  t.equal(max, 1000, 'the greatest value is kept as it is');
  t.equal(histogram.count, 10_000);
});

t.test('one outlier among many shows as the maximum alone', async (t) => {
  const histogram = new LatencyHistogram();
  for (let i = 0; i < 999; i += 1) histogram.record(0.5);
  histogram.record(1234.5678);
  t.equal(histogram.percentiles().max, 1234.5678);
  t.ok(histogram.percentiles().p99 < 0.51);
});

t.test('nothing recorded is not a number, and less than nothing is counted as almost nothing', async (t) => {
  const histogram = new LatencyHistogram();
  t.ok(Number.isNaN(histogram.percentiles().p50));
  histogram.record(-2);
  t.equal(histogram.count, 1);
  t.ok(histogram.percentile(50) <= 0.001);
});

t.test('what takes longer than an hour is counted as an hour and told as it is', async (t) => {
  const histogram = new LatencyHistogram();
  histogram.record(5_000_000);
  t.equal(histogram.percentiles().max, 5_000_000);
});
