/** A session on its thread: what comes first, an end or the departure, and that nothing of it is kept. */
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MessageChannel } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { AttachedSession, type Departure } from '../../../../src/main/threads/attached-session.ts';
import type { ThreadLane } from '../../../../src/main/threads/thread-lane.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function attach(t: Test): { readonly session: AttachedSession; readonly depart: (how: Departure) => void } {
  const { port1, port2 } = new MessageChannel();
  t.teardown(() => port2.close());
  let depart: (how: Departure) => void = () => undefined;
  const departure = new Promise<Departure>((resolve) => (depart = resolve));
  const chosen = { mode: 'ask', choices: {}, revision: -1 } as const;
  return { session: new AttachedSession({ sessionId: 's', chosen }, {} as ThreadLane, port1, departure), depart };
}

t.test('the end that comes first wins, and what was over already stands before the departure', async (t) => {
  const { session, depart } = attach(t);
  t.equal(await session.orDeparture(Promise.resolve('over')), 'over');
  await t.rejects(session.orDeparture(Promise.reject(new Error('bad'))), { message: 'bad' });
  const left = session.orDeparture(new Promise<string>(() => undefined));
  depart({ kind: 'left' });
  t.same(await left, { kind: 'left' });
  await session.departure;
  t.equal(await session.orDeparture(Promise.resolve('over')), 'over', 'it ended before anybody asked');
  t.same(await session.orDeparture(new Promise<string>(() => undefined)), { kind: 'left' });
  t.equal(await session.call((api) => api.dispose()), undefined, 'nobody is called any more');
});

t.test('the ends of turns are not kept until the session leaves', async (t) => {
  const { session, depart } = attach(t);
  const ends = await Promise.all(Array.from({ length: 20 }, () => oneTurn(session)));
  for (let round = 0; round < 100 && ends.some((end) => end.deref() !== undefined); round += 1) {
    await turnOfTheLoop();
    collect();
  }
  t.equal(ends.filter((end) => end.deref() !== undefined).length, 0);
  depart({ kind: 'left' });
  await session.departure;
});

async function oneTurn(session: AttachedSession): Promise<WeakRef<object>> {
  const end = { text: 'x'.repeat(1000) };
  await session.orDeparture(Promise.resolve(end));
  return new WeakRef(end);
}
