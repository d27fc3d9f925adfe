/** The parts of the session threads that decide without a thread: placement, watchdog, completions, lane, lost locks. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { Completions } from '../../../../src/main/threads/completions.ts';
import { LostCalls } from '../../../../src/main/threads/lost-calls.ts';
import { OpenCards } from '../../../../src/main/threads/open-cards.ts';
import { placementFor, spareTaskName } from '../../../../src/main/threads/placement.ts';
import { ThreadLane } from '../../../../src/main/threads/thread-lane.ts';
import { Watchdog } from '../../../../src/main/threads/watchdog.ts';
import type { FrameWriter } from '../../../../src/main/transport/frame-writer.ts';
import { releaseLostLock } from '../../../../src/shared/log/release-lost-lock.ts';
import { creditReturnBytes, type DataBatch } from '../../../../src/shared/thread-protocol.ts';

const usage = (...counts: number[]) => counts.map((currentUsage, at) => ({ at, currentUsage }));
const session = { name: 'default' };
const spare = { name: spareTaskName };

t.test('placement: a free thread is always taken first', async (t) => {
  for (const isolation of ['dedicated', 'strict', 'shared'] as const) {
    const place = placementFor(isolation, 4);
    t.equal(place(session, usage(2, 0, 1))?.at, 1);
    t.equal(place(spare, usage(2, 0, 1))?.at, 1);
    t.equal(place(spare, usage(2, 1)), null, 'a spare task never shares');
    t.equal(place(session, usage()), null, 'with no thread there, one is started');
  }
});

t.test('placement: with all threads taken', async (t) => {
  t.equal(placementFor('strict', 2)(session, usage(1, 1)), null, 'strict waits');
  t.equal(placementFor('dedicated', 3)(session, usage(1, 1)), null, 'dedicated starts another');
  t.equal(placementFor('dedicated', 2)(session, usage(3, 2))?.at, 1, 'dedicated shares the least loaded at the limit');
  t.equal(placementFor('shared', 9)(session, usage(3, 2))?.at, 1, 'shared never waits for more');
});

/** What the watchdog sees of a lane. */
function fakeLane(threadId: number): { lane: ThreadLane; beat: (to: number) => void } {
  const seen = { threadId, heartbeat: 0 };
  return { lane: seen as unknown as ThreadLane, beat: (to) => (seen.heartbeat = to) };
}

function watchdogRig(t: Test) {
  let now = 0;
  const ended: number[] = [];
  const watchdog = new Watchdog(
    1000,
    (lane) => ended.push(lane.threadId),
    () => now,
  );
  t.teardown(() => watchdog.stop());
  const pass = (ms: number): void => {
    for (const end = now + ms; now < end; ) {
      now += 200;
      watchdog.check();
    }
  };
  return { watchdog, ended, pass, jump: (ms: number) => (now += ms) };
}

t.test('watchdog: a thread without a beat is ended once, one that beats is not', async (t) => {
  const { watchdog, ended, pass } = watchdogRig(t);
  const [stuck, alive, idle] = [fakeLane(1), fakeLane(2), fakeLane(3)];
  watchdog.watch(stuck.lane);
  watchdog.watch(alive.lane);
  for (let beat = 1; beat <= 10; beat += 1) {
    alive.beat(beat);
    idle.beat(0);
    pass(200);
  }
  t.same(ended, [1]);
  watchdog.unwatch(alive.lane);
  pass(5000);
  t.same(ended, [1], 'a thread that is not watched may rest');
});

t.test('watchdog: when main itself was late, a missing beat proves nothing', async (t) => {
  const { watchdog, ended, pass, jump } = watchdogRig(t);
  const { lane, beat } = fakeLane(1);
  watchdog.watch(lane);
  pass(400);
  jump(5000);
  watchdog.check();
  t.same(ended, []);
  beat(1);
  pass(600);
  t.same(ended, []);
  pass(1200);
  t.same(ended, [1], 'but then its time runs anew');
});

t.test('watchdog: watching a thread again does not renew its time, ending a turn and starting another does', async (t) => {
  const { watchdog, ended, pass } = watchdogRig(t);
  const { lane } = fakeLane(1);
  watchdog.watch(lane);
  pass(800);
  watchdog.watch(lane);
  pass(200);
  t.same(ended, [1]);
  watchdog.watch(lane);
  pass(800);
  watchdog.unwatch(lane);
  watchdog.watch(lane);
  pass(800);
  t.same(ended, [1]);
});

t.test('completions: each is settled once; what nobody waits for is dropped', async (t) => {
  const completions = new Completions();
  const turn = completions.expectTurn();
  const load = completions.expectLoad();
  const forgotten = completions.expectTurn();
  t.not(turn.requestId, load.requestId);
  completions.forget(forgotten.requestId);
  const error = { code: 'MODEL_FAILED', message: 'no' } as const;
  for (const { requestId } of [forgotten, turn]) {
    completions.settle({ kind: 'turn', sessionId: 's', requestId, outcome: { ok: false, error } });
  }
  const chosen = { mode: 'ask', choices: {}, revision: -1 } as const;
  completions.settle({ kind: 'loaded', sessionId: 's', requestId: load.requestId, outcome: { ok: true, chosen } });
  completions.settle({ kind: 'loaded', sessionId: 's', requestId: 999, outcome: { ok: true, chosen } });
  t.same(await turn.end, { ok: false, error });
  t.same(await load.end, { ok: true, chosen });
  t.equal(await Promise.race([forgotten.end, delay(20, 'pending')]), 'pending');
});

function laneRig(t: Test) {
  const [data, control, broker] = [new MessageChannel(), new MessageChannel(), new MessageChannel()];
  t.teardown(() => [data, control, broker].forEach(({ port1, port2 }) => (port1.close(), port2.close())));
  const written: { text: string; done: (() => void) | undefined }[] = [];
  const writer = { write: (text: string, done?: () => void) => written.push({ text, done }) } as unknown as FrameWriter;
  const completions = new Completions();
  const heartbeat = new SharedArrayBuffer(4);
  const lane = new ThreadLane(
    7,
    { data: data.port2, control: control.port2, broker: broker.port2, heartbeat },
    { writer, completions, services: () => ({}) as never },
  );
  const batch = (number: number, more: Partial<DataBatch> = {}): DataBatch => ({
    batch: number,
    text: '',
    bytes: 0,
    frames: 0,
    cards: [],
    completions: [],
    ...more,
  });
  return { lane, data: data.port1, written, completions, heartbeat, batch };
}

t.test('lane: text goes to the writer before the completions behind it are settled', async (t) => {
  const { lane, data, written, completions, batch } = laneRig(t);
  const turn = completions.expectTurn();
  const outcome = { ok: false, error: { code: 'INTERNAL', message: 'x' } } as const;
  data.postMessage(
    batch(1, { text: 'a\n', bytes: 2, frames: 1, completions: [{ kind: 'turn', sessionId: 's', requestId: turn.requestId, outcome }] }),
  );
  await turn.end;
  t.same(
    written.map(({ text }) => text),
    ['a\n'],
  );
  await lane.batchTaken(1);
  t.ok(lane.hasEndedTurn('s', 0));
  t.notOk(lane.hasEndedTurn('s', 1), 'what came behind the end is of the next turn');
  t.notOk(lane.hasEndedTurn('other', 0));
  const third = lane.batchTaken(3);
  t.equal(await Promise.race([third, delay(20, 'waits')]), 'waits');
  data.postMessage(batch(2));
  data.postMessage(batch(3));
  await third;
});

t.test('lane: credit comes back in pieces, once bytes are written', async (t) => {
  const { data, written, batch } = laneRig(t);
  const credits: number[] = [];
  data.on('message', ({ credit }: { credit: number }) => credits.push(credit));
  const half = creditReturnBytes / 2;
  for (const number of [1, 2, 3]) data.postMessage(batch(number, { text: 'x', bytes: half, frames: 1 }));
  while (written.length < 3) await delay(1);
  t.same(credits, []);
  for (const { done } of written) done?.();
  while (credits.length === 0) await delay(1);
  t.same(credits, [creditReturnBytes]);
});

t.test('lane: the last messages of a thread are taken before it counts as drained, and nobody waits on', async (t) => {
  const { lane, data, written, batch, heartbeat } = laneRig(t);
  Atomics.add(new Int32Array(heartbeat), 0, 5);
  t.equal(lane.heartbeat, 5);
  const never = lane.batchTaken(100);
  for (let number = 1; number <= 20; number += 1) data.postMessage(batch(number, { text: `${number}\n`, bytes: 3, frames: 1 }));
  data.close();
  await lane.drained;
  t.equal(written.length, 20);
  await never;
});

t.test('a lost lock is removed only if it is ours', async (t) => {
  const dir = t.testdir({ ours: '{"serverNonce":"me"}', theirs: '{"serverNonce":"you"}', empty: '' });
  for (const name of ['ours', 'theirs', 'empty', 'missing']) releaseLostLock(join(dir, name), 'me');
  t.same(
    ['ours', 'theirs', 'empty'].map((name) => existsSync(join(dir, name))),
    [false, true, true],
  );
  writeFileSync(join(dir, 'ours'), 'null');
  releaseLostLock(join(dir, 'ours'), 'me');
  t.ok(existsSync(join(dir, 'ours')));
});

t.test('the cards that a lost thread had open are ended, terminals with their exit, and their ids are not given again', async (t) => {
  const cards = new OpenCards();
  const note = (callId: string, open: boolean, terminal?: true): void =>
    cards.note({ sessionId: 's', callId, open, ...(terminal === undefined ? {} : { terminal }) });
  note('draft', true);
  note('done', true);
  note('draft', true, true);
  note('done', false);
  cards.note({ sessionId: 'other', callId: 'x', open: true });
  const { callIds, frames } = cards.close('s');
  t.strictSame(callIds, ['draft']);
  t.same(
    ['done', 'draft', 'x'].map((callId) => cards.hasEnded('s', callId)),
    [true, false, false],
    'one that has ended is remembered',
  );
  t.strictSame(JSON.parse(frames).params, {
    sessionId: 's',
    update: {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'draft',
      status: 'failed',
      _meta: { terminal_exit: { terminal_id: 'draft', exit_code: null, signal: null } },
    },
  });
  t.strictSame(cards.close('s'), { callIds: [], frames: '' });
  const lost = new LostCalls();
  t.strictSame(lost.of('s'), {});
  lost.add('s', callIds);
  lost.add('s', []);
  lost.add('s', ['later']);
  t.strictSame(lost.of('s'), { lostCallIds: ['draft', 'later'] });
  t.strictSame(lost.of('other'), {});
});
