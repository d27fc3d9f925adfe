import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, linkSync, readdirSync, readFileSync, statSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { currentBootId, identifySelf, isRunning, isSameBoot } from '../../../../src/shared/process-identity.ts';
import { type LockOwner, SessionLock } from '../../../../src/shared/log/session-lock.ts';

const childPath = fileURLToPath(new URL('./children/lock-child.js', import.meta.url));
const deadPid = spawnSync('true').pid;

function acquire(lockPath: string, serverNonce = 'a'): Promise<SessionLock> {
  return SessionLock.acquire({ lockPath, serverNonce, threadId: 1 });
}

function plant(lockPath: string, change: Partial<LockOwner>): void {
  const owner: LockOwner = { ...identifySelf(), serverNonce: 'other', threadId: 1, epoch: 4, ...change };
  writeFileSync(lockPath, JSON.stringify(owner));
}

t.test('a free lock is taken once, names its owner, and is gone after release', async (t) => {
  const lockPath = join(t.testdir(), 'l.lock');
  const lock = await acquire(lockPath);
  t.equal(lock.epoch, 1);
  t.match(JSON.parse(readFileSync(lockPath, 'utf8')), { ...identifySelf(), serverNonce: 'a', epoch: 1 });
  t.equal(statSync(lockPath).mode & 0o777, 0o600);
  t.ok(lock.stillOwner());
  await t.rejects(acquire(lockPath, 'b'), { code: 'SESSION_LOCKED' });
  t.ok(lock.stillOwner(), 'an attempt changes nothing');
  lock.release();
  t.same(readdirSync(join(lockPath, '..')), []);
  lock.release();
});

t.test('a lock of this server, left by a dead thread, is taken over and fences the old holder', async (t) => {
  const lockPath = join(t.testdir(), 'l.lock');
  const old = await acquire(lockPath);
  const next = await acquire(lockPath);
  t.equal(next.epoch, 2);
  t.notOk(old.stillOwner());
  old.release();
  t.ok(next.stillOwner(), 'the old holder cannot remove what is no longer its own');
  next.release();
  t.notOk(existsSync(lockPath));
});

t.test('a stale lock is taken over', async (t) => {
  const lockPath = join(t.testdir(), 'l.lock');
  const stale: [string, Partial<LockOwner>][] = [
    ['its process is gone', { pid: deadPid }],
    ['its process number belongs to another process now', { processStart: '1' }],
    ['the machine was restarted', { bootId: '00000000-0000-0000-0000-000000000000' }],
    ['its process number names a group', { pid: 0 }],
    ['its process number is negative', { pid: -1 }],
  ];
  for (const [name, change] of stale) {
    plant(lockPath, change);
    const lock = await acquire(lockPath);
    t.equal(lock.epoch, 5, name);
    lock.release();
  }
  for (const text of ['', '{}', 'null', '\0\0\0', 'x'.repeat(10_000)]) {
    writeFileSync(lockPath, text);
    const lock = await acquire(lockPath);
    t.equal(lock.epoch, 1, `unreadable: ${JSON.stringify(text.slice(0, 8))}`);
    lock.release();
  }
  plant(lockPath, {});
  await t.rejects(acquire(lockPath), { code: 'SESSION_LOCKED' }, 'the same text of a live process holds');
  t.same(readdirSync(join(lockPath, '..')), ['l.lock'], 'no drafts or claims stay behind');
});

t.test('a killed process that its parent has not looked after is dead', async (t) => {
  // The shell starts a child that ends at once and then becomes a program that never waits for it.
  const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.teardown(() => parent.kill('SIGKILL'));
  const [line] = await once(createInterface({ input: parent.stdout }), 'line');
  const identity = { pid: Number(line), processStart: undefined, bootId: currentBootId() };
  const deadline = Date.now() + 5000;
  while (isRunning(identity) && Date.now() < deadline) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.notOk(isRunning(identity));
  t.ok(isRunning(identifySelf()));
});

t.test('boot times may drift with the clock, boot ids may not', async (t) => {
  t.ok(isSameBoot('boot:1000', 'boot:1200'));
  t.notOk(isSameBoot('boot:1000', 'boot:2000'));
  t.notOk(isSameBoot('a', 'b'));
  t.notOk(isSameBoot('boot:1000', 'b'));
});

t.test('a claim left by a taker that died holds nobody up for long', async (t) => {
  const lockPath = join(t.testdir(), 'l.lock');
  plant(lockPath, { pid: deadPid });
  linkSync(lockPath, `${lockPath}.claim`);
  const lock = await acquire(lockPath);
  t.equal(lock.epoch, 5);
  t.notOk(existsSync(`${lockPath}.claim`));
  lock.release();
});

t.test('ownership ends when the lock is removed or replaced, also under the same inode number', async (t) => {
  const lockPath = join(t.testdir(), 'l.lock');
  const lock = await acquire(lockPath);
  const text = readFileSync(lockPath);
  unlinkSync(lockPath);
  t.notOk(lock.stillOwner());
  writeFileSync(lockPath, text);
  utimesSync(lockPath, 1, 1);
  t.notOk(lock.stillOwner());
  lock.release();
  t.ok(existsSync(lockPath));
});

t.test('a lock in a directory that is gone is a write failure', async (t) => {
  await t.rejects(acquire(join(t.testdir(), 'gone', 'l.lock')), { code: 'LOG_WRITE_FAILED' });
});

interface Racer {
  readonly child: ChildProcess;
  readonly lines: AsyncIterator<string>;
}

async function startRacer(): Promise<Racer> {
  const child = spawn(process.execPath, [childPath, randomUUID()], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  await lines.next();
  return { child, lines };
}

t.test('of 20 processes that race for a lock, free or stale, exactly one wins', async (t) => {
  const dir = t.testdir();
  const locks = Array.from({ length: 40 }, (_, index) => join(dir, `${index}.lock`));
  for (const [index, lockPath] of locks.entries()) {
    if (index % 4 === 1) {
      plant(lockPath, { pid: deadPid });
    } else if (index % 4 === 2) {
      writeFileSync(lockPath, '');
    } else if (index % 4 === 3) {
      plant(lockPath, { bootId: 'other' });
    }
  }
  const racers = await Promise.all(Array.from({ length: 20 }, startRacer));
  t.teardown(() => racers.map(({ child }) => child.kill('SIGKILL')));
  for (const { child } of racers) {
    child.stdin?.write(`${JSON.stringify({ start: Date.now() + 50, locks })}\n`);
  }
  const outcomes = await Promise.all(racers.map(async ({ lines }) => JSON.parse((await lines.next()).value) as string[]));
  for (const index of locks.keys()) {
    const column = outcomes.map((row) => row[index]);
    const lost = column.filter((outcome) => outcome === 'SESSION_LOCKED');
    t.same([column.filter((outcome) => outcome === 'won').length, lost.length], [1, 19], `lock ${index}`);
  }
  for (const { child } of racers) {
    child.stdin?.write('end\n');
  }
  const owners = await Promise.all(racers.map(async ({ lines }) => JSON.parse((await lines.next()).value) as boolean[]));
  t.equal(owners.flat().length, 40);
  t.ok(owners.flat().every(Boolean), 'every winner is still the owner');
  t.same(
    readdirSync(dir).filter((name) => !name.endsWith('.lock')),
    [],
    'no drafts or claims stay behind',
  );
});
