import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import t from 'tap';
import type { EventInput, EventType, LogEvent } from '../../../../src/shared/events.ts';
import { eventTypes } from '../../../../src/shared/log/event-types.ts';
import { sealLine } from '../../../../src/shared/log/line-seal.ts';
import { createSessionFile, type SessionPaths, sessionPaths } from '../../../../src/shared/log/session-paths.ts';
import { EventLog, type EventLogOptions } from '../../../../src/worker/log/event-log.ts';
import { readLog } from '../../../../src/worker/log/log-reader.ts';
import { SessionLock } from '../../../../src/worker/log/session-lock.ts';
import { sample, sampleHeader, sampleId, samples, wholeTurn } from '../../shared/log/sample-events.ts';

const children = new URL('./children/', import.meta.url);

async function openLog(paths: SessionPaths, options: Partial<EventLogOptions> = {}) {
  const events: LogEvent[] = [];
  const log = await EventLog.open({
    path: paths.log,
    lockPath: paths.lock,
    serverNonce: 'me',
    threadId: 1,
    onEvent: (event) => {
      events.push(event);
    },
    ...options,
  });
  return { log, events };
}

/** A closed log of these events. */
async function makeLog(stateDir: string, inputs: readonly EventInput[]): Promise<{ paths: SessionPaths; written: LogEvent[] }> {
  const paths = createSessionFile(stateDir, sampleHeader());
  const { log } = await openLog(paths);
  const written = inputs.map((input) => log.append(input));
  await log.close();
  return { paths, written };
}

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

t.test('property: any sequence of events reads back as it was written', async (t) => {
  // Texts and members of any kind beside the ones that give a type its shape.
  const extra = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ noUnicodeString: false }), {
    maxKeys: 4,
    noNullPrototype: true,
  });
  const anyEvent = fc
    .record({ type: fc.constantFrom(...(Object.keys(eventTypes) as EventType[])), extra })
    .map(({ type, extra }) => ({ type, data: { ...extra, ...samples[type] } }));
  const stateDir = t.testdir();
  const seed = Date.now();
  t.comment(`seed ${seed}`);
  await fc.assert(
    fc.asyncProperty(fc.array(anyEvent, { maxLength: 30 }), async (inputs) => {
      rmSync(join(stateDir, 'sessions'), { recursive: true, force: true });
      // The end closes whatever the sequence opened: repair must add nothing.
      const { paths, written } = await makeLog(stateDir, [...(inputs as EventInput[]), sample('turn/end')]);
      const { log, events } = await openLog(paths);
      await log.close();
      return JSON.stringify(events) === JSON.stringify(written) && log.report.torn === undefined;
    }),
    { seed, numRuns: 100 },
  );
});

t.test('a log cut at any byte loads without its torn record only, and goes on', async (t) => {
  const stateDir = t.testdir();
  const { paths, written } = await makeLog(stateDir, wholeTurn);
  const whole = readFileSync(paths.log);
  const ends = [...whole.keys()].filter((index) => whole[index] === 10).map((index) => index + 1);
  const headerEnd = ends[0] ?? 0;
  let wrong = 0;
  for (let length = headerEnd; length <= whole.length; length += 1) {
    writeFileSync(paths.log, whole.subarray(0, length));
    const { log, events } = await openLog(paths, { sync: async () => {} });
    const complete = ends.filter((end) => end <= length).length - 1;
    const keptEnd = ends[complete] ?? 0;
    const torn = keptEnd === length ? undefined : { offset: keptEnd, bytes: length - keptEnd, line: complete + 2 };
    const isAsWritten = JSON.stringify(events.slice(0, complete)) === JSON.stringify(written.slice(0, complete));
    const added = log.append(sample('mode/change'));
    await log.close();
    const again = await openLog(paths, { sync: async () => {} });
    await again.log.close();
    const isWhole = JSON.stringify(again.events) === JSON.stringify([...events, added]) && again.log.report.torn === undefined;
    const isClosed = events.length === complete + log.report.repaired && again.log.report.repaired === 0;
    if (!isAsWritten || !isWhole || !isClosed || JSON.stringify(log.report.torn) !== JSON.stringify(torn)) {
      wrong += 1;
      t.fail(`cut at ${length}`, { report: log.report, torn, isAsWritten, isWhole, isClosed });
    }
  }
  t.equal(wrong, 0, `${whole.length - headerEnd + 1} cuts`);
  for (const length of [0, 1, headerEnd - 1]) {
    writeFileSync(paths.log, whole.subarray(0, length));
    await t.rejects(openLog(paths), { code: 'LOG_CORRUPT', data: { line: 1 } }, `header cut at ${length}`);
    t.equal(statSync(paths.log).size, length, 'left alone');
  }
});

/** What is wrong with how the damage in `line` is refused, by a mere reading or by a whole opening. */
async function refusal(paths: SessionPaths, line: number, isWholeOpening: boolean): Promise<string | undefined> {
  const fd = openSync(paths.log, 'r');
  try {
    const source = { fd, path: paths.log, size: statSync(paths.log).size };
    await (isWholeOpening ? openLog(paths).then(({ log }) => log.close()) : readLog(source, () => {}));
    return 'accepted';
  } catch (error) {
    const { code, data, message } = error as { code: string; data?: { file: string; line: number }; message: string };
    const isNamed = data?.line === line && data.file === `${sampleId}.jsonl` && message.includes(`line ${line}`);
    return code === 'LOG_CORRUPT' && isNamed ? undefined : `${code} ${message}`;
  } finally {
    closeSync(fd);
  }
}

t.test('any flipped bit before the last line is refused by name and line, and the file left alone', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  const whole = readFileSync(paths.log);
  const lastLine = whole.lastIndexOf(10, whole.length - 2) + 1;
  const headerEnd = whole.indexOf(10) + 1;
  let passed = 0;
  let line = 2;
  for (let index = headerEnd; index < lastLine; index += 1) {
    const bytes = Buffer.from(whole);
    bytes[index] = (bytes[index] ?? 0) ^ (1 << (index % 8));
    writeFileSync(paths.log, bytes);
    const problem = await refusal(paths, line, index % 23 === 0);
    if (problem !== undefined || !readFileSync(paths.log).equals(bytes) || existsSync(paths.lock)) {
      passed += 1;
      t.fail(`byte ${index} of line ${line}: ${problem ?? 'file or lock changed'}`);
    }
    line += whole[index] === 10 ? 1 : 0;
  }
  t.equal(passed, 0, `${lastLine - headerEnd} flips`);
});

t.test('lines that parse but do not belong are refused', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  const good = { type: 'mode/change', seq: 13, time: 1, data: { mode: 'ask' } };
  const cases: [string, unknown][] = [
    ['a gap in seq', { ...good, seq: 14 }],
    ['a repeated seq', { ...good, seq: 12 }],
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
    await t.rejects(openLog(paths), { code: 'LOG_CORRUPT', data: { line: 15 } }, name);
  }
  writeFileSync(paths.log, whole);
  appendFileSync(paths.log, `${JSON.stringify({ ...good, type: 'future/thing', ignorable: true })}\n`);
  appendFileSync(paths.log, sealLine(JSON.stringify({ ...good, seq: 14 })));
  const { log, events } = await openLog(paths);
  await log.close();
  t.same(
    events.slice(-2).map((event) => event.seq),
    [12, 14],
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
    t.same(log.report, { torn: { offset: size, bytes: tail.length, line: 15 }, repaired: 0 });
    t.equal(statSync(paths.log).size, size);
  }
});

t.test('a line made by hand whose data is not that of its type is refused', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  appendFileSync(paths.log, `${JSON.stringify({ type: 'assistant/message', seq: 13, time: 1, data: {} })}\n`);
  await t.rejects(openLog(paths), { code: 'LOG_CORRUPT', data: { line: 15 } });
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
  const { paths } = await makeLog(t.testdir(), wholeTurn.slice(0, 10));
  const first = await openLog(paths);
  await first.log.close();
  t.same(first.log.report, { torn: undefined, repaired: 3 });
  t.same(
    first.events.slice(10).map((event) => (event.type === 'tool/result' ? event.data.code : event.type)),
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
  const zombie = await openLog(paths);
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

// Not below a fixture: tap would try to remove it while it is mounted.
const mnt = mkdtempSync(join(tmpdir(), 'dsh-acp-log-'));
const canMount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'tmpfs', mnt]).status === 0;
t.teardown(() => {
  if (canMount) {
    spawnSync('umount', [mnt]);
  }
  rmdirSync(mnt);
});

t.test(
  'a full disk refuses records and the log goes on once there is space',
  { skip: canMount ? false : 'only root can mount a small disk' },
  async (t) => {
    const { paths } = await makeLog(mnt, wholeTurn);
    const { log } = await openLog(paths);
    writeFileSync(join(mnt, 'ballast'), Buffer.alloc(60_000));
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
    unlinkSync(join(mnt, 'ballast'));
    log.append(sample('mode/change'));
    await log.close();
    const again = await openLog(paths);
    await again.log.close();
    t.equal(again.log.eventCount, wholeTurn.length + accepted + 1);
  },
);

t.test('a writer killed at any moment loses no record that a barrier acknowledged', async (t) => {
  const paths = createSessionFile(t.testdir(), sampleHeader());
  const child = fileURLToPath(new URL('writer-child.js', children));
  let total = 0;
  let tornTails = 0;
  for (let round = 0; round < 10; round += 1) {
    const writer = spawn(process.execPath, [child, paths.log, paths.lock, `round-${round}`], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.teardown(() => writer.kill('SIGKILL'));
    let acknowledged = 0;
    let left = 1 + ((round * 13) % 17);
    for await (const line of createInterface({ input: writer.stdout })) {
      acknowledged = Number(line);
      left -= 1;
      if (left === 0) {
        writer.kill('SIGKILL');
      }
    }
    if (writer.exitCode === null && writer.signalCode === null) {
      await once(writer, 'exit');
    }
    const { log, events } = await openLog(paths);
    await log.close();
    tornTails += log.report.torn === undefined ? 0 : 1;
    t.ok(acknowledged > total && log.eventCount >= acknowledged, `${log.eventCount} events, ${acknowledged} acknowledged`);
    t.ok(events.every((event, seq) => event.type === 'history/pruned' && event.data.keepChars === seq));
    total = log.eventCount;
  }
  t.comment(`${total} events, ${tornTails} torn tails`);
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
