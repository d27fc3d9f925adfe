/**
 * What happens when the model's window fills.
 */
import t from 'tap';
import { AgentRig, call, fail, hang, prompt, type Reply, say, tool, usage, assertLegal } from './agent-rig.ts';

const big = tool('big', async () => ({ text: 'r'.repeat(20_000), isError: false }), true);
const small = tool('small', async () => ({ text: 's'.repeat(2000), isError: false }), true);

t.test('old large results are cut first, without asking the model', async (t) => {
  const rig = new AgentRig([call(['big', {}]), call(['small', {}]), call(['small', {}]), say('done')], {
    tools: [big, small],
    contextWindow: 7500,
  });
  t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'completed' } });
  t.match(rig.of('history/pruned'), [{ keepChars: 5120 }]);
  t.equal(rig.of('history/pruned')[0]?.callIds.length, 1);
  t.equal(rig.of('history/compacted').length, 0);
  t.equal(rig.requests.length, 4);
  assertLegal(rig);
});

t.test('then the oldest units give way to a summary the model writes', async (t) => {
  const rig = new AgentRig([say('a'.repeat(6000)), say('b'.repeat(6000)), say('They spoke.', { usage: usage(3000, 10) }), say('c')], {
    contextWindow: 3600,
  });
  await rig.agent.send(prompt('one'));
  await rig.agent.send(prompt('two'));
  const end = await rig.agent.send(prompt('three'));
  t.match(end, { reason: { kind: 'completed' }, usage: { steps: 1, inputTokens: 3000 } });
  t.match(rig.of('history/compacted'), [{ summary: 'They spoke.', usage: { inputTokens: 3000 } }]);
  t.match(rig.requests[2]?.messages.at(-1), { role: 'user', text: /^Write a summary/ });
  t.equal(rig.requests[2]?.system, rig.requests[1]?.system);
  t.match(rig.requests[3]?.messages, [{ text: /They spoke\.$/ }, { text: 'three' }]);
  t.equal(rig.deltas.filter((delta) => delta.text.includes('spoke')).length, 0, 'a summary is not shown');
  assertLegal(rig);
});

t.test('a summary that does not help is honest about it', async (t) => {
  const fill = [say('a'.repeat(6000)), say('b'.repeat(6000))];
  const bad: [string, Reply][] = [
    ['not shorter', say('x'.repeat(20_000))],
    ['wrote none', say(' ')],
    ['refused', say('no', { reason: 'refusal' })],
    ['did not answer', fail('SERVER')],
  ];
  for (const [why, reply] of bad) {
    const rig = new AgentRig([...fill, reply, say('still fits')], { contextWindow: 3600 });
    await rig.agent.send(prompt('one'));
    await rig.agent.send(prompt('two'));
    t.match(await rig.agent.send(prompt('three')), { reason: { kind: 'completed' } }, `${why}: below the window the provider decides`);
    const over = new AgentRig([...fill, reply, say('never asked')], { contextWindow: 3600 });
    await over.agent.send(prompt('one'));
    await over.agent.send(prompt('two'));
    const end = await over.agent.send(prompt('z'.repeat(4000)));
    t.match(end.reason, { kind: 'error', code: 'CONTEXT_WINDOW', message: new RegExp(why) });
    t.equal(over.of('history/compacted').length, 0);
    t.equal(over.requests.length, 3);
    assertLegal(over);
  }
});

t.test('one prompt larger than the window is refused without a model call', async (t) => {
  const rig = new AgentRig([], { contextWindow: 1000 });
  const end = await rig.agent.send(prompt('z'.repeat(8000)));
  t.match(end.reason, { kind: 'error', code: 'CONTEXT_WINDOW' });
  t.equal(rig.requests.length, 0);
  t.equal(end.usage.steps, 0);
  assertLegal(rig);
});

t.test('a provider that says the window is full', async (t) => {
  t.test('is asked again after one compaction', async (t) => {
    const rig = new AgentRig([say('a'.repeat(400)), fail('CONTEXT_WINDOW'), say('S'), say('fits now')], { nextDelay: () => 1 });
    await rig.agent.send(prompt('one'));
    t.match(await rig.agent.send(prompt('two')), { reason: { kind: 'completed' }, usage: { steps: 1 } });
    t.equal(rig.of('history/compacted').length, 1);
    t.equal(rig.of('llm/retry').length, 0);
    assertLegal(rig);
  });

  t.test('and says so again ends the turn', async (t) => {
    const rig = new AgentRig([say('a'.repeat(400)), fail('CONTEXT_WINDOW'), say('S'), fail('CONTEXT_WINDOW'), say('never')]);
    await rig.agent.send(prompt('one'));
    t.match((await rig.agent.send(prompt('two'))).reason, { kind: 'error', code: 'CONTEXT_WINDOW' });
    t.equal(rig.script.length, 1);
    assertLegal(rig);
  });

  t.test('about results just read is answered by cutting them', async (t) => {
    const rig = new AgentRig([call(['big', {}]), fail('CONTEXT_WINDOW'), say('fits')], { tools: [big] });
    t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'completed' } });
    t.equal(rig.of('history/pruned').length, 1);
    assertLegal(rig);
  });

  t.test('about a first prompt ends the turn at once', async (t) => {
    const rig = new AgentRig([fail('CONTEXT_WINDOW'), say('never')]);
    t.match((await rig.agent.send(prompt('go'))).reason, { kind: 'error', code: 'CONTEXT_WINDOW' });
    t.equal(rig.script.length, 1);
  });
});

t.test('a cancel while a summary is written leaves the history as it was', async (t) => {
  const rig = new AgentRig([say('a'.repeat(6000)), say('b'.repeat(6000)), hang('half a summ'), say('S'), say('on')], {
    contextWindow: 3600,
  });
  await rig.agent.send(prompt('one'));
  await rig.agent.send(prompt('two'));
  const sent = rig.agent.send(prompt('three'));
  await rig.until(() => rig.hanging === 1);
  rig.agent.cancel();
  t.match(await sent, { reason: { kind: 'cancelled' } });
  t.equal(rig.of('history/compacted').length, 0);
  t.equal(rig.of('assistant/message').length, 2);
  t.match(await rig.agent.send(prompt('four')), { reason: { kind: 'completed' } });
  t.equal(rig.of('history/compacted').length, 1);
  assertLegal(rig);
});

const picture = (text: string, size = 12) =>
  [
    { type: 'text', text },
    { type: 'image', mimeType: 'image/png', data: 'A'.repeat(size) },
  ] as const;

t.test('images of older turns give way before the conversation does', async (t) => {
  const rig = new AgentRig([say('one'), say('two')], { contextWindow: 3000, takesImages: true });
  await rig.agent.send(picture('first'));
  await rig.agent.send(picture('second'));
  t.match(rig.of('history/pruned'), [{ callIds: [], messageIds: ['m1'] }]);
  t.equal(rig.of('history/compacted').length, 0);
  t.match(rig.requests[1]?.messages, [{ text: 'first\n\n[image "image/png"]', parts: undefined }, {}, { parts: [{}, { type: 'image' }] }]);
  assertLegal(rig);
});

t.test('images are left out once a request would carry too many bytes of them, however much room the window has', async (t) => {
  const rig = new AgentRig([say('one'), say('two')], { takesImages: true });
  await rig.agent.send(picture('first', 20 * 1024 * 1024));
  await rig.agent.send(picture('second', 20 * 1024 * 1024));
  t.equal(rig.of('history/pruned').length, 1);
  t.match(rig.requests[1]?.messages, [{ parts: undefined }, {}, { parts: [{}, {}] }]);
});

t.test('a summary that a person asks for', async (t) => {
  t.test('replaces the whole conversation and keeps what was asked for', async (t) => {
    const rig = new AgentRig([say('a'.repeat(2000)), say('They spoke.', { usage: usage(600, 10) }), say('on')]);
    await rig.agent.send(prompt('one'));
    const { end, compaction } = await rig.agent.compact('the file names');
    t.match(end, { turn: 2, reason: { kind: 'completed' }, usage: { inputTokens: 600, steps: 0 } });
    t.equal(compaction?.kind, 'done');
    if (compaction?.kind === 'done') t.ok(compaction.after < compaction.before, `${compaction.before} to ${compaction.after}`);
    t.match(rig.requests[1]?.messages.at(-1), { text: /^Write a summary.*asks to keep in particular:\nthe file names$/s });
    await rig.agent.send(prompt('two'));
    t.match(rig.requests[2]?.messages, [{ text: /They spoke\.$/ }, { text: 'two' }]);
    t.equal(rig.of('user/message').length, 2, 'the turn of the summary has no prompt');
    assertLegal(rig);
  });

  t.test('says why there is none, and leaves the conversation as it was', async (t) => {
    const empty = new AgentRig();
    t.match(await empty.agent.compact(''), {
      end: { reason: { kind: 'completed' } },
      compaction: { kind: 'failed', why: /nothing to summarize/ },
    });
    t.equal(empty.requests.length, 0);
    const rig = new AgentRig([say('short'), say('much longer than that was'), fail('SERVER')]);
    await rig.agent.send(prompt('go'));
    t.match(await rig.agent.compact(''), { compaction: { kind: 'failed', why: /not shorter/ } });
    t.match(await rig.agent.compact(''), { compaction: { kind: 'failed', why: /did not answer/ } });
    t.equal(rig.of('history/compacted').length, 0);
    assertLegal(rig);
  });

  t.test('ends with a cancel, and with a spent budget', async (t) => {
    const rig = new AgentRig([say('a'.repeat(2000)), hang('half'), say('S')]);
    await rig.agent.send(prompt('one'));
    const spent = rig.reopened([say('never')], { options: { budget: { maxTokens: 1 } } });
    t.match(await spent.agent.compact(''), { end: { reason: { kind: 'max-turn-requests' } }, compaction: undefined });
    t.equal(spent.requests.length, 0);
    const running = rig.agent.compact('');
    await rig.until(() => rig.hanging === 1);
    rig.agent.cancel();
    t.match(await running, { end: { reason: { kind: 'cancelled' } }, compaction: undefined });
    t.match(await rig.agent.compact(''), { compaction: { kind: 'done' } });
    assertLegal(rig);
  });
});
