/**
 * Cancel, dispose, steer and disk faults at every moment there is: whatever comes when, every prompt ends once, every call
 * has one result, the log is legal, and the next prompt works.
 */
import * as fc from 'fast-check';
import t from 'tap';
import type { TurnEnd } from '../../../../src/worker/agent/turn.ts';
import type { ToolOutcome } from '../../../../src/worker/tools/tool.ts';
import { AgentRig, call, fail, prompt, type Reply, say, tool, assertLegal } from './agent-rig.ts';

/** A rig whose tools await as often as tools do. */
function busyRig(script: Reply[], contextWindow = 1_000_000): AgentRig {
  let rig: AgentRig | undefined;
  const body = async (context: { callId: string; signal: AbortSignal }): Promise<ToolOutcome> => {
    await rig?.point('body');
    await rig?.point('body');
    return context.signal.aborted ? { text: 'stopped', isError: true, code: 'ABORTED' } : { text: 'did it', isError: false };
  };
  const tools = [
    tool('look', (_args, context) => body(context), true),
    tool('act', (_args, context) => body(context)),
    tool('boom', async (_args, context) => {
      await body(context);
      throw new Error('boom');
    }),
    tool('plan', async (_args, context) => {
      context.writeTodos([{ content: 'x', status: 'pending' }]);
      return body(context);
    }),
  ];
  rig = new AgentRig(script, {
    tools,
    nextDelay: (attempt) => (attempt < 3 ? 10 : undefined),
    instant: (ms) => ms === 10,
    settings: { maxParallelToolCalls: 3 },
    budget: { maxWallMs: 5000 },
    contextWindow,
  });
  return rig;
}

const scenario = (): Reply[] => [
  call(['look', {}], ['look', {}], ['act', {}], ['plan', {}]),
  fail('SERVER', 'par'),
  call(['boom', {}], ['nope', {}], ['look', '{broken']),
  say('all done'),
];

/** Sends one prompt and waits for its end; a second end, or none, fails. */
async function endOf(rig: AgentRig, sent: Promise<TurnEnd>): Promise<TurnEnd> {
  let end: TurnEnd | undefined;
  const settled = async () => {
    end = await sent;
  };
  void settled();
  await rig.until(() => end !== undefined, 'the end of the turn');
  if (end === undefined) throw new Error('unreachable');
  return end;
}

async function assertUsable(rig: AgentRig): Promise<void> {
  rig.onPoint = () => {};
  rig.refuse = () => false;
  rig.refuseBarrier = () => false;
  rig.script.splice(0, rig.script.length, call(['look', {}]), say('still here'));
  const end = await endOf(rig, rig.agent.send(prompt('next')));
  if (end.reason.kind !== 'completed') throw new Error(`the next turn ended ${JSON.stringify(end.reason)}`);
  assertLegal(rig);
}

async function pointsOf(script: () => Reply[]): Promise<number> {
  const rig = busyRig(script());
  await endOf(rig, rig.agent.send(prompt('go')));
  return rig.points.length;
}

const stops: [string, (rig: AgentRig) => void, string][] = [
  ['a cancel', (rig) => rig.agent.cancel(), 'cancelled'],
  ['the end of the wall time', (rig) => rig.wake(5000), 'max-turn-requests'],
];

for (const [what, stop, kind] of stops) {
  t.test(`${what} at every single await ends the turn once, for that reason unless it had ended`, async (t) => {
    const points = await pointsOf(scenario);
    t.ok(points > 30, `${points} points`);
    const late: number[] = [];
    for (let at = 1; at <= points; at += 1) {
      const rig = busyRig(scenario());
      rig.onPoint = (count) => {
        if (count === at) stop(rig);
      };
      const end = await endOf(rig, rig.agent.send(prompt('go')));
      if (end.reason.kind !== kind) late.push(at);
      t.strictSame(
        rig.of('turn/end').map((event) => event.reason),
        [end.reason],
      );
      assertLegal(rig);
      await assertUsable(rig);
    }
    t.strictSame(late, [points], 'only behind the end it is too late');
  });
}

t.test('a steer at every single await is said once if it was taken, to a step of that turn, and never if it was not', async (t) => {
  const points = await pointsOf(scenario);
  const taken: number[] = [];
  for (let at = 1; at <= points; at += 1) {
    const rig = busyRig(scenario());
    let outcome: string | undefined;
    rig.onPoint = (count) => {
      if (count === at) outcome = rig.agent.steer(prompt('also this'), 'mine');
    };
    const end = await endOf(rig, rig.agent.send(prompt('go')));
    t.match(end.reason, { kind: 'completed' }, 'a message makes no turn fail');
    const said = rig.of('user/message').filter(({ messageId }) => messageId === 'mine');
    t.strictSame([outcome, said.length], outcome === 'injected' ? ['injected', 1] : ['not-running', 0], `await ${at}`);
    if (outcome === 'injected') {
      taken.push(at);
      t.ok(
        rig.requests.some(({ messages }) => messages.some((message) => message.role === 'user' && message.text === 'also this')),
        `await ${at}: a step reads it`,
      );
    }
    assertLegal(rig);
    await assertUsable(rig);
  }
  t.ok(taken.length > points - 5, `${taken.length} of ${points} were taken`);
});

t.test('a cancel at every single await of a compaction leaves a history that works', async (t) => {
  const history = () => [say('a'.repeat(6000)), say('b'.repeat(6000))];
  const filling = () => [fail('CONTEXT_WINDOW'), say('They talked.'), say('Here it is.')];
  const filled = async (script: Reply[], contextWindow: number) => {
    const rig = busyRig([...history(), ...script], contextWindow);
    for (const text of ['one', 'two']) await endOf(rig, rig.agent.send(prompt(text)));
    return rig;
  };
  for (const [script, contextWindow] of [
    [filling, 100_000],
    [() => filling().slice(1), 3600],
  ] as const) {
    const clean = await filled(script(), contextWindow);
    const before = clean.points.length;
    t.match((await endOf(clean, clean.agent.send(prompt('three')))).reason, { kind: 'completed' });
    t.equal(clean.of('history/compacted').length, 1);
    for (let at = before + 1; at < clean.points.length; at += 1) {
      const rig = await filled(script(), contextWindow);
      rig.onPoint = (count) => {
        if (count === at) rig.agent.cancel();
      };
      t.match((await endOf(rig, rig.agent.send(prompt('three')))).reason, { kind: 'cancelled' });
      assertLegal(rig);
      rig.onPoint = () => {};
      rig.script.splice(
        0,
        rig.script.length,
        ...filling().slice(rig.of('history/compacted').length === 0 && contextWindow === 3600 ? 1 : 2),
      );
      t.match((await endOf(rig, rig.agent.send(prompt('again')))).reason, { kind: 'completed' });
      assertLegal(rig);
    }
  }
});

t.test('a dispose at every single await ends the turn once, and fulfils', async (t) => {
  const points = await pointsOf(scenario);
  for (let at = 1; at <= points; at += 1) {
    const rig = busyRig(scenario());
    let disposal: Promise<void> | undefined;
    rig.onPoint = (count) => {
      if (count === at) disposal = rig.agent.dispose();
    };
    const end = await endOf(rig, rig.agent.send(prompt('go')));
    await disposal;
    t.ok(end.reason.kind === 'disposed' || end.reason.kind === 'completed');
    t.equal(rig.of('turn/end').length, 1);
    assertLegal(rig);
  }
});

t.test('a log that refuses at every single append or barrier ends the turn with an error before any further tool runs', async (t) => {
  const clean = busyRig(scenario());
  await endOf(clean, clean.agent.send(prompt('go')));
  for (let at = 0; at < clean.events.length; at += 1) {
    const rig = busyRig(scenario());
    let bodies: number | undefined;
    const started = () => rig.points.filter((point) => point === 'body').length;
    rig.refuse = () => {
      if (rig.events.length < at) return false;
      bodies ??= started();
      return true;
    };
    const end = await endOf(rig, rig.agent.send(prompt('go')));
    t.match(end.reason, { kind: 'error', code: 'LOG_WRITE_FAILED' });
    // Bodies that had begun may go on to their second await; at most three ran together.
    t.ok(started() - (bodies ?? 0) <= 3, `append ${at}: ${started()} after ${bodies}`);
    assertLegal(rig, { open: true });
    await assertUsable(rig);
  }
  const barriers = clean.points.filter((point) => point === 'barrier').length;
  for (let at = 1; at <= barriers; at += 1) {
    const rig = busyRig(scenario());
    let asked = 0;
    rig.refuseBarrier = () => {
      asked += 1;
      return asked >= at;
    };
    t.match((await endOf(rig, rig.agent.send(prompt('go')))).reason, { kind: 'error', code: 'LOG_WRITE_FAILED' });
    assertLegal(rig);
    await assertUsable(rig);
  }
});

const toolCall = fc.tuple(
  fc.constantFrom('look', 'act', 'boom', 'plan', 'nope'),
  fc.constantFrom('{}', '', '{"text":"a"}', '{"te', '[1', '{"bad":1}'),
  fc.constantFrom('', 'same', 'a', 'b'),
);
const reply: fc.Arbitrary<Reply> = fc.oneof(
  { weight: 5, arbitrary: fc.array(toolCall, { minLength: 1, maxLength: 6 }).map((calls) => call(...calls)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('SERVER', 'AUTH', 'STREAM_CLOSED', 'CONTEXT_WINDOW').map((code) => fail(code as 'SERVER', 'part')),
  },
  { weight: 1, arbitrary: fc.constantFrom('stop', 'length', 'refusal').map((reason) => say('well then', { reason: reason as 'stop' })) },
  {
    weight: 1,
    arbitrary: toolCall.map(([name, args, callId]) => say('cut', { reason: 'length', toolCalls: [{ callId, name, arguments: args }] })),
  },
);
const action = fc.record({
  at: fc.integer({ min: 1, max: 80 }),
  what: fc.constantFrom('cancel', 'steer', 'notice', 'send', 'refuse', 'accept'),
});

t.test('500 random mixes of answers, faults and interventions', async (t) => {
  const kinds = new Set<string>();
  const property = fc.asyncProperty(fc.array(reply, { maxLength: 6 }), fc.array(action, { maxLength: 5 }), async (script, actions) => {
    const rig = busyRig(script);
    const steered: string[] = [];
    const sent = [rig.agent.send(prompt('go'))];
    let ends = 0;
    rig.onPoint = (count) => {
      for (const { what } of actions.filter(({ at }) => at === count)) act(rig, { sent, steered }, what);
    };
    for (let i = 0; i < sent.length; i += 1) {
      const end = await endOf(rig, sent[i] as Promise<TurnEnd>);
      kinds.add(end.reason.kind);
      ends += 1;
    }
    await rig.agent.whenIdle();
    if (ends !== sent.length || rig.agent.status !== 'idle') throw new Error('a prompt has no end');
    assertLegal(rig, { open: true });
    await assertUsable(rig);
    if (rig.sleepers.size > 0) throw new Error('a timer is left');
    const said = rig.of('user/message').filter(({ source }) => source === 'steer');
    if (said.map(({ messageId }) => messageId).join() !== steered.join()) throw new Error('a message was lost, doubled or overtaken');
  });
  await fc.assert(property, { numRuns: 500 });
  t.ok(kinds.size >= 5, [...kinds].join());
});

function act(rig: AgentRig, { sent, steered }: { sent: Promise<TurnEnd>[]; steered: string[] }, what: string): void {
  if (what === 'cancel') rig.agent.cancel();
  if (what === 'steer') {
    const id = `steer-${rig.points.length}-${steered.length}`;
    if (rig.agent.steer(prompt('steer'), id) === 'injected') steered.push(id);
  }
  if (what === 'notice') rig.agent.notice('notice');
  if (what === 'send') sent.push(rig.agent.send(prompt('more')));
  if (what === 'refuse') rig.refuse = () => true;
  if (what === 'accept') rig.refuse = () => false;
}
