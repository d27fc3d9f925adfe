/** Children that do one thing wrong: what their run ends with, and that nothing of them is left. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { signalGroup } from '../../src/shared/process-table.ts';
import { fileAppears } from '../support/file-appears.ts';
import { badProvider, follow, isAlive, newsWhere, SubagentRig, toldText } from '../support/subagent-rig.ts';

t.setTimeout(100_000);
t.jobs = 4;

const failedStarts = [
  { behaviour: 'refuses-initialize', code: 'SUBAGENT_FAILED', message: /"child" failed at initialize: not today/ },
  { behaviour: 'wrong-version', code: 'SUBAGENT_FAILED', message: /speaks version 2 of the protocol/ },
  { behaviour: 'no-session-id', code: 'SUBAGENT_FAILED', message: /gave no session id/ },
  { behaviour: 'needs-auth', code: 'AUTH_REQUIRED', message: /needs to be signed in.* It says: run agent login/ },
  { behaviour: 'prints-usage', code: 'SUBAGENT_FAILED', message: /exited with code 2\non stdout: Usage: agent/ },
  {
    behaviour: 'dies-before',
    code: 'SUBAGENT_FAILED',
    message: /failed at session\/new: it exited with code 3\ncannot open the database; password=\[redacted\]/,
  },
] as const;

for (const { behaviour, code, message } of failedStarts) {
  t.test(`a child that ${behaviour}: the start fails with the reason, and only once the child is gone`, async (t) => {
    const rig = new SubagentRig(t, [badProvider(behaviour)]);
    t.match(await rig.broker.startSubagent(rig.request()), { ok: false, code, message });
    t.equal(rig.groups.size, 0, 'it was gone by then');
    t.equal(rig.started.length, 1);
    t.equal(await rig.broker.countSubagents('s1'), 0);
  });
}

for (const behaviour of ['silent-initialize', 'silent-new']) {
  t.test(`a child that keeps ${behaviour}: the start ends with its time`, async (t) => {
    const rig = new SubagentRig(t, [badProvider(behaviour, { startTimeoutMs: 700 })]);
    t.match(await rig.broker.startSubagent(rig.request()), { ok: false, code: 'SUBAGENT_FAILED', message: /within 700 ms/ });
    t.equal(rig.groups.size, 0);
  });
}

t.test('a start that is cancelled answers with the fixed words once the child is gone', async (t) => {
  const rig = new SubagentRig(t, []);
  const mark = join(rig.dir, 'pid');
  const waiting = new SubagentRig(t, [badProvider('silent-initialize', {}, mark)]);
  const request = waiting.request();
  const started = waiting.broker.startSubagent(request);
  await fileAppears(mark);
  t.equal(await waiting.broker.countSubagents('s1'), 1, 'it counts while it starts');
  await waiting.broker.cancelSubagent('s1', request.runId);
  t.match(await started, {
    ok: false,
    code: 'REQUEST_CANCELLED',
    message: 'subagent request was aborted before the ACP child started',
  });
  t.equal(waiting.groups.size, 0);
});

t.test('a child that dies in its turn: an error with its exit, its last words and what it said; no secret', async (t) => {
  const rig = new SubagentRig(t, [badProvider('dies-after', { env: { SOME_TOKEN: 'CANARY-SECRET-VALUE' } })]);
  const { result } = await rig.run();
  t.match(result, { stopReason: 'error', output: 'half an ans', diagnostic: /ended before it answered: it exited with code 7\nboom: key/ });
  t.notMatch(result.diagnostic, /sk-abcdef|CANARY/);
});

t.test('a child that is killed in its turn', async (t) => {
  const rig = new SubagentRig(t, [badProvider('killed-after')]);
  t.match((await rig.run()).result, { stopReason: 'error', output: 'half', diagnostic: /it was ended by SIGKILL/ });
});

t.test('a child that refuses its prompt', async (t) => {
  const rig = new SubagentRig(t, [badProvider('refuses-prompt')]);
  const { result } = await rig.run();
  t.match(result, { stopReason: 'error', diagnostic: /refused its prompt \(error -32603\): no credit left for \[redacted\]/ });
  t.match(result.usage, { inputTokens: 7, outputTokens: 1 });
});

t.test('a child that ignores the end of input and TERM is killed after both graces', async (t) => {
  const rig = new SubagentRig(t, [badProvider('deaf', { disposeEofGraceMs: 300, disposeGraceMs: 200 })]);
  const request = await rig.start();
  t.match((await follow(rig.broker, request)).result, { stopReason: 'completed', output: 'you said: do it' });
  const start = performance.now();
  t.equal(rig.groups.size, 1);
  await rig.broker.disposeSubagent('s1', request.runId);
  t.ok(performance.now() - start > 200, 'not before the grace is over');
  t.equal(rig.groups.size, 0);
});

t.test('a child that takes its time to go has its grace; a release of its owner does not wait for it', async (t) => {
  const rig = new SubagentRig(t, [badProvider('slow-leaver', { disposeEofGraceMs: 60_000 })]);
  const request = await rig.start();
  await follow(rig.broker, request);
  const disposed = rig.broker.disposeSubagent('s1', request.runId);
  const start = performance.now();
  await rig.broker.releaseOwner('s1');
  await disposed;
  t.ok(performance.now() - start < 5000, 'the grace was cut short');
  t.equal(rig.groups.size, 0);
});

t.test('what a child leaves behind in its group, or out of it, goes with it; the owner keeps its other processes', async (t) => {
  const rig = new SubagentRig(t, [badProvider('daemon', { disposeEofGraceMs: 200 })]);
  const started = await rig.broker.startBackground({ owner: 's1', command: 'sleep', args: ['300'], cwd: '/', keepBytes: 100 });
  t.ok('taskId' in started);
  const { result } = await rig.run();
  t.match(result, { stopReason: 'completed', output: /^\d+ \d+$/ });
  const [daemon = 0, sibling = 0] = result.output.split(' ').map(Number);
  t.not(daemon, sibling);
  t.notOk(isAlive(daemon), 'the daemon is gone');
  t.notOk(isAlive(sibling), 'the sibling is gone');
  t.equal(await rig.broker.countBackground('s1'), 1);
});

t.test('noise on stdout is passed over', async (t) => {
  const rig = new SubagentRig(t, [badProvider('noise')]);
  t.match((await rig.run()).result, { stopReason: 'completed', output: 'you said: do it' });
});

t.test('updates that follow the answer are not lost', async (t) => {
  const rig = new SubagentRig(t, [badProvider('late')]);
  const followed = await rig.run();
  t.match(followed.result, { stopReason: 'completed', output: 'early late latest' });
  t.equal(toldText(followed), 'early late latest');
});

t.test('updates of unknown kinds break nothing', async (t) => {
  const rig = new SubagentRig(t, [badProvider('unknown-kinds')]);
  const followed = await rig.run();
  t.match(followed.result, { stopReason: 'completed', output: 'still here' });
  t.same(followed.activities, [{ kind: 'text', text: 'still here' }]);
});

t.test('a stop reason that is not known is an error that names it', async (t) => {
  const rig = new SubagentRig(t, [badProvider('unknown-stop')]);
  t.match((await rig.run()).result, { stopReason: 'error', output: 'well', diagnostic: /reason bored/ });
});

t.test('a child that answers twice: the first answer counts', async (t) => {
  const rig = new SubagentRig(t, [badProvider('answers-twice')]);
  t.match((await rig.run()).result, { stopReason: 'completed', output: 'once' });
});

t.test('a child that asks again while it is cancelled gets no answer that decides', async (t) => {
  const file = join(t.testdir(), 'choices');
  const rig = new SubagentRig(t, [badProvider('asks-twice', { permission: 'ask' }, file)]);
  const request = await rig.start();
  await rig.question(request);
  await rig.broker.cancelSubagent('s1', request.runId);
  const { result } = await newsWhere(rig.broker, request, (news) => news.result !== undefined);
  t.match(result, { stopReason: 'aborted' });
  await fileAppears(file);
  await rig.broker.disposeSubagent('s1', request.runId);
  t.equal(readFileSync(file, 'utf8'), 'cancelled cancelled');
});

t.test('updates and requests of another session count for nothing', async (t) => {
  const rig = new SubagentRig(t, [badProvider('wrong-session', { permission: 'allow' })]);
  const followed = await rig.run();
  t.match(followed.result, { stopReason: 'completed', output: 'own words, cancelled' });
  t.notMatch(toldText(followed), /stolen/);
});

for (const [behaviour, output] of [
  ['closes-stdout', 'bye'],
  ['closes-stdin', 'deaf now'],
] as const) {
  t.test(`a child that ${behaviour} and lives on is put away`, async (t) => {
    const rig = new SubagentRig(t, [badProvider(behaviour, { disposeEofGraceMs: 200 })]);
    const { result } = await rig.run();
    t.match(result, { output });
    if (behaviour === 'closes-stdout') t.match(result, { stopReason: 'error', diagnostic: /it closed its stdin or its stdout/ });
    t.equal(rig.groups.size, 0);
  });
}

t.test('a child that says nothing for too long is ended; one that waits for an answer is not', async (t) => {
  const rig = new SubagentRig(t, [
    badProvider('mute', { idleTimeoutMs: 400 }),
    badProvider('asks', { name: 'asker', permission: 'ask', idleTimeoutMs: 400 }),
  ]);
  const asker = await rig.start({ provider: 'asker' });
  const { questionId } = await rig.question(asker);
  t.match((await rig.run()).result, { stopReason: 'error', output: 'one word', diagnostic: /said nothing for 400 ms/ });
  t.equal(await rig.broker.countSubagents('s1'), 1);
  await rig.broker.answerSubagent('s1', asker.runId, questionId, true);
  t.match((await follow(rig.broker, asker)).result, { stopReason: 'completed', output: 'chose once' });
});

t.test('a child whose tool works is not silent; one whose tool has ended is', async (t) => {
  const rig = new SubagentRig(t, [badProvider('works-then-mute', { idleTimeoutMs: 700, disposeEofGraceMs: 200 })]);
  const { result, activities } = await rig.run();
  t.match(activities, [
    { kind: 'tool', status: 'in_progress' },
    { kind: 'tool', status: 'completed' },
  ]);
  t.match(result, { stopReason: 'error', diagnostic: /said nothing for 700 ms/ });
});

t.test('a child in a session of its own that stops itself is still put away', async (t) => {
  const rig = new SubagentRig(t, [badProvider('mute', { disposeEofGraceMs: 200, disposeGraceMs: 200 })]);
  const request = await rig.start();
  await newsWhere(rig.broker, request, ({ activities }) => activities.length > 0);
  const [pgid = 0] = rig.started;
  signalGroup(pgid, 'SIGSTOP');
  await rig.broker.cancelSubagent('s1', request.runId);
  t.match((await follow(rig.broker, request)).result, { stopReason: 'aborted', output: 'one word' });
  await rig.broker.disposeSubagent('s1', request.runId);
  t.equal(rig.groups.size, 0);
});
