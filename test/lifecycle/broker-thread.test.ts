import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { MessageChannel, type Worker } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { BrokerThread, type BrokerThreadOptions } from '../../src/main/threads/broker-thread.ts';
import type { BrokerApi, RunRequest } from '../../src/shared/broker-protocol.ts';
import { expose, portEndpoint, releaseProxy, wrap } from '../../src/shared/comlink.ts';
import { ServerError } from '../../src/shared/errors.ts';

const entryPath = new URL('../../src/worker/broker/entry.js', import.meta.url);

function makeThread(t: Test, more: Partial<BrokerThreadOptions> = {}): BrokerThread {
  const thread = new BrokerThread({ entryPath, onStderr: (text) => t.comment(text), ...more });
  t.teardown(() => thread.shutdown(5000));
  return thread;
}

let lastRun = 0;
function request(command: string, more: Partial<RunRequest> = {}): RunRequest {
  lastRun += 1;
  const args = ['-c', command];
  return { owner: 's1', runId: `r${lastRun}`, command: 'bash', args, cwd: '/', keepBytes: 4000, timeoutMs: 0, ...more };
}

function isLive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
  } catch {
    return false;
  }
}

async function until(what: string, condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 8000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`did not come: ${what}`);
    await delay(10);
  }
}

/** Workers of this process, as Node announces them. */
const workers: Worker[] = [];
process.on('worker', (worker) => workers.push(worker));

t.test('main and other callers run commands through it; nothing runs before it is needed', async (t) => {
  const thread = makeThread(t);
  await thread.releaseOwner('s1');
  t.equal(workers.length, 0);
  const { port1, port2 } = new MessageChannel();
  thread.connect(port2);
  const caller = wrap<BrokerApi>(portEndpoint(port1));
  t.match(await caller.run(request('echo hi')), { exitCode: 0, stdout: { text: 'hi\n' } });
  t.match(await thread.api.run(request('echo ho; exit 2')), { exitCode: 2, stdout: { text: 'ho\n' } });
  t.equal(workers.length, 1);
  await until('the groups are reported as ended', () => thread.liveGroups.size === 0);
  caller[releaseProxy]();
});

t.test('a variable that was named does not reach children', async (t) => {
  process.env.BROKER_TEST_ODD_NAME = 'canary';
  t.teardown(() => delete process.env.BROKER_TEST_ODD_NAME);
  const thread = makeThread(t, { withheldVariables: ['BROKER_TEST_ODD_NAME'] });
  t.notMatch((await thread.api.run(request('env'))).stdout.text, /canary/);
});

t.test('runs of a caller that goes away are ended', async (t) => {
  const thread = makeThread(t);
  const { port1, port2 } = new MessageChannel();
  thread.connect(port2);
  const caller = wrap<BrokerApi>(portEndpoint(port1));
  const run = caller.run(request('sleep 300'));
  run.catch(() => undefined);
  await until('it runs', () => thread.liveGroups.size === 1);
  port1.close();
  await t.rejects(run, { code: 'THREAD_LOST' });
  await until('it is ended', () => thread.liveGroups.size === 0);
});

t.test('when the thread dies, its children are killed, calls are rejected, and the next caller gets a new one', async (t) => {
  let died: string | undefined;
  const thread = makeThread(t, { onDied: (reason) => (died = reason) });
  const { port1, port2 } = new MessageChannel();
  thread.connect(port2);
  const caller = wrap<BrokerApi>(portEndpoint(port1));
  const calls = [thread.api.run(request(`trap '' TERM; sleep 300 & sleep 300`)), caller.run(request('sleep 300'))];
  const rejected = Promise.allSettled(calls);
  // Leaves its group, so that only its mark can find it.
  const escape = await thread.api.run(request(`(setsid bash -c 'echo $$ >&3; exec sleep 300' 3>&1 >/dev/null 2>&1 &); sleep 0.2`));
  const escaped = Number(escape.stdout.text);
  t.ok(isLive(escaped), 'it outlives its command');
  await until('both run', () => thread.liveGroups.size === 2);
  const pids = [...thread.liveGroups.keys()];
  await workers.at(-1)?.terminate();
  for (const end of await rejected) t.match(end, { status: 'rejected', reason: { code: 'THREAD_LOST' } });
  await until('main was told', () => died !== undefined);
  t.equal(thread.liveGroups.size, 0);
  t.same([...pids, escaped].filter(isLive), []);
  await t.rejects(caller.countBackground('s1'), { code: 'THREAD_LOST' }, 'a later call on the old port');
  t.match(await thread.api.run(request('echo alive')), { stdout: { text: 'alive\n' } });
});

t.test('shutdown under load ends fifty children before the thread', async (t) => {
  const thread = makeThread(t);
  const runs = Array.from({ length: 25 }, (_, index) =>
    thread.api.run(request(`trap '' TERM; yes | cat > /dev/null & sleep 300`, { owner: `s${index}` })),
  );
  const tasks = Array.from({ length: 25 }, (_, index) => thread.api.startBackground(request('sleep 300 & wait', { owner: `s${index}` })));
  await Promise.all(tasks);
  await until('all run', () => thread.liveGroups.size === 50);
  const pids = [...thread.liveGroups.keys()];
  const start = performance.now();
  await thread.shutdown(5000);
  t.comment(`took ${(performance.now() - start).toFixed(0)} ms`);
  t.same(pids.filter(isLive), []);
  t.equal(thread.liveGroups.size, 0);
  for (const end of await Promise.allSettled(runs)) t.match(end, { status: 'fulfilled', value: { cancelled: true } });
  t.throws(() => thread.api, { code: 'SHUTTING_DOWN' });
  const { port1, port2 } = new MessageChannel();
  thread.connect(port2);
  await t.rejects(wrap<BrokerApi>(portEndpoint(port1)).countBackground('s1'), { code: 'THREAD_LOST' });
});

t.test('a shutdown that comes to its deadline kills from main', async (t) => {
  const thread = makeThread(t);
  const run = thread.api.run(request(`trap '' TERM; sleep 300; sleep 300`));
  run.catch(() => undefined);
  await until('it runs', () => thread.liveGroups.size === 1);
  const pids = [...thread.liveGroups.keys()];
  await thread.shutdown(1);
  t.same(pids.filter(isLive), []);
  await Promise.allSettled([run]);
});

t.test('killing at once leaves nothing either', async (t) => {
  const thread = makeThread(t);
  const run = thread.api.run(request(`trap '' TERM; sleep 300; sleep 300`));
  await until('it runs', () => thread.liveGroups.size === 1);
  thread.killAllNow();
  t.match(await run, { signal: 'SIGKILL' });
});

t.test('comlink as this program uses it', async (t) => {
  const { port1, port2 } = new MessageChannel();
  t.teardown(() => port1.close());
  const served = {
    add: (a: number, b: number) => a + b,
    fail: (): never => {
      throw new ServerError('SESSION_BUSY', 'too many', { data: { queued: 16 } });
    },
    crash: (): never => {
      throw new TypeError('secret detail');
    },
    hang: () => new Promise<never>(() => undefined),
  };
  expose(served, portEndpoint(port2));
  const api = wrap<typeof served>(portEndpoint(port1));
  t.equal(await api.add(1, 2), 3);
  await t.rejects(api.fail(), { name: 'ServerError', code: 'SESSION_BUSY', message: 'too many', data: { queued: 16 } });
  await t.rejects(api.crash(), { name: 'ServerError', code: 'INTERNAL', message: /^(?!.*secret)/ });

  const hanging = api.hang();
  port2.close();
  await t.rejects(hanging, { code: 'THREAD_LOST' });
  await t.rejects(api.add(1, 1), { code: 'THREAD_LOST' });
});
