/** Children that are kept warm: when one serves again, and when it must not. The children are real. */
import t from 'tap';
import { badProvider, follow, isAlive, newsWhere, SubagentRig } from '../../../../support/subagent-rig.ts';

t.setTimeout(60_000);
t.jobs = 4;

interface Identity {
  readonly pid: number;
  readonly cwd: string;
  readonly place: string;
  readonly sessionId: string;
}

t.test('a warm child serves runs of different sessions, each in a session of its own', async (t) => {
  const rig = new SubagentRig(t, [badProvider('whoami', { poolSize: 1 })]);
  const run = async (owner: string) => JSON.parse((await rig.run({ owner })).result.output) as Identity;
  const first = await run('s1');
  const second = await run('s2');
  t.equal(second.pid, first.pid);
  t.same([first.sessionId, second.sessionId, second.cwd], ['session-1', 'session-2', rig.dir]);
  t.same([...rig.groups.values()], ['pool']);
  await rig.broker.releaseOwner('s1');
  await rig.broker.releaseOwner('s2');
  t.equal(rig.groups.size, 1, 'it outlives the sessions');
});

t.test('a run never gets a process of another directory; that one makes room in a full pool', async (t) => {
  const rig = new SubagentRig(t, [badProvider('whoami', { poolSize: 1 })]);
  const run = async (cwd: string) => JSON.parse((await rig.run({ cwd })).result.output) as Identity;
  const first = await run(rig.dir);
  const second = await run('/');
  t.not(second.pid, first.pid);
  t.match(
    [first, second],
    [
      { cwd: rig.dir, place: rig.dir },
      { cwd: '/', place: '/' },
    ],
  );
  t.equal((await run('/')).pid, second.pid, 'the later one has been kept');
  t.equal(rig.started.length, 2);
});

t.test('a provider gets no process of another one, and one without a pool gets none', async (t) => {
  const rig = new SubagentRig(t, [
    badProvider('whoami', { poolSize: 1 }),
    badProvider('whoami', { name: 'other', poolSize: 1 }),
    badProvider('whoami', { name: 'unpooled' }),
  ]);
  for (const provider of ['child', 'unpooled', 'other', 'unpooled']) await rig.run({ provider });
  t.equal(rig.started.length, 4);
  t.equal(rig.groups.size, 2);
});

t.test('no more are kept than the pool holds, and none longer than its idle time', async (t) => {
  const rig = new SubagentRig(t, [badProvider('whoami', { poolSize: 1, poolIdleMs: 300 })]);
  const requests = await Promise.all([rig.start(), rig.start(), rig.start()]);
  await Promise.all(requests.map((request) => follow(rig.broker, request)));
  await Promise.all(requests.map((request) => rig.broker.disposeSubagent('s1', request.runId)));
  t.ok(rig.groups.size <= 1);
  await untilNone(rig);
});

t.test('a child closes its old session where it can', async (t) => {
  const rig = new SubagentRig(t, [badProvider('closes', { poolSize: 1 })]);
  const outputs = [await rig.run(), await rig.run()].map(({ result }) => JSON.parse(result.output) as { pid: number; closed: string[] });
  t.equal(outputs[0]?.pid, outputs[1]?.pid);
  t.same(outputs[1]?.closed, ['session-1']);
});

for (const behaviour of ['answers-twice', 'wrong-session', 'dies-after', 'refuses-prompt', 'mute']) {
  t.test(`a child that ${behaviour} does not serve again`, async (t) => {
    const rig = new SubagentRig(t, [badProvider(behaviour, { poolSize: 2, idleTimeoutMs: 2000, disposeEofGraceMs: 200 })]);
    const request = await rig.start();
    if (behaviour === 'mute') {
      // It never answers its cancel.
      await newsWhere(rig.broker, request, ({ activities }) => activities.length > 0);
      await rig.broker.cancelSubagent('s1', request.runId);
    }
    await follow(rig.broker, request);
    await rig.broker.disposeSubagent('s1', request.runId);
    t.equal(rig.groups.size, 0);
  });
}

t.test('a child whose run left processes behind does not serve again, and goes with all of them', async (t) => {
  const rig = new SubagentRig(t, [badProvider('daemon', { poolSize: 1, disposeEofGraceMs: 200 })]);
  const request = await rig.start();
  const { output } = await follow(rig.broker, request).then(({ result }) => result);
  const [child] = rig.started;
  const pids = [child ?? Number.NaN, ...output.split(' ').map(Number)];
  t.equal(pids.length, 3);
  await rig.broker.disposeSubagent('s1', request.runId);
  t.same(pids.map(isAlive), [false, false, false]);
});

t.test('a child that answers its cancel serves again', async (t) => {
  const rig = new SubagentRig(t, [badProvider('slow', { poolSize: 1 })]);
  for (let round = 0; round < 2; round += 1) {
    const request = await rig.start();
    await newsWhere(rig.broker, request, ({ activities }) => activities.length > 0);
    await rig.broker.cancelSubagent('s1', request.runId);
    t.match((await follow(rig.broker, request)).result, { stopReason: 'aborted', output: 'so far' });
    await rig.broker.disposeSubagent('s1', request.runId);
  }
  t.equal(rig.started.length, 1);
  t.equal(rig.groups.size, 1);
});

for (const behaviour of ['ends-after', 'speaks-later']) {
  t.test(`a child that ${behaviour} while it waits is replaced`, async (t) => {
    const rig = new SubagentRig(t, [badProvider(behaviour, { poolSize: 1 })]);
    const first = (await rig.run()).result.output;
    if (behaviour === 'ends-after') await untilNone(rig);
    const { result } = await rig.run();
    t.equal(result.stopReason, 'completed');
    t.not(result.output, first);
    t.equal(rig.started.length, 2);
  });
}

t.test('a warm child that gives an old session id is replaced within the start', async (t) => {
  const rig = new SubagentRig(t, [badProvider('same-session', { poolSize: 1 })]);
  await rig.run();
  t.match((await rig.run()).result, { stopReason: 'completed' });
  t.equal(rig.started.length, 2);
});

t.test('a warm child that hangs at its next session is replaced within the start', async (t) => {
  const rig = new SubagentRig(t, [badProvider('silent-again', { poolSize: 1, startTimeoutMs: 6000 })]);
  const { output } = (await rig.run()).result;
  const { result } = await rig.run();
  t.match(result, { stopReason: 'completed', output: /^\d+$/ });
  t.not(result.output, output);
  t.equal(rig.started.length, 2);
  t.notOk(isAlive(Number(output)), 'the first one is gone');
});

async function untilNone(rig: SubagentRig): Promise<void> {
  for (const end = performance.now() + 10_000; rig.groups.size > 0; await new Promise((resolve) => setTimeout(resolve, 20))) {
    if (performance.now() > end) throw new Error('a child is still there');
  }
}
