/** Commands without a network: real ones, against a real server of this machine. */
import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { RunRequest } from '../../../../src/shared/broker-protocol.ts';
import { Broker } from '../../../../src/worker/broker/broker.ts';
import { NetworkCut } from '../../../../src/worker/broker/network-cut.ts';
import { fileAppears } from '../../../support/file-appears.ts';

const possible = await new NetworkCut({ platform: process.platform }).isPossible();
const onlyWhereItWorks = possible ? {} : { skip: 'the network of a command cannot be cut off on this system' };

let lastRun = 0;

function makeBroker(t: Test, networkCut?: NetworkCut) {
  const groups = new Map<number, string>();
  const mark = `mark-${process.pid}-${Math.random().toString(36).slice(2)}`;
  const broker = new Broker({
    mark,
    ambient: process.env,
    onGroupStarted: (pgid, owner) => groups.set(pgid, owner),
    onGroupEnded: (pgid) => groups.delete(pgid),
    ...(networkCut === undefined ? {} : { networkCut }),
  });
  t.teardown(() => broker.shutdown());
  const request = (command: string, more: Partial<RunRequest> = {}): RunRequest => ({
    owner: 's1',
    runId: `run-${(lastRun += 1)}`,
    command: 'bash',
    args: ['-c', command],
    cwd: process.cwd(),
    keepBytes: 64_000,
    timeoutMs: 20_000,
    network: 'none',
    ...more,
  });
  return { broker, groups, mark, request };
}

async function listen(t: Test): Promise<number> {
  const server = createServer((socket) => socket.end('hello'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

function markedPids(mark: string): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/environ`, 'latin1').includes(mark);
    } catch {
      return false; // Ended meanwhile.
    }
  });
}

t.test('a server of this machine is reached with a network, and not without one', onlyWhereItWorks, async (t) => {
  const port = await listen(t);
  const { broker, request } = makeBroker(t);
  const connect = `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`;
  const { network: _, ...open } = request(connect);
  t.match(await broker.run(open), { exitCode: 0, stdout: { text: 'hello' } });
  t.match(await broker.run(request(connect)), { exitCode: 1, stdout: { text: '' }, stderr: { text: /unreachable/i } });
});

t.test('output, exit code, variables, directory and user are those of the command itself', onlyWhereItWorks, async (t) => {
  const { broker, request } = makeBroker(t);
  const cwd = t.testdir({ file: 'x' });
  const command = 'echo "$GIVEN $(id -u) $(ls)"; echo err >&2; exit 7';
  const result = await broker.run(request(command, { cwd, env: { GIVEN: 'a b' } }));
  t.match(result, { exitCode: 7, stdout: { text: `a b ${process.getuid?.()} file\n` }, stderr: { text: 'err\n' } });
  t.match(await broker.run(request('kill -9 $$')), { signal: 'SIGKILL' });
});

t.test('a cancel ends the whole group, and the leader is the command itself', onlyWhereItWorks, async (t) => {
  const { broker, groups, mark, request } = makeBroker(t);
  const folder = t.testdir();
  const run = request(`sleep 300 & echo $$ > pid.part; mv pid.part pid; wait`, { cwd: folder });
  const result = broker.run(run);
  await fileAppears(join(folder, 'pid'));
  t.same([...groups.keys()], [Number(readFileSync(join(folder, 'pid'), 'utf8'))]);
  await broker.cancelRun('s1', run.runId);
  t.match(await result, { cancelled: true });
  t.same(markedPids(mark), []);
  t.equal(groups.size, 0);
});

t.test('a process that left its group is found by its mark all the same', onlyWhereItWorks, async (t) => {
  const { broker, mark, request } = makeBroker(t);
  const folder = t.testdir();
  const started = await broker.startBackground(request('setsid bash -c "echo > left; exec sleep 300" & wait', { cwd: folder }));
  t.ok('taskId' in started);
  await fileAppears(join(folder, 'left'));
  t.ok(markedPids(mark).length >= 1);
  await broker.releaseOwner('s1');
  t.same(markedPids(mark), []);
});

t.test(
  'the command cannot go back into the network that it came from',
  { skip: !possible || !existsSync('/usr/bin/nsenter') },
  async (t) => {
    const { broker, request } = makeBroker(t);
    const result = await broker.run(request(`nsenter --net=/proc/${process.pid}/ns/net readlink /proc/self/ns/net`));
    t.not(result.exitCode, 0);
  },
);

t.test('where it cannot be done nothing is started', async (t) => {
  const folder = t.testdir({ bin: {} });
  const cuts = [
    new NetworkCut({ platform: 'darwin' }),
    new (class extends NetworkCut {
      override wrap = async () => undefined;
      override isPossible = async () => false;
    })({ platform: 'linux' }),
  ];
  for (const cut of cuts) {
    const { broker, groups, request } = makeBroker(t, cut);
    t.equal(await broker.canCutNetwork(), false);
    t.match(await broker.run(request(`touch ${join(folder, 'ran')}`)), { spawnError: /^ENOTSUP: the network/, exitCode: null });
    t.match(await broker.startBackground(request(`touch ${join(folder, 'ran')}`)), { spawnError: /^ENOTSUP/ });
    t.equal(groups.size, 0);
  }
  t.notOk(existsSync(join(folder, 'ran')));
});

t.test('a program that only says it cuts the network is not believed', { skip: process.platform !== 'linux' }, async (t) => {
  const bin = t.testdir({ unshare: '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n' });
  chmodSync(join(bin, 'unshare'), 0o755);
  t.equal(await new NetworkCut({ platform: 'linux', directories: [bin] }).isPossible(), false);
});
