/** A run over wall time, in a bounded number of slots. */
import t from 'tap';
import { TimeLine } from '../../../../../src/main/run/report/time-line.ts';
import { durationBins } from '../../../../../src/main/run/report/duration-bins.ts';
import { eventsOf, sampleRandom, sampleResult, sampleStart, variedResult } from '../../../../support/run-samples.ts';

const usage = { inputTokens: 600, outputTokens: 120, cacheReadTokens: 0, reasoningTokens: 0, steps: 1, toolCalls: 0 };

t.test('what was at work and what came out is spread over the time it took', async (t) => {
  const line = new TimeLine();
  const at = (seconds: number) => sampleStart + seconds * 1000;
  line.onEvent({ type: 'run/start', time: at(0), total: 2, done: 0, concurrency: 2, agent: 'a' });
  line.onEvent({ type: 'job/state', time: at(0), key: 'a', state: 'running' });
  line.onEvent({ type: 'job/state', time: at(5), key: 'b', state: 'running' });
  line.onEvent({ type: 'job/turn', time: at(10), key: 'a', turn: 1, usage });
  line.onEvent({ type: 'job/end', time: at(10), result: sampleResult({ key: 'a' }) });
  line.onEvent({ type: 'job/retry', time: at(15), key: 'b', tries: 2, delayMs: 1, reason: '' });
  line.onEvent({ type: 'run/end', time: at(20), outcome: undefined as never });
  const slots = line.slots();
  const mean = (from: number, to: number, name: 'atWork' | 'outputTokens') => {
    const part = slots.slice((from * 1000) / line.slotMs, (to * 1000) / line.slotMs);
    return part.reduce((sum, slot) => sum + slot[name], 0) / part.length;
  };
  t.same([mean(0, 5, 'atWork'), mean(5, 10, 'atWork'), mean(10, 15, 'atWork'), mean(15, 20, 'atWork')], [1, 2, 1, 0]);
  t.equal(Math.round(mean(0, 10, 'outputTokens')), 12);
  t.equal(mean(10, 20, 'outputTokens'), 0);
});

t.test('a run of any length has a bounded number of slots, and nothing is lost when they grow', async (t) => {
  const random = sampleRandom(9);
  const results = Array.from({ length: 2000 }, (_, index) => variedResult(index, random));
  const line = new TimeLine();
  for (const event of eventsOf(results, 4)) line.onEvent(event);
  const slots = line.slots();
  t.ok(slots.length > 100 && slots.length <= 240, `${slots.length} slots of ${line.slotMs} ms`);
  const span = line.endedAt - line.startedAt!;
  const lengthOf = (index: number) => Math.min(line.slotMs, span - index * line.slotMs) / 1000;
  const tokens = slots.reduce((sum, slot, index) => sum + slot.outputTokens * lengthOf(index), 0);
  const expected = results.reduce((sum, result) => sum + result.usage!.outputTokens, 0);
  t.ok(Math.abs(tokens / expected - 1) < 1e-6, `${tokens} of ${expected}`);
  t.equal(
    slots.reduce((sum, slot) => sum + slot.ended, 0),
    2000,
  );
  t.ok(
    slots.every((slot) => slot.atWork <= 4.001),
    'never more than there are places',
  );
});

t.test('a clock that is set back spoils nothing', async (t) => {
  const line = new TimeLine();
  line.onEvent({ type: 'run/start', time: sampleStart, total: 1, done: 0, concurrency: 1, agent: '' });
  line.onEvent({ type: 'job/state', time: sampleStart + 1000, key: 'a', state: 'running' });
  line.onEvent({ type: 'job/turn', time: sampleStart - 5000, key: 'a', turn: 1, usage });
  line.onEvent({ type: 'job/end', time: sampleStart + 2000, result: sampleResult({ key: 'a' }) });
  t.ok(line.slots().every((slot) => Number.isFinite(slot.outputTokens) && slot.outputTokens >= 0));
});

t.test('bins cover every duration once, few or many, alike or not', async (t) => {
  const random = sampleRandom(2);
  for (const [low, high] of [
    [0, 0],
    [5, 5],
    [20_000, 28_000],
    [3, 900_000],
    [0, 1e9],
    [1000, 1e10],
  ] as const) {
    const durations = [low, high, ...Array.from({ length: 50 }, () => low + random() * (high - low))];
    const bins = durationBins(durations);
    t.ok(bins.length >= 1 && bins.length <= 40, `${low} to ${high}: ${bins.length} bins`);
    t.same(
      durations.filter((ms) => bins.filter(({ from, to }) => from <= ms && ms < to).length !== 1),
      [],
    );
  }
});
