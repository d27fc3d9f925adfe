import t from 'tap';
import type { Session } from '../../../../src/main/sessions/session.ts';
import { SessionsOnThreads } from '../../../../src/main/sessions/sessions-on-threads.ts';
import type { AttachedSession } from '../../../../src/main/threads/attached-session.ts';

interface FakeSession {
  readonly session: Session;
  idle: boolean;
}

function fakeSession(idleSince: number): FakeSession {
  const fake = { idle: true, session: { idleSince } as unknown as Session };
  Object.defineProperty(fake.session, 'isIdleOnThread', { get: () => fake.idle });
  return fake;
}

function onThread(): { readonly attached: AttachedSession; readonly leave: () => Promise<void> } {
  let left: () => void = () => undefined;
  const departure = new Promise<void>((resolve) => (left = resolve));
  const leave = async (): Promise<void> => {
    left();
    await departure;
  };
  return { attached: { departure } as unknown as AttachedSession, leave };
}

t.test('the one that has been idle longest is asked first, and one that would not leave is passed over', async (t) => {
  const sessions = new SessionsOnThreads();
  const [young, old, busy] = [fakeSession(30), fakeSession(10), fakeSession(1)];
  for (const { session } of [young, old, busy]) sessions.add(session, onThread().attached);
  busy.idle = false;
  t.equal(sessions.idlest(new Set()), old.session);
  t.equal(sessions.idlest(new Set([old.session])), young.session);
  t.equal(sessions.idlest(new Set([old.session, young.session])), undefined);
});

t.test('a session that has left its thread is not looked at any more', async (t) => {
  const sessions = new SessionsOnThreads();
  const { session } = fakeSession(1);
  const { attached, leave } = onThread();
  sessions.add(session, attached);
  t.strictSame([...sessions.idle()], [session]);
  await leave();
  t.strictSame([...sessions.idle()], []);
});

t.test('a session that is on another thread by then stays', async (t) => {
  const sessions = new SessionsOnThreads();
  const { session } = fakeSession(1);
  const [first, second] = [onThread(), onThread()];
  sessions.add(session, first.attached);
  sessions.add(session, second.attached);
  await first.leave();
  t.strictSame([...sessions.idle()], [session]);
  await second.leave();
  t.strictSame([...sessions.idle()], []);
});
