import { mkdirSync, realpathSync, renameSync, rmdirSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { bashTool } from '../../../../src/worker/tools/bash.ts';
import type { ToolContext } from '../../../../src/worker/tools/tool.ts';

t.test('a command runs in the directory that was decided on, or not at all', async (t) => {
  const cwd = realpathSync(t.testdir({ real: {}, other: {} }));
  symlinkSync('real', join(cwd, 'link'));
  const ran: string[] = [];
  const broker = {
    startBackground: async (spec: { cwd: string }) => {
      ran.push(spec.cwd);
      return { taskId: 'b1' };
    },
  };
  const context = {
    cwd,
    signal: new AbortController().signal,
    broker,
    env: {},
    sessionId: 's',
    spillDir: '/spill',
  } as unknown as ToolContext;
  const call = async (workdir: string | undefined, between: () => void = () => undefined) => {
    const args = { command: 'ls', description: 'x', run_in_background: true, ...(workdir === undefined ? {} : { workdir }) };
    bashTool.access(args, { cwd });
    between();
    // A second look, as a policy takes it, does not make the swap good.
    bashTool.access(args, { cwd });
    return await bashTool.execute(args, context);
  };
  for (const workdir of [undefined, 'real', 'link']) t.match(await call(workdir), { isError: false });
  t.same(ran.splice(0), [cwd, join(cwd, 'real'), join(cwd, 'link')]);
  const swaps: [string, string, () => void][] = [
    [
      'a link that was turned',
      'link',
      () => {
        unlinkSync(join(cwd, 'link'));
        symlinkSync('other', join(cwd, 'link'));
      },
    ],
    [
      'a directory that became a link',
      'real',
      () => {
        renameSync(join(cwd, 'real'), join(cwd, 'moved'));
        symlinkSync('other', join(cwd, 'real'));
      },
    ],
    ['one that was not there', 'new', () => mkdirSync(join(cwd, 'new'))],
    ['one that is gone', 'new', () => rmdirSync(join(cwd, 'new'))],
  ];
  for (const [what, workdir, swap] of swaps) {
    t.match(await call(workdir, swap), { isError: true, code: 'FS_PATH_CHANGED', text: /Nothing was run/ }, what);
  }
  t.same(ran, []);
});
