/** What is left when a batch run, or its agent, is stopped or killed: nothing but whole results, and no result twice. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { markedProcesses } from '../../src/shared/process-table.ts';
import { type BatchRun, RunScene, scripted } from '../support/batch-run.ts';
import { fileAppears } from '../support/file-appears.ts';
import { testSeed } from '../support/test-seed.ts';

const mode = 'full-access';

/** The process of the scene with this command line, once it is there. */
async function processWith(scene: RunScene, words: RegExp): Promise<number> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    for (const { pid } of markedProcesses(scene.dir)) {
      const path = `/proc/${pid}/cmdline`;
      if (existsSync(path) && words.test(readFileSync(path, 'utf8').replaceAll('\0', ' '))) return pid;
    }
    if (performance.now() > deadline) throw new Error(`no process is ${words.source}`);
    await delay(20);
  }
}

const outcomeOf = (run: BatchRun): any => run.events.findLast(({ type }) => type === 'run/end');

t.test('asked to stop once, a run finishes what runs; asked twice, it cancels that, and the next run does it', async (t) => {
  const scene = new RunScene(t);
  const cwd = scene.folder('work');
  const repo = scene.repository('repo', { 'a.txt': 'a\n' });
  const path = scene.jobs([
    { id: 'finishes', prompt: `run while [ ! -e ${cwd}/go ]; do sleep 0.02; done\nsay finished`, cwd, mode },
    { id: 'never', prompt: 'say never', cwd },
  ]);
  const once = scene.start([path, '--out', scene.out, '--json', '--concurrency', '1', ...scripted]);
  await once.running('finishes');
  once.child.kill('SIGINT');
  await once.event(({ type }) => type === 'run/draining', 'the news of the drain');
  scene.folder('work/go');
  t.equal(await once.exited, 3, once.stderr);
  t.same(
    scene.results().map(({ key, status }) => [key, status]),
    [['finishes', 'completed']],
  );
  t.match(outcomeOf(once), { outcome: { stopped: 'signal', notRun: 1, byStatus: { completed: 1 } } });
  await scene.nothingLeft(t);

  const more = scene.jobs([
    { id: 'finishes', prompt: `run while [ ! -e ${cwd}/go ]; do sleep 0.02; done\nsay finished`, cwd, mode },
    { id: 'never', prompt: 'say never', cwd },
    { id: 'hangs', prompt: `run touch ${cwd}/hanging && [ -e ${cwd}/free ] || sleep 60`, repo: 'repo', mode },
    { id: 'checks', prompt: 'say checked', repo: 'repo', check: `touch ${cwd}/checking; [ -e ${cwd}/free ] || sleep 60` },
  ]);
  const twice = scene.start([more, '--out', scene.out, '--json', ...scripted]);
  await Promise.all([fileAppears(join(cwd, 'hanging')), fileAppears(join(cwd, 'checking'))]);
  await twice.event((event) => event.type === 'job/end' && event.result.key === 'never', 'the end of what is quick');
  twice.child.kill('SIGTERM');
  await twice.event(({ type }) => type === 'run/draining', 'the news of the drain');
  twice.child.kill('SIGTERM');
  t.equal(await twice.exited, 3, twice.stderr);
  t.match(outcomeOf(twice), { outcome: { stopped: 'signal', byStatus: { completed: 2, cancelled: 2 }, notRun: 0 } });
  t.same(
    scene.results().map(({ key }) => key),
    ['finishes', 'never'],
    'what was cancelled has no line',
  );
  await scene.nothingLeft(t, [repo]);

  scene.folder('work/free');
  const last = await scene.run(more);
  t.equal(await last.exited, 0, last.stderr);
  t.same(scene.statuses(), ['checks passed', 'finishes completed', 'hangs completed', 'never completed']);
  await scene.nothingLeft(t, [repo]);
});

t.test('killed at any moment, a run goes on with what is missing: every job has one result in the end, and nothing is left', async (t) => {
  t.comment(`TEST_SEED=${testSeed}`);
  let state = testSeed;
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 4_294_967_296;
  };
  const scene = new RunScene(t);
  const repo = scene.repository('repo', { 'a.txt': 'a\n' });
  const ids = Array.from({ length: 16 }, (_, index) => `job-${index}`);
  const path = scene.jobs(
    ids.map((id) => ({
      id,
      prompt: `run echo ${id} > own.txt`,
      repo: 'repo',
      mode,
      setup: 'sleep 0.05',
      check: `grep -q '^${id}$' own.txt`,
    })),
  );
  const args = (ordered: boolean) => [
    path,
    '--out',
    scene.out,
    '--json',
    '--concurrency',
    '4',
    ...(ordered ? ['--ordered'] : []),
    ...scripted,
  ];
  for (let round = 0; round < 3; round += 1) {
    const run = scene.start(args(round % 2 === 0));
    const ends = Math.floor(random() * 5);
    const count = () => run.events.filter(({ type }) => type === 'job/end').length;
    // Perhaps before anything has begun, perhaps between two results.
    if (ends > 0) await run.event(() => count() >= ends, `${ends} results`).catch(() => undefined);
    await delay(random() * (ends === 0 ? 600 : 60));
    run.child.kill('SIGKILL');
    await run.exited;
    const keys = scene.results().map(({ key }) => key);
    t.equal(new Set(keys).size, keys.length, 'no result is there twice');
  }
  const last = scene.start(args(true));
  t.equal(await last.exited, 0, last.stderr);
  t.same(
    scene.results().map(({ key, status }) => [key, status]),
    ids.map((id) => [id, 'passed']),
  );
  await scene.nothingLeft(t, [repo]);
});

t.test('a killed server is started again; a job whose tools had run is lost, the others are run anew', async (t) => {
  const scene = new RunScene(t);
  const cwd = scene.folder('work');
  // Held the first time, and never again.
  const hold = `[ -e ${cwd}/holding-$DSH_SEED ] || { touch ${cwd}/holding-$DSH_SEED; sleep 60; }`;
  const path = scene.jobs([
    { id: 'has-run', prompt: `run ${hold}`, cwd, mode, seed: 1 },
    { id: 'idempotent', prompt: `run ${hold}`, cwd, mode, seed: 2, idempotent: true },
    { id: 'speaks', prompt: 'wait 4000\nsay spoken', cwd },
  ]);
  const run = scene.start([path, '--out', scene.out, '--json', '--retry-delay', '20ms', ...scripted]);
  await Promise.all([fileAppears(join(cwd, 'holding-1')), fileAppears(join(cwd, 'holding-2')), run.running('speaks')]);
  process.kill(await processWith(scene, /cli\.js serve /), 'SIGKILL');
  t.equal(await run.exited, 1, run.stderr);
  t.match(scene.result('has-run'), { status: 'error', errorClass: 'lost', tries: 1, error: /the agent was lost: it was ended by SIGKILL/ });
  t.match(scene.result('idempotent'), { status: 'completed', tries: 2 });
  t.match(scene.result('speaks'), { status: 'completed', tries: 2 });
  await scene.nothingLeft(t);
});

t.test('a run whose agent never answers can be stopped all the same', async (t) => {
  const scene = new RunScene(t);
  const run = scene.start([scene.jobs([{ id: 'a', prompt: 'say a', cwd: '.' }]), '--out', scene.out, '--agent', 'sleep 61']);
  await processWith(scene, /^sleep 61/);
  run.child.kill('SIGINT');
  run.child.kill('SIGTERM');
  t.equal(await run.exited, 3, run.stderr);
  t.same(scene.results(), []);
  await scene.nothingLeft(t);
});

t.test('a results file that cannot be written ends the run; what is in it stays whole, and the next run goes on', async (t) => {
  const scene = new RunScene(t);
  const cwd = scene.folder('work');
  const path = scene.jobs([
    { id: 'first', prompt: 'say first', cwd },
    { id: 'second', prompt: `run while [ ! -e ${cwd}/go ]; do sleep 0.02; done`, cwd, mode },
    { id: 'third', prompt: 'say third', cwd },
  ]);
  const run = scene.start([path, '--out', scene.out, '--json', '--concurrency', '1', ...scripted]);
  await run.running('second');
  // As on a disk that is full from now on, for the runner alone.
  const size = readFileSync(scene.out).length;
  execFileSync('prlimit', ['--pid', String(run.child.pid), `--fsize=${size + 40}:unlimited`]);
  scene.folder('work/go');
  t.equal(await run.exited, 1);
  t.match(run.stderr, /LOG_WRITE_FAILED: .*results\.jsonl could not be written/);
  t.same(
    scene.results().map(({ key }) => key),
    ['first'],
  );
  await scene.nothingLeft(t);
  const next = await scene.run(path);
  t.equal(await next.exited, 0, next.stderr);
  t.same(scene.statuses(), ['first completed', 'second completed', 'third completed']);
});
