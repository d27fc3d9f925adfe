import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import type { RunRequest } from '../../../../src/shared/broker-protocol.ts';
import { Broker } from '../../../../src/worker/broker/broker.ts';

let lastRun = 0;

function makeBroker(t: Test, ambient: Record<string, string | undefined> = process.env) {
  const groups = new Map<number, string>();
  const mark = `mark-${process.pid}-${Math.random().toString(36).slice(2)}`;
  const broker = new Broker({
    mark,
    ambient,
    withheldVariables: ['HARMLESS_LOOKING'],
    onGroupStarted: (pgid, owner) => groups.set(pgid, owner),
    onGroupEnded: (pgid) => groups.delete(pgid),
  });
  t.teardown(() => broker.shutdown());
  const request = (command: string, more: Partial<RunRequest> = {}): RunRequest => {
    lastRun += 1;
    return {
      owner: 's1',
      runId: `run-${lastRun}`,
      command: 'bash',
      args: ['-c', command],
      cwd: process.cwd(),
      keepBytes: 64_000,
      timeoutMs: 20_000,
      ...more,
    };
  };
  return { broker, groups, mark, request };
}

/** Processes, zombies left out, whose environment holds the text. */
function processesWith(text: string): number[] {
  const found: number[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      if (readFileSync(`/proc/${name}/environ`, 'latin1').includes(text)) found.push(Number(name));
    } catch {
      // Ended meanwhile.
    }
  }
  return found;
}

function isLive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
  } catch {
    return false;
  }
}

async function until(what: string, condition: () => boolean, ms = 5000): Promise<void> {
  const deadline = performance.now() + ms;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`);
    await delay(10);
  }
}

t.test('a command gives its output, its streams apart, and its exit code', async (t) => {
  const { broker, groups, request } = makeBroker(t);
  const result = await broker.run(request('echo out; echo err >&2; exit 3'));
  t.match(result, {
    exitCode: 3,
    signal: null,
    timedOut: false,
    cancelled: false,
    stdout: { text: 'out\n', totalBytes: 4, truncated: false },
    stderr: { text: 'err\n' },
  });
  t.equal(groups.size, 0, 'its group was reported as ended');
});

t.test('a command that reads stdin gets the end of it', async (t) => {
  const { broker, request } = makeBroker(t);
  const result = await broker.run(request('cat; readlink /proc/self/fd/0'));
  t.equal(result.stdout.text, '/dev/null\n');
});

t.test('argv is passed as it is, whatever it looks like', async (t) => {
  const { broker, request } = makeBroker(t);
  const result = await broker.run(request('', { command: 'printf', args: ['%s|', '-n', 'a\nb', '$(id)', "'"] }));
  t.equal(result.stdout.text, "-n|a\nb|$(id)|'|");
});

t.test('what cannot be started is an answer with the reason', async (t) => {
  const { broker, groups, request } = makeBroker(t);
  const folder = t.testdir({ 'plain.txt': 'no program' });
  const missing = await broker.run(request('true', { cwd: join(folder, 'nowhere') }));
  t.match(missing.spawnError, /^ENOENT: the working directory .*nowhere/);
  t.match(await broker.run(request('true', { cwd: join(folder, 'plain.txt') })), { spawnError: /^ENOTDIR: the working directory/ });
  t.match(await broker.run(request('', { command: 'no-such-program-here' })), { spawnError: /^ENOENT: the program/ });
  t.match(await broker.run(request('', { command: join(folder, 'plain.txt') })), { spawnError: /^EACCES/ });
  t.match(await broker.run(request('', { command: 'echo', args: ['x'.repeat(3_000_000)] })), { spawnError: /^E2BIG/ });
  t.match(await broker.run(request('', { command: 'echo', args: ['nul\0byte'] })), { spawnError: /^ERR_INVALID_ARG_VALUE/ });
  t.match(await broker.startBackground({ ...request('true'), cwd: '/nowhere/at/all' }), { spawnError: /^ENOENT/ });
  t.equal(groups.size, 0);
});

t.test('without file descriptors left a command is refused with the reason, and runs again once there are some', async (t) => {
  const broker = new URL('../../../../src/worker/broker/broker.js', import.meta.url).href;
  const script = join(
    t.testdir({
      'starve.mjs': `
        import { closeSync, openSync } from 'node:fs';
        import { Broker } from ${JSON.stringify(broker)};
        const nothing = () => undefined;
        const broker = new Broker({ mark: 'starved', ambient: process.env, onGroupStarted: nothing, onGroupEnded: nothing });
        const run = (runId) => broker.run({ owner: 'a', runId, command: 'echo', args: ['hi'], cwd: '/', keepBytes: 99, timeoutMs: 0 });
        const held = [];
        try { for (;;) held.push(openSync('/dev/null')); } catch {}
        const starved = await Promise.all(['1', '2', '3'].map(run));
        for (const one of held) closeSync(one);
        const fed = await run('4');
        await broker.shutdown();
        console.log(JSON.stringify({ starved: starved.map((one) => one.spawnError), fed: fed.stdout.text }));
      `,
    }),
    'starve.mjs',
  );
  const { stdout } = await promisify(execFile)('bash', ['-c', 'ulimit -n 64; exec "$0" "$1"', process.execPath, script]);
  const { starved, fed } = JSON.parse(stdout) as { starved: string[]; fed: string };
  t.equal(starved.length, 3);
  for (const reason of starved) t.match(reason, /^EMFILE: .*try again/);
  t.equal(fed, 'hi\n');
});

t.test('a gigabyte of output leaves memory flat, its tail in hand and its start on disk', async (t) => {
  const { broker, request } = makeBroker(t);
  const spillDir = join(t.testdir(), 'deep', 'spill');
  const spillMaxBytes = 4 * 1024 * 1024;
  await broker.run(request('yes | head -c 20000000', { spillDir, spillMaxBytes }));
  const before = process.memoryUsage().rss;
  let peak = before;
  const sampler = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 20);
  t.teardown(() => clearInterval(sampler));
  const result = await broker.run(request('echo first; yes | head -c 1000000000; echo last', { spillDir, spillMaxBytes }));
  clearInterval(sampler);
  const growth = (peak - before) / 1024 / 1024;
  t.comment(`grew by ${growth.toFixed(1)} MB in ${result.durationMs.toFixed(0)} ms`);
  t.ok(growth < 48, `grew by ${growth.toFixed(1)} MB`);
  t.equal(result.stdout.totalBytes, 1_000_000_011);
  t.equal(result.stdout.truncated, true);
  t.ok(Buffer.byteLength(result.stdout.text) < 64_100);
  t.ok(result.stdout.text.startsWith('first\ny\n'));
  t.ok(result.stdout.text.endsWith('y\nlast\n'));
  const path = result.stdout.spillPath ?? '';
  t.equal(statSync(path).size, spillMaxBytes);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.equal(statSync(spillDir).mode & 0o777, 0o700);
});

t.test('a spill file holds every byte, in order, from the first', async (t) => {
  const { broker, request } = makeBroker(t);
  const result = await broker.run(request('seq 1 50000', { spillDir: t.testdir(), keepBytes: 1000 }));
  const expected = Array.from({ length: 50_000 }, (_, index) => `${index + 1}\n`).join('');
  t.equal(readFileSync(result.stdout.spillPath ?? '', 'utf8'), expected);
  t.notOk(result.stderr.spillPath, 'a short stream makes no file');
});

t.test('a spill directory that cannot be made costs the file, not the command', async (t) => {
  const { broker, request } = makeBroker(t);
  const folder = t.testdir({ file: '' });
  const result = await broker.run(request('seq 1 50000', { spillDir: join(folder, 'file', 'x'), keepBytes: 1000 }));
  t.match(result, { exitCode: 0, stdout: { truncated: true } });
  t.notOk(result.stdout.spillPath);
});

t.test('binary and split characters come out as valid text', async (t) => {
  const { broker, request } = makeBroker(t);
  const split = await broker.run(request(`printf '\\xe2\\x82'; sleep 0.1; printf '\\xac\\n'`));
  t.equal(split.stdout.text, '€\n');
  const cut = await broker.run(request(`printf '€%.0s' $(seq 1 1000)`, { keepBytes: 100 }));
  t.match(cut.stdout.text, /^€{16}\n\[\.\.\. 2904 bytes left out \.\.\.\]\n€{16}$/);
  const binary = await broker.run(request('head -c 100000 /dev/urandom; printf "\\0"', { keepBytes: 5000 }));
  t.equal(Buffer.from(binary.stdout.text, 'utf8').toString('utf8'), binary.stdout.text);
  t.ok(binary.stdout.text.endsWith('\0'));
});

t.test('a time limit ends the whole group, also grandchildren', async (t) => {
  const { broker, groups, mark, request } = makeBroker(t);
  const result = await broker.run(request('echo begun; bash -c "sleep 300 & sleep 300" & wait', { timeoutMs: 1000 }));
  t.match(result, { timedOut: true, cancelled: false, signal: 'SIGTERM', stdout: { text: 'begun\n' } });
  t.ok(result.durationMs < 10_000, `took ${result.durationMs} ms`);
  t.equal(groups.size, 0);
  t.same(processesWith(mark), []);
});

t.test('a cancelled command that ignores TERM is killed soon', async (t) => {
  const { broker, groups, mark, request } = makeBroker(t);
  const run = request(`trap '' TERM; echo ready; while :; do sleep 0.05; done`, { timeoutMs: 0 });
  const running = broker.run(run);
  await until('the command runs', () => groups.size === 1);
  await delay(100);
  const start = performance.now();
  await broker.cancelRun('s2', run.runId);
  await broker.cancelRun(run.owner, run.runId);
  const result = await running;
  t.match(result, { cancelled: true, timedOut: false, signal: 'SIGKILL' });
  const took = performance.now() - start;
  t.ok(took > 250 && took < 10_000, `took ${took.toFixed(0)} ms`);
  t.same(processesWith(mark), []);
});

t.test('a stopped command can be cancelled', async (t) => {
  const { broker, groups, request } = makeBroker(t);
  const run = request('kill -STOP $$; echo never');
  const running = broker.run(run);
  await until('the command runs', () => groups.size === 1);
  await delay(50);
  await broker.cancelRun(run.owner, run.runId);
  t.match(await running, { cancelled: true, signal: 'SIGTERM' });
});

t.test('a cancel that comes with the run itself is not lost', async (t) => {
  const { broker, request } = makeBroker(t);
  const run = request('sleep 300');
  const running = broker.run(run);
  await broker.cancelRun(run.owner, run.runId);
  t.match(await running, { cancelled: true });
});

t.test('a descendant that holds the pipe does not hold the call', async (t) => {
  const { broker, groups, mark, request } = makeBroker(t);
  const inGroup = await broker.run(request('sleep 300 & echo done'));
  t.match(inGroup, { exitCode: 0, stdout: { text: 'done\n' } });
  t.ok(inGroup.durationMs < 2500, `took ${inGroup.durationMs} ms`);
  t.equal(groups.size, 0);
  t.same(processesWith(mark), []);
  const escaped = await broker.run(request('setsid sleep 300 & sleep 0.1; echo done'));
  t.match(escaped, { exitCode: 0, stdout: { text: 'done\n' } });
  t.ok(escaped.durationMs < 2500, `took ${escaped.durationMs} ms`);
  const chatty = await broker.run(request('(while :; do echo x; sleep 0.02; done) & echo done'));
  t.equal(chatty.exitCode, 0);
  t.ok(chatty.durationMs < 5000, `took ${chatty.durationMs} ms`);
});

t.test('output that comes just after the leader has exited is not lost', async (t) => {
  const { broker, request } = makeBroker(t);
  const result = await broker.run(request('exec > >(sleep 0.1; cat); echo late'));
  t.equal(result.stdout.text, 'late\n');
});

t.test('children get the environment without its secrets', async (t) => {
  const canary = 'canary-7f3a';
  const { broker, request } = makeBroker(t, {
    ...process.env,
    DSH_ACP_MODEL: canary,
    DEEPSEEK_API_KEY: canary,
    HARMLESS_LOOKING: canary,
    PLAIN: 'kept',
  });
  const result = await broker.run(request('env', { env: { LAID_OVER_TOKEN: 'mine' } }));
  const lines = result.stdout.text.split('\n');
  t.notOk(result.stdout.text.includes(canary));
  for (const line of ['PLAIN=kept', 'LAID_OVER_TOKEN=mine', 'NO_COLOR=1', 'TERM=dumb', 'PAGER=cat', 'GIT_TERMINAL_PROMPT=0']) {
    t.ok(lines.includes(line), line);
  }
});

t.test('background tasks', async (t) => {
  const { broker, request } = makeBroker(t);
  const start = async (command: string, more: Partial<RunRequest> = {}): Promise<string> => {
    const started = await broker.startBackground(request(command, more));
    if (!('taskId' in started)) throw new Error(started.spawnError);
    return started.taskId;
  };

  t.test('a read gives what came since the last one, and the end', async (t) => {
    const id = await start('echo one; read -t 0.3 < <(sleep 300); echo two >&2; exit 4');
    t.match(id, /^bash-\d+$/);
    t.match(await broker.readBackground('s1', id, 5000), {
      ok: true,
      value: { text: 'one\n', droppedBytes: 0, status: { state: 'running' } },
    });
    t.match(await broker.readBackground('s1', id, 5000), { ok: true, value: { text: 'two\n' } });
    let status = { state: 'running' };
    while (status.state === 'running') {
      const answer = await broker.readBackground('s1', id, 1000);
      if (!answer.ok) throw new Error('the task is gone');
      t.equal(answer.value.text, '');
      status = answer.value.status;
    }
    t.same(status, { state: 'exited', exitCode: 4, signal: null });
  });

  t.test('a wait without news ends in time', async (t) => {
    const id = await start('sleep 300');
    const begun = performance.now();
    t.match(await broker.readBackground('s1', id, 80), { ok: true, value: { text: '', status: { state: 'running' } } });
    t.ok(performance.now() - begun < 10_000);
    t.match(await broker.killBackground('s1', id), { ok: true, value: { state: 'exited', signal: 'SIGTERM' } });
  });

  t.test('another owner is refused, and so is an id that is not there', async (t) => {
    const id = await start('sleep 300');
    t.same(await broker.readBackground('s2', id, 0), { ok: false, code: 'FOREIGN' });
    t.same(await broker.killBackground('', id), { ok: false, code: 'FOREIGN' });
    t.same(await broker.readBackground('s1', 'bash-9999', 0), { ok: false, code: 'NOT_FOUND' });
    t.same(await broker.killBackground('s1', '__proto__'), { ok: false, code: 'NOT_FOUND' });
    t.equal(await broker.countBackground('s1'), 1);
    t.equal(await broker.countBackground('s2'), 0);
    t.match(await broker.killBackground('s1', id), { ok: true });
  });

  t.test('a flood between two reads keeps its end, counts its loss, and is on disk', async (t) => {
    const id = await start('seq 1 20000; printf "€"', { keepBytes: 1000, spillDir: t.testdir() });
    const text = `${Array.from({ length: 20_000 }, (_, index) => index + 1).join('\n')}\n€`;
    let running = true;
    while (running) {
      running = (await broker.countBackground('s1')) > 0;
      await delay(20);
    }
    const answer = await broker.readBackground('s1', id, 0);
    if (!answer.ok) throw new Error('the task is gone');
    t.ok(text.endsWith(answer.value.text));
    t.equal(answer.value.droppedBytes + Buffer.byteLength(answer.value.text), Buffer.byteLength(text));
    t.equal(readFileSync(answer.value.spillPath ?? '', 'utf8'), text);
  });

  t.test('the eleventh running task is refused, until one ends', async (t) => {
    const started = await Promise.all(Array.from({ length: 11 }, () => broker.startBackground(request('sleep 300', { owner: 'many' }))));
    t.equal(started.filter((one) => 'taskId' in one).length, 10);
    t.match(started[10], { spawnError: /10 background tasks/ });
    const first = started[0];
    if (first === undefined || !('taskId' in first)) throw new Error('the first was refused');
    await broker.killBackground('many', first.taskId);
    t.match(await broker.startBackground(request('sleep 300', { owner: 'many' })), { taskId: /^bash-/ });
    await broker.releaseOwner('many');
    t.equal(await broker.countBackground('many'), 0);
    t.same(await broker.readBackground('many', first.taskId, 0), { ok: false, code: 'NOT_FOUND' });
  });
});

t.test('releasing an owner leaves nothing of it, not even a daemon, and nothing else is touched', async (t) => {
  const { broker, groups, mark, request } = makeBroker(t);
  const pidFile = join(t.testdir(), 'pid');
  await broker.run(
    request(`(setsid bash -c 'trap "" TERM; echo $$ > ${pidFile}; while :; do sleep 0.1; done' >/dev/null 2>&1 &) ; sleep 0.1`),
  );
  await until('the daemon runs', () => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '');
  const daemon = Number(readFileSync(pidFile, 'utf8'));
  t.ok(isLive(daemon), 'a daemon outlives its command');
  const foreground = broker.run(request('sleep 300 | sleep 300'));
  await broker.startBackground(request(`trap '' TERM; sleep 300; sleep 300`));
  await broker.startBackground(request('sleep 300', { owner: 's10' }));
  await Promise.all([broker.releaseOwner('s1'), broker.releaseOwner('s1')]);
  t.match(await foreground, { cancelled: true });
  t.notOk(isLive(daemon));
  t.same([...groups.values()], ['s10']);
  t.same(processesWith(`${mark}/s1;`).filter(isLive), []);
  t.equal(processesWith(`${mark}/s10;`).length, 1);
});

t.test('shutdown ends everything and refuses what comes later', async (t) => {
  const { broker, groups, mark, request } = makeBroker(t);
  const runs = Array.from({ length: 25 }, (_, index) =>
    broker.run(request(`trap '' TERM; sleep 300 & wait; sleep 300`, { owner: `o${index}` })),
  );
  for (let index = 0; index < 25; index += 1) await broker.startBackground(request('yes', { owner: `o${index}` }));
  t.equal(groups.size, 50);
  const start = performance.now();
  await Promise.all([broker.shutdown(), broker.shutdown()]);
  t.comment(`50 children ended in ${(performance.now() - start).toFixed(0)} ms`);
  t.equal(groups.size, 0);
  t.same(processesWith(mark).filter(isLive), []);
  for (const result of await Promise.all(runs)) t.equal(result.cancelled, true);
  await t.rejects(broker.run(request('true')), { code: 'SHUTTING_DOWN' });
  await t.rejects(broker.startBackground(request('true')), { code: 'SHUTTING_DOWN' });
});
