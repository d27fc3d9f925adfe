/** The one small call for a title: what it sends, what it takes, and that it stays within budgets and its time. */
import t from 'tap';
import type { ModelSlots } from '../../../../src/worker/agent/model-slots.ts';
import { AgentRig, type Reply, fail, hang, prompt, say, usage } from './agent-rig.ts';

const turn = { prompt: 'Mend it', answer: 'Mended.' };
const prices = { input: 2, output: 10, cacheRead: 1 };

/** A rig whose model answers outside of turns; its other promises are about turns. */
async function ask(reply: Reply, options: ConstructorParameters<typeof AgentRig>[1] = {}, signal = new AbortController().signal) {
  const rig = new AgentRig([reply], options);
  return { rig, answer: await rig.agent.askForTitle(turn, signal) };
}

t.test('it is short, has no tools and does not think', async (t) => {
  const { rig, answer } = await ask(say('Mending a thing', { usage: usage(40, 4) }), { settings: { prices } });
  t.match(rig.requests, [{ tools: [], maxOutputTokens: 64, thinking: 'off', messages: [{ role: 'user', text: /Mend it[^]*Mended\./ }] }]);
  t.same(answer, { title: 'Mending a thing', usage: { ...usage(40, 4), costUsd: 0.00012 } });
  t.same(rig.events, [], 'it logs nothing by itself');
});

t.test('a title is taken out of what models put around it', async (t) => {
  for (const [said, title] of [
    ['"Mending"', 'Mending'],
    ['**Title: Mending**', 'Mending'],
    ['# Mending\nIt is about mending.', 'Mending'],
    ['\n\n Mending\u0007 a\u202e thing.', 'Mending a thing'],
    ['“Mending”', 'Mending'],
    ['x'.repeat(3000), `${'x'.repeat(79)}…`],
  ] as const) {
    t.equal((await ask(say(said))).answer?.title, title, said.slice(0, 40));
  }
  t.same((await ask(say(' \n**'))).answer, {}, 'nothing is no title');
  t.same((await ask(say('No.', { reason: 'refusal', usage: usage(1, 1) }))).answer, { usage: usage(1, 1) });
});

t.test('whatever goes wrong is no title, and is not tried again', async (t) => {
  const { rig, answer } = await ask(fail('RATE_LIMIT', 'Mend'));
  t.equal(answer, undefined);
  t.equal(rig.requests.length, 1);
  const broken = { acquire: () => Promise.reject(new Error('gone')) };
  t.equal((await ask(say('Mending'), { modelSlots: broken })).answer, undefined);
});

t.test('it waits behind all other calls, gives its place back, and ends with its signal', async (t) => {
  const stop = new AbortController();
  const seen: unknown[] = [];
  const modelSlots: ModelSlots = {
    acquire: async (priority) => {
      seen.push(priority);
      return { position: 0, waitedMs: 0, release: (report) => seen.push(report.outcome) };
    },
  };
  const rig = new AgentRig([hang()], { modelSlots });
  const asked = rig.agent.askForTitle(turn, stop.signal);
  await rig.until(() => rig.hanging === 1);
  stop.abort();
  t.equal(await asked, undefined);
  t.same(seen, [-100, 'other']);
});

t.test('a budget of the session that is spent leaves none for a title; what a title used counts in it, also when reopened', async (t) => {
  const options = { options: { budget: { maxTokens: 100 } } };
  const rig = new AgentRig([say('Hello.', { usage: usage(40, 10) }), say('Greeting', { usage: usage(45, 5) })], options);
  await rig.agent.send(prompt('Hello'));
  const answer = await rig.agent.askForTitle(turn, new AbortController().signal);
  t.equal(answer?.title, 'Greeting');
  const data = { title: 'Greeting', source: 'model' as const, usage: usage(45, 5) };
  rig.events.push({ type: 'session/title', data, seq: rig.events.length, time: 0 });
  rig.agent.addOutsideUsage(usage(45, 5));
  t.equal(await rig.agent.askForTitle(turn, new AbortController().signal), undefined, 'nothing is left');
  for (const agent of [rig, rig.reopened()]) {
    const end = await agent.agent.send(prompt('More'));
    t.match(end.reason, { kind: 'max-turn-requests', budget: 'tokens', scope: 'session' });
  }
});
