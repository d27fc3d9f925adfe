/**
 * Files that other programs trust, against commands that want to change them: hostile ones in a real sandbox, which nobody was asked about
 * unless a test says so. What was there is held; what was not is taken away behind them.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import type { CommandSpec } from '../../src/shared/broker-protocol.ts';
import { Broker } from '../../src/worker/broker/broker.ts';
import { fileAppears } from '../support/file-appears.ts';
import { partTest } from '../support/invariants.ts';

t.setTimeout(110_000);

const me = 'git -c user.name=a -c user.email=a@b';
const sandbox = { use: 'auto', network: 'off', writable: [], memoryMb: 0, maxProcesses: 0 } as const;
const ignored = { onGroupStarted: () => undefined, onGroupEnded: () => undefined };
const state = await new Broker({ mark: 'trial', ambient: process.env, sandbox, ...ignored }).sandboxState();
const contained = state.kind === 'bubblewrap' ? {} : { skip: `no sandbox here: ${state.why}` };

/** @param setup a shell script that makes the workspace, as its owner would */
function makeScene(t: Test, setup = 'true', { base = tmpdir() }: { base?: string } = {}) {
  const dir = realpathSync(mkdtempSync(join(base, 'dsh-acp-control-')));
  const [home, work, own] = [join(dir, 'home'), join(dir, 'work'), join(dir, 'own')] as const;
  for (const one of [home, work, own]) mkdirSync(one);
  const env = { PATH: process.env['PATH'], HOME: home };
  execFileSync('sh', ['-ec', setup], { cwd: work, env });
  const broker = new Broker({ mark: dir, ambient: env, sandbox, ownDirectories: [own], ...ignored });
  t.teardown(async () => {
    await broker.shutdown();
    rmSync(dir, { recursive: true, force: true });
  });
  const spec = (command: string, more: Partial<CommandSpec> = {}): CommandSpec => {
    const kept = { keepBytes: 64_000, spillDir: join(own, 's.d') };
    return { owner: 's', command: 'bash', args: ['-c', command], cwd: work, roots: [work], unasked: true, ...kept, ...more };
  };
  let last = 0;
  const run = async (command: string, more: Partial<CommandSpec> = {}) => {
    const result = await broker.run({ ...spec(command, more), runId: `r${(last += 1)}`, timeoutMs: 30_000 });
    const below = (path: string): string => path.slice(work.length + 1);
    return {
      text: `${result.stdout.text}${result.stderr.text}`,
      told: (result.controlFiles ?? []).map(below).toSorted(),
      moved: (result.movedFiles ?? []).map(({ path }) => below(path)).toSorted(),
      places: (result.movedFiles ?? []).map(({ to }) => to),
    };
  };
  return { broker, dir, work, own, run, spec };
}

void partTest('fault 84: files that were not there are gone again behind a command, and kept elsewhere', contained, async (t) => {
  const { run, work, own } = makeScene(t);
  const made = await run(
    'echo evil > .envrc; mkdir -p .vscode/deep .github/workflows .claude; echo evil > .vscode/tasks.json; echo evil > .github/workflows/ci.yml; ln -s /etc/passwd .npmrc; mkfifo .bashrc; echo fine > file',
  );
  t.same(made.moved, ['.bashrc', '.claude', '.envrc', '.github/workflows', '.npmrc', '.vscode']);
  t.same(readdirSync(work).toSorted(), ['.github', 'file'], 'the rest stays');
  const envrc = made.places.find((path) => path.endsWith('.envrc')) ?? '';
  t.ok(envrc.startsWith(join(own, 's.d/quarantine/')));
  t.equal(readFileSync(envrc, 'utf8'), 'evil\n');
  const asked = await run('echo x > .envrc; echo y > .mcp.json', { unasked: undefined } as object);
  t.same([asked.told, asked.moved], [['.envrc', '.mcp.json'], []], 'who was asked is told');
  t.match(
    await run('echo z >> .envrc; mv .mcp.json x; rm -rf .envrc'),
    { text: /Read-only[^]*busy[^]*busy/, told: [], moved: [] },
    'from then on they are held',
  );
});

t.test('a new repository is left what git itself writes into it', contained, async (t) => {
  const { run, work } = makeScene(t, `git init -q ../origin; ${me} -C ../origin commit -q --allow-empty -m one; cp -r ../origin origin`);
  t.match(await run('git clone -q origin copy && git -C copy log --oneline | wc -l; git init -q; git config user.name me'), {
    text: /1/,
    told: [],
    moved: [],
  });
  const hostile = await run(
    'mkdir -p a/b; git init -q a/b; cd a/b; git config core.hooksPath evil; git config core.fsmonitor ./evil; git config user.name me; echo evil > .git/hooks/post-commit; git init -q ../late; echo ../evil > ../late/.git/commondir',
  );
  t.same(hostile.moved, ['a/b/.git/config', 'a/b/.git/hooks', 'a/late/.git/commondir']);
  t.match(readFileSync(join(work, 'a/b/.git/config'), 'utf8'), /^\[core\][^]*name = me\n/);
  t.notMatch(readFileSync(join(work, 'a/b/.git/config'), 'utf8'), 'evil');
  t.equal(execFileSync('git', ['-C', join(work, 'a/b'), 'status', '--porcelain'], { encoding: 'utf8' }), '', 'it still is one');
  const tree = await run(
    `cd copy; git worktree add -q ./tree; cd tree; echo 1 > f; git add f; ${me} commit -qm two && echo committed; echo ../../../evil > ../.git/worktrees/tree/commondir`,
  );
  t.match(tree, { text: /committed/, moved: ['copy/.git/worktrees/tree/commondir'] });
  t.equal(readFileSync(join(work, 'copy/.git/worktrees/tree/commondir'), 'utf8'), '../..\n', 'what is always the same is put back');
});

t.test('repositories below the workspace are held where they are, and seen where they are moved', contained, async (t) => {
  const { run, work } = makeScene(
    t,
    'mkdir -p a/b; git init -q --template= a/b; mkdir a/b/.git/hooks; echo true > a/b/.git/hooks/post-commit',
  );
  const held = await run(
    `cd a/b; echo 1 > f; git add f; ${me} commit -qm one && echo committed; git config core.fsmonitor x; echo x > .git/hooks/pre-commit; mv .git g; rm -rf .git/config .git/hooks`,
  );
  t.match(held.text, /committed/, 'one can work there');
  t.equal(held.text.match(/Read-only|busy/g)?.length, 5, held.text);
  const moved = await run('mv a z && mkdir -p a/b && git init -q a/b && git -C a/b config core.fsmonitor evil');
  t.same([moved.moved, moved.told], [['a/b/.git/config'], []], 'the one that came in its place is looked at; its own hooks are no news');
  t.ok(existsSync(join(work, 'z/b/.git/hooks/post-commit')));
});

t.test('a .git that is a link or a file is looked at where it leads', contained, async (t) => {
  const evil = 'git init -q --bare evil; git -C evil config core.fsmonitor evil';
  const { run, work, dir } = makeScene(t, 'git init -q --bare ../elsewhere');
  t.same((await run(`${evil}; ln -s evil .git`)).moved, ['evil/config']);
  rmSync(join(work, '.git'));
  t.same((await run(`mkdir x y; echo "gitdir: ../evil" > x/.git; echo x > evil/hooks/pre-commit`)).moved, ['evil/hooks']);
  t.same((await run(`echo "gitdir: ${dir}/elsewhere" > y/.git; rm x/.git; ln -s ${dir}/elsewhere x/.git`)).moved, ['x/.git', 'y/.git']);
  t.equal(readFileSync(join(work, 'x/.git'), 'utf8'), 'gitdir: ../evil\n', 'what was there before is there again');
  const linked = makeScene(
    t,
    'mkdir conf; echo mine > conf/envrc; ln -s conf/envrc .envrc; git init -q; mkdir .githooks; git config core.hooksPath .githooks',
  );
  const swapped = await linked.run('echo evil >> conf/envrc; echo evil > .githooks/pre-commit; mv .githooks g; ln -sf evil .envrc');
  t.match(swapped, { text: /Read-only[^]*Read-only[^]*busy/, moved: ['.envrc'] });
  t.equal(readlinkSync(join(linked.work, '.envrc')), 'conf/envrc');
  t.equal(readFileSync(join(linked.work, 'conf/envrc'), 'utf8'), 'mine\n');
  const pipe = makeScene(t, 'mkfifo .git');
  t.match(await pipe.run('echo on'), { text: 'on\n' }, 'one that never answers is not waited for');
});

t.test('a submodule can be worked in, and what holds it not be changed', contained, async (t) => {
  const { run, dir } = makeScene(
    t,
    `git init -q ../lib; ${me} -C ../lib commit -q --allow-empty -m one; git init -q ../all; git -C ../all -c protocol.file.allow=always submodule --quiet add ../lib sub`,
  );
  const sub = join(dir, 'all/sub');
  const place = { cwd: sub, roots: [sub] };
  const worked = await run(
    `echo 1 > f; git add f; ${me} commit -qm two && echo committed; git config core.fsmonitor x; echo x > ../.git/config`,
    place,
  );
  t.match(worked.text, /committed[^]*could not write config file/);
  t.equal(lstatSync(join(sub, '.git')).isFile(), true);
});

t.test('what a background command makes is told with its output, and moved where nobody works but programs', contained, async (t) => {
  for (const unasked of [undefined, true] as const) {
    const { broker, spec, work } = makeScene(t);
    const late = spec('echo evil > .envrc; git init -q n; git -C n config core.fsmonitor x; touch made; exec sleep 60');
    const started = await broker.startBackground({ ...late, unasked } as CommandSpec);
    if (!('taskId' in started)) throw new Error(started.spawnError);
    await fileAppears(join(work, 'made'));
    const ended = await broker.killBackground('s', started.taskId);
    if (!ended.ok) throw new Error(ended.code);
    const { controlFiles = [], movedFiles = [] } = ended.value;
    const names = (unasked === true ? movedFiles.map(({ path }) => path) : controlFiles).toSorted();
    t.same(names, [join(work, '.envrc'), join(work, 'n/.git/config')], String(unasked));
    t.equal(existsSync(join(work, '.envrc')), unasked !== true);
    t.match(await broker.readBackground('s', started.taskId, 0), { ok: true, value: { controlFiles: undefined } }, 'once');
  }
});

t.test('a command that swaps directories while others start gives nothing away', contained, async (t) => {
  const { broker, spec, run, dir, work } = makeScene(t);
  const outside = join(dir, 'outside');
  mkdirSync(join(outside, 'hooks'), { recursive: true });
  for (const name of ['config', 'HEAD']) writeFileSync(join(outside, name), '');
  const swaps = `touch on; while :; do mkdir -p .git/hooks; touch .git/config .git/HEAD; mv -T .git .g; ln -s ${outside} .git; rm -f .git; rm -rf .g; done`;
  const started = await broker.startBackground(spec(swaps));
  if (!('taskId' in started)) throw new Error(started.spawnError);
  await fileAppears(join(work, 'on'));
  for (let count = 0; count < 8; count += 1) await run('touch .git/made .git/hooks/made; echo evil > .git/config');
  await broker.killBackground('s', started.taskId);
  t.same(readdirSync(outside).toSorted(), ['HEAD', 'config', 'hooks']);
  t.same([readdirSync(join(outside, 'hooks')), readFileSync(join(outside, 'config'), 'utf8')], [[], '']);
});

const shared = '/dev/shm';
const here = fileURLToPath(new URL('.', import.meta.url));
const apart =
  existsSync(shared) && lstatSync(shared).dev !== lstatSync(here).dev ? contained : { skip: 'there is no other file system here' };

t.test('what lies on another file system than the state is copied away', apart, async (t) => {
  const { run, work } = makeScene(t, 'true', { base: shared });
  const elsewhere = mkdtempSync(join(here, 'state-'));
  t.teardown(() => rmSync(elsewhere, { recursive: true, force: true }));
  const command = 'mkdir -p .vscode/deep; echo a > .vscode/tasks.json; ln -s /etc .vscode/deep/link; mkfifo .vscode/pipe; echo b > .envrc';
  const { moved, places } = await run(command, { spillDir: elsewhere });
  t.same(moved, ['.envrc', '.vscode']);
  t.same(readdirSync(work), []);
  const kept = places.find((path) => path.endsWith('.vscode')) ?? '';
  t.equal(readFileSync(join(kept, 'tasks.json'), 'utf8'), 'a\n');
  t.equal(readlinkSync(join(kept, 'deep/link')), '/etc', 'and no link followed');
  t.notOk(existsSync(join(kept, 'pipe')));
});
