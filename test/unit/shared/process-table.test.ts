import { spawn } from 'node:child_process';
import t from 'tap';
import { GroupScans, signalGroup, waitGroupGone } from '../../../src/shared/process-table.ts';

t.test('a scan from before a group was born, or seen twice, is no proof that the group is gone', async (t) => {
  let reads = 0;
  // A busy machine: a scan takes long, so it serves for long.
  const scans = new GroupScans(() => {
    reads += 1;
    for (const end = performance.now() + 20; performance.now() < end; );
    return new Set(reads === 1 ? [] : [child.pid!]);
  });
  scans.latest();
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  t.teardown(() => signalGroup(child.pid!, 'SIGKILL'));
  t.notOk(await waitGroupGone(child.pid!, 300, scans), 'it lives');
  t.ok(reads > 1, 'and was looked for');
});

t.test('a group is gone once two scans have not seen it, and at once when it cannot be signalled', async (t) => {
  let reads = 0;
  const scans = new GroupScans(() => {
    reads += 1;
    return new Set();
  });
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  t.ok(await waitGroupGone(child.pid!, 5_000, scans));
  t.equal(reads, 2);
  const exited = new Promise((resolve) => child.once('exit', resolve));
  signalGroup(child.pid!, 'SIGKILL');
  await exited;
  t.ok(await waitGroupGone(child.pid!, 5_000, scans));
  t.equal(reads, 2);
});

t.test('where the system tells of no groups, a group lives as long as it can be signalled', async (t) => {
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  t.teardown(() => signalGroup(child.pid!, 'SIGKILL'));
  t.notOk(await waitGroupGone(child.pid!, 40, new GroupScans(() => undefined)));
});
