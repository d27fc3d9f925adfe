/** Subagents through the built broker thread: over a port, when the caller goes, when the thread dies, when the server ends. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { MessageChannel, type Worker } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { BrokerThread } from '../../src/main/threads/broker-thread.ts';
import type { BrokerApi } from '../../src/shared/broker-protocol.ts';
import { portEndpoint, wrap } from '../../src/shared/comlink.ts';
import type { SubagentProvider, SubagentRequest } from '../../src/shared/subagent-protocol.ts';
import { projectRoot } from '../support/server-process.ts';
import { badProvider, follow, newsWhere } from '../support/subagent-rig.ts';

t.setTimeout(60_000);

/** Workers of this process, as Node announces them. */
const workers: Worker[] = [];
process.on('worker', (worker) => workers.push(worker));

function makeThread(t: Test, ...subagents: SubagentProvider[]) {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'subagent-')));
  const thread = new BrokerThread({
    entryPath: join(projectRoot, 'dist/worker/broker.cjs'),
    subagents,
    agentInfo: { name: 'test', version: '1' },
    onStderr: (text) => t.comment(text),
  });
  t.teardown(async () => {
    await thread.shutdown(5000);
    rmSync(cwd, { recursive: true, force: true });
  });
  const { port1, port2 } = new MessageChannel();
  thread.connect(port2);
  const request = (more: Partial<SubagentRequest> = {}): SubagentRequest => ({
    owner: 's1',
    runId: `run-${Math.random()}`,
    provider: 'child',
    prompt: 'do it',
    cwd,
    depth: 1,
    spillDir: join(cwd, 'spill'),
    ...more,
  });
  return { thread, port: port1, caller: wrap<BrokerApi>(portEndpoint(port1)), request };
}

async function untilNone(thread: BrokerThread): Promise<void> {
  for (const end = performance.now() + 8000; thread.liveGroups.size > 0; await delay(10)) {
    if (performance.now() > end) throw new Error('a process group is left');
  }
}

t.test('a run over a port, with a question', async (t) => {
  const { thread, caller, request } = makeThread(t, badProvider('asks', { permission: 'ask' }));
  const run = request();
  t.match(await caller.startSubagent(run), { ok: true });
  t.equal(await caller.countSubagents('s1'), 1);
  const { questions } = await newsWhere(caller, run, (news) => news.questions.length > 0);
  await caller.answerSubagent('s1', run.runId, questions[0]?.questionId ?? '', true);
  t.match((await follow(caller, run)).result, { stopReason: 'completed', output: 'chose once' });
  await caller.disposeSubagent('s1', run.runId);
  await untilNone(thread);
});

t.test('runs of a caller that goes away are ended, whatever state they are in', async (t) => {
  const patient = { disposeEofGraceMs: 60_000 };
  const { thread, port, caller, request } = makeThread(
    t,
    badProvider('mute', patient),
    badProvider('silent-new', { name: 'late', ...patient }),
  );
  await caller.startSubagent(request());
  const starting: Promise<unknown> = caller.startSubagent(request({ provider: 'late' }));
  for (const end = performance.now() + 8000; thread.liveGroups.size < 2 && performance.now() < end; ) await delay(10);
  t.equal(thread.liveGroups.size, 2);
  port.close();
  await t.rejects(starting, { code: 'THREAD_LOST' });
  await untilNone(thread);
});

t.test('when the thread dies, main kills the children', async (t) => {
  const { thread, caller, request } = makeThread(t, badProvider('deaf'));
  await caller.startSubagent(request());
  t.equal(thread.liveGroups.size, 1);
  await workers.at(-1)?.terminate();
  await untilNone(thread);
});

t.test('warm children go with the server, also those that ignore the end of input', async (t) => {
  const { thread, caller, request } = makeThread(t, badProvider('deaf', { poolSize: 1, disposeEofGraceMs: 60_000 }));
  const run = request();
  await caller.startSubagent(run);
  await follow(caller, run);
  await caller.releaseOwner('s1');
  // A release that comes while the run is being put away ends its child; one that comes later leaves it in the pool.
  const again = request();
  await caller.startSubagent(again);
  await follow(caller, again);
  await caller.disposeSubagent('s1', again.runId);
  t.same([...thread.liveGroups.values()], ['pool']);
  const start = performance.now();
  await thread.shutdown(5000);
  t.ok(performance.now() - start < 10_000, 'by the broker itself, within its graces');
  t.equal(thread.liveGroups.size, 0);
});
