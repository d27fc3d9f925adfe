/** Runs of subagents as their owner sees them: starts, options, news, permissions, ends, owners. The children are real. */
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { SubagentActivity } from '../../../../../src/shared/subagent-protocol.ts';
import { badProvider, follow, newsWhere, SubagentRig, toldText } from '../../../../support/subagent-rig.ts';

t.setTimeout(60_000);
t.jobs = 4;

t.test('a run gives the text of its child, tells it meanwhile, and leaves nothing', async (t) => {
  const rig = new SubagentRig(t, [badProvider('good')]);
  const request = rig.request({ prompt: 'say é' });
  t.same(await rig.broker.startSubagent(request), {
    ok: true,
    capabilities: { persona: false, tools: false, depth: false, outputSchema: false, inheritsParentContext: false },
  });
  const followed = await follow(rig.broker, request);
  t.match(followed.result, { stopReason: 'completed', output: 'you said: say é', durationMs: Number });
  t.equal(toldText(followed), 'you said: say é');
  await rig.broker.disposeSubagent('s1', request.runId);
  t.equal(rig.groups.size, 0);
  t.same(await rig.broker.awaitSubagent('s1', request.runId, 0, 0), { ok: false, code: 'NOT_FOUND' });
  await rig.broker.disposeSubagent('s1', request.runId);
});

t.test('a run that is cancelled before its child is spawned spawns none', async (t) => {
  const rig = new SubagentRig(t, [badProvider('good')]);
  const request = rig.request();
  const started = rig.broker.startSubagent(request);
  await rig.broker.cancelSubagent('s1', request.runId);
  t.same(await started, {
    ok: false,
    code: 'REQUEST_CANCELLED',
    message: 'subagent request was aborted before the ACP child started',
  });
  t.same(rig.started, []);
});

t.test('the working directory is the provider’s, else the session’s; what is no directory is refused before any spawn', async (t) => {
  const folder = t.testdir({ file: '', closed: {} });
  chmodSync(join(folder, 'closed'), 0o000);
  const rig = new SubagentRig(t, [badProvider('whoami'), badProvider('whoami', { name: 'elsewhere', cwd: folder })]);
  const place = async (provider: string) => {
    const { pid: _pid, ...rest } = JSON.parse((await rig.run({ provider })).result.output) as Record<string, unknown>;
    return rest;
  };
  t.same(await place('child'), { place: rig.dir, cwd: rig.dir, sessionId: 'session-1' });
  t.match(await place('elsewhere'), { cwd: folder });
  t.equal(rig.started.length, 2);
  const refused = async (cwd: string, message: string) => {
    t.same(await rig.broker.startSubagent(rig.request({ cwd })), { ok: false, code: 'CWD_INVALID', message });
  };
  await refused('', 'no working directory for the child: neither its provider nor the session names one');
  await refused('some/where', "the session's cwd must be an absolute path: some/where");
  await refused(join(folder, 'nowhere'), `the session's cwd is not an accessible directory: ${join(folder, 'nowhere')}`);
  await refused(join(folder, 'file'), `the session's cwd is not an accessible directory: ${join(folder, 'file')}`);
  // Root may enter everything.
  if (process.getuid?.() !== 0) {
    await refused(join(folder, 'closed'), `the session's cwd is not an accessible directory: ${join(folder, 'closed')}`);
  }
  t.equal(rig.started.length, 2, 'nothing was spawned');
  chmodSync(join(folder, 'closed'), 0o700);
});

t.test('what cannot be started is refused with the reason', async (t) => {
  const rig = new SubagentRig(t, [
    badProvider('good', { command: 'no-such-agent' }),
    badProvider('good', { name: 'self', command: undefined }),
  ]);
  t.match(await rig.broker.startSubagent(rig.request()), {
    ok: false,
    code: 'SUBAGENT_FAILED',
    message: /"child" could not be started: ENOENT: the program no-such-agent was not found/,
  });
  t.match(await rig.broker.startSubagent(rig.request({ provider: 'nobody' })), { code: 'INVALID_PARAMS', message: /there are: child$/ });
  t.match(await rig.broker.startSubagent(rig.request({ provider: 'self' })), { code: 'INVALID_PARAMS' });
  t.match(await rig.broker.startSubagent(rig.request({ depth: 4 })), { code: 'INVALID_PARAMS', message: /4 delegations deep, and 3 is/ });
  t.same(rig.started, []);
});

t.test('options that are configured go to a child that takes them', async (t) => {
  const outputSchema = { type: 'object' };
  const rig = new SubagentRig(t, [badProvider('takes-all', { persona: 'Be brief.', tools: ['read'], outputSchema })]);
  const request = await rig.start({
    depth: 2,
    maxDepth: 2,
    mode: 'read-only',
    deadline: Date.UTC(2030, 0, 1),
    maxTokens: 1000,
    maxCostUsd: 0.5,
  });
  const { result } = await follow(rig.broker, request);
  t.same(JSON.parse(result.output), {
    'dsh-acp': {
      persona: 'Be brief.',
      tools: ['read'],
      outputSchema,
      depth: 2,
      maxDepth: 2,
      mode: 'read-only',
      budget: { deadline: '2030-01-01T00:00:00.000Z', maxTokens: 1000, maxCostUsd: 0.5 },
    },
  });
  t.match(result, {
    structured: { answer: 42 },
    usage: { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, reasoningTokens: 4, costUsd: 0.5 },
  });
});

t.test('a child that knows no prices is started without a budget in dollars', async (t) => {
  const rig = new SubagentRig(t, [badProvider('takes-all', {}, 'no-prices')]);
  const { result } = await rig.run({ maxTokens: 1000, maxCostUsd: 0.5 });
  t.match(JSON.parse(result.output), { 'dsh-acp': { budget: { maxTokens: 1000, maxCostUsd: undefined } } });
});

t.test('a child that does not announce an option is refused by its name; the depth alone is no reason', async (t) => {
  const options = [
    ['persona', { persona: 'Be brief.' }],
    ['tools', { tools: ['read'] }],
    ['outputSchema', { outputSchema: {} }],
  ] as const;
  const rig = new SubagentRig(t, [
    ...options.map(([name, option]) => badProvider('takes-depth', { name: name.toLowerCase(), ...option })),
    badProvider('takes-depth'),
    badProvider('good', { name: 'plain' }),
  ]);
  for (const [name] of options) {
    t.match(await rig.broker.startSubagent(rig.request({ provider: name.toLowerCase() })), {
      ok: false,
      code: 'INVALID_PARAMS',
      message: new RegExp(`does not take the option ${name}`),
    });
    t.equal(rig.groups.size, 0);
  }
  t.same(JSON.parse((await rig.run({ maxTokens: 5, mode: 'ask' })).result.output), { 'dsh-acp': { depth: 1 } });
  t.match((await rig.run({ provider: 'plain', depth: 3 })).result, { stopReason: 'completed' });
});

t.test('stop reasons', async (t) => {
  const reasons = { end_turn: 'completed', max_tokens: 'max-tokens', refusal: 'refusal', cancelled: 'aborted', max_turn_requests: 'error' };
  const providers = Object.keys(reasons).map((reason) => badProvider('stops', { name: reason.replaceAll('_', '-') }, reason));
  const rig = new SubagentRig(t, providers);
  await Promise.all(
    Object.entries(reasons).map(async ([reason, stopReason]) => {
      const { result } = await rig.run({ provider: reason.replaceAll('_', '-') });
      t.match(result, { stopReason, output: 'as far as I got' });
      t.equal(result.diagnostic, stopReason === 'error' ? `the subagent stopped for the reason ${reason}` : undefined);
    }),
  );
});

/** A poll may end between two pieces of one text. */
function textMerged(activities: readonly SubagentActivity[]): SubagentActivity[] {
  return activities.reduce<SubagentActivity[]>((merged, activity) => {
    const last = merged.at(-1);
    if (last?.kind !== 'text' || activity.kind !== 'text') return [...merged, activity];
    return [...merged.slice(0, -1), { kind: 'text', text: last.text + activity.text }];
  }, []);
}

t.test('what a child does is told: plan, calls, text, images, cost', async (t) => {
  const rig = new SubagentRig(t, [badProvider('works')]);
  const { result, activities: told } = await rig.run();
  const activities = textMerged(told);
  const call = { kind: 'tool', childCallId: 't1', title: 'Read file', toolKind: 'read' };
  const image = activities.find((activity) => activity.kind === 'image');
  t.same(
    activities.filter((activity) => activity.kind !== 'image'),
    [
      { kind: 'plan', entries: [{ content: 'look', priority: 'high', status: 'in_progress' }] },
      { ...call, status: 'pending' },
      { ...call, status: 'in_progress' },
      { ...call, status: 'completed' },
      { kind: 'text', text: 'first message\n\nsecond message' },
      { kind: 'usage', usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, costUsd: 0.25 } },
    ],
  );
  t.match(image, { mimeType: 'image/png', bytes: 15, path: join(rig.dir, 'spill', 'image-') });
  t.equal(readFileSync(image?.path ?? '', 'utf8'), 'no real picture');
  t.equal(statSync(image?.path ?? '').mode & 0o777, 0o600);
  t.match(result, {
    output: 'second message',
    usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 2, reasoningTokens: 1, costUsd: 0.25 },
  });
});

t.test('an image that cannot be stored costs the image only', async (t) => {
  const rig = new SubagentRig(t, [badProvider('works')]);
  writeFileSync(join(rig.dir, 'spill'), 'in the way');
  const { result, activities } = await rig.run();
  t.equal(result.stopReason, 'completed');
  t.notOk(activities.some(({ kind }) => kind === 'image'));
  t.same(readdirSync(rig.dir), ['spill']);
});

t.test('a run that is cancelled stores no image any more but those it told of', async (t) => {
  const rig = new SubagentRig(t, [badProvider('pictures')]);
  const request = await rig.start();
  const activities: SubagentActivity[] = [];
  await newsWhere(rig.broker, request, (news) => activities.push(...news.activities) > 0);
  await rig.broker.cancelSubagent('s1', request.runId);
  activities.push(...(await follow(rig.broker, request)).activities);
  await rig.broker.disposeSubagent('s1', request.runId);
  const told = activities.flatMap((activity) => (activity.kind === 'image' ? [activity.path] : []));
  const spill = join(rig.dir, 'spill');
  const stored = existsSync(spill) ? readdirSync(spill).map((name) => join(spill, name)) : [];
  t.same(new Set(stored), new Set(told));
});

t.test('a long text keeps its beginning and its end, and says how much is missing', async (t) => {
  const rig = new SubagentRig(t, [badProvider('long-text')]);
  const followed = await rig.run();
  const { result, dropped } = followed;
  t.match(result.output, /^first words x+\n\[\.\.\. \d+ bytes left out \.\.\.\]\nx+ last words$/);
  t.ok(Buffer.byteLength(result.output) < 1024 * 1024 + 100);
  const told = toldText(followed);
  const whole = 'first words '.length + 3 * 1024 * 1024 + ' last words'.length;
  t.ok(dropped > 0 ? told.length < whole : told.length === whole, `${told.length} of ${whole} characters told, ${dropped} pieces dropped`);
  t.match(told.slice(-20), /x last words$/);
});

t.test('a cancel gives at once what came, and the child its chance', async (t) => {
  const rig = new SubagentRig(t, [badProvider('slow')]);
  const request = await rig.start();
  await newsWhere(rig.broker, request, ({ activities }) => activities.length > 0);
  const polling = follow(rig.broker, request);
  await rig.broker.cancelSubagent('s1', request.runId);
  t.match((await polling).result, { stopReason: 'aborted', output: 'so far' });
  t.equal(await rig.broker.countSubagents('s1'), 0);
  await rig.broker.cancelSubagent('s1', request.runId);
  await rig.broker.disposeSubagent('s1', request.runId);
  t.equal(rig.groups.size, 0);
});

t.test('a run that is put away while it works is over', async (t) => {
  const rig = new SubagentRig(t, [badProvider('slow')]);
  const request = await rig.start();
  const polling = follow(rig.broker, request);
  await rig.broker.disposeSubagent('s1', request.runId);
  t.match((await polling).result, { stopReason: 'aborted' });
  t.equal(rig.groups.size, 0);
});

t.test('permissions are answered by kind, and never for longer than once', async (t) => {
  const rig = new SubagentRig(t, [
    badProvider('asks', { name: 'rejected', permission: 'reject' }),
    badProvider('asks', { name: 'allowed', permission: 'allow' }),
    badProvider('asks-always', { name: 'rejected-always', permission: 'reject' }),
    badProvider('asks-always', { name: 'allowed-always', permission: 'allow' }),
    badProvider('wants-files', { permission: 'allow' }),
  ]);
  const outputs = await Promise.all(
    ['rejected', 'allowed', 'rejected-always', 'allowed-always', 'child'].map(
      async (provider) => (await rig.run({ provider })).result.output,
    ),
  );
  t.same(outputs, ['chose no', 'chose once', 'chose cancelled', 'chose cancelled', '-32601 -32601 -32601 -32601 -32601']);
});

t.test('a question that is passed up is answered once, by its owner', async (t) => {
  const rig = new SubagentRig(t, [badProvider('asks', { permission: 'ask' })]);
  for (const [allow, output] of [
    [true, 'chose once'],
    [false, 'chose no'],
  ] as const) {
    const request = await rig.start();
    const question = await rig.question(request);
    t.match(question, { title: 'rm -rf /', toolKind: 'execute', rawInput: { command: 'rm -rf /' }, content: [] });
    await rig.broker.answerSubagent('another', request.runId, question.questionId, true);
    await rig.broker.answerSubagent('s1', request.runId, 'no-question', true);
    await rig.broker.answerSubagent('s1', request.runId, question.questionId, allow);
    await rig.broker.answerSubagent('s1', request.runId, question.questionId, !allow);
    const last = await newsWhere(rig.broker, request, (news) => news.result !== undefined);
    t.match(last, { questions: [], result: { output } });
  }
});

t.test('a question that its child takes back is gone; too many at once are not asked', async (t) => {
  const rig = new SubagentRig(t, [
    badProvider('asks-and-withdraws', { permission: 'ask' }),
    badProvider('asks-much', { name: 'curious', permission: 'ask' }),
  ]);
  t.match((await rig.run()).result, { output: 'chose cancelled' });
  const request = await rig.start({ provider: 'curious' });
  const { questions } = await newsWhere(rig.broker, request, ({ activities }) => activities.length > 0);
  t.equal(questions.length, 16, 'the others have been told that nobody decides');
  for (const { questionId } of questions) await rig.broker.answerSubagent('s1', request.runId, questionId, true);
  t.match((await follow(rig.broker, request)).result, { stopReason: 'completed', output: 'sixteen are left' });
});

t.test('runs belong to their owner', async (t) => {
  const rig = new SubagentRig(t, [badProvider('slow')]);
  const request = await rig.start();
  t.same(await rig.broker.awaitSubagent('s2', request.runId, 0, 0), { ok: false, code: 'FOREIGN' });
  await rig.broker.cancelSubagent('s2', request.runId);
  await rig.broker.disposeSubagent('s2', request.runId);
  await rig.broker.releaseOwner('s2');
  t.equal(await rig.broker.countSubagents('s1'), 1);
  t.equal(await rig.broker.countSubagents('s2'), 0);
  t.match(await rig.broker.startSubagent({ ...request, owner: 's2' }), { ok: false, code: 'INVALID_PARAMS' });
  t.same([...rig.groups.values()], ['s1']);
  await rig.broker.releaseOwner('s1');
  t.equal(rig.groups.size, 0);
});

t.test('a shutdown ends runs in every state, and refuses later ones', async (t) => {
  const rig = new SubagentRig(t, [
    badProvider('slow', { disposeEofGraceMs: 60_000 }),
    badProvider('silent-new', { name: 'starting' }),
    badProvider('deaf', { name: 'idle', poolSize: 2, disposeEofGraceMs: 60_000 }),
  ]);
  await rig.start();
  await rig.run({ provider: 'idle' });
  t.same([...rig.groups.values()].sort(), ['pool', 's1']);
  const starting = rig.broker.startSubagent(rig.request({ provider: 'starting' }));
  const start = performance.now();
  await rig.broker.shutdown();
  t.ok(performance.now() - start < 10_000);
  t.match(await starting, { ok: false, code: 'REQUEST_CANCELLED' });
  t.equal(rig.groups.size, 0);
  await t.rejects(rig.broker.startSubagent(rig.request()), { code: 'SHUTTING_DOWN' });
});

t.test('no more runs at once than the provider allows: the next one waits, for a time, and can be cancelled', async (t) => {
  const rig = new SubagentRig(t, [
    badProvider('slow', { maxRunning: 1 }),
    badProvider('silent-new', { name: 'stuck', maxRunning: 1, startTimeoutMs: 500 }, 'deaf'),
  ]);
  const first = await rig.start();
  const second = rig.request({ owner: 's2' });
  const third = rig.request();
  const secondStarted = rig.broker.startSubagent(second);
  const thirdStarted = rig.broker.startSubagent(third);
  await rig.broker.cancelSubagent('s1', third.runId);
  t.match(await thirdStarted, { ok: false, code: 'REQUEST_CANCELLED' });
  t.equal(rig.started.length, 1);
  await rig.broker.disposeSubagent('s1', first.runId);
  t.match(await secondStarted, { ok: true });
  // The first start ends later than it fails: its child has to be killed.
  const stuck = [rig.request({ provider: 'stuck' }), rig.request({ provider: 'stuck' })].map((one) => rig.broker.startSubagent(one));
  t.match((await Promise.all(stuck)).map((one) => (one.ok ? '' : one.code)).sort(), ['OVERLOADED', 'SUBAGENT_FAILED']);
});

t.test('a child gets the scrubbed environment, its provider’s variables, and its marks', async (t) => {
  const ambient = { ...process.env, SOME_API_KEY: 'ambient-secret', DSH_ACP_MODEL: 'x', HARMLESS: '1' };
  const rig = new SubagentRig(t, [badProvider('environment', { env: { CHILD_API_KEY: 'given-to-the-child' } })], ambient);
  const env = JSON.parse((await rig.run()).result.output) as Record<string, string>;
  t.match(env, { HARMLESS: '1', CHILD_API_KEY: 'given-to-the-child' });
  t.notHas(env, { SOME_API_KEY: String });
  t.notHas(env, { DSH_ACP_MODEL: String });
});
