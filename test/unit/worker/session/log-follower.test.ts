/** Following a log that others write: whole lines only, in order, whatever happens to the file. */
import { appendFileSync, closeSync, openSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { LogEvent } from '../../../../src/shared/events.ts';
import { sealLine } from '../../../../src/shared/log/line-seal.ts';
import { createSessionFile } from '../../../../src/shared/log/session-paths.ts';
import { LogFollower } from '../../../../src/worker/session/log-follower.ts';
import { sampleHeader } from '../../shared/log/sample-events.ts';

const line = (seq: number): Buffer => sealLine(JSON.stringify({ type: 'turn/start', seq, time: 1, data: { turn: seq + 1 } }));

/** A follower of a log with `stored` events, which has read them. */
async function following(t: Test, stored: number) {
  const { log } = createSessionFile(t.testdir({}), sampleHeader());
  for (let seq = 0; seq < stored; seq += 1) appendFileSync(log, line(seq));
  const seqs: number[] = [];
  const ends: string[] = [];
  let wake: () => void = () => undefined;
  let hold: Promise<void> | undefined;
  const follower = new LogFollower(log, (event: LogEvent) => {
    seqs.push(event.seq);
    wake();
    return hold;
  });
  t.teardown(() => follower.close());
  await follower.readAll();
  const until = async (isTrue: () => boolean): Promise<void> => {
    while (!isTrue()) await new Promise<void>((resolve) => (wake = resolve));
  };
  const follow = (): void =>
    follower.follow((why) => {
      ends.push(why);
      wake();
    });
  return { log, follower, seqs, ends, until, follow, holdBack: (promise: Promise<void> | undefined) => (hold = promise) };
}

t.test('what is there comes first, then what is added, also between the two', async (t) => {
  const { log, seqs, until, follow, ends } = await following(t, 3);
  t.same(seqs, [0, 1, 2]);
  appendFileSync(log, line(3));
  follow();
  await until(() => seqs.length === 4);
  for (let seq = 4; seq < 20; seq += 1) appendFileSync(log, line(seq));
  await until(() => seqs.length === 20);
  t.same(
    seqs,
    Array.from({ length: 20 }, (_, index) => index),
  );
  t.same(ends, []);
});

t.test('a line that is written in pieces is taken once it is whole', async (t) => {
  const { log, seqs, until, follow } = await following(t, 1);
  follow();
  const whole = line(1);
  appendFileSync(log, whole.subarray(0, 20));
  appendFileSync(log, whole.subarray(20));
  appendFileSync(log, line(2));
  await until(() => seqs.length === 3);
  t.same(seqs, [0, 1, 2]);
});

t.test('a torn end that the next writer cuts off is never shown', async (t) => {
  const { log, seqs, until, follow, ends } = await following(t, 2);
  const size = readFileSync(log).length;
  appendFileSync(log, '{"type":"turn/start","se');
  follow();
  truncateSync(log, size);
  appendFileSync(log, line(2));
  await until(() => seqs.length === 3);
  t.same([seqs, ends], [[0, 1, 2], []]);
});

t.test('damage, a shorter log and a deleted one end the following, with a reason', async (t) => {
  const damaged = await following(t, 1);
  damaged.follow();
  appendFileSync(damaged.log, 'no line at all\n');
  appendFileSync(damaged.log, line(1));
  await damaged.until(() => damaged.ends.length > 0);
  t.match(damaged.ends, [/line 3/]);
  t.same(damaged.seqs, [0]);

  const shorter = await following(t, 3);
  shorter.follow();
  truncateSync(shorter.log, 100);
  await shorter.until(() => shorter.ends.length > 0);
  t.match(shorter.ends, [/shorter/]);

  const gone = await following(t, 1);
  gone.follow();
  rmSync(gone.log);
  await gone.until(() => gone.ends.length > 0);
  t.match(gone.ends, [/deleted or replaced/]);

  const replaced = await following(t, 1);
  replaced.follow();
  writeFileSync(`${replaced.log}.new`, readFileSync(replaced.log));
  renameSync(`${replaced.log}.new`, replaced.log);
  await replaced.until(() => replaced.ends.length > 0);
  t.match(replaced.ends, [/deleted or replaced/]);
});

t.test('a reader that must wait holds the reading back; after close nothing is handed over', async (t) => {
  const { log, follower, seqs, until, follow, holdBack } = await following(t, 1);
  let release: () => void = () => undefined;
  holdBack(new Promise<void>((resolve) => (release = resolve)));
  follow();
  for (let seq = 1; seq < 5; seq += 1) appendFileSync(log, line(seq));
  await until(() => seqs.length === 2);
  t.same(seqs, [0, 1], 'the second waits for the first');
  holdBack(undefined);
  release();
  await until(() => seqs.length === 5);
  await follower.close();
  appendFileSync(log, line(5));
  closeSync(openSync(log, 'r'));
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(seqs.length, 5);
  await follower.close();
});

t.test('what is no log is refused', async (t) => {
  const dir = t.testdir({ folder: {} });
  t.throws(() => new LogFollower(`${dir}/none.jsonl`, () => undefined), { code: 'SESSION_NOT_FOUND' });
  t.throws(() => new LogFollower(`${dir}/folder`, () => undefined), { code: 'LOG_CORRUPT' });
});
