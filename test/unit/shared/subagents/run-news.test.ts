/** What a run has to tell: in order, once, within bounds, and at once for whoever waits. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import type { SubagentResult } from '../../../../src/shared/subagent-protocol.ts';
import { IdleWatch } from '../../../../src/shared/subagents/idle-watch.ts';
import { ProviderSlots } from '../../../../src/shared/subagents/provider-slots.ts';
import { RunNews } from '../../../../src/shared/subagents/run-news.ts';

setFlagsFromString('--expose-gc');

const text = (words: string) => ({ kind: 'text', text: words }) as const;
const tool = (childCallId: string) => ({ kind: 'tool', childCallId, title: 'x', toolKind: 'read', status: 'pending' }) as const;
const question = (questionId: string) => ({ questionId, title: 'may I', toolKind: 'edit', content: [] }) as const;
const result: SubagentResult = { stopReason: 'completed', output: 'done', durationMs: 1 };

t.test('each poll gets what came since the last; text that nobody has read is joined', async (t) => {
  const news = new RunNews();
  news.add(text('a'));
  news.add(text('b'));
  news.add(tool('1'));
  const first = await news.since(-1, 1000);
  t.same(first.activities, [text('ab'), tool('1')]);
  news.add(text('c'));
  const second = await news.since(first.seq, 1000);
  t.same(second.activities, [text('c')]);
  news.add(text('d'));
  t.same((await news.since(second.seq, 1000)).activities, [text('d')], 'what was given out is not changed');
});

t.test('a poll whose time is over leaves nothing behind, however long there is no news', async (t) => {
  const news = new RunNews();
  const collectGarbage = runInNewContext('gc') as () => void;
  const used = async (): Promise<number> => {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    return process.memoryUsage().heapUsed / 1024 / 1024;
  };
  const poll = async (times: number) => void (await Promise.all(Array.from({ length: times }, () => news.since(0, 1))));
  await poll(1000);
  const before = await used();
  for (let round = 0; round < 5; round += 1) await poll(10_000);
  const kept = (await used()) - before;
  t.ok(kept < 10, `${kept.toFixed(1)} MB are kept`);
  t.equal((await news.since(-1, 0)).seq, 0);
});

t.test('a poll waits for news, its time or the end, whichever comes first', async (t) => {
  const news = new RunNews();
  const waiting = news.since(0, 10_000);
  news.ask(question('q'));
  const asked = await waiting;
  t.match(asked, { activities: [], questions: [{ questionId: 'q' }], dropped: 0 });
  t.match(await news.since(asked.seq, 5), { seq: asked.seq, questions: [{ questionId: 'q' }] });
  const withdrawn = news.since(asked.seq, 10_000);
  news.withdraw('q');
  news.withdraw('unknown');
  const { seq, questions } = await withdrawn;
  t.same(questions, []);
  news.ask(question('open'));
  const last = news.since(seq + 1, 10_000);
  news.end(result);
  news.end({ ...result, output: 'another' });
  news.add(text('too late'));
  t.match(await last, { activities: [], questions: [], result: { output: 'done' } });
  t.match(await news.since(99, 10_000), { result: { output: 'done' } }, 'the end is told to whoever asks again');
});

t.test('the oldest goes first when nobody fetches, and is counted', async (t) => {
  const news = new RunNews();
  for (let at = 0; at < 300; at += 1) news.add(tool(String(at)));
  const many = await news.since(-1, 0);
  t.same([many.activities.length, many.dropped], [256, 44]);
  t.match(many.activities[0], { childCallId: '44' });
  news.add(tool('next'));
  t.match(await news.since(many.seq, 0), { dropped: 0, activities: [{ childCallId: 'next' }] });
  const large = new RunNews();
  for (let at = 0; at < 40; at += 1) large.add(text('x'.repeat(16 * 1024)));
  const kept = await large.since(-1, 0);
  t.ok(kept.activities.length <= 16 && kept.activities.length + kept.dropped === 40);
});

t.test('a slot is given in order, and back once', async (t) => {
  const slots = new ProviderSlots(1);
  const never = new AbortController();
  const first = await slots.take(never.signal, 1000);
  t.equal(await slots.take(never.signal, 5), undefined, 'not within its time');
  t.equal(await slots.take(AbortSignal.abort(), 1000), undefined);
  const order: string[] = [];
  const second = slots.take(never.signal, 10_000).then((release) => (order.push('second'), release));
  const third = slots.take(never.signal, 10_000).then((release) => (order.push('third'), release));
  first?.();
  first?.();
  (await second)?.();
  (await third)?.();
  t.same(order, ['second', 'third']);
  const cancel = new AbortController();
  const held = await slots.take(cancel.signal, 1000);
  cancel.abort();
  t.equal(await slots.take(never.signal, 5), undefined, 'an abort frees no slot that is in use');
  held?.();
});

t.test('silence ends, unless it is excused or broken', async (t) => {
  let excused = true;
  const watch = new IdleWatch(30, () => excused);
  let isOver = false;
  void watch.expired.then(() => (isOver = true));
  // Three times as long, by a watch that nothing excuses.
  await new IdleWatch(100, () => false).expired;
  t.equal(isOver, false, 'while it is excused');
  excused = false;
  await watch.expired;
  new IdleWatch(0, () => false).stop();
});
