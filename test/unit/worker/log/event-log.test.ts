import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import type { EventInput, LogEvent } from '../../../../src/shared/events.ts';
import { sealLine } from '../../../../src/shared/log/line-seal.ts';
import { createSessionFile, sessionPaths } from '../../../../src/shared/log/session-paths.ts';
import type { EventLog } from '../../../../src/worker/log/event-log.ts';
import { SessionLock } from '../../../../src/shared/log/session-lock.ts';
import { sample, sampleHeader, sampleId, wholeTurn } from '../../shared/log/sample-events.ts';
import { makeLog, openLog } from './open-log.ts';

const children = new URL('./children/', import.meta.url);

/** The line behind the header and a whole turn. */
const afterWholeTurn = wholeTurn.length + 2;

const filler: EventInput = { type: 'history/compacted', data: { throughSeq: 0, summary: 'x'.repeat(1000) } };

t.test('what was appended is read again, in order, with contiguous seq', async (t) => {
  let now = 5000;
  const paths = createSessionFile(t.testdir(), sampleHeader());
  const first = await openLog(paths, { now: () => (now -= 7) });
  t.same(first.events, []);
  t.same([first.log.header, first.log.epoch, first.log.eventCount], [sampleHeader(), 1, 0]);
  const written = wholeTurn.map((input) => first.log.append(input));
  t.same(written[0], { type: 'thread/attached', seq: 0, time: 4993, data: wholeTurn[0]?.data });
  await first.log.barrier();
  const replayed: LogEvent[] = [];
  await first.log.replay(async (event) => {
    replayed.push(event);
  });
  t.same(replayed, written, 'replay of an open log');
  await first.log.close();
  t.equal(first.log.close(), first.log.close(), 'one close');
  t.notOk(existsSync(paths.lock));

  const second = await openLog(paths);
  t.same(second.events, written);
  t.same(second.log.report, { torn: undefined, repaired: 0 });
  t.equal(second.log.epoch, 2, 'greater than the logged one, though the lock was free');
  t.equal(second.log.append(sample('mode/change')).seq, written.length);
  await second.log.close();
  await t.rejects(second.log.barrier(), { code: 'LOG_WRITE_FAILED' });
  t.throws(() => second.log.append(sample('mode/change')), { code: 'LOG_WRITE_FAILED' });
});

t.test('lines that parse but do not belong are refused', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  const good = { type: 'mode/change', seq: wholeTurn.length, time: 1, data: { mode: 'ask' } };
  const cases: [string, unknown][] = [
    ['a gap in seq', { ...good, seq: good.seq + 1 }],
    ['a repeated seq', { ...good, seq: good.seq - 1 }],
    ['an unknown type', { ...good, type: 'future/thing' }],
    ['a type that only objects have', { ...good, type: 'constructor' }],
    ['no type', { ...good, type: undefined }],
    ['no time', { ...good, time: undefined }],
    ['no data', { ...good, data: undefined }],
    ['data as a list', { ...good, data: [] }],
    ['a member too many', { ...good, extra: 1 }],
    ['a number', 5],
    ['null', null],
  ];
  const whole = readFileSync(paths.log);
  for (const [name, value] of cases) {
    writeFileSync(paths.log, Buffer.concat([whole, Buffer.from(`${JSON.stringify(value)}\n`)]));
    await t.rejects(openLog(paths), { code: 'LOG_CORRUPT', data: { line: afterWholeTurn } }, name);
  }
  writeFileSync(paths.log, whole);
  appendFileSync(paths.log, `${JSON.stringify({ ...good, type: 'future/thing', ignorable: true })}\n`);
  appendFileSync(paths.log, sealLine(JSON.stringify({ ...good, seq: good.seq + 1 })));
  const { log, events } = await openLog(paths);
  await log.close();
  t.same(
    events.slice(-2).map((event) => event.seq),
    [good.seq - 1, good.seq + 1],
    'an ignorable event is counted and passed over',
  );
});

t.test('a last line that is whole but unreadable is dropped and reported; zeros after a power cut too', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  const size = statSync(paths.log).size;
  for (const tail of ['{"type":"mode/change"\n', '\0'.repeat(5000), sealLine('{"a":1}').toString().replace('1', '2')]) {
    appendFileSync(paths.log, tail);
    const { log, events } = await openLog(paths);
    await log.close();
    t.equal(events.length, wholeTurn.length);
    t.same(log.report, { torn: { offset: size, bytes: tail.length, line: afterWholeTurn }, repaired: 0 });
    t.equal(statSync(paths.log).size, size);
  }
});

t.test('a line made by hand whose data is not that of its type is refused', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  appendFileSync(paths.log, `${JSON.stringify({ type: 'assistant/message', seq: wholeTurn.length, time: 1, data: {} })}\n`);
  await t.rejects(openLog(paths), { code: 'LOG_CORRUPT', data: { line: afterWholeTurn } });
});

t.test('a log of a later version is refused and left alone', async (t) => {
  const paths = createSessionFile(t.testdir(), { ...sampleHeader(), version: 2 });
  appendFileSync(paths.log, 'something new and torn');
  const before = readFileSync(paths.log);
  await t.rejects(openLog(paths), { code: 'LOG_VERSION' });
  t.ok(readFileSync(paths.log).equals(before));
  t.notOk(existsSync(paths.lock));
});

t.test('an interrupted turn is closed on opening, once', async (t) => {
  const resultAt = wholeTurn.findIndex(({ type }) => type === 'tool/result');
  const { paths } = await makeLog(t.testdir(), wholeTurn.slice(0, resultAt));
  const first = await openLog(paths);
  await first.log.close();
  t.same(first.log.report, { torn: undefined, repaired: 3 });
  t.same(
    first.events.slice(resultAt).map((event) => (event.type === 'tool/result' ? event.data.code : event.type)),
    ['TOOL_OUTCOME_UNKNOWN', 'step/end', 'turn/end'],
  );
  const second = await openLog(paths);
  await second.log.close();
  t.same(second.events, first.events);
  t.equal(second.log.report.repaired, 0);
});

t.test('a session that is not there, or no regular file, is refused', async (t) => {
  const stateDir = t.testdir();
  const { paths } = await makeLog(stateDir, wholeTurn);
  const other = sessionPaths(stateDir, sampleId.replace('0192', '0193'));
  await t.rejects(openLog(other), { code: 'SESSION_NOT_FOUND' });
  t.notOk(existsSync(other.lock) || existsSync(other.log), 'nothing was made');
  symlinkSync(paths.log, other.log);
  await t.rejects(openLog(other), { code: 'LOG_CORRUPT' });
  unlinkSync(other.log);
  spawnSync('mkfifo', [other.log]);
  await t.rejects(openLog(other), { code: 'LOG_CORRUPT' }, 'a FIFO does not hang');
  chmodSync(paths.log, 0o644);
  const { log } = await openLog(paths);
  await log.close();
  t.equal(statSync(paths.log).mode & 0o777, 0o600, 'a log with wider rights is made private');
});

t.test('the second opener is refused while the first lives, and what fails leaves no lock', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  const { log } = await openLog(paths);
  await t.rejects(openLog(paths, { serverNonce: 'other' }), { code: 'SESSION_LOCKED' });
  log.append(sample('mode/change'));
  await log.close();
  const fault = new Error('sink');
  await t.rejects(openLog(paths, { onEvent: () => Promise.reject(fault) }), fault);
  t.notOk(existsSync(paths.lock));
});

t.test('a writer that was replaced accepts no further record', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  const zombie = await openLog(paths, { checkEveryMs: 0 });
  zombie.log.append(sample('mode/change'));
  const next = await openLog(paths);
  t.equal(next.events.length, wholeTurn.length + 1);
  const size = statSync(paths.log).size;
  t.throws(() => zombie.log.append(sample('mode/change')), { code: 'LOG_WRITE_FAILED' });
  await t.rejects(zombie.log.barrier(), { code: 'LOG_WRITE_FAILED' });
  await t.rejects(zombie.log.close(), { code: 'LOG_WRITE_FAILED' });
  t.equal(statSync(paths.log).size, size);
  next.log.append(sample('mode/change'));
  await next.log.close();
});

t.test('a writer that is replaced while its barrier runs is not told that all is well', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  let finish = () => {};
  const zombie = await openLog(paths, { sync: () => new Promise((resolve) => (finish = resolve)) });
  zombie.log.append(sample('mode/change'));
  const barrier = zombie.log.barrier();
  const lock = await SessionLock.acquire({ lockPath: paths.lock, serverNonce: 'me', threadId: 2 });
  finish();
  await t.rejects(barrier, { code: 'LOG_WRITE_FAILED' });
  lock.release();
  await t.rejects(zombie.log.close(), { code: 'LOG_WRITE_FAILED' });
});

t.test('callers of a barrier share one sync; each is covered by one that began after its append', async (t) => {
  const paths = createSessionFile(t.testdir(), sampleHeader());
  const finishers: (() => void)[] = [];
  const { log } = await openLog(paths, { sync: () => new Promise((resolve) => finishers.push(resolve)) });
  const settled: string[] = [];
  const barrier = (name: string) => log.barrier().then(() => settled.push(name));
  log.append(filler);
  const first = [barrier('a'), barrier('b')];
  t.equal(finishers.length, 1);
  log.append(filler);
  const second = [barrier('c'), barrier('d')];
  log.append(filler);
  second.push(barrier('e'));
  t.equal(finishers.length, 1, 'the next sync waits for the running one');
  finishers[0]?.();
  await Promise.all(first);
  t.same(settled, ['a', 'b']);
  t.equal(finishers.length, 2);
  finishers[1]?.();
  await Promise.all(second);
  t.equal(finishers.length, 2, 'one sync for all that was written before it');
  await log.barrier();
  t.equal(finishers.length, 2, 'nothing new, no sync');
  await log.close();
});

t.test('several events are in the log all together or not at all', async (t) => {
  const paths = createSessionFile(t.testdir(), sampleHeader());
  const { log } = await openLog(paths);
  t.same(
    log.appendAll([filler, sample('mode/change'), filler]).map(({ seq, type }) => [seq, type]),
    [
      [0, filler.type],
      [1, 'mode/change'],
      [2, filler.type],
    ],
  );
  const before = statSync(paths.log).size;
  const tooLong: EventInput = { type: 'history/compacted', data: { throughSeq: 0, summary: 'x'.repeat(64 * 1024 * 1024) } };
  t.throws(() => log.appendAll([filler, tooLong]), { code: 'LOG_WRITE_FAILED' });
  t.equal(statSync(paths.log).size, before);
  t.equal(log.append(filler).seq, 3, 'the numbers go on without a hole');
  await log.close();
  const { events } = await openLog(paths);
  t.same(
    events.map(({ seq }) => seq),
    [0, 1, 2, 3],
  );
});

t.test('what is soon to be on the disk is there without anybody waiting, and another sync does as well', async (t) => {
  const paths = createSessionFile(t.testdir(), sampleHeader());
  let syncs = 0;
  let onSync: () => void = () => undefined;
  let fault: Error | undefined;
  const sync = async () => {
    syncs += 1;
    onSync();
    if (fault !== undefined) throw fault;
  };
  const { log } = await openLog(paths, { sync });
  log.append(filler);
  log.syncSoon();
  t.equal(syncs, 0, 'not at once');
  await log.barrier();
  t.equal(syncs, 1);
  log.syncSoon();
  log.append(filler);
  const synced = new Promise<void>((resolve) => (onSync = resolve));
  log.syncSoon();
  log.syncSoon();
  await synced;
  t.equal(syncs, 2, 'one for both, and none for what was on the disk already');
  await log.barrier();
  t.equal(syncs, 2);

  fault = Object.assign(new Error('i/o'), { code: 'EIO' });
  const failed = new Promise<void>((resolve) => (onSync = resolve));
  log.append(filler);
  log.syncSoon();
  await failed;
  await t.rejects(log.barrier(), { code: 'LOG_WRITE_FAILED', data: { reason: 'EIO' } });
  t.throws(() => log.append(filler), { code: 'LOG_WRITE_FAILED' }, 'who comes next hears of it');
  await t.rejects(log.close(), { code: 'LOG_WRITE_FAILED' });
});

t.test('what is soon to be on the disk is so too behind a sync that takes longer than that', async (t) => {
  const paths = createSessionFile(t.testdir(), sampleHeader());
  const finishers: (() => void)[] = [];
  const { log } = await openLog(paths, { sync: () => new Promise((resolve) => finishers.push(resolve)) });
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  log.append(filler);
  const slow = log.barrier();
  log.syncSoon();
  mock.timers.tick(100);
  t.equal(finishers.length, 1, 'the running one covers it');
  finishers[0]?.();
  await slow;
  log.append(filler);
  log.syncSoon();
  mock.timers.tick(100);
  t.equal(finishers.length, 2, 'the next has its own');
  finishers[1]?.();
  await log.close();
});

t.test('after a failed sync nothing is taken as durable until the log is opened again', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  let failures = 1;
  const sync = async () => {
    if (failures-- > 0) {
      throw Object.assign(new Error('i/o'), { code: 'EIO' });
    }
  };
  const { log } = await openLog(paths, { sync });
  log.append(sample('mode/change'));
  const before = log.barrier();
  log.append(sample('mode/change'));
  const after = log.barrier();
  await t.rejects(before, { code: 'LOG_WRITE_FAILED', data: { reason: 'EIO' } });
  await t.rejects(after, { code: 'LOG_WRITE_FAILED' }, 'who waited for the next one fails too');
  await t.rejects(log.barrier(), { code: 'LOG_WRITE_FAILED' });
  t.throws(() => log.append(sample('mode/change')), { code: 'LOG_WRITE_FAILED' });
  await t.rejects(log.close(), { code: 'LOG_WRITE_FAILED' });
  t.notOk(existsSync(paths.lock), 'file and lock are free all the same');
  const again = await openLog(paths, { sync });
  again.log.append(sample('mode/change'));
  await again.log.close();
});

t.test('a log that is deleted, moved with its directory, or written by others is given up, never made anew', async (t) => {
  const stateDir = t.testdir();
  const { paths } = await makeLog(stateDir, wholeTurn);
  const refuses = async (log: EventLog) => {
    t.throws(() => log.append(sample('mode/change')), { code: 'LOG_WRITE_FAILED' });
    await t.rejects(log.barrier(), { code: 'LOG_WRITE_FAILED' });
    await t.rejects(log.close(), { code: 'LOG_WRITE_FAILED' });
  };
  const copy = join(stateDir, 'copy');
  copyFileSync(paths.log, copy);
  const foreign = await openLog(paths);
  appendFileSync(paths.log, 'hello\n');
  await refuses(foreign.log);
  truncateSync(paths.log, 10);
  copyFileSync(copy, paths.log);
  const moved = await openLog(paths);
  renameSync(join(stateDir, 'sessions'), join(stateDir, 'elsewhere'));
  await refuses(moved.log);
  t.notOk(existsSync(join(stateDir, 'sessions')));
  mkdirSync(join(stateDir, 'sessions'), { mode: 0o700 });
  copyFileSync(copy, paths.log);
  const deleted = await openLog(paths);
  unlinkSync(paths.log);
  await refuses(deleted.log);
  t.notOk(existsSync(paths.log));
});

t.test('a record that does not fit is refused wholly, and the next one that fits goes on', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  const before = statSync(paths.log).size;
  const child = fileURLToPath(new URL('limit-child.js', children));
  // 64 KB: the kernel writes the record in part first, then refuses the rest.
  const run = spawnSync('bash', ['-c', 'ulimit -f 64; exec "$@"', 'bash', process.execPath, child, paths.log, paths.lock], {
    encoding: 'utf8',
  });
  const { steps, events } = JSON.parse(run.stdout) as { steps: string[]; events: number };
  const size = Number(steps[0]?.split(' ')[1]);
  t.ok(size > before);
  t.equal(steps[1], `LOG_WRITE_FAILED EFBIG ${size}`);
  t.match(steps[2], /^ok \d+$/);
  t.equal(events, wholeTurn.length + 2);
  const { log } = await openLog(paths);
  await log.close();
  t.equal(log.eventCount, wholeTurn.length + 2);
  t.equal(log.report.torn, undefined);
});

/** A directory on an empty disk of 128 KB; undefined where this user may not mount one. */
function smallDisk(dir: string): { path: string; fd: number } | undefined {
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'tmpfs', dir]).status !== 0) {
    return undefined;
  }
  const fd = openSync(dir, 'r');
  // Detached at once, it lives as long as the descriptor: a test that is killed leaves no mount behind.
  spawnSync('umount', ['-l', dir]);
  return { path: `/proc/self/fd/${fd}`, fd };
}

t.test('a full disk refuses records and the log goes on once there is space', async (t) => {
  const disk = smallDisk(t.testdir());
  if (disk === undefined) {
    // The file size limit above tests the same way out; only the name of the fault differs.
    t.comment('not tried: only root can mount a small disk');
    return;
  }
  t.teardown(() => closeSync(disk.fd));
  const { paths } = await makeLog(disk.path, wholeTurn);
  const { log } = await openLog(paths);
  writeFileSync(join(disk.path, 'ballast'), Buffer.alloc(60_000));
  let accepted = 0;
  const fill = () => {
    for (;;) {
      log.append({ type: 'history/compacted', data: { throughSeq: 0, summary: 'x'.repeat(3001) } });
      accepted += 1;
    }
  };
  t.throws(fill, { code: 'LOG_WRITE_FAILED', data: { reason: 'ENOSPC' } });
  const size = statSync(paths.log).size;
  t.throws(fill, { code: 'LOG_WRITE_FAILED' });
  t.equal(statSync(paths.log).size, size);
  t.equal(readFileSync(paths.log).at(-1), 10, 'whole lines only');
  unlinkSync(join(disk.path, 'ballast'));
  log.append(sample('mode/change'));
  await log.close();
  const again = await openLog(paths);
  await again.log.close();
  t.equal(again.log.eventCount, wholeTurn.length + accepted + 1);
});

t.test('lines longer than a read, and the longest that is allowed', async (t) => {
  const paths = createSessionFile(t.testdir(), sampleHeader());
  const { log } = await openLog(paths);
  const lengths = [1_048_000, 1, 3_000_000, 1_048_576, 10, 6_000_000, 5];
  for (const length of lengths) {
    log.append({ type: 'history/compacted', data: { throughSeq: 0, summary: 'é'.repeat(length / 2) } });
  }
  t.throws(() => log.append({ type: 'history/compacted', data: { throughSeq: 0, summary: 'x'.repeat(64 * 1024 * 1024) } }), {
    code: 'LOG_WRITE_FAILED',
  });
  await log.close();
  const { log: again, events } = await openLog(paths);
  await again.close();
  t.same(
    events.map((event) => (event.type === 'history/compacted' ? event.data.summary.length : -1)),
    lengths.map((length) => Math.floor(length / 2)),
  );
  truncateSync(paths.log, statSync(paths.log).size + 64 * 1024 * 1024 + 1);
  await t.rejects(openLog(paths), { code: 'LOG_CORRUPT' }, 'an endless line is no torn record');
});

t.test('a log that is only opened keeps its time, and so its place in a list', async (t) => {
  const { paths } = await makeLog(t.testdir(), [{ type: 'mode/change', data: { mode: 'ask' } }]);
  const before = new Date('2020-01-02T03:04:05Z');
  utimesSync(paths.log, before, before);
  const { log } = await openLog(paths);
  const attached = { epoch: 2, threadId: 1, isolation: 'shared', pid: 1, sharedWith: 0 } as const;
  log.append({ type: 'thread/attached', data: attached });
  t.equal(statSync(paths.log).mtimeMs, before.getTime());
  log.append({ type: 'mode/change', data: { mode: 'plan' } });
  t.ok(statSync(paths.log).mtimeMs > before.getTime(), 'what is said in it counts');
  await log.close();
});

t.test('a writer that was given up writes nothing, and takes no lock from its successor', async (t) => {
  const { paths } = await makeLog(t.testdir(), [{ type: 'mode/change', data: { mode: 'ask' } }]);
  let givenUp = false;
  const slow = await openLog(paths, { isGivenUp: () => givenUp });
  slow.log.append({ type: 'mode/change', data: { mode: 'plan' } });
  givenUp = true;
  const next = await openLog(paths, { threadId: 2 });
  t.throws(() => slow.log.append({ type: 'mode/change', data: { mode: 'ask' } }), { code: 'LOG_WRITE_FAILED' });
  await t.rejects(openLog(paths, { isGivenUp: () => true }), { code: 'SESSION_LOCKED' });
  next.log.append({ type: 'mode/change', data: { mode: 'read-only' } });
  await slow.log.close().catch(() => undefined);
  next.log.append({ type: 'mode/change', data: { mode: 'accept-edits' } });
  await next.log.close();
  const { events } = await openLog(paths);
  t.same(
    events.map((event) => (event.type === 'mode/change' ? event.data.mode : event.type)),
    ['ask', 'plan', 'read-only', 'accept-edits'],
  );
});
