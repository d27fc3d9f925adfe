import t from 'tap';
import type { AnswerPlan } from '../../support/answer-plan.ts';
import { ModelServer } from '../../support/model-server.ts';
import { monotonicMs } from '../../support/monotonic.ts';

/** The text deltas of an answer. */
async function deltas(server: ModelServer, plan: AnswerPlan): Promise<string[]> {
  const response = await fetch(`${server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { 'x-answer-plan': JSON.stringify(plan) },
    body: '{"messages":[]}',
  });
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
  const texts = lines.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta?.content ?? '');
  return texts.filter((text) => text !== '');
}

t.test('a paced delta says when it was due and when it was sent, a pace apart and filled up', async (t) => {
  const server = await ModelServer.start();
  t.teardown(() => server.close());
  const before = monotonicMs();
  const texts = await deltas(server, { tokens: 4, delayMs: 5, stamp: 'due', padTo: 60 });
  const after = monotonicMs();
  t.equal(texts.length, 4);
  t.ok(texts.every((text) => text.length === 60 && text.endsWith('/ ')));
  const stamps = texts.map((text) => text.split('/', 2).map(Number) as [number, number]);
  for (const [index, [due, sent]] of stamps.entries()) {
    t.ok(due > before && sent >= due - 1 && sent < after, `${due} ${sent}`);
    if (index > 0) t.ok(Math.abs(due - stamps[index - 1]![0] - 5) < 0.01, 'one pace behind the last one');
  }
});

t.test('without a pace only the first one can be late', async (t) => {
  const server = await ModelServer.start();
  t.teardown(() => server.close());
  const stamps = (await deltas(server, { tokens: 3, stamp: 'due' })).map((text) => text.trim().split('/').map(Number));
  t.ok(stamps[0]![1]! >= stamps[0]![0]!);
  for (const [due, sent] of stamps.slice(1)) t.equal(due, sent);
});
