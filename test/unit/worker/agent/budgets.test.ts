/**
 * What ends a turn when a budget is spent: of the prompt, of the session, of the server; and what is counted.
 */
import t from 'tap';
import type { Budget } from '../../../../src/shared/session-options.ts';
import { exactUsd } from '../../../../src/worker/agent/cost.ts';
import { AgentRig, assertLegal, call, epoch, fail, hang, prompt, type Reply, type RigOptions, say, tool, usage } from './agent-rig.ts';

const echo = tool('echo', async () => ({ text: 'echo', isError: false }), true);
const prices = { input: 2, output: 10, cacheRead: 0.5 };

/** Each answer makes one call, and costs 30 tokens. */
const looping = (count = 20): Reply[] =>
  Array.from({ length: count }, (_, index) => {
    const toolCalls = [{ callId: `c${index}`, name: 'echo', arguments: '{}' }];
    return say('going on', { reason: 'tool-calls', toolCalls, usage: usage(20, 10) });
  });

const loopingRig = (session: Budget = {}) => new AgentRig(looping(), { tools: [echo], settings: { prices }, options: { budget: session } });

t.test('a prompt with options is logged with what was given, and nothing else', async (t) => {
  const rig = new AgentRig([say('a'), say('b')]);
  await rig.agent.send(prompt('one'), {
    key: { id: 'k', payload: 'abc' },
    budget: { maxSteps: 4 },
    traceparent: '00-1-2-01',
    priority: 3,
  });
  await rig.agent.send(prompt('two'));
  t.strictSame(rig.of('turn/start'), [
    { turn: 1, key: 'k', payload: 'abc', budget: { maxSteps: 4 }, traceparent: '00-1-2-01' },
    { turn: 2 },
  ]);
});

t.test('a budget of the prompt ends its turn, and only its turn', async (t) => {
  const cases: [name: string, budget: Budget, steps: number][] = [
    ['steps', { maxSteps: 2 }, 2],
    ['tool-calls', { maxToolCalls: 3 }, 3],
    ['tokens', { maxTokens: 61 }, 3],
    ['cost', { maxCostUsd: 0.00028 }, 2],
  ];
  for (const [budget, limits, steps] of cases) {
    const rig = loopingRig();
    const end = await rig.agent.send(prompt('go'), { budget: limits });
    t.match(end, { reason: { kind: 'max-turn-requests', budget, scope: undefined }, usage: { steps } }, budget);
    t.strictSame(rig.of('turn/end')[0]?.reason, end.reason);
    const next = await rig.agent.send(prompt('more'), { budget: { maxSteps: 1 } });
    t.match(next, { turn: 2, usage: { steps: 1 } }, 'the next turn has a budget of its own');
    assertLegal(rig);
  }
});

t.test('the tightest of server, prompt and session holds', async (t) => {
  for (const [server, turn, session, steps, scope] of [
    [2, 3, 4, 2, undefined],
    [3, 2, 4, 2, undefined],
    [4, 3, 2, 2, 'session'],
    [0, 3, 3, 3, 'session'],
  ] as const) {
    const rig = new AgentRig(looping(), { tools: [echo], budget: { maxSteps: server }, options: { budget: { maxSteps: session } } });
    const end = await rig.agent.send(prompt('go'), { budget: { maxSteps: turn } });
    t.match(end, { reason: { kind: 'max-turn-requests', budget: 'steps', scope }, usage: { steps } });
  }
});

t.test('a budget of the session holds over its turns, and over a restart', async (t) => {
  const rig = loopingRig({ maxSteps: 5, maxTokens: 1000 });
  t.match(await rig.agent.send(prompt('one'), { budget: { maxSteps: 2 } }), { reason: { scope: undefined }, usage: { steps: 2 } });
  t.match(await rig.agent.send(prompt('two'), { budget: { maxSteps: 2 } }), { left: { maxSteps: 0, maxTokens: 880 } });
  const later = rig.reopened(looping());
  const last = await later.agent.send(prompt('three'));
  t.match(last, { reason: { budget: 'steps', scope: 'session' }, usage: { steps: 1 }, left: { maxSteps: 0, maxTokens: 850 } });
  const refused = await later.agent.send(prompt('four'));
  t.match(refused, { turn: 4, reason: { kind: 'max-turn-requests', budget: 'steps', scope: 'session' }, usage: { steps: 0 } });
  t.equal(later.requests.length, 1, 'the model is not asked again');
  t.equal(later.of('turn/end').length, 4, 'the log has the refused turn');
  t.match(await later.reopened().agent.send(prompt('five')), { reason: { budget: 'steps', scope: 'session' } });
  assertLegal(later);
});

t.test('time', async (t) => {
  t.test('a deadline ends a model that hangs, and keeps its text', async (t) => {
    const rig = new AgentRig([hang('so far')]);
    const sent = rig.agent.send(prompt('go'), { budget: { deadline: epoch + 4000, maxWallMs: 9000 } });
    await rig.until(() => rig.hanging === 1);
    rig.wake(4000);
    t.match(await sent, { reason: { kind: 'max-turn-requests', budget: 'deadline' }, text: 'so far', left: { deadline: epoch + 4000 } });
    t.equal(rig.sleepers.size, 0, 'no timer is left');
    assertLegal(rig);
  });

  t.test('a timer that fires early waits on', async (t) => {
    const rig = new AgentRig([hang('so far')]);
    const sent = rig.agent.send(prompt('go'), { budget: { deadline: epoch + 4000 } });
    await rig.until(() => rig.hanging === 1);
    for (const sleeper of rig.sleepers) sleeper.wake();
    await rig.until(() => rig.sleepers.size === 1);
    t.equal(rig.of('turn/end').length, 0);
    rig.wake(4000);
    t.match(await sent, { reason: { budget: 'deadline' } });
  });

  t.test('it ends the last step as what it is', async (t) => {
    const rig = new AgentRig([hang('')]);
    const sent = rig.agent.send(prompt('go'), { budget: { maxSteps: 1, maxWallMs: 4000 } });
    await rig.until(() => rig.hanging === 1);
    rig.wake(4000);
    t.match(await sent, { reason: { kind: 'max-turn-requests', budget: 'wall-time' } });
  });

  t.test('a deadline that has passed lets no model call happen', async (t) => {
    const rig = new AgentRig([say('never')]);
    t.match(await rig.agent.send(prompt('go'), { budget: { deadline: epoch } }), { reason: { budget: 'deadline' }, usage: { steps: 0 } });
    t.equal(rig.requests.length, 0);
    assertLegal(rig);
  });

  t.test('a session has the time of its turns, not of what lies between', async (t) => {
    const rig = new AgentRig([say('quick'), hang('slow')], { options: { budget: { maxWallMs: 5000 } } });
    rig.onPoint = () => {
      if (rig.time === 0) rig.time = 2000;
    };
    await rig.agent.send(prompt('one'));
    rig.time += 100_000;
    const later = rig.reopened([hang('slow')]);
    const sent = later.agent.send(prompt('two'));
    await later.until(() => later.hanging === 1);
    later.wake(3000);
    t.match(await sent, { reason: { budget: 'wall-time', scope: 'session' }, usage: { elapsedMs: 3000 } });
    later.time += 100_000;
    t.match(await later.agent.send(prompt('three')), { reason: { budget: 'wall-time', scope: 'session' }, usage: { steps: 0 } });
  });
});

t.test('a budget that the answer itself has spent lets none of its calls run', async (t) => {
  let ran = 0;
  const act = tool('act', async () => {
    ran += 1;
    return { text: 'did it', isError: false };
  });
  const toolCalls = ['a', 'b'].map((callId) => ({ callId, name: 'act', arguments: '{}' }));
  const rig = new AgentRig([say('now', { reason: 'tool-calls', toolCalls, usage: usage(90, 10) })], { tools: [act] });
  const end = await rig.agent.send(prompt('go'), { budget: { maxTokens: 100 } });
  t.match(end, { reason: { kind: 'max-turn-requests', budget: 'tokens' }, text: 'now' });
  t.equal(ran, 0);
  t.strictSame(
    rig.of('tool/result').map((result) => result.code),
    ['BUDGET_SPENT', 'BUDGET_SPENT'],
  );
  t.match(rig.of('tool/result')[0]?.text, /limit of tokens of this turn/);
  assertLegal(rig);
});

t.test('no attempt is made on a spent budget', async (t) => {
  const rig = new AgentRig([fail('SERVER', 'x'.repeat(2000)), say('never')], { nextDelay: () => 10, instant: () => true });
  const end = await rig.agent.send(prompt('go'), { budget: { maxTokens: 400 } });
  t.match(end, { reason: { kind: 'max-turn-requests', budget: 'tokens' } }, 'an attempt that broke off was paid for, too');
  t.equal(rig.requests.length, 1);
  t.match(rig.of('assistant/message'), [{ finish: 'interrupted' }]);
  assertLegal(rig);
});

t.test('an answer that is too short', async (t) => {
  const cut = (outputTokens?: number): Reply =>
    say('and so', { reason: 'length', ...(outputTokens === undefined ? {} : { usage: usage(10, outputTokens) }) });

  t.test('ran into the budget where that capped it', async (t) => {
    const rig = new AgentRig([cut(5000)]);
    const end = await rig.agent.send(prompt('go'), { budget: { maxTokens: 5000 } });
    t.match(end.reason, { kind: 'max-turn-requests', budget: 'tokens' });
    const cap = rig.requests[0]?.maxOutputTokens ?? 0;
    t.ok(cap < 5000 && cap > 4800, `what the request itself needs is left out: ${cap}`);
  });

  t.test('ran into the cost where that capped it', async (t) => {
    const rig = new AgentRig([cut(1000)], { settings: { prices }, options: { budget: { maxCostUsd: 0.01 } } });
    const end = await rig.agent.send(prompt('go'), { budget: { maxTokens: 5000 } });
    t.match(end.reason, { kind: 'max-turn-requests', budget: 'cost', scope: 'session' });
    t.ok((rig.requests[0]?.maxOutputTokens ?? 0) <= 1000);
  });

  t.test('ran into the limit of the model where that is tighter', async (t) => {
    for (const reply of [cut(300), cut()]) {
      const rig = new AgentRig([reply]);
      t.match(await rig.agent.send(prompt('go'), { budget: { maxTokens: 5000 } }), { reason: { kind: 'max-tokens' } });
    }
  });
});

t.test('cost', async (t) => {
  t.test('is what the prices say, also for what the provider did not count', async (t) => {
    const counted = { inputTokens: 1000, outputTokens: 200, cacheReadTokens: 4000, reasoningTokens: 100 };
    const rig = new AgentRig([say('a', { usage: counted }), say('b'.repeat(400))], { settings: { prices } });
    const first = await rig.agent.send(prompt('one'));
    t.equal(first.usage.costUsd, 0.006);
    t.strictSame(rig.of('turn/end')[0]?.usage, first.usage);
    const second = await rig.agent.send(prompt('two'));
    t.ok((second.usage.guessedTokens ?? 0) > 100);
    t.ok((second.usage.costUsd ?? 0) > 0.001, 'at least a hundred tokens of output');
    t.equal(second.usage.outputTokens, 0, 'a guess is no report');
  });

  t.test('is not known without prices', async (t) => {
    const rig = new AgentRig([say('a', { usage: usage(10, 10) })]);
    t.notOk('costUsd' in (await rig.agent.send(prompt('one'))).usage);
  });

  t.test('does not drift', async (t) => {
    let sum = 0;
    for (let i = 0; i < 1_000_000; i += 1) sum = exactUsd(sum + 0.000001);
    t.equal(sum, 1);
  });

  t.test('of a summary counts', async (t) => {
    const script = [
      say('a'.repeat(6000)),
      say('b'.repeat(6000)),
      say('They talked.', { usage: usage(3000, 50) }),
      say('c', { usage: usage(50, 1) }),
    ];
    const rig = new AgentRig(script, { contextWindow: 3600, settings: { prices } });
    await rig.agent.send(prompt('one'));
    await rig.agent.send(prompt('two'));
    const end = await rig.agent.send(prompt('three'));
    t.equal(rig.of('history/compacted').length, 1);
    t.match(end.usage, { inputTokens: 3050, outputTokens: 51, costUsd: exactUsd((3050 * 2 + 51 * 10) / 1e6) });
  });
});

t.test('the time to the first token is taken at the first delta that is shown', async (t) => {
  const slow: Reply = async ({ sink, rig }) => {
    rig.time += 700;
    sink({ type: 'reasoning', text: 'hm' });
    rig.time += 500;
    sink({ type: 'text', text: 'yes' });
    return { reason: 'stop', toolCalls: [] };
  };
  const rig = new AgentRig([slow]);
  t.match(await rig.agent.send(prompt('go')), { usage: { firstTokenMs: 700, elapsedMs: 1200 }, text: 'yes' });
  const silent = new AgentRig([fail('AUTH')]);
  const end = await silent.agent.send(prompt('go'));
  t.notOk('firstTokenMs' in end.usage);
  t.notOk('text' in end);
  t.notOk('left' in end);
});

t.test('subagents', async (t) => {
  const child = { inputTokens: 400, outputTokens: 50, cacheReadTokens: 50, reasoningTokens: 0 };
  const delegating = (script: Reply[], options: RigOptions): AgentRig => {
    const delegate = tool('delegate', async (_args, context) => {
      const left = context.budgetLeft();
      rig.subagentEnded(context.callId, child);
      return { text: JSON.stringify(left), isError: false };
    });
    const rig = new AgentRig(script, { ...options, tools: [delegate] });
    return rig;
  };

  t.test('count in the budgets of turn and session, and are told apart', async (t) => {
    const toolCalls = [{ callId: 'd', name: 'delegate', arguments: '{}' }];
    const rig = delegating([say('', { reason: 'tool-calls', toolCalls, usage: usage(80, 20) }), say('never')], {
      settings: { prices },
      options: { budget: { maxTokens: 600, deadline: epoch + 5000 } },
    });
    const end = await rig.agent.send(prompt('go'), { budget: { maxCostUsd: 1 } });
    t.match(end, {
      reason: { budget: 'tokens', scope: 'session' },
      usage: { inputTokens: 80, subagents: { inputTokens: 400, costUsd: 0.001325 } },
    });
    t.equal(end.usage.costUsd, exactUsd(0.00036 + 0.001325), 'a child that names no cost costs what the session does');
    const seen = JSON.parse(rig.of('tool/result')[0]?.text ?? '') as object;
    t.strictSame(seen, { deadline: epoch + 5000, maxTokens: 500, maxCostUsd: 0.99964 });
    assertLegal(rig);
  });

  t.test('that end between two turns count in the next one, also when the session was reopened meanwhile', async (t) => {
    const options = { settings: { prices }, options: { budget: { maxTokens: 10_000 } } };
    const live = new AgentRig([say('a', { usage: usage(10, 10) }), say('b', { usage: usage(10, 10) })], options);
    await live.agent.send(prompt('one'));
    live.subagentEnded('d', { ...child, costUsd: 0.5 });
    const again = live.reopened([say('b', { usage: usage(10, 10) })]);
    for (const rig of [live, again]) {
      const end = await rig.agent.send(prompt('two'));
      t.match(end, { usage: { subagents: { ...child, costUsd: 0.5 } }, left: { maxTokens: 10_000 - 40 - 500 } });
      t.equal(end.usage.costUsd, exactUsd(0.5 + 0.00012));
    }
    const third = again.reopened([say('c', { usage: usage(10, 10) })]);
    t.match(await third.agent.send(prompt('three')), { left: { maxTokens: 10_000 - 60 - 500 } });
  });

  t.test('are not lost with a turn that could not be started', async (t) => {
    const rig = new AgentRig([say('a', { usage: usage(10, 10) })]);
    rig.agent.addSubagentUsage(child);
    rig.refuse = (event) => event.type === 'turn/start';
    t.match(await rig.agent.send(prompt('one')), { reason: { code: 'LOG_WRITE_FAILED' } });
    rig.refuse = () => false;
    t.match(await rig.agent.send(prompt('two')), { usage: { subagents: child } });
    t.notOk('subagents' in (await rig.agent.send(prompt('three'))).usage);
  });

  t.test('cannot lower a sum by a strange report', async (t) => {
    const rig = new AgentRig([say('a', { usage: usage(10, 10) })], { settings: { prices } });
    rig.agent.addSubagentUsage({ inputTokens: -5, outputTokens: Number.NaN, cacheReadTokens: 1.5, reasoningTokens: 0, costUsd: -3 });
    t.match(await rig.agent.send(prompt('go')), {
      usage: { subagents: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 1, costUsd: 0 } },
    });
  });

  t.test('of a turn that a crash cut off count by the log', async (t) => {
    const rig = delegating([call(['delegate', {}, 'd']), hang('never ends')], { options: { budget: { maxTokens: 1000 } } });
    void rig.agent.send(prompt('go'));
    await rig.until(() => rig.hanging === 1);
    const later = rig.reopened([say('b', { usage: usage(10, 10) })]);
    const end = await later.agent.send(prompt('again'));
    t.match(later.of('turn/end')[0]?.reason, { kind: 'interrupted' });
    t.match(end.left, { maxTokens: 480 });
  });
});
