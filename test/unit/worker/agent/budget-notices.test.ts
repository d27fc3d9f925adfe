/**
 * What the model hears of its limits: at the start, on the way, and once when it has to come to an end.
 */
import t from 'tap';
import type { Budget } from '../../../../src/shared/session-options.ts';
import { AgentRig, assertLegal, epoch, prompt, type Reply, say, tool, usage } from './agent-rig.ts';

const echo = tool('echo', async () => ({ text: 'echo', isError: false }), true);

/** Answers with one call each; every one uses `tokens` and takes `ms`. */
function steps(count: number, { tokens = 0, ms = 0, calls = 1 } = {}): Reply[] {
  return Array.from({ length: count }, (_, index) => (turn) => {
    turn.rig.time += ms;
    const toolCalls = Array.from({ length: calls }, (_unused, at) => ({ callId: `c${index}.${at}`, name: 'echo', arguments: '{}' }));
    return say('on', { reason: 'tool-calls', toolCalls, usage: usage(tokens, 0) })(turn);
  });
}

async function noticesOf(script: Reply[], turn: Budget, session: Budget = {}): Promise<AgentRig> {
  const rig = new AgentRig(script, { tools: [echo], options: { budget: session } });
  await rig.agent.send(prompt('go'), { budget: turn });
  assertLegal(rig);
  return rig;
}

/** How many requests the model had seen before each notice. */
function placesOf(rig: AgentRig): number[] {
  let answers = 0;
  const places: number[] = [];
  for (const event of rig.events) {
    if (event.type === 'assistant/message') answers += 1;
    if (event.type === 'user/message' && event.data.source === 'notice') places.push(answers);
  }
  return places;
}

t.test('no limit, or only large ones of the server, are not worth a word', async (t) => {
  const rig = new AgentRig([...steps(5), say('done')], {
    tools: [echo],
    budget: { maxSteps: 200, maxToolCalls: 1000, maxWallMs: 3_600_000 },
  });
  await rig.agent.send(prompt('go'));
  t.strictSame(rig.notices, []);
  const small = new AgentRig([say('done')], { budget: { maxSteps: 20 } });
  await small.agent.send(prompt('go'));
  t.match(small.notices, [/at most 20 steps\./]);
});

t.test('the start names every limit, the tightest of a kind, in words', async (t) => {
  const turn = { maxSteps: 8, maxToolCalls: 1, maxTokens: 50_000, maxCostUsd: 0.0234, maxWallMs: 60_000, deadline: epoch + 45_500 };
  const rig = await noticesOf([say('done')], turn, { maxSteps: 9, maxTokens: 20_000 });
  t.equal(rig.notices.length, 1);
  t.match(
    rig.notices[0],
    /^\[This turn may use at most 8 steps, 20000 tokens, \$0\.023, 45 seconds, 1 tool call\. .*\]$|^\[This turn may use at most /,
  );
  for (const words of ['8 steps', '1 tool call', '20000 tokens', '$0.023', '45 seconds']) t.ok(rig.notices[0]?.includes(words), words);
  t.strictSame(
    rig.requests[0]?.messages.map((message) => message.role),
    ['user', 'user'],
    'behind the prompt',
  );
});

t.test('half, four fifths, and the end are told once each', async (t) => {
  const bySteps = await noticesOf(steps(20), { maxSteps: 10 });
  t.strictSame(placesOf(bySteps), [0, 5, 8, 9]);
  t.match(bySteps.notices, [
    /at most 10 steps/,
    /Half of the limit of steps is used. Left: 5 steps/,
    /Four fifths/,
    /last step of this turn.*Finish now/,
  ]);
  const byTokens = await noticesOf(steps(30, { tokens: 1000 }), { maxTokens: 20_000 });
  t.strictSame(placesOf(byTokens), [0, 10, 16, 19]);
  t.match(byTokens.notices.at(-1), /near its end. Left: 1000 tokens. Finish now: say what is done and what is not/);
  const byCalls = await noticesOf(steps(30, { calls: 2 }), { maxToolCalls: 40 });
  t.strictSame(placesOf(byCalls), [0, 10, 16, 19]);
  const byTime = await noticesOf(steps(30, { ms: 5000 }), { maxWallMs: 100_000 });
  t.strictSame(placesOf(byTime), [0, 10, 16, 19]);
});

t.test('a history that keeps growing is only added to', async (t) => {
  const rig = await noticesOf(steps(20), { maxSteps: 10 });
  for (const [index, { messages, system, tools }] of rig.requests.entries()) {
    const before = rig.requests[index - 1];
    if (before === undefined) continue;
    t.strictSame(messages.slice(0, before.messages.length), before.messages);
    t.equal(system, before.system);
    t.equal(tools, before.tools);
  }
});

t.test('the end is told early enough for one more answer, however long steps take', async (t) => {
  for (const [ms, place] of [
    [2000, 26],
    [11_000, 4],
    [25_000, 1],
  ] as const) {
    const rig = await noticesOf(steps(60, { ms }), { deadline: epoch + 60_000 });
    t.match(rig.notices.at(-1), /Finish now/);
    t.equal(placesOf(rig).at(-1), place, `steps of ${ms} ms`);
    t.ok(rig.requests.length > place, 'there was another answer');
    t.equal(rig.notices.filter((text) => text.includes('Finish now')).length, 1);
  }
});

t.test('a short turn is not told to end before it has begun', async (t) => {
  const rig = await noticesOf(steps(6, { ms: 2000 }), { maxWallMs: 8000 });
  t.strictSame(placesOf(rig), [0, 2, 3]);
  t.notMatch(rig.notices[0], /Finish/);
});

t.test('a single step, or a session that is nearly spent, is told so at the start', async (t) => {
  const single = await noticesOf(steps(3), { maxSteps: 1 });
  t.equal(single.notices.length, 1);
  t.match(single.notices[0], /at most 1 step\..*last step.*Finish now/s);
  const rig = new AgentRig(steps(20, { tokens: 95 }), { tools: [echo], options: { budget: { maxTokens: 1000 } } });
  await rig.agent.send(prompt('go'), { budget: { maxSteps: 10 } });
  await rig.agent.send(prompt('more'));
  t.match(rig.notices.at(-1), /at most 50 tokens\..*\n.*near its end.*Finish now/);
});

t.test('where two marks are passed at once, the last one is told', async (t) => {
  const rig = await noticesOf([...steps(1, { tokens: 300 }), ...steps(3, { tokens: 550 })], { maxTokens: 1000, maxSteps: 50 });
  t.match(rig.notices, [/at most/, /near its end/]);
});
