/** Whom the memory guard ends, and whom it leaves alone. */
import t from 'tap';
import { Diagnostics } from '../../../../src/main/diagnostics.ts';
import { MemoryGuard } from '../../../../src/main/memory/memory-guard.ts';
import { SessionSizes } from '../../../../src/main/memory/session-sizes.ts';
import type { ThreadLane } from '../../../../src/main/threads/thread-lane.ts';

const mebibyte = 1024 * 1024;

function rig(isolation: 'dedicated' | 'shared' = 'dedicated') {
  const lanes = [1, 2].map((threadId) => ({ threadId, memoryBytes: 30 * mebibyte, heartbeat: 0, endedForMemory: false }));
  const world = { resident: 300 * mebibyte, now: 0, working: new Set<unknown>() };
  const done: string[] = [];
  const sizes = new SessionSizes();
  const guard = new MemoryGuard({
    config: { isolation, maxRssBytes: 500 * mebibyte, maxThreadBytes: 256 * mebibyte },
    diagnostics: new Diagnostics('warn', (line) => void done.push(line.slice(0, 21))),
    sizes,
    lanes: () => lanes as unknown as ThreadLane[],
    isWorking: (lane) => world.working.has(lane),
    endTurn: (sessionId) => void done.push(`turn ${sessionId}`),
    endThread: (threadId) => void done.push(`thread ${threadId}`),
    residentBytes: () => world.resident,
    now: () => world.now,
  });
  const check = (): string[] => {
    guard.check();
    world.now += 250;
    return done.splice(0).filter((line) => !line.startsWith('dsh-acp'));
  };
  const [first, second] = lanes as [(typeof lanes)[0], (typeof lanes)[0]];
  return {
    check,
    world,
    first,
    second,
    guard,
    size: (id: string, mb: number, lane: object) => sizes.set(id, mb * mebibyte, lane as ThreadLane),
  };
}

t.test('below both bounds nobody is ended', async (t) => {
  const { check, size, first } = rig();
  size('a', 200, first);
  t.same(check(), []);
});

t.test('a process over its bound ends the largest session, and the next only after a pause', async (t) => {
  const { check, world, size, first, second, guard } = rig();
  world.resident = 600 * mebibyte;
  size('small', 20, first);
  size('large', 90, second);
  t.same(check(), ['turn large']);
  size('large', 0, second);
  t.same(check(), [], 'what was let go has time to be collected');
  world.now += 2000;
  t.same(check(), ['turn small']);
  t.same(guard.ended, { turns: 2, threads: 0 });
});

t.test('sessions that hold little do not pay for what nobody can be blamed for', async (t) => {
  const { check, world, size, first } = rig();
  world.resident = 900 * mebibyte;
  size('a', 4, first);
  t.same(check(), []);
});

t.test('a thread that stands still while the process grows is ended, but only when it is the one', async (t) => {
  const { check, world, first, second } = rig();
  world.working.add(first).add(second);
  check();
  second.heartbeat += 1;
  world.resident = 900 * mebibyte;
  t.same(check(), ['thread 1']);
  t.equal(first.endedForMemory, true);
});

t.test('a thread over its bound loses its large session, or itself where what grows is counted by nobody', async (t) => {
  const { check, world, size, first, second } = rig('shared');
  first.memoryBytes = 300 * mebibyte;
  size('a', 120, first);
  size('b', 200, second);
  t.same(check(), ['turn a']);
  world.now += 2000;
  size('a', 1, first);
  t.same(check(), ['thread 1']);
  t.equal(first.endedForMemory, false, 'where threads are shared its sessions are told that it was lost');
});
