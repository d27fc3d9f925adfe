/** What a session holds is read when asked, bounded, and told to main in steps. */
import t from 'tap';
import { MemoryReports } from '../../../../src/worker/memory/memory-reports.ts';
import { SessionMemory } from '../../../../src/worker/memory/session-memory.ts';
import { threadMemoryKb } from '../../../../src/worker/memory/thread-memory.ts';

const mebibyte = 1024 * 1024;

t.test('the parts are read when asked, and let go', async (t) => {
  const memory = new SessionMemory(100);
  let history = 40;
  memory.hold('history', () => history);
  const letGo = memory.hold('results', () => 70);
  t.equal(memory.isOver, true);
  t.match(memory.excess(), { code: 'SESSION_MEMORY', message: /tool results/ });
  letGo();
  t.equal(memory.isOver, false);
  history = 101;
  t.match(memory.excess().message, /conversation/);
  t.equal(new SessionMemory().isOver, false, 'without a limit nothing is over it');
});

t.test('main is told of each megabyte, once more behind the turn, and never of an idle session', async (t) => {
  const memory = new SessionMemory(10 * mebibyte);
  const told: number[] = [];
  let [size, busy, excess] = [0, false, 0];
  memory.hold('history', () => size * mebibyte);
  const reports = new MemoryReports({
    memory,
    isBusy: () => busy,
    onExcess: () => (excess += 1),
    report: (bytes) => void told.push(bytes / mebibyte),
  });
  size = 5;
  reports.beat();
  t.same(told, []);
  busy = true;
  reports.beat();
  size = 5.5;
  reports.beat();
  size = 11;
  reports.beat();
  t.equal(excess, 1);
  [size, busy] = [0, false];
  reports.beat();
  reports.beat();
  t.same(told, [5, 11, 0]);
});

t.test('buffers count as memory of their thread', async (t) => {
  const before = threadMemoryKb();
  const kept = Buffer.alloc(32 * mebibyte, 1);
  t.ok(threadMemoryKb() - before > 30 * 1024, `${kept.length}`);
});
