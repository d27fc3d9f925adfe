/** What commands change in the workspace is found with a git of our own, kept, and undone. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Broker } from '../../../../src/worker/broker/broker.ts';
import { GitTree, type TreeLimits } from '../../../../src/worker/undo/workspace/git-tree.ts';
import { WorkspaceWatch } from '../../../../src/worker/undo/workspace/workspace-watch.ts';
import { UndoRig } from './undo-rig.ts';

/** Of a person whose git is set up to disturb ours. */
const hostile = {
  ...process.env,
  GIT_DIR: '/nowhere',
  GIT_WORK_TREE: '/nowhere',
  GIT_INDEX_FILE: '/nowhere',
  GIT_CONFIG_PARAMETERS: "'core.autocrlf'='true'",
};

function watching(t: Test, limits: Partial<TreeLimits> = {}): UndoRig {
  const rig = UndoRig.in(t);
  const broker = new Broker({
    mark: `mark-${process.pid}-${Math.random()}`,
    ambient: hostile,
    onGroupStarted: () => undefined,
    onGroupEnded: () => undefined,
  });
  t.teardown(() => broker.shutdown());
  const directory = join(rig.stateDir, 'session.d');
  let ids = 0;
  const newId = (): string => `run-${(ids += 1)}`;
  const tree = new GitTree({ broker, owner: 'session', gitDir: join(directory, 'workspace.git'), cwd: rig.cwd, newId, limits });
  rig.watch = new WorkspaceWatch({ cwd: rig.cwd, tree, store: rig.store, scratchDir: join(directory, 'workspace.old') });
  return rig;
}

const observed = (rig: UndoRig) => rig.events.flatMap((event) => (event.type === 'workspace/observed' ? [event.data] : []));

t.test('files that a command changed, made and removed are undone byte for byte, and redone', async (t) => {
  const rig = watching(t);
  mkdirSync(join(rig.cwd, 'd'));
  rig.put('d/changed', 'one\r\ntwo\r\n');
  rig.put('removed', 'gone soon');
  rig.put('binary', '\u0000\u0001');
  rig.put('.gitattributes', '* text=auto eol=lf filter=evil\n');
  rig.put('tool', '#!/bin/sh\n');
  chmodSync(join(rig.cwd, 'tool'), 0o755);
  const before = rig.tree();
  await rig.turn('go', async () => {
    await rig.command('make', () => {
      rig.put('d/changed', 'three\r\n');
      unlinkSync(join(rig.cwd, 'removed'));
      unlinkSync(join(rig.cwd, 'tool'));
      rig.put('binary', '\u0000\u0002');
      rig.put('naïve name\n', 'made');
    });
    await rig.write('by tool', 'x');
    await rig.command('true');
  });
  const after = rig.tree();
  t.match(observed(rig), [{ changed: 5 }, { changed: 0 }]);
  t.match(await rig.undo(), { turns: [1], notUndone: [] });
  t.strictSame(rig.tree(), before);
  t.equal(statSync(join(rig.cwd, 'tool')).mode & 0o777, 0o755);
  await rig.redo();
  t.strictSame(rig.tree(), after);
  t.notOk(existsSync(join(rig.cwd, '.git')), 'nothing of it is in the workspace');
  t.notOk(existsSync(join(rig.stateDir, 'session.d/workspace.old')), 'old versions were written down for a moment only');
});

t.test("the person's repository and what is ignored are left alone; links and repositories inside are not looked at", async (t) => {
  const rig = watching(t);
  const git = (...args: string[]): string => execFileSync('git', ['-C', rig.cwd, ...args], { encoding: 'utf8' });
  git('init', '-q');
  rig.put('.gitignore', 'ignored\n');
  writeFileSync(join(rig.cwd, '.git/info/exclude'), 'also-ignored\n');
  rig.put('seen', 'one');
  mkdirSync(join(rig.cwd, 'inner'));
  execFileSync('git', ['-C', join(rig.cwd, 'inner'), 'init', '-q']);
  const index = (): string[] => readdirSync(join(rig.cwd, '.git')).sort();
  const files = index();
  await rig.turn('go', () =>
    rig.command('make', () => {
      for (const name of ['ignored', 'also-ignored', 'inner/file']) rig.put(name, 'made');
      symlinkSync('seen', join(rig.cwd, 'link'));
      rig.put('seen', 'two');
    }),
  );
  t.strictSame(index(), files);
  t.match(observed(rig), [{ changed: 1 }]);
  await rig.undo();
  t.strictSame(
    ['seen', 'ignored', 'also-ignored', 'inner/file'].map((name) => rig.read(name)),
    ['one', 'made', 'made', 'made'],
  );
});

t.test('what somebody changes between two commands is not the work of either', async (t) => {
  const rig = watching(t);
  rig.put('a', 'one');
  await rig.turn('first', () => rig.command('make', () => rig.put('a', 'two')));
  rig.put('a', 'mine');
  rig.put('b', 'mine');
  await rig.turn('second', () => rig.command('true'));
  t.match(await rig.undo(2), { files: [{ outcome: 'left', why: 'it has changed since' }] });
  t.strictSame(rig.tree(), { a: 'mine', b: 'mine' });
});

t.test('a workspace that is too large, and a git that fails, end it: commands run, and an undo names them', async (t) => {
  for (const limits of [{ files: 2 }, { totalBytes: 5 }, { timeoutMs: 1 }] as const) {
    const rig = watching(t, limits);
    for (const name of ['a', 'b', 'c']) rig.put(name, 'some text');
    await rig.turn('go', async () => {
      await rig.command('make all', () => rig.put('a', 'changed'));
      await rig.command('make more');
    });
    t.match(
      observed(rig).map(({ why }) => why),
      [/files|large|long/, /files|large|long/],
    );
    t.match(await rig.undo(), { files: [], notUndone: ['make all', 'make more'] });
    t.equal(rig.read('a'), 'changed');
  }
  const rig = watching(t);
  rig.put('a', 'one');
  await rig.turn('first', () => rig.command('make', () => rig.put('a', 'two')));
  rmSync(join(rig.stateDir, 'session.d/workspace.git/HEAD'));
  await rig.turn('second', () => rig.command('make', () => rig.put('a', 'three')));
  t.match(observed(rig)[1]?.why, /git ended/);
});

t.test('a file that is too large is not looked at', async (t) => {
  const rig = watching(t, { fileBytes: 10 });
  rig.put('small', 'one');
  rig.put('large', 'more than ten bytes');
  await rig.turn('go', () =>
    rig.command('make', () => {
      rig.put('small', 'two');
      rig.put('large', 'other bytes, more than ten');
    }),
  );
  await rig.undo();
  t.strictSame(rig.tree(), { large: 'other bytes, more than ten', small: 'one' });
});
