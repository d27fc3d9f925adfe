/** Updates, answers and usage of foreign agents: read as far as they can be understood, and never more. */
import * as fc from 'fast-check';
import t from 'tap';
import { boundedJson, smallJson } from '../../../../../src/worker/broker/subagents/bounded-json.ts';
import { readUpdate } from '../../../../../src/worker/broker/subagents/read-update.ts';
import { readErrorUsage, readUsage } from '../../../../../src/worker/broker/subagents/read-usage.ts';
import { stopReasonOf } from '../../../../../src/worker/broker/subagents/stop-reason.ts';

t.test('what is known is read', async (t) => {
  const text = { type: 'text', text: 'hi' };
  t.same(readUpdate({ sessionUpdate: 'agent_message_chunk', content: text, messageId: 'm' }), { kind: 'text', text: 'hi', messageId: 'm' });
  t.equal(readUpdate({ sessionUpdate: 'agent_thought_chunk', content: text }), undefined);
  t.equal(readUpdate({ sessionUpdate: 'user_message_chunk', content: text }), undefined);
  t.same(readUpdate({ sessionUpdate: 'tool_call', toolCallId: 'c', title: ' a\n b ', kind: 'edit', status: 'failed' }), {
    kind: 'tool',
    callId: 'c',
    card: { title: 'a b', toolKind: 'edit', status: 'failed' },
  });
  t.same(readUpdate({ sessionUpdate: 'tool_call_update', toolCallId: 'c', title: null, kind: 'dance', status: 'cancelled' }), {
    kind: 'tool',
    callId: 'c',
    card: {},
  });
  const plan = { kind: 'plan', entries: [{ content: 'a', status: 'pending' }] };
  t.same(readUpdate({ sessionUpdate: 'plan', entries: [{ content: 'a', status: 'paused' }, null] }), plan);
  t.same(readUpdate({ sessionUpdate: 'plan_update', plan: { type: 'items', entries: [{ content: 'a' }] } }), plan);
  t.same(readUpdate({ sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount: 1.5, currency: 'USD' } }), {
    kind: 'usage',
    costUsd: 1.5,
  });
  t.equal(readUpdate({ sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount: 1.5, currency: 'EUR' } }), undefined);
});

t.test('anything else is nothing, and no text is longer than its bound', async (t) => {
  const long = 'x'.repeat(10_000);
  t.match(readUpdate({ sessionUpdate: 'tool_call', toolCallId: long, title: long }), { callId: long.slice(0, 200), card: { title: /…$/ } });
  const entries = Array.from({ length: 1000 }, () => ({ content: long }));
  const plan = readUpdate({ sessionUpdate: 'plan', entries });
  t.ok(plan?.kind === 'plan' && plan.entries.length === 100 && plan.entries.every(({ content }) => content.length === 500));
  const kinds = ['agent_message_chunk', 'tool_call', 'tool_call_update', 'plan', 'plan_update', 'usage_update'];
  const foreign = fc.dictionary(
    fc.constantFrom('content', 'toolCallId', 'title', 'kind', 'status', 'entries', 'plan', 'cost', '_meta', 'usage', 'type', 'text'),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(fc.constantFrom(...kinds), foreign, (sessionUpdate, more) => {
      readUpdate({ ...more, sessionUpdate });
      readUsage(more);
      stopReasonOf(more);
    }),
  );
});

t.test('usage: our own form with what is below it, and the plain one', async (t) => {
  const own = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, reasoningTokens: 4 };
  const withUsage = (usage: object) => ({ _meta: { 'dsh-acp': { usage } } });
  t.same(readUsage(withUsage({ ...own, costUsd: 1 })), { ...own, costUsd: 1 });
  t.same(
    readUsage(withUsage({ ...own, costUsd: 1, subagents: { ...own, costUsd: 0.5 } })),
    { inputTokens: 2, outputTokens: 4, cacheReadTokens: 6, reasoningTokens: 8, costUsd: 1 },
    'the cost has that of its subagents in it',
  );
  t.match(readUsage(withUsage({ ...own, subagents: { ...own, costUsd: 0.5 } })), { costUsd: 0.5 });
  t.same(readUsage({ usage: { inputTokens: 5, outputTokens: -1, cachedReadTokens: 2.5, thoughtTokens: null } }), {
    inputTokens: 5,
    outputTokens: 0,
    cacheReadTokens: 0,
    reasoningTokens: 0,
  });
  t.equal(readUsage({}), undefined);
  t.match(readErrorUsage(Object.assign(new Error('x'), { data: { usage: own } })), own);
  t.equal(readErrorUsage(new Error('x')), undefined);
});

t.test('stop reasons that are not known are errors, also those that are names of anything', async (t) => {
  for (const stopReason of ['toString', '__proto__', 'END_TURN', '']) t.match(stopReasonOf({ stopReason }), { stopReason: 'error' });
  t.match(stopReasonOf({}), { stopReason: 'error', diagnostic: /without a stop reason/ });
  t.match(stopReasonOf({ stopReason: 'max_turn_requests', _meta: { 'dsh-acp': { spent: { budget: 'steps' } } } }), {
    diagnostic: /budget of steps is spent/,
  });
});

t.test('foreign JSON is kept whole, or as its beginning, or not at all', async (t) => {
  t.same(boundedJson({ a: [1] }, 100), { a: [1] });
  t.equal(boundedJson({ a: 'x'.repeat(100) }, 20), '{"a":"xxxxxxxxxxxxxx…');
  t.equal(boundedJson(undefined, 100), undefined);
  t.same([smallJson({ a: 1 }, 7), smallJson({ a: 1 }, 6), smallJson('x', 3)], [{ a: 1 }, undefined, 'x']);
  t.equal(boundedJson(JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`), 100_000), undefined);
});
