/** No process of an agent is left behind: not one that has left its group and its parent, and not one that ignores SIGTERM. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { killAllTreesNow, killMarked, markVariable, ProcessTree, runMark } from '../../../bench/peers/process-tree.ts';
import { isAlive } from '../../support/subagent-rig.ts';

/** A shell with a child in a group of its own that ignores SIGTERM, and one that its parent has left behind. Gives their numbers. */
async function family(tree: ProcessTree): Promise<number[]> {
  const script = `trap '' TERM; setsid sh -c 'trap "" TERM; echo $$; exec sleep 60' & (setsid sh -c 'echo $$; exec sleep 61' &) ; echo $$; wait`;
  const child = spawn('sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env['PATH'], [markVariable]: tree.mark },
  });
  tree.add(child.pid!);
  let text = '';
  while (text.split('\n').length < 4) text += String((await once(child.stdout, 'data'))[0]);
  return text.trim().split('\n').map(Number);
}

async function gone(pids: readonly number[]): Promise<void> {
  for (const deadline = performance.now() + 5000; pids.some(isAlive) && performance.now() < deadline; ) await sleep(5);
}

t.test('everything that an agent has started counts, and is ended', async (t) => {
  const tree = new ProcessTree();
  const pids = await family(tree);
  t.same(new Set(tree.pids()), new Set(pids));
  t.ok(tree.pssMb() > 0);
  t.ok(tree.cpuMs() >= 0);
  t.equal(tree.mostProcesses, 3);
  t.same(await tree.end(), []);
  t.same(pids.filter(isAlive), []);
});

t.test('at once, too, as when the bench is interrupted', async (t) => {
  const tree = new ProcessTree();
  const pids = await family(tree);
  killAllTreesNow();
  await gone(pids);
  t.same(pids.filter(isAlive), []);
  await tree.end();
});

t.test('another process ends them, should the bench itself be killed', async (t) => {
  const tree = new ProcessTree();
  const pids = await family(tree);
  killMarked(runMark);
  await gone(pids);
  t.same(pids.filter(isAlive), []);
  await tree.end();
});
