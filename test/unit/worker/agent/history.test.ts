/**
 * What the model sees, from logged events alone.
 */
import t from 'tap';
import type { EventInput, TurnEndReason } from '../../../../src/shared/events.ts';
import { prunableCalls, prunableImages } from '../../../../src/worker/agent/history-cuts.ts';
import { History } from '../../../../src/worker/agent/history.ts';
import { noTurnUsage } from '../../../../src/worker/agent/turn-usage.ts';

function historyOf(inputs: EventInput[], takesImages = false): History {
  const history = new History(() => takesImages);
  for (const [seq, input] of inputs.entries()) history.apply({ ...input, seq, time: 0 });
  return history;
}

const start = (turn: number): EventInput => ({ type: 'turn/start', data: { turn } });
const end = (turn: number, reason: TurnEndReason): EventInput => ({ type: 'turn/end', data: { turn, reason, usage: noTurnUsage } });
const user = (turn: number, text: string): EventInput => ({
  type: 'user/message',
  data: { turn, messageId: 'm', source: 'prompt', content: [{ type: 'text', text }] },
});
const answer = (turn: number, text: string, calls: string[] = [], finish: 'stop' | 'interrupted' = 'stop', reasoning = ''): EventInput => ({
  type: 'assistant/message',
  data: {
    turn,
    step: 1,
    messageId: 'm',
    text,
    reasoning,
    finish,
    toolCalls: calls.map((callId) => ({ callId, name: 'x', arguments: '{}' })),
  },
});
const result = (turn: number, callId: string, text: string): EventInput => ({
  type: 'tool/result',
  data: { turn, step: 1, callId, text, isError: false },
});

t.test('results follow their call in call order; a missing one is said to be missing', async (t) => {
  const history = historyOf([
    start(1),
    user(1, 'go'),
    answer(1, '', ['a', 'b', 'c']),
    result(1, 'c', 'C'),
    result(1, 'a', 'A'),
    result(1, 'zz', 'orphan'),
  ]);
  t.match(history.messages(), [
    { role: 'user', text: 'go' },
    { role: 'assistant', toolCalls: [{ callId: 'a' }, { callId: 'b' }, { callId: 'c' }] },
    { role: 'tool', callId: 'a', text: 'A' },
    { role: 'tool', callId: 'b', text: /^Error: the result .* not recorded/ },
    { role: 'tool', callId: 'c', text: 'C' },
  ]);
  t.equal(history.messages().length, 5);
  t.equal(history.turn, 1);
  t.ok(history.hasCall('b'));
  t.notOk(history.hasCall('zz'));
});

t.test('an interrupted answer is kept as text alone; one without text is not sent', async (t) => {
  const history = historyOf([
    user(1, 'go'),
    answer(1, 'half', ['a'], 'interrupted', 'hm'),
    answer(1, '', [], 'interrupted', 'only thought'),
  ]);
  t.match(history.messages(), [{ role: 'user' }, { role: 'assistant', text: 'half', toolCalls: [] }]);
  t.equal(history.messages().length, 2);
});

t.test('a refused turn is dropped whole, and only that one', async (t) => {
  const history = historyOf([
    start(1),
    user(1, 'a'),
    answer(1, 'b'),
    end(1, { kind: 'completed' }),
    start(2),
    user(2, 'bad'),
    answer(2, '', ['c']),
    result(2, 'c', 'x'),
    end(2, { kind: 'refusal' }),
  ]);
  t.strictSame(
    history.messages().map((message) => message.role === 'user' && message.text),
    ['a', false],
  );
  t.equal(history.estimateTokens(0), historyOf([user(1, 'a'), answer(1, 'b')]).estimateTokens(0));
});

t.test('pruning shortens one result to head and tail', async (t) => {
  const long = `${'h'.repeat(9000)}${'t'.repeat(9000)}`;
  const history = historyOf([
    user(1, 'a'),
    answer(1, '', ['a', 'b']),
    result(1, 'a', long),
    result(1, 'b', 'short'),
    answer(1, '', ['c']),
    result(1, 'c', long),
    answer(1, '', ['d']),
    result(1, 'd', long),
  ]);
  t.strictSame(prunableCalls(history.units, 8192, 2), ['a']);
  t.strictSame(prunableCalls(history.units, 8192, 0), ['a', 'c', 'd']);
  const before = history.estimateTokens(0);
  history.apply({ type: 'history/pruned', data: { callIds: ['a', 'gone'], keepChars: 5120 }, seq: 20, time: 0 });
  const pruned = history.messages().find((message) => message.role === 'tool' && message.callId === 'a');
  t.match(pruned?.text, /^h{4096}\n\[12880 characters left out here\]\nt{1024}$/);
  t.ok(history.estimateTokens(0) < before);
  t.strictSame(prunableCalls(history.units, 8192, 2), []);
});

t.test('a cut in a result never halves a character', async (t) => {
  const history = historyOf([user(1, 'a'), answer(1, '', ['a']), result(1, 'a', '\u{1F600}'.repeat(50))]);
  history.apply({ type: 'history/pruned', data: { callIds: ['a'], keepChars: 25 }, seq: 9, time: 0 });
  const text = history.messages().at(-1)?.text ?? '';
  t.equal(Buffer.from(text, 'utf8').toString('utf8'), text);
});

t.test('a summary replaces whole units, also a second time', async (t) => {
  const history = historyOf([
    user(1, 'a'),
    answer(1, '', ['c']),
    result(1, 'c', 'C'),
    answer(1, 'b'),
    user(2, 'd'),
    answer(2, 'e'),
    { type: 'history/compacted', data: { throughSeq: 2, summary: 'S1' } },
  ]);
  t.match(history.messages(), [{ role: 'user', text: /S1$/ }, { text: 'b' }, { text: 'd' }, { text: 'e' }]);
  history.apply({ type: 'history/compacted', data: { throughSeq: 4, summary: 'S2' }, seq: 7, time: 0 });
  t.match(history.messages(), [{ role: 'user', text: /S2$/ }, { text: 'e' }]);
  t.equal(history.messages().length, 2);
  t.ok(history.hasCall('c'), 'ids of calls that are gone stay taken');
});

t.test('the prefix to summarize ends at a whole unit and leaves the newest', async (t) => {
  const history = historyOf([user(1, 'x'.repeat(4000)), answer(1, '', ['a']), result(1, 'a', 'y'.repeat(4000)), user(2, 'z'.repeat(400))]);
  t.equal(history.prefix(10_000), undefined, 'everything may stay');
  t.match(history.prefix(500), { throughSeq: 2 });
  t.equal(history.prefix(500)?.messages.length, 3);
  t.match(history.prefix(1500), { throughSeq: 0 });
  t.match(history.prefix(1), { throughSeq: 2 }, 'the last unit stays, however large');
  history.apply({ type: 'history/compacted', data: { throughSeq: 2, summary: 'S' }, seq: 4, time: 0 });
  t.equal(history.prefix(1), undefined, 'a summary alone is not summarized again');
});

t.test('the estimate follows what the provider reported', async (t) => {
  const history = historyOf([user(1, 'x'.repeat(3984))]);
  t.equal(history.estimateTokens(0), 1000);
  history.calibrate(0, 2000);
  t.equal(history.estimateTokens(0), 2000);
  history.calibrate(0, 1e9);
  t.equal(history.estimateTokens(0), 8000, 'an implausible count is clamped');
  history.calibrate(0, 0);
  t.equal(history.estimateTokens(0), 8000);
});

t.test('taking in events costs the same however long the history is', async (t) => {
  const history = new History();
  let seq = 0;
  const apply = (input: EventInput) => {
    history.apply({ ...input, seq, time: 0 });
    seq += 1;
  };
  const round = () => {
    const begun = process.hrtime.bigint();
    for (let i = 0; i < 2000; i += 1) {
      apply(answer(1, 'text', [`c${seq}`]));
      apply(result(1, `c${seq - 1}`, 'result'));
      history.estimateTokens(0);
    }
    return Number(process.hrtime.bigint() - begun);
  };
  const times = Array.from({ length: 20 }, round);
  const best = (from: number) => Math.min(...times.slice(from, from + 6));
  t.ok(best(14) < best(1) * 8, `late ${best(14)} ns, early ${best(1)} ns`);
});

const pictured = (turn: number, messageId: string): EventInput => ({
  type: 'user/message',
  data: {
    turn,
    messageId,
    source: 'prompt',
    content: [
      { type: 'text', text: `look ${messageId}` },
      { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' },
    ],
  },
});
const imagesOf = (history: History) =>
  history.messages().filter((message) => message.role === 'user' && message.parts !== undefined).length;

t.test('images count for a model that takes them, and for no other', async (t) => {
  const events = [start(1), pictured(1, 'p1'), answer(1, 'I see')];
  const seeing = historyOf(events, true);
  const blind = historyOf(events);
  t.equal(seeing.estimateTokens(0) - blind.estimateTokens(0), 1600);
  t.equal(seeing.imageChars, 12);
  t.equal(blind.imageChars, 0);
  t.match(seeing.messages()[0], { text: 'look p1\n\n[image "image/png"]', parts: [{ type: 'text', text: 'look p1' }, { type: 'image' }] });
  seeing.calibrate(0, 1600 + 100);
  t.equal(seeing.estimateTokens(0) - blind.estimateTokens(0), 1600, 'a count that is mostly images says nothing about text');
});

t.test('images of older turns can be left out, and the newest stay', async (t) => {
  const events = [start(1), pictured(1, 'p1'), answer(1, 'a'), start(2), pictured(2, 'p2')];
  t.same(prunableImages(historyOf(events, true).units, historyOf(events, true).turn), ['p1']);
  const pruned = historyOf([...events, { type: 'history/pruned', data: { callIds: [], keepChars: 10, messageIds: ['p1'] } }], true);
  t.match(pruned.messages()[0], { role: 'user', text: 'look p1\n\n[image "image/png"]', parts: undefined });
  t.equal(imagesOf(pruned), 1);
  t.equal(pruned.imageChars, 12);
  const summed = historyOf([...events, { type: 'history/compacted', data: { throughSeq: 4, summary: 's' } }], true);
  t.equal(summed.imageChars, 0);
});

t.test('images of a request that the provider refused are not sent again', async (t) => {
  const failed = (code: string) => end(2, { kind: 'error', code, message: 'no' });
  const events = [start(1), pictured(1, 'p1'), answer(1, 'a'), start(2), pictured(2, 'p2')];
  t.equal(imagesOf(historyOf([...events, failed('INVALID_REQUEST')], true)), 1, 'those of the turn before were taken once');
  t.equal(imagesOf(historyOf([...events, failed('SERVER')], true)), 2);
  const later = [...events, answer(2, 'b'), start(3), user(3, 'go on'), end(3, { kind: 'error', code: 'INVALID_REQUEST', message: 'no' })];
  t.equal(imagesOf(historyOf(later, true)), 0, 'another model takes none of them');
});
