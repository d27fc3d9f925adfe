import t from 'tap';
import { arrivals } from '../../../bench/load/schedule.ts';

const plan = { sessions: 50, turns: 40, rate: 100 };

t.test('the same seed gives the same times, another one others', async (t) => {
  const times = (seed: number): string => JSON.stringify(arrivals(plan, seed));
  t.equal(times(3), times(3));
  t.not(times(3), times(4));
});

t.test('the times go on, with the rate that was asked for', async (t) => {
  const all = arrivals(plan, 1);
  t.equal(all.length, 2000);
  t.ok(all.every(({ atMs }, index) => index === 0 || atMs >= all[index - 1]!.atMs));
  const rate = all.length / (all.at(-1)!.atMs / 1000);
  t.ok(Math.abs(rate - 100) < 10, `${rate} a second`);
});

t.test('prompts come in bunches and after pauses, as they do from people who know nothing of each other', async (t) => {
  const all = arrivals(plan, 2);
  const gaps = all.slice(1).map(({ atMs }, index) => atMs - all[index]!.atMs);
  // Of exponential gaps 1/e are longer than the mean.
  const long = gaps.filter((gap) => gap > 10).length / gaps.length;
  t.ok(Math.abs(long - 1 / Math.E) < 0.05, `${long}`);
});

t.test('every session prompts equally often, all once before any of them again', async (t) => {
  const all = arrivals(plan, 5);
  for (let turn = 0; turn < plan.turns; turn += 1) {
    const round = all.slice(turn * plan.sessions, (turn + 1) * plan.sessions);
    t.equal(new Set(round.map(({ session }) => session)).size, plan.sessions);
  }
});
