/** Control groups that a killed server has left. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { sweepLeft } from '../../../../../src/worker/broker/sandbox/command-limits.ts';

t.test(
  'groups of servers that live no more are removed; those of living ones, of others, and those with something in them stay',
  async (t) => {
    const directory = t.testdir({});
    const dead = spawnSync('true').pid;
    const names = [`dsh-acp-${dead}-1`, `dsh-acp-${dead}-2`, `dsh-acp-${process.pid}-1`, 'dsh-acp-x', `other-${dead}-1`];
    for (const name of names) mkdirSync(join(directory, name));
    mkdirSync(join(directory, `dsh-acp-${dead}-2/in`));
    await sweepLeft([{ directory }, { directory: join(directory, 'absent') }]);
    t.same(readdirSync(directory).toSorted(), names.slice(1).toSorted());
  },
);
