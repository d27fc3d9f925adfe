/** The limiter on a held clock: never too many, nothing lost, fair, and patient when it is told to be. */
import * as fc from 'fast-check';
import t from 'tap';
import { ModelLimiter, type ModelLimiterOptions } from '../../../../src/main/limiter/model-limiter.ts';
import { laneSlots } from '../../../../src/main/limiter/lane-slots.ts';
import type { ModelSlot, ModelSlotReport } from '../../../../src/shared/model-slots.ts';
import { HeldClock, settled } from './held-clock.ts';

const ok: ModelSlotReport = { outcome: 'ok' };
const other: ModelSlotReport = { outcome: 'other' };

class Rig {
  readonly clock = new HeldClock();
  readonly limiter: ModelLimiter;
  readonly owner = {};
  readonly granted: { readonly name: string; readonly slot: ModelSlot; readonly at: number }[] = [];
  readonly refused: { readonly name: string; readonly code: string }[] = [];

  constructor(options: Partial<ModelLimiterOptions> = {}) {
    this.limiter = new ModelLimiter({
      maxConcurrency: 1,
      slowStart: 1,
      maxPauseMs: 60_000,
      clock: this.clock,
      random: () => 0.5,
      ...options,
    });
  }

  /** Names are `session` or `session/key`. */
  ask(name: string, priority = 0, owner: object = this.owner): void {
    const [sessionId = '', requestKey = '1'] = name.split('/');
    this.limiter.acquire(owner, { sessionId, requestKey, priority }).then(
      (slot) => this.granted.push({ name, slot, at: this.clock.now() }),
      (error: { code: string }) => this.refused.push({ name, code: error.code }),
    );
  }

  async release(name: string, report: ModelSlotReport = other): Promise<void> {
    const found = this.granted.findLast((one) => one.name === name);
    this.limiter.release(this.owner, found!.slot.leaseId, report);
    await settled();
  }

  get order(): string {
    return this.granted.map(({ name }) => name).join(' ');
  }
}

t.test('who finds room goes at once; the others wait and are told how long and where they stood', async (t) => {
  const rig = new Rig({ maxConcurrency: 2, slowStart: 2 });
  for (const name of ['a', 'b', 'c', 'd']) rig.ask(name);
  await settled();
  t.equal(rig.order, 'a b');
  t.same(rig.limiter.status(), {
    limit: 2,
    max: 2,
    running: 2,
    waiting: 2,
    pausedMs: 0,
    calls: 2,
    overloads: 0,
    queue: [
      { sessionId: 'c', position: 1, waitedMs: 0 },
      { sessionId: 'd', position: 2, waitedMs: 0 },
    ],
  });
  await rig.clock.advance(700);
  await rig.release('a');
  await rig.release('b');
  t.same(
    rig.granted.map(({ name, slot }) => [name, slot.position, slot.waitedMs]),
    [
      ['a', 0, 0],
      ['b', 0, 0],
      ['c', 1, 700],
      ['d', 2, 700],
    ],
  );
});

t.test('a lease is given back once, and only by who holds it', async (t) => {
  const rig = new Rig();
  for (const name of ['a', 'b', 'c']) rig.ask(name);
  await settled();
  rig.limiter.release({}, 1, ok);
  await settled();
  t.equal(rig.order, 'a');
  await rig.release('a');
  await rig.release('a');
  rig.limiter.release(rig.owner, 99, ok);
  await settled();
  t.equal(rig.order, 'a b', 'giving back twice does not free two places');
});

t.test('priorities go first, those of one priority as they came', async (t) => {
  const rig = new Rig();
  rig.ask('holder');
  for (const [name, priority] of [
    ['low', -5],
    ['plain', 0],
    ['high', 7],
    ['plain2', 0],
    ['beyond', 5000],
    ['highest', 100],
  ] as const) {
    rig.ask(name, priority);
  }
  await settled();
  for (const name of ['holder', 'beyond', 'highest', 'high', 'plain', 'plain2', 'low']) await rig.release(name);
  t.equal(rig.order, 'holder beyond highest high plain plain2 low');
});

t.test('a priority of which nothing goes counts as one higher each second', async (t) => {
  const rig = new Rig();
  rig.ask('holder', 3);
  rig.ask('patient', 0);
  let last = 'holder';
  for (let second = 1; second <= 10; second += 1) {
    await rig.clock.advance(1000);
    rig.ask(`urgent/${second}`, 3);
    await rig.release(last);
    last = rig.granted.at(-1)!.name;
  }
  t.equal(rig.granted[3]?.name, 'patient', `three seconds for three steps: ${rig.order}`);
});

t.test('the session that has had least goes first: one that asks often gets no more than the others', async (t) => {
  const rig = new Rig();
  rig.ask('holder');
  for (let key = 0; key < 6; key += 1) rig.ask(`greedy/${key}`);
  rig.ask('modest');
  rig.ask('late');
  await settled();
  await rig.release('holder');
  for (let call = 0; call < 7; call += 1) await rig.release(rig.granted.at(-1)!.name);
  t.equal(rig.order, 'holder greedy/0 modest late greedy/1 greedy/2 greedy/3 greedy/4 greedy/5');
});

t.test('among sessions that always want one more, none is ever three calls ahead', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 8 }),
      fc.integer({ min: 1, max: 3 }),
      fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
      async (sessions, places, picks) => {
        const rig = new Rig({ maxConcurrency: places, slowStart: places });
        // Twice as many requests of each session as there are places: everybody always waits.
        const width = places * 2;
        const counts = new Map<string, number>();
        for (let session = 0; session < sessions; session += 1) {
          for (let key = 0; key < width; key += 1) rig.ask(`s${session}/${key}`);
          counts.set(`s${session}`, 0);
        }
        await settled();
        let seen = places;
        for (const pick of picks) {
          const running = rig.granted.slice(seen - places, seen).filter(({ slot }) => slot.leaseId > 0);
          const chosen = running[pick % running.length]!;
          await rig.release(chosen.name);
          rig.ask(chosen.name);
          await settled();
          // The released one leaves the window of those that run.
          rig.granted.splice(rig.granted.indexOf(chosen), 1);
          const session = rig.granted.at(-1)!.name.split('/')[0]!;
          counts.set(session, counts.get(session)! + 1);
          seen = rig.granted.length;
        }
        const all = [...counts.values()];
        return Math.max(...all) - Math.min(...all) <= 2;
      },
    ),
    { numRuns: 25 },
  );
});

t.test('newcomers without end do not keep out a session that has had its share', async (t) => {
  const rig = new Rig();
  rig.ask('old/1');
  rig.ask('x');
  rig.ask('y');
  await settled();
  rig.ask('old/2');
  let last = 'old/1';
  let calls = 0;
  while (last !== 'old/2' && calls < 50) {
    rig.ask(`new${calls}`);
    await rig.release(last);
    last = rig.granted.at(-1)!.name;
    calls += 1;
  }
  t.equal(last, 'old/2');
  t.ok(calls <= 6, `${calls} calls went before it`);
});

t.test('Retry-After holds back every call, and those held back do not start in one millisecond', async (t) => {
  let random = 0;
  const rig = new Rig({ maxConcurrency: 6, slowStart: 6, random: () => (random += 0.13) % 1 });
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']) rig.ask(name);
  await settled();
  await rig.release('a', { outcome: 'overloaded', retryAfterMs: 2000 });
  await rig.release('b', { outcome: 'overloaded', retryAfterMs: 500 });
  for (const name of ['c', 'd', 'e', 'f']) await rig.release(name, other);
  t.match(
    rig.limiter.status(),
    { limit: 3, max: 6, running: 0, waiting: 3, pausedMs: 2000, calls: 6, overloads: 2 },
    'halved once, and the longer wish counts',
  );
  await rig.clock.advance(1999);
  t.equal(rig.granted.length, 6, 'nobody goes before');
  rig.ask('newcomer');
  await rig.clock.advance(1 + 250);
  const starts = rig.granted.slice(6).map(({ at }) => at);
  t.equal(starts.length, 3);
  t.equal(new Set(starts).size, 3, `at ${starts.join(', ')}`);
  t.ok(starts.every((at) => at >= 2000 && at <= 2250));
  t.equal(rig.limiter.status().pausedMs, 0);
});

t.test('a provider that wants an hour gets the longest pause that is allowed', async (t) => {
  for (const maxPauseMs of [60_000, 900_000]) {
    const rig = new Rig({ maxPauseMs });
    rig.ask('a');
    await settled();
    rig.ask('b');
    await rig.release('a', { outcome: 'overloaded', retryAfterMs: 3_600_000 });
    t.equal(rig.limiter.status().pausedMs, maxPauseMs);
    await rig.clock.advance(maxPauseMs - 1);
    t.equal(rig.order, 'a');
    await rig.clock.advance(1 + 250);
    t.equal(rig.order, 'a b');
  }
});

t.test('the status tells who waits, in which place and how long; the order is the one in which they go', async (t) => {
  const rig = new Rig();
  rig.ask('holder');
  await settled();
  rig.ask('low', -1);
  await rig.clock.advance(300);
  for (const name of ['a', 'b']) rig.ask(name);
  rig.ask('a/2');
  rig.ask('high', 5);
  await rig.clock.advance(100);
  t.same(rig.limiter.status().queue, [
    { sessionId: 'high', position: 1, waitedMs: 100 },
    { sessionId: 'a', position: 2, waitedMs: 100 },
    { sessionId: 'b', position: 3, waitedMs: 100 },
    { sessionId: 'a', position: 4, waitedMs: 100 },
    { sessionId: 'low', position: 5, waitedMs: 400 },
  ]);
  await rig.release('holder', { outcome: 'overloaded', retryAfterMs: 1000 });
  await rig.clock.advance(1000);
  t.match(rig.limiter.status().queue, [{ position: 1 }, { position: 2 }, { position: 3 }, { position: 4 }, { position: 5 }]);
  const [first] = rig.limiter.status().queue;
  await rig.clock.advance(250);
  t.equal(rig.granted.at(-1)?.name, first?.sessionId, 'who has its place and waits for its moment goes first');
  for (let index = 0; index < 200; index += 1) rig.ask(`more ${index}`);
  t.equal(rig.limiter.status().queue.length, 100);
});

t.test('a call that waits for its moment after a pause heeds the next pause, and can be withdrawn', async (t) => {
  const rig = new Rig({ maxConcurrency: 8, slowStart: 8, random: () => 0.9 });
  for (const name of ['a', 'b', 'c', 'd']) rig.ask(name);
  await settled();
  await rig.release('a', { outcome: 'overloaded', retryAfterMs: 100 });
  rig.ask('e');
  rig.ask('f');
  await rig.release('b');
  await rig.release('c');
  await rig.clock.advance(110);
  t.equal(rig.granted.length, 4, 'their moment has not come');
  await rig.release('d', { outcome: 'overloaded', retryAfterMs: 1000 });
  rig.limiter.withdraw(rig.owner, 'f', '1');
  await rig.clock.advance(999);
  t.equal(rig.granted.length, 4);
  t.same(rig.refused, [{ name: 'f', code: 'REQUEST_CANCELLED' }]);
  await rig.clock.advance(400);
  t.equal(rig.granted.at(-1)?.name, 'e');
  await rig.release('e');
  t.match(rig.limiter.status(), { max: 8, running: 0, waiting: 0, pausedMs: 0 }, 'no place is lost');
});

t.test('a withdrawn request leaves at once, wherever it stands', async (t) => {
  const rig = new Rig();
  for (const name of ['a', 'b', 'c']) rig.ask(name);
  await settled();
  rig.limiter.withdraw(rig.owner, 'b', '1');
  rig.limiter.withdraw({}, 'c', '1');
  rig.limiter.withdraw(rig.owner, 'a', '1');
  await settled();
  t.same(rig.refused, [{ name: 'b', code: 'REQUEST_CANCELLED' }], 'not that of another thread, and not one that was granted');
  t.equal(rig.limiter.status().waiting, 1);
  await rig.release('a');
  t.equal(rig.order, 'a c');
});

t.test('a thread that is gone gives back what it holds and asks for nothing more', async (t) => {
  const rig = new Rig({ maxConcurrency: 3, slowStart: 3 });
  let die = (): void => undefined;
  const gone = new Promise<void>((resolve) => (die = resolve));
  const { services: lane, ahead } = laneSlots(rig.limiter, gone);
  const asked = ['x', 'y'].map((sessionId) => lane.acquireModelSlot({ sessionId, requestKey: '1', priority: 0 }));
  await Promise.all(asked);
  rig.ask('a');
  const waits = lane.acquireModelSlot({ sessionId: 'z', requestKey: '1', priority: 50 });
  for (const name of ['b', 'c']) rig.ask(name);
  await settled();
  t.equal(rig.order, 'a');
  die();
  await t.rejects(waits, { code: 'THREAD_LOST' });
  await settled();
  t.equal(rig.order, 'a b c');
  await t.rejects(lane.acquireModelSlot({ sessionId: 'x', requestKey: '2', priority: 0 }), { code: 'THREAD_LOST' });
  await rig.release('a');
  t.equal(ahead('x', 0), undefined, 'nothing is sent along to it');
  t.match(rig.limiter.status(), { running: 2, waiting: 0 });
});

t.test('a place is sent along with a prompt only where nobody has to wait for it', async (t) => {
  const rig = new Rig({ maxConcurrency: 2, slowStart: 2 });
  const lane = laneSlots(rig.limiter, new Promise(() => undefined));
  const first = lane.ahead('a', 0);
  t.match(first?.slot, { position: 0, waitedMs: 0 });
  t.ok(lane.ahead('b', 0));
  t.equal(lane.ahead('c', 0), undefined, 'all are taken');
  rig.ask('d');
  await settled();
  t.match(rig.limiter.status(), { running: 2, waiting: 1, calls: 2 });
  first?.giveBack();
  first?.giveBack();
  await settled();
  t.equal(rig.order, 'd', 'what was not used goes to who waits');
  t.match(rig.limiter.status(), { running: 2, waiting: 0, calls: 2 }, 'and counts as no call');
  await rig.release('d', { outcome: 'overloaded', retryAfterMs: 100 });
  t.equal(lane.ahead('e', 0), undefined, 'nor in a pause');
  rig.limiter.close();
  t.equal(lane.ahead('f', 0), undefined);
});

t.test('a session that leaves its thread leaves no lease behind', async (t) => {
  const rig = new Rig({ maxConcurrency: 2, slowStart: 2 });
  for (const name of ['a/1', 'b/1', 'c/1']) rig.ask(name);
  await settled();
  rig.limiter.releaseSession('a');
  await settled();
  t.equal(rig.order, 'a/1 b/1 c/1');
  await rig.release('a/1');
  t.match(rig.limiter.status(), { running: 2, waiting: 0 }, 'its own release, which comes late, frees nothing twice');
});

t.test('closing refuses whoever waits and leaves no timer', async (t) => {
  const rig = new Rig();
  for (const name of ['a', 'b']) rig.ask(name);
  await settled();
  await rig.release('a', { outcome: 'overloaded', retryAfterMs: 5000 });
  rig.limiter.close();
  rig.ask('c');
  await settled();
  t.same(rig.refused, [
    { name: 'b', code: 'SHUTTING_DOWN' },
    { name: 'c', code: 'SHUTTING_DOWN' },
  ]);
  t.equal(rig.clock.timers, 0);
});

type Act =
  | { readonly act: 'ask'; readonly session: number; readonly priority: number; readonly thread: number }
  | { readonly act: 'release'; readonly pick: number; readonly report: ModelSlotReport }
  | { readonly act: 'withdraw'; readonly pick: number }
  | { readonly act: 'die'; readonly thread: number }
  | { readonly act: 'pass'; readonly ms: number };

const report = fc.oneof(
  { weight: 3, arbitrary: fc.constant<ModelSlotReport>(ok) },
  { weight: 1, arbitrary: fc.constant<ModelSlotReport>(other) },
  fc.record({ outcome: fc.constant('overloaded' as const), retryAfterMs: fc.nat(900) }),
  fc.constant<ModelSlotReport>({ outcome: 'overloaded' }),
);
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('ask' as const),
      session: fc.nat(5),
      priority: fc.integer({ min: -2, max: 2 }),
      thread: fc.nat(2),
    }),
  },
  { weight: 5, arbitrary: fc.record({ act: fc.constant('release' as const), pick: fc.nat(), report }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('withdraw' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('die' as const), thread: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('pass' as const), ms: fc.nat(1200) }) },
);

interface Call {
  readonly owner: object;
  readonly sessionId: string;
  readonly requestKey: string;
  state: 'waits' | 'runs' | 'over';
  leaseId: number;
  settled: number;
}

t.test('whatever happens, there are never more leases than places, none is lost and none is given twice', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 }), fc.array(act, { maxLength: 80 }), playAll),
    { numRuns: 150 },
  );
});

async function playAll(max: number, slowStart: number, acts: readonly Act[]): Promise<void> {
  const clock = new HeldClock();
  const limiter = new ModelLimiter({ maxConcurrency: max, slowStart, maxPauseMs: 60_000, clock });
  const owners = [{}, {}, {}];
  const calls: Call[] = [];
  const leases = new Set<number>();
  const faults: string[] = [];
  const running = (): Call[] => calls.filter(({ state }) => state === 'runs');
  const ask = (owner: object, session: number, priority: number): void => {
    const call: Call = { owner, sessionId: `s${session}`, requestKey: String(calls.length), state: 'waits', leaseId: 0, settled: 0 };
    calls.push(call);
    limiter.acquire(owner, { sessionId: call.sessionId, requestKey: call.requestKey, priority }).then(
      ({ leaseId }) => {
        call.settled += 1;
        // A thread that died never hears of it: main has taken the lease back.
        if (call.state === 'over') return;
        if (leases.has(leaseId)) faults.push('a lease was given twice');
        leases.add(leaseId);
        call.leaseId = leaseId;
        call.state = 'runs';
        if (limiter.status().pausedMs > 0) faults.push('a call went during a pause');
        if (running().length > limiter.status().limit) faults.push('more calls run than may');
      },
      () => {
        call.settled += 1;
        call.state = 'over';
      },
    );
  };
  const release = (call: Call, how: ModelSlotReport): void => {
    call.state = 'over';
    limiter.release(call.owner, call.leaseId, how);
  };
  for (const one of acts) {
    if (one.act === 'ask') ask(owners[one.thread]!, one.session, one.priority);
    else if (one.act === 'pass') await clock.advance(one.ms);
    else if (one.act === 'die') {
      const owner = owners[one.thread]!;
      for (const call of calls) if (call.owner === owner && call.state === 'runs') call.state = 'over';
      limiter.releaseOwner(owner);
      owners[one.thread] = {};
    } else if (one.act === 'release') {
      const call = running()[one.pick % Math.max(1, running().length)];
      if (call !== undefined) release(call, one.report);
    } else {
      const waiting = calls.filter(({ state }) => state === 'waits');
      const call = waiting[one.pick % Math.max(1, waiting.length)];
      if (call !== undefined) limiter.withdraw(call.owner, call.sessionId, call.requestKey);
    }
    await settled();
    const status = limiter.status();
    if (faults.length > 0) throw new Error(faults.join(', '));
    if (status.limit < 1 || status.limit > max) throw new Error('the limit left its bounds');
    if (status.running !== running().length) throw new Error(`${status.running} leases for ${running().length} calls`);
  }
  for (let round = 0; calls.some(({ state }) => state !== 'over'); round += 1) {
    if (round > 500) throw new Error('a call waits for ever');
    for (const call of running()) release(call, ok);
    await clock.advance(300);
  }
  if (calls.some((call) => call.settled !== 1)) throw new Error('a request was not answered exactly once');
  const { running: left, waiting } = limiter.status();
  if (left !== 0 || waiting !== 0) throw new Error('something is left');
}
