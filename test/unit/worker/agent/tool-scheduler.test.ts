/**
 * How the calls of an answer run: order, company, refusals, faults and cancels.
 */
import t from 'tap';
import { stopGraceMs } from '../../../../src/worker/agent/settle-or-abandon.ts';
import type { ToolContext } from '../../../../src/worker/tools/tool.ts';
import { AgentRig, call, prompt, say, tool, assertLegal } from './agent-rig.ts';

const echo = tool('echo', async ({ text }, { callId }) => ({ text: `echo ${text ?? callId}`, isError: false }), true);

/** A tool whose calls end when the test opens their gate, by text. */
function gated(name: string, parallel: boolean) {
  const open = new Map<string, () => void>();
  const active = new Set<string>();
  let most = 0;
  const made = tool(
    name,
    async ({ text = '' }) => {
      active.add(text);
      most = Math.max(most, active.size);
      await new Promise<void>((resolve) => open.set(text, resolve));
      active.delete(text);
      return { text: `did ${text}`, isError: false };
    },
    parallel,
  );
  return { tool: made, open, active, most: () => most };
}

t.test('parallel-safe calls run together and are logged in call order', async (t) => {
  const slow = gated('look', true);
  const rig = new AgentRig([call(['look', { text: 'a' }], ['look', { text: 'b' }], ['look', { text: 'c' }]), say('ok')], {
    tools: [slow.tool],
  });
  const sent = rig.agent.send(prompt('go'));
  await rig.until(() => slow.active.size === 3);
  slow.open.get('c')?.();
  await rig.until(() => slow.active.size === 2);
  t.equal(rig.of('tool/result').length, 0, 'the third waits for the first two');
  slow.open.get('a')?.();
  await rig.until(() => rig.of('tool/result').length === 1);
  slow.open.get('b')?.();
  await sent;
  t.strictSame(
    rig.of('tool/result').map((result) => result.text),
    ['did a', 'did b', 'did c'],
  );
  assertLegal(rig);
});

t.test('at most maxParallelToolCalls run at a time', async (t) => {
  const slow = gated('look', true);
  const names = ['a', 'b', 'c', 'd', 'e'];
  const rig = new AgentRig([call(...names.map((text): [string, object] => ['look', { text }])), say('ok')], {
    tools: [slow.tool],
    settings: { maxParallelToolCalls: 2 },
  });
  const sent = rig.agent.send(prompt('go'));
  for (const name of names) {
    await rig.until(() => slow.active.has(name));
    slow.open.get(name)?.();
  }
  t.match(await sent, { reason: { kind: 'completed' } });
  t.equal(slow.most(), 2);
});

t.test('a call that is not parallel-safe waits for all before it and holds up all behind it', async (t) => {
  const look = gated('look', true);
  const act = gated('act', false);
  const rig = new AgentRig(
    [
      call(['look', { text: 'a' }], ['look', { text: 'b' }], ['act', { text: 'x' }], ['act', { text: 'y' }], ['look', { text: 'c' }]),
      say('ok'),
    ],
    { tools: [look.tool, act.tool] },
  );
  const sent = rig.agent.send(prompt('go'));
  await rig.until(() => look.active.size === 2);
  t.equal(act.active.size, 0);
  look.open.get('a')?.();
  look.open.get('b')?.();
  for (const name of ['x', 'y']) {
    await rig.until(() => act.active.has(name));
    t.equal(act.active.size + look.active.size, 1);
    act.open.get(name)?.();
  }
  await rig.until(() => look.active.has('c'));
  look.open.get('c')?.();
  await sent;
  assertLegal(rig);
});

t.test('a tool that cannot say whether it is parallel-safe runs alone', async (t) => {
  const solo = new AgentRig([call(['shy', {}], ['echo', {}]), say('ok')], {
    tools: [{ ...echo, name: 'shy', isParallelSafe: () => assertNever() }, echo],
  });
  await solo.agent.send(prompt('go'));
  t.strictSame(
    solo.types.filter((type) => type.startsWith('tool/')),
    ['tool/call', 'tool/start', 'tool/result', 'tool/call', 'tool/start', 'tool/result'],
  );
});

function assertNever(): never {
  throw new Error('cannot say');
}

t.test('calls that must not run get an error result, and the loop goes on', async (t) => {
  const ran: string[] = [];
  const act = tool('act', async (_args, { callId }) => {
    ran.push(callId);
    return { text: 'acted', isError: false };
  });
  const rig = new AgentRig([call(['act', '{"text": "un'], ['act', { bad: 1 }], ['nope', {}], ['act', '[]x']), say('sorry')], {
    tools: [act],
  });
  t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'completed' }, usage: { steps: 2 } });
  t.strictSame(
    rig.of('tool/result').map((result) => [result.code, result.isError]),
    [
      ['INVALID_ARGS', true],
      ['INVALID_ARGS', true],
      ['UNKNOWN_TOOL', true],
      ['INVALID_ARGS', true],
    ],
  );
  t.match(rig.of('tool/result')[2]?.text, /no tool named "nope".*act/);
  t.strictSame(ran, []);
  t.strictSame(rig.permissionsAsked, []);
  t.strictSame(rig.of('tool/start'), [], 'what does not run does not start');
  const sentBack = rig.requests[1]?.messages[1];
  t.ok(
    sentBack?.role === 'assistant' && sentBack.toolCalls.every((made) => JSON.parse(made.arguments) !== null),
    'what is sent back is JSON',
  );
  assertLegal(rig);
});

t.test('calls of an answer that was cut off are never executed', async (t) => {
  let ran = 0;
  const act = tool('act', async () => {
    ran += 1;
    return { text: '', isError: false };
  });
  const rig = new AgentRig(
    [
      say('so I', {
        reason: 'length',
        toolCalls: [
          { callId: 'a', name: 'act', arguments: '{}' },
          { callId: 'b', name: 'act', arguments: '{"te' },
        ],
      }),
    ],
    { tools: [act] },
  );
  t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'max-tokens' } });
  t.equal(ran, 0);
  t.match(rig.of('assistant/message'), [{ text: 'so I', finish: 'length' }]);
  t.strictSame(
    rig.of('tool/result').map((result) => result.code),
    ['ARGUMENTS_TRUNCATED', 'ARGUMENTS_TRUNCATED'],
  );
  assertLegal(rig);
});

t.test('500 calls with one id: 64 run, the rest are refused, every id is its own', async (t) => {
  const many = Array.from({ length: 500 }, (): [string, object, string] => ['echo', {}, 'same']);
  const rig = new AgentRig([call(...many), call(['echo', {}, 'same'], ['echo', {}, 'x'.repeat(1000)]), say('ok')], { tools: [echo] });
  t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'completed' }, usage: { toolCalls: 66 } });
  const codes = rig.of('tool/result').map((result) => result.code);
  t.equal(codes.filter((code) => code === 'TOO_MANY_CALLS').length, 436);
  t.ok(rig.of('tool/call').every((made) => made.callId.length <= 128));
  assertLegal(rig);
});

t.test('a tool that throws, rejects or answers too much costs only its call', async (t) => {
  const tools = [
    tool('throws', () => assertNever()),
    tool('rejects', () => Promise.reject(new Error('y'.repeat(10_000)))),
    tool('floods', async () => ({ text: `${'a'.repeat(300_000)}\u{1F600}`, isError: false, meta: { exit: 0 } })),
    { ...echo, name: 'hides', presentCall: () => assertNever() },
    { ...echo, name: 'roams', access: () => assertNever() },
  ];
  const rig = new AgentRig([call(...tools.map(({ name }): [string, object] => [name, {}])), say('ok')], { tools });
  t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'completed' } });
  const results = rig.of('tool/result');
  t.match(results[0], { text: 'Error: cannot say', isError: true, code: 'TOOL_FAILED' });
  t.equal(results[1]?.text.length, 2007);
  t.ok((results[2]?.text.length ?? 0) < 263_000);
  t.match(results[2], { isError: false, meta: { exit: 0 } });
  t.match(results[3], { isError: true, code: 'TOOL_FAILED' });
  t.match(results[4], { isError: true, code: 'TOOL_FAILED' });
  t.strictSame(rig.permissionsAsked.length, 3, 'what cannot say what it touches is not even asked about');
  assertLegal(rig);
});

t.test('permission', async (t) => {
  t.test('a refusal is the result the model reads', async (t) => {
    const rig = new AgentRig([call(['echo', {}]), say('ok')], {
      tools: [echo],
      decide: async () => ({ allowed: false, code: 'PERMISSION_DENIED', text: 'Error: the person said no' }),
    });
    await rig.agent.send(prompt('go'));
    t.match(rig.of('tool/result'), [{ text: 'Error: the person said no', code: 'PERMISSION_DENIED', isError: true }]);
    t.strictSame(rig.of('tool/start'), []);
  });

  t.test('a gate that breaks does not open', async (t) => {
    const rig = new AgentRig([call(['echo', {}]), say('ok')], { tools: [echo], decide: () => Promise.reject(new Error('lost')) });
    await rig.agent.send(prompt('go'));
    t.match(rig.of('tool/result'), [{ code: 'PERMISSION_UNAVAILABLE', isError: true }]);
    t.strictSame(rig.of('tool/start'), []);
  });

  t.test('a cancel while it is asked ends the call unrun, even when the answer is a late yes', async (t) => {
    let ran = false;
    const act = tool('act', async () => {
      ran = true;
      return { text: '', isError: false };
    });
    const rig = new AgentRig([call(['act', {}], ['act', {}])], {
      tools: [act],
      decide: (_callId, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({ allowed: true }))),
    });
    const sent = rig.agent.send(prompt('go'));
    await rig.until(() => rig.permissionsAsked.length === 1);
    rig.agent.cancel();
    t.match(await sent, { reason: { kind: 'cancelled' } });
    t.equal(ran, false);
    t.strictSame(rig.of('tool/start'), []);
    t.strictSame(
      rig.of('tool/result').map((result) => result.code),
      ['ABORTED_BEFORE_DISPATCH', 'ABORTED_BEFORE_DISPATCH'],
    );
    assertLegal(rig);
  });
});

t.test('a cancel while tools run', async (t) => {
  t.test('waits for those that listen, and keeps their results', async (t) => {
    let context: ToolContext | undefined;
    const listens = tool('listens', async (_args, given) => {
      context = given;
      await new Promise((resolve) => given.signal.addEventListener('abort', resolve));
      return { text: 'stopped half way', isError: true, code: 'ABORTED' };
    });
    const rig = new AgentRig([call(['listens', {}], ['listens', {}])], { tools: [listens] });
    const sent = rig.agent.send(prompt('go'));
    await rig.until(() => context !== undefined);
    t.match(context, { sessionId: 'session-1', cwd: '/work', spillDir: '/spill', commandTimeoutMs: 1000 });
    rig.agent.cancel();
    t.match(await sent, { reason: { kind: 'cancelled' } });
    t.match(rig.of('tool/result'), [{ text: 'stopped half way' }, { code: 'ABORTED_BEFORE_DISPATCH' }]);
    t.equal(rig.sleepers.size, 0);
    assertLegal(rig);
  });

  t.test('gives up on one that does not, and drops what it does later', async (t) => {
    let release: (() => void) | undefined;
    const deaf = tool('deaf', async (_args, given) => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      given.writeTodos([{ content: 'too late', status: 'pending' }]);
      return { text: 'late', isError: false };
    });
    const rig = new AgentRig([call(['deaf', {}])], { tools: [deaf] });
    const sent = rig.agent.send(prompt('go'));
    await rig.until(() => release !== undefined);
    rig.agent.cancel();
    await rig.until(() => rig.sleepers.size === 1);
    rig.wake(stopGraceMs);
    t.match(await sent, { reason: { kind: 'cancelled' } });
    const lines = rig.events.length;
    release?.();
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(rig.events.length, lines);
    t.match(rig.of('tool/result'), [{ code: 'TOOL_ABANDONED', isError: true }]);
    assertLegal(rig);
  });
});

t.test('todos are logged as they are written; a body begins only once its start is on the disk', async (t) => {
  const plans = tool('plans', async (_args, context) => {
    context.writeTodos([{ content: 'a', status: 'pending' }]);
    return { text: 'ok', isError: false };
  });
  const rig = new AgentRig([call(['plans', {}]), say('ok')], { tools: [plans] });
  await rig.agent.send(prompt('go'));
  t.match(rig.of('todo/write'), [{ todos: [{ content: 'a' }] }]);
  t.match(rig.of('tool/result'), [{ text: 'ok', isError: false }]);
  t.strictSame(
    rig.types.filter((type) => type.startsWith('tool/') || type === 'todo/write'),
    ['tool/call', 'tool/start', 'todo/write', 'tool/result'],
  );
  const started = rig.points.lastIndexOf('permission');
  t.equal(rig.points[started + 1], 'barrier', 'the barrier stands behind the permission');
  assertLegal(rig);
});
