import * as fc from 'fast-check';
import t from 'tap';
import { CallLimit } from '../../../../src/main/limiter/call-limit.ts';

function limitOf(max: number, slowStart: number): { limit: CallLimit; time: { now: number } } {
  const time = { now: 0 };
  return { limit: new CallLimit({ max, slowStart, now: () => time.now }), time };
}

t.test('it starts at slow_start, and each success allows one more, up to the maximum', async (t) => {
  const { limit } = limitOf(6, 2);
  const seen = [limit.value];
  for (let success = 0; success < 6; success += 1) {
    limit.succeeded(limit.value);
    seen.push(limit.value);
  }
  t.same(seen, [2, 3, 4, 5, 6, 6, 6]);
  t.equal(limitOf(5, 64).limit.value, 5, 'slow_start cannot be more than the maximum');
});

t.test('successes say nothing about room that is not used', async (t) => {
  const { limit } = limitOf(500, 64);
  for (let success = 0; success < 1000; success += 1) limit.succeeded(31);
  t.equal(limit.value, 64);
  limit.succeeded(32);
  t.equal(limit.value, 65);
});

t.test('an overload halves what was running, once a round', async (t) => {
  const { limit } = limitOf(100, 40);
  limit.overloaded(7, 40, 40);
  t.equal(limit.value, 20);
  for (let lease = 8; lease <= 40; lease += 1) limit.overloaded(lease, 39, 45);
  t.equal(limit.value, 20, 'the others of that round say the same once more');
  limit.overloaded(41, 12, 50);
  t.equal(limit.value, 6, 'fewer were running than were allowed, and that was too much');
  for (let lease = 51; lease < 60; lease += 1) limit.overloaded(lease, 1, lease);
  t.equal(limit.value, 1, 'never below one');
});

t.test('for a minute after an overload it grows by one a round, then by one a success', async (t) => {
  const { limit, time } = limitOf(100, 20);
  limit.overloaded(1, 20, 20);
  t.equal(limit.value, 10);
  for (let success = 0; success < 9; success += 1) limit.succeeded(10);
  t.equal(limit.value, 10);
  for (let success = 0; success < 2; success += 1) limit.succeeded(10);
  t.equal(limit.value, 11);
  time.now = 60_000;
  for (let success = 0; success < 4; success += 1) limit.succeeded(11);
  t.equal(limit.value, 15);
});

t.test('whatever is reported, the limit stays between one and the maximum', async () => {
  const report = fc.record({ ok: fc.boolean(), lease: fc.nat(50), running: fc.integer({ min: 1, max: 50 }), passMs: fc.nat(40_000) });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 60 }), fc.array(report), (max, slowStart, reports) => {
      const { limit, time } = limitOf(max, slowStart);
      return reports.every(({ ok, lease, running, passMs }) => {
        time.now += passMs;
        if (ok) limit.succeeded(running);
        else limit.overloaded(lease, running, lease + 3);
        return limit.value >= 1 && limit.value <= max;
      });
    }),
  );
});
