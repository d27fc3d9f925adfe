/** The coding tasks of `examples/`, from their faults to their patches, through the batch runner and the built server. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { cliPath, projectRoot } from '../support/server-process.ts';

const root = mkdtempSync(join(tmpdir(), 'dsh-acp-tasks-'));
t.teardown(() => rmSync(root, { recursive: true, force: true }));

interface ResultLine {
  readonly id: string;
  readonly status: string;
  readonly patch: string;
  readonly baseCommit: string;
}

const jobs: { id: string; check: string[] }[] = readLines(join(projectRoot, 'examples/coding-tasks/scripted.jsonl'));

function readLines<T>(path: string): T[] {
  return readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}

function checkPasses(repo: string, [program = '', ...args]: readonly string[]): boolean {
  return spawnSync(program, args, { cwd: repo, stdio: 'ignore' }).status === 0;
}

t.test('every coding task fails its check, is solved by the scripted model, and leaves a patch that passes elsewhere', async (t) => {
  execFileSync(process.execPath, [join(projectRoot, 'examples/coding-tasks/prepare.mjs'), root]);
  for (const { id, check } of jobs) t.notOk(checkPasses(join(root, 'repos', id), check), `${id} fails before`);

  const flags = ['--out', 'results.jsonl', '--model', 'scripted', '--pace-ms', '0', '--plain'];
  const ran = spawnSync(process.execPath, [cliPath, 'run', 'scripted.jsonl', ...flags], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: root },
    encoding: 'utf8',
  });
  t.equal(ran.status, 0, ran.stderr);
  const results = readLines<ResultLine>(join(root, 'results.jsonl'));
  t.same(results.map(({ id }) => id).sort(), jobs.map(({ id }) => id).sort(), 'one result for each');

  for (const { id, check } of jobs) {
    const result = results.find((one) => one.id === id)!;
    const repo = join(root, 'repos', id);
    t.equal(result.status, 'passed', id);
    t.equal(
      execFileSync('git', ['worktree', 'list'], { cwd: repo, encoding: 'utf8' }).trim().split('\n').length,
      1,
      `${id}: no worktree is left`,
    );
    t.equal(execFileSync('git', ['status', '--porcelain'], { cwd: repo, encoding: 'utf8' }), '', `${id}: the repository is untouched`);
    execFileSync('git', ['apply', '--binary', '-'], { cwd: repo, input: result.patch });
    t.ok(checkPasses(repo, check), `${id} passes with its patch`);
  }
});
