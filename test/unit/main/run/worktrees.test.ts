import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { takePatch } from '../../../../src/main/run/workspace/patch.ts';
import { removeStaleRuns, RunDirectory } from '../../../../src/main/run/workspace/run-directory.ts';
import { type Worktree, Worktrees } from '../../../../src/main/run/workspace/worktrees.ts';

const { signal } = new AbortController();
const identity = ['-c', 'user.name=t', '-c', 'user.email=t@localhost'];
const git = (cwd: string, ...args: string[]) => execFileSync('git', [...identity, ...args], { cwd, encoding: 'utf8' });

function scene(t: Test): { root: string; repo: string; run: RunDirectory; worktrees: Worktrees } {
  const root = mkdtempSync(join(tmpdir(), 'dsh-acp-worktree-test-'));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  const repo = join(root, 'repo');
  mkdirSync(join(repo, 'src'), { recursive: true });
  writeFileSync(join(repo, 'src/a.txt'), 'one\ntwo\n');
  writeFileSync(join(repo, 'run.sh'), 'echo\n');
  writeFileSync(join(repo, '.gitignore'), 'ignored/\n');
  git(repo, 'init', '-q', '-b', 'main');
  git(repo, 'add', '-A');
  git(repo, 'commit', '-qm', 'base');
  const run = RunDirectory.create(join(root, 'worktrees'));
  return { root, repo, run, worktrees: new Worktrees(run) };
}

const place = (repo: string, base = 'main') => ({ kind: 'worktree', repo, base, subdirectory: '.' }) as const;

async function patchOf(worktree: Worktree, root: string) {
  return await takePatch(worktree, { scratch: join(root, 'scratch'), filePath: join(root, 'patches', 'p.patch'), signal });
}

t.test('worktrees are made beside each other, and removed without a trace', async (t) => {
  const { repo, run, worktrees } = scene(t);
  const made = await Promise.all(Array.from({ length: 8 }, () => worktrees.create(place(repo), signal)));
  for (const { directory } of made) t.equal(readFileSync(join(directory, 'src/a.txt'), 'utf8'), 'one\ntwo\n');
  t.equal(new Set(made.map(({ directory }) => directory)).size, 8);
  // A job may lock its own directories.
  mkdirSync(join(made[0]!.directory, 'locked/in'), { recursive: true });
  chmodSync(join(made[0]!.directory, 'locked'), 0o500);
  await Promise.all(made.map((one) => one.remove()));
  t.equal(git(repo, 'worktree', 'list').trim().split('\n').length, 1);
  t.notOk(existsSync(join(repo, '.git/worktrees')));
  t.equal(git(repo, 'status', '--short'), '');
  await run.remove();
  t.same(readdirSync(join(run.path, '..')), []);
});

t.test('a base means one commit for the whole run; one that does not exist is an error and leaves nothing', async (t) => {
  const { repo, worktrees } = scene(t);
  const first = await worktrees.create(place(repo), signal);
  git(repo, 'commit', '-q', '--allow-empty', '-m', 'later');
  const second = await worktrees.create(place(repo), signal);
  t.equal(second.baseCommit, first.baseCommit);
  await t.rejects(worktrees.create(place(repo, 'nowhere'), signal), /no commit nowhere/);
  await t.rejects(worktrees.create(place(join(repo, 'src/missing')), signal), /git/);
  t.equal(git(repo, 'worktree', 'list').trim().split('\n').length, 3);
});

t.test(
  'a patch has new, changed, deleted and binary files and modes, and what was committed; it applies to a clean checkout',
  async (t) => {
    const { root, repo, worktrees } = scene(t);
    const worktree = await worktrees.create(place(repo), signal);
    const at = (path: string) => join(worktree.directory, path);
    writeFileSync(at('src/a.txt'), 'one\nzwei\n');
    writeFileSync(at('committed.txt'), 'c\n');
    git(worktree.directory, 'add', 'committed.txt');
    git(worktree.directory, 'commit', '-qm', 'by the job');
    mkdirSync(at('new dir/ü'), { recursive: true });
    writeFileSync(at('new dir/ü/b.bin'), Buffer.from([0, 1, 2, 255, 0]));
    symlinkSync('src/a.txt', at('link'));
    chmodSync(at('run.sh'), 0o755);
    mkdirSync(at('ignored'));
    writeFileSync(at('ignored/x'), 'x');
    const objects = git(repo, 'count-objects');
    const patch = await patchOf(worktree, root);
    t.equal(git(repo, 'count-objects'), objects, 'the repository has no new objects');
    t.notOk(existsSync(join(root, 'scratch')));
    if (!('text' in patch)) throw new Error('the patch is not in the line');
    const clean = join(root, 'clean');
    git(root, 'clone', '-q', repo, clean);
    writeFileSync(join(root, 'p'), patch.text);
    git(clean, 'apply', '--binary', join(root, 'p'));
    git(clean, 'add', '-A');
    const tree = git(clean, 'write-tree');
    git(worktree.directory, 'add', '-A');
    t.equal(tree, git(worktree.directory, 'write-tree'));
    t.match(git(clean, 'diff', '--cached', '--summary'), /mode change 100644 => 100755 run\.sh/);
    t.notMatch(patch.text, /ignored/);
    await worktree.remove();
  },
);

t.test('a patch that is too large or no UTF-8 goes into a file', async (t) => {
  const { root, repo, worktrees } = scene(t);
  const worktree = await worktrees.create(place(repo), signal);
  t.same(await patchOf(worktree, root), { text: '' });
  writeFileSync(join(worktree.directory, 'src/a.txt'), Buffer.from('caf\xe9\n', 'latin1'));
  const latin = await patchOf(worktree, root);
  t.same(latin, { path: join(root, 'patches/p.patch') });
  t.ok(readFileSync(join(root, 'patches/p.patch')).includes(Buffer.from('+caf\xe9\n', 'latin1')));
  writeFileSync(join(worktree.directory, 'src/a.txt'), 'line\n'.repeat(600_000));
  t.match(await patchOf(worktree, root), { path: /p\.patch$/ });
});

t.test('what a job writes into its .git file, index or settings runs nothing and misleads nobody', async (t) => {
  const { root, repo, worktrees } = scene(t);
  const worktree = await worktrees.create(place(repo), signal);
  const own = join(root, 'own.git');
  git(root, 'init', '-q', '--bare', own);
  git(own, 'config', 'core.fsmonitor', `touch ${join(root, 'ran')}`);
  git(own, 'config', 'core.hooksPath', join(root, 'hooks'));
  writeFileSync(join(worktree.directory, '.git'), `gitdir: ${own}\n`);
  writeFileSync(join(worktree.gitDir, 'index'), 'broken');
  writeFileSync(join(worktree.directory, 'src/a.txt'), 'changed\n');
  const patch = await patchOf(worktree, root);
  t.match(patch, { text: /\+changed/ });
  t.notOk(existsSync(join(root, 'ran')));
  await worktree.remove();
  t.equal(git(repo, 'worktree', 'list').trim().split('\n').length, 1);
});

t.test('a later run removes what a killed one left, and nothing of one that lives or was told to stay', async (t) => {
  const { root, repo, run, worktrees } = scene(t);
  const dir = join(root, 'worktrees');
  await worktrees.create(place(repo), signal);
  const dead = RunDirectory.create(dir);
  const deadTrees = new Worktrees(dead);
  await deadTrees.create(place(repo), signal);
  // Killed while git made one: the entry is there and locked, the directory is not.
  const half = await deadTrees.create(place(repo), signal);
  rmSync(half.directory, { recursive: true });
  writeFileSync(join(half.gitDir, 'locked'), 'initializing');
  const owner = JSON.parse(readFileSync(join(dead.path, 'owner.json'), 'utf8'));
  writeFileSync(join(dead.path, 'owner.json'), JSON.stringify({ ...owner, processStart: '1' }));
  const kept = RunDirectory.create(dir);
  kept.keep();
  t.equal(git(repo, 'worktree', 'list').trim().split('\n').length, 4);
  t.equal(await removeStaleRuns(dir), 1);
  t.same(readdirSync(dir).sort(), [run.id, kept.id].sort());
  t.equal(git(repo, 'worktree', 'list').trim().split('\n').length, 2);
});
