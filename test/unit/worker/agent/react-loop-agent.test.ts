/**
 * The agent's verbs and the shape of its turns.
 */
import t from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import { stopGraceMs } from '../../../../src/worker/agent/settle-or-abandon.ts';
import { ReactLoopAgent } from '../../../../src/worker/agent/react-loop-agent.ts';
import { ModelFailure } from '../../../../src/worker/model/model-adapter.ts';
import { AgentRig, call, fail, hang, prompt, say, tool, usage, assertLegal } from './agent-rig.ts';

const echo = tool('echo', async ({ text }, { callId }) => ({ text: `echo ${text ?? callId}`, isError: false }), true);

t.test('a turn without tools is logged from start to end and completes', async (t) => {
  const rig = new AgentRig([say('hello there', { usage: usage(10, 2), model: 'm-1' })]);
  t.equal(rig.agent.status, 'idle');
  const sent = rig.agent.send(prompt('hi'));
  t.equal(rig.agent.status, 'running');
  const end = await sent;
  t.match(end, { turn: 1, reason: { kind: 'completed' }, usage: { inputTokens: 10, outputTokens: 2, steps: 1, toolCalls: 0 } });
  t.strictSame(rig.types, ['turn/start', 'user/message', 'request/header', 'step/start', 'assistant/message', 'step/end', 'turn/end']);
  t.match(rig.of('assistant/message'), [{ text: 'hello there', finish: 'stop', model: 'm-1', toolCalls: [] }]);
  t.strictSame(
    rig.deltas.map((delta) => delta.text),
    ['hello ', 'there'],
  );
  t.equal(rig.deltas[0]?.messageId, rig.of('assistant/message')[0]?.messageId);
  await rig.agent.whenIdle();
  t.equal(rig.agent.status, 'idle');
  assertLegal(rig);
});

t.test('a thought has a message id of its own', async (t) => {
  const rig = new AgentRig([
    async ({ sink }) => {
      sink({ type: 'reasoning', text: 'hm' });
      sink({ type: 'tool-call-start', callId: 'x', name: 'y' });
      sink({ type: 'text', text: 'yes' });
      return { reason: 'stop', toolCalls: [] };
    },
  ]);
  await rig.agent.send(prompt('hi'));
  const [message] = rig.of('assistant/message');
  t.match(message, { text: 'yes', reasoning: 'hm' });
  t.match(rig.deltas, [
    { kind: 'reasoning', messageId: `${message?.messageId}-thought` },
    { kind: 'text', messageId: message?.messageId },
  ]);
});

t.test('the header is logged once, and again when the tools change', async (t) => {
  const rig = new AgentRig([call(['echo', {}]), say('a'), say('b')], { tools: [echo] });
  await rig.agent.send(prompt('1'));
  await rig.agent.send(prompt('2'));
  t.equal(rig.of('request/header').length, 1);
  t.match(rig.of('request/header')[0], { provider: 'test', model: 'scripted', tools: ['echo'], toolsHash: 'echo' });
  t.match(rig.requests[0]?.system, /^Be brief\.\n\nWorking directory: \/work\n/);
  const later = new AgentRig([say('c')], { tools: [echo, tool('more', async () => ({ text: '', isError: false }))] });
  const agent = new ReactLoopAgent(later.dependencies());
  for (const event of rig.events) {
    later.events.push(event);
    agent.observe(event);
  }
  await agent.send(prompt('3'));
  t.equal(later.of('request/header').length, 2);
  assertLegal(later);
});

t.test('sends while running are turns of their own, in order', async (t) => {
  const rig = new AgentRig([say('one'), say('two'), say('three')]);
  const order: number[] = [];
  const ends = ['a', 'b', 'c'].map((text) => rig.agent.send(prompt(text)).then((end) => order.push(end.turn)));
  await Promise.all(ends);
  t.strictSame(order, [1, 2, 3]);
  t.strictSame(
    rig.of('assistant/message').map((message) => message.text),
    ['one', 'two', 'three'],
  );
  assertLegal(rig);
});

t.test('a steer joins the running turn at its next step; a notice waits without waking', async (t) => {
  const rig = new AgentRig([say('first'), say('second'), say('third')]);
  t.equal(rig.agent.steer(prompt('too early')), 'not-running');
  rig.agent.notice('task 7 ended');
  t.equal(rig.events.length, 0);
  let steered: string | undefined;
  rig.onPoint = () => {
    steered ??= rig.deltas.length > 0 ? rig.agent.steer(prompt('also this'), 'named') : undefined;
  };
  const end = await rig.agent.send(prompt('go'));
  t.equal(steered, 'injected');
  t.equal(end.usage.steps, 2);
  t.strictSame(
    rig.of('user/message').map((message) => message.source),
    ['prompt', 'notice', 'steer'],
  );
  t.equal(rig.of('user/message').at(-1)?.messageId, 'named');
  t.equal(rig.agent.steer(prompt('too late')), 'not-running');
  assertLegal(rig);
});

t.test('a steer that no step can take is kept for the next turn', async (t) => {
  const rig = new AgentRig([hang('wait'), say('ok')]);
  const sent = rig.agent.send(prompt('go'));
  await rig.until(() => rig.hanging === 1);
  t.equal(rig.agent.steer(prompt('by the way')), 'injected');
  rig.agent.cancel();
  t.match(await sent, { reason: { kind: 'cancelled' } });
  await rig.agent.send(prompt('next'));
  t.match(rig.requests[1]?.messages, [
    { role: 'user', text: 'go' },
    { role: 'assistant', text: 'wait' },
    { role: 'user', text: 'by the way' },
    { role: 'user', text: 'next' },
  ]);
  assertLegal(rig);
});

t.test('cancel', async (t) => {
  t.test('right behind the send cancels it', async (t) => {
    const rig = new AgentRig();
    const sent = rig.agent.send(prompt('go'));
    rig.agent.cancel();
    t.match(await sent, { turn: 1, reason: { kind: 'cancelled' } });
    t.equal(rig.requests.length, 0);
    assertLegal(rig);
  });

  t.test('while streaming keeps what was shown', async (t) => {
    const rig = new AgentRig([hang('half an ans'), say('fine')]);
    const sent = rig.agent.send(prompt('go'));
    await rig.until(() => rig.hanging === 1);
    rig.agent.cancel();
    rig.agent.cancel();
    t.match(await sent, { reason: { kind: 'cancelled' } });
    t.match(rig.of('assistant/message'), [{ text: 'half an ans', finish: 'interrupted' }]);
    t.match(await rig.agent.send(prompt('next')), { turn: 2, reason: { kind: 'completed' } });
    assertLegal(rig);
  });

  t.test('reaches a model that ignores its signal', async (t) => {
    let late: ((event: { type: 'text'; text: string }) => void) | undefined;
    const rig = new AgentRig([
      ({ sink }) => {
        late = sink;
        sink({ type: 'text', text: 'deaf' });
        return new Promise(() => {});
      },
    ]);
    const sent = rig.agent.send(prompt('go'));
    await rig.until(() => rig.deltas.length === 1);
    rig.agent.cancel();
    await rig.until(() => rig.sleepers.size === 1);
    rig.wake(stopGraceMs);
    t.match(await sent, { reason: { kind: 'cancelled' } });
    late?.({ type: 'text', text: 'too late' });
    t.equal(rig.deltas.length, 1);
    assertLegal(rig);
  });

  t.test('ends queued sends too, and does not touch later ones', async (t) => {
    const rig = new AgentRig([hang(), say('later')]);
    const ends = [rig.agent.send(prompt('a')), rig.agent.send(prompt('b')), rig.agent.send(prompt('c'))];
    await rig.until(() => rig.hanging === 1);
    rig.agent.cancel();
    const after = rig.agent.send(prompt('d'));
    t.match(await Promise.all(ends), [
      { turn: 1, reason: { kind: 'cancelled' } },
      { turn: 0, reason: { kind: 'cancelled' } },
      { turn: 0, reason: { kind: 'cancelled' } },
    ]);
    t.match(await after, { turn: 2, reason: { kind: 'completed' } });
    assertLegal(rig);
  });

  t.test('when idle, or after the turn ended by itself, changes nothing', async (t) => {
    const rig = new AgentRig([say('done'), say('again')]);
    rig.agent.cancel();
    rig.onPoint = () => {
      if (rig.of('turn/end').length === 1 && rig.agent.turn === 1) rig.agent.cancel();
    };
    t.match(await rig.agent.send(prompt('a')), { reason: { kind: 'completed' } });
    t.ok(rig.points.at(-1) === 'barrier', 'the cancel came while the end was being written');
    rig.agent.cancel();
    t.match(await rig.agent.send(prompt('b')), { turn: 2, reason: { kind: 'completed' } });
  });
});

t.test('dispose ends everything as disposed, once, for good', async (t) => {
  const rig = new AgentRig([hang('x')]);
  const ends = [rig.agent.send(prompt('a')), rig.agent.send(prompt('b'))];
  await rig.until(() => rig.hanging === 1);
  const disposal = rig.agent.dispose();
  t.equal(rig.agent.dispose(), disposal);
  rig.agent.cancel();
  await disposal;
  t.match(rig.of('turn/end'), [{ reason: { kind: 'disposed' } }]);
  t.match(await Promise.all(ends), [{ reason: { kind: 'disposed' } }, { reason: { kind: 'disposed' } }]);
  t.match(await rig.agent.send(prompt('c')), { turn: 0, reason: { kind: 'disposed' } });
  t.equal(rig.agent.steer(prompt('d')), 'not-running');
  t.equal(rig.agent.status, 'disposed');
  assertLegal(rig);
});

t.test('whenIdle follows work that was sent meanwhile', async (t) => {
  const rig = new AgentRig([say('a'), say('b')]);
  let second: Promise<unknown> | undefined;
  const follow = async () => {
    await rig.agent.send(prompt('1'));
    second = rig.agent.send(prompt('2'));
  };
  void follow();
  await rig.agent.whenIdle();
  t.ok(second);
  t.equal(rig.of('turn/end').length, 2);
});

t.test('budgets', async (t) => {
  const loop = Array.from({ length: 20 }, () => call(['echo', {}], ['echo', {}]));

  t.test('steps: the last one is announced to the model', async (t) => {
    const rig = new AgentRig(loop, { tools: [echo], budget: { maxSteps: 3 } });
    const end = await rig.agent.send(prompt('loop'));
    t.match(end, { reason: { kind: 'max-turn-requests', budget: 'steps' }, usage: { steps: 3, toolCalls: 6 } });
    t.equal(rig.requests.length, 3);
    t.match(rig.requests[2]?.messages.at(-1), { role: 'user', text: /last step/ });
    assertLegal(rig);
  });

  t.test('tool calls: none above the limit runs', async (t) => {
    const rig = new AgentRig(loop, { tools: [echo], budget: { maxToolCalls: 3 } });
    const end = await rig.agent.send(prompt('loop'));
    t.match(end, { reason: { kind: 'max-turn-requests', budget: 'tool-calls' }, usage: { steps: 2, toolCalls: 3 } });
    t.strictSame(
      rig.of('tool/result').map((result) => result.code),
      [undefined, undefined, undefined, 'TOOL_CALL_BUDGET'],
    );
    assertLegal(rig);
  });

  t.test('tokens, reported or guessed; the answer is capped by what is left', async (t) => {
    const reported = new AgentRig([call(['echo', {}]), say('x')], { tools: [echo], budget: { maxTokens: 100 } });
    reported.script[0] = async () => ({
      reason: 'tool-calls',
      toolCalls: [{ callId: 'a', name: 'echo', arguments: '{}' }],
      usage: usage(90, 10),
    });
    t.match(await reported.agent.send(prompt('go')), { reason: { kind: 'max-turn-requests', budget: 'tokens' }, usage: { steps: 1 } });
    t.equal(reported.requests[0]?.maxOutputTokens, 100);
    const guessed = new AgentRig(loop, { tools: [echo], budget: { maxTokens: 200 } });
    const end = await guessed.agent.send(prompt('go'));
    t.match(end, { reason: { kind: 'max-turn-requests', budget: 'tokens' }, usage: { inputTokens: 0 } });
    t.ok(end.usage.steps >= 1 && end.usage.steps < 10);
    assertLegal(guessed);
  });

  t.test('wall time ends a hanging model and keeps its text', async (t) => {
    const rig = new AgentRig([hang('thinking')], { budget: { maxWallMs: 5000 } });
    const sent = rig.agent.send(prompt('go'));
    await rig.until(() => rig.hanging === 1);
    rig.wake(5000);
    t.match(await sent, { reason: { kind: 'max-turn-requests', budget: 'wall-time' }, usage: { elapsedMs: 5000 } });
    t.match(rig.of('assistant/message'), [{ text: 'thinking', finish: 'interrupted' }]);
    t.equal(rig.sleepers.size, 0, 'no timer is left');
    assertLegal(rig);
  });

  t.test('the timer of a turn that ended is gone', async (t) => {
    const rig = new AgentRig([say('a')], { budget: { maxWallMs: 5000 } });
    await rig.agent.send(prompt('go'));
    t.equal(rig.sleepers.size, 0);
  });
});

t.test('a refused prompt is never sent again', async (t) => {
  const rig = new AgentRig([say('ok'), call(['echo', {}]), say('I will not', { reason: 'refusal' }), say('sure')], { tools: [echo] });
  await rig.agent.send(prompt('first'));
  t.match(await rig.agent.send(prompt('bad')), { reason: { kind: 'refusal' } });
  await rig.agent.send(prompt('good'));
  t.match(rig.requests[3]?.messages, [{ text: 'first' }, { text: 'ok' }, { text: 'good' }]);
  t.equal(rig.requests[3]?.messages.length, 3);
  assertLegal(rig);
});

t.test('model failures', async (t) => {
  const twice = (attempt: number) => (attempt <= 2 ? attempt * 100 : undefined);

  t.test('are retried under a new message id; the text of a retried attempt is not kept', async (t) => {
    const rig = new AgentRig([fail('SERVER', 'par'), fail('STREAM_CLOSED'), say('whole')], { nextDelay: twice, instant: () => true });
    t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'completed' }, usage: { steps: 1 } });
    t.match(rig.of('llm/retry'), [
      { attempt: 1, delayMs: 100, code: 'SERVER', maxAttempts: 3, step: 1 },
      { attempt: 2, delayMs: 200, code: 'STREAM_CLOSED' },
    ]);
    t.match(rig.of('assistant/message'), [{ text: 'whole' }]);
    t.not(rig.deltas[0]?.messageId, rig.deltas[1]?.messageId);
    assertLegal(rig);
  });

  t.test('that are not retried end the turn as an error and keep the text', async (t) => {
    const rig = new AgentRig([fail('AUTH', 'par'), say('better')]);
    const end = await rig.agent.send(prompt('go'));
    t.match(end.reason, { kind: 'error', code: 'AUTH', message: 'model said AUTH' });
    t.match(rig.of('assistant/message'), [{ text: 'par', finish: 'interrupted' }]);
    t.match(await rig.agent.send(prompt('again')), { turn: 2, reason: { kind: 'completed' } });
    assertLegal(rig);
  });

  t.test('a wait for the next attempt ends with a cancel', async (t) => {
    const rig = new AgentRig([fail('SERVER', 'par')], { nextDelay: () => 60_000 });
    const sent = rig.agent.send(prompt('go'));
    await rig.until(() => rig.sleepers.size === 1);
    rig.agent.cancel();
    t.match(await sent, { reason: { kind: 'cancelled' } });
    t.equal(rig.requests.length, 1);
    t.match(rig.of('assistant/message'), [{ text: 'par', finish: 'interrupted' }]);
  });

  t.test('a fault of the adapter is an error turn without its text', async (t) => {
    const rig = new AgentRig([() => Promise.reject(new Error('secret'))]);
    const end = await rig.agent.send(prompt('go'));
    t.match(end.reason, { kind: 'error', code: 'INTERNAL' });
    t.notMatch(JSON.stringify(rig.events), /secret/);
  });

  t.test('an endless answer is cut and ends as max-tokens', async (t) => {
    const rig = new AgentRig([
      async ({ sink, options }) => {
        while (!options.signal.aborted) sink({ type: 'text', text: 'x'.repeat(1024 * 1024) });
        throw new Error('aborted');
      },
    ]);
    t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'max-tokens' } });
    t.equal(rig.of('assistant/message')[0]?.finish, 'length');
  });
});

t.test('a log that cannot be written', async (t) => {
  const refusing = (type: string) => (event: EventInput) => event.type === type;
  const ran: string[] = [];
  const act = tool('act', async (_args, { callId }) => {
    ran.push(callId);
    return { text: 'acted', isError: false };
  });

  for (const type of [
    'turn/start',
    'user/message',
    'step/start',
    'assistant/message',
    'tool/call',
    'tool/start',
    'tool/result',
    'step/end',
    'turn/end',
  ]) {
    t.test(`at ${type}: the turn ends as an error, no further tool runs, the next turn works`, async (t) => {
      ran.length = 0;
      const rig = new AgentRig([call(['act', {}], ['act', {}]), say('done'), say('second')], { tools: [act] });
      let refused = 0;
      rig.refuse = (event) => {
        const no = refused > 0 || refusing(type)(event);
        if (no) refused += 1;
        return no;
      };
      const end = await rig.agent.send(prompt('go'));
      t.match(end.reason, { kind: 'error', code: 'LOG_WRITE_FAILED' });
      t.ok(ran.length <= (type === 'tool/result' ? 1 : type === 'step/end' || type === 'turn/end' ? 2 : 0), `ran ${ran.length}`);
      rig.refuse = () => false;
      rig.script.splice(0, rig.script.length, say('second'));
      t.match(await rig.agent.send(prompt('again')), { reason: { kind: 'completed' } });
      for (const { reason } of rig.of('turn/end').slice(0, -1)) t.match(reason, { kind: 'error', code: 'LOG_WRITE_FAILED' });
      assertLegal(rig);
    });
  }

  t.test('at a barrier before a body: the body does not run', async (t) => {
    ran.length = 0;
    const rig = new AgentRig([call(['act', {}], ['act', {}])], { tools: [act] });
    rig.refuseBarrier = () => rig.of('tool/start').length > 0;
    const end = await rig.agent.send(prompt('go'));
    t.match(end.reason, { kind: 'error', code: 'LOG_WRITE_FAILED' });
    t.equal(ran.length, 0);
    t.match(
      rig.of('tool/result').map((result) => result.code),
      ['LOG_WRITE_FAILED', 'ABORTED_BEFORE_DISPATCH'],
    );
    assertLegal(rig);
  });

  t.test('at a delta: the stream stops', async (t) => {
    const rig = new AgentRig([say('a b c'), say('fine')]);
    rig.refuseDelta = true;
    t.match((await rig.agent.send(prompt('go'))).reason, { kind: 'error', code: 'LOG_WRITE_FAILED' });
    rig.refuseDelta = false;
    t.match((await rig.agent.send(prompt('go'))).reason, { kind: 'completed' });
    assertLegal(rig);
  });

  t.test('for two turns: the first one keeps its own reason', async (t) => {
    const rig = new AgentRig([fail('AUTH'), say('never'), say('back')]);
    rig.refuse = (event) => event.type === 'turn/end';
    t.match((await rig.agent.send(prompt('1'))).reason, { code: 'AUTH' });
    t.match((await rig.agent.send(prompt('2'))).reason, { code: 'LOG_WRITE_FAILED' });
    rig.refuse = () => false;
    t.match(await rig.agent.send(prompt('3')), { reason: { kind: 'completed' } });
    t.match(
      rig.of('turn/end').map(({ turn, reason }) => [turn, reason.kind, 'code' in reason && reason.code]),
      [
        [1, 'error', 'AUTH'],
        [2, 'completed', false],
      ],
    );
    assertLegal(rig);
  });

  t.test('a cancelled turn stays cancelled', async (t) => {
    const rig = new AgentRig([hang()]);
    const sent = rig.agent.send(prompt('go'));
    await rig.until(() => rig.hanging === 1);
    rig.refuse = () => true;
    rig.agent.cancel();
    t.match(await sent, { reason: { kind: 'cancelled' } });
  });
});

t.test('a stream that waits for room to write leaves the queue when its turn is cancelled', async (t) => {
  let waiting = 0;
  const rig = new AgentRig(
    [
      async ({ sink, options }) => {
        sink({ type: 'text', text: 'so far' });
        await options.whenWritable();
        throw new ModelFailure('ABORTED', 'aborted');
      },
    ],
    {
      whenWritable: async (signal) => {
        waiting += 1;
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        waiting -= 1;
      },
    },
  );
  const sent = rig.agent.send(prompt('go'));
  await rig.until(() => waiting === 1);
  rig.agent.cancel();
  t.match(await sent, { reason: { kind: 'cancelled' } });
  t.equal(waiting, 0);
  t.match(rig.of('assistant/message'), [{ text: 'so far', finish: 'interrupted' }]);
  assertLegal(rig);
});

t.test('an agent made from a log goes on where it ended, and closes what was left open', async (t) => {
  for (const [last, code] of [
    ['assistant/message', 'ABORTED_BEFORE_DISPATCH'],
    ['tool/call', 'ABORTED_BEFORE_DISPATCH'],
    ['tool/start', 'TOOL_OUTCOME_UNKNOWN'],
  ] as const) {
    const first = new AgentRig([call(['echo', {}, 'c1'])], { tools: [echo] });
    await first.agent.send(prompt('go'));
    const cut = first.events.slice(0, first.types.indexOf(last) + 1);
    const rig = new AgentRig([call(['echo', {}, 'c1']), say('ok')], { tools: [echo] });
    for (const event of cut) {
      rig.events.push(event);
      rig.agent.observe(event);
    }
    t.match(await rig.agent.send(prompt('next')), { turn: 2, reason: { kind: 'completed' } }, last);
    t.match(rig.of('turn/end')[0], { turn: 1, reason: { kind: 'interrupted' } });
    t.match(rig.of('tool/result')[0], { callId: 'c1', code }, last);
    t.not(rig.of('tool/call')[1]?.callId, 'c1', 'an id is never used twice in a session');
    assertLegal(rig);
  }
});
