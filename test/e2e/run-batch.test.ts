/** Whole runs of `dsh-acp run` with this server as the agent. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { git, RunScene, scripted } from '../support/batch-run.ts';
import { ModelServer } from '../support/model-server.ts';

t.test('twelve jobs on one repository each mend a copy of their own, and their patches apply to a clean checkout', async (t) => {
  const scene = new RunScene(t);
  const repo = scene.repository('repo', { 'a.txt': 'broken\n', 'check.sh': 'grep -q "^mended by $1$" a.txt && test -x new.sh\n' });
  const ids = Array.from({ length: 12 }, (_, index) => `job-${index}`);
  const prompt = (id: string) =>
    `read a.txt\nedit a.txt /broken/mended by ${id}/\nrun printf 'echo\\n' > new.sh && chmod +x new.sh && head -c 9 /dev/zero > zero.bin\nsay ${id} is done`;
  const jobs = ids.map((id) => ({
    id,
    prompt: prompt(id),
    repo: 'repo',
    base: 'main',
    check: ['sh', 'check.sh', id],
    mode: 'full-access',
  }));
  const run = await scene.run(scene.jobs(jobs));
  t.equal(await run.exited, 0, run.stderr);
  t.same(scene.statuses(), ids.map((id) => `${id} passed`).sort());
  const base = git(repo, 'rev-parse', 'main').trim();
  for (const id of ['job-0', 'job-11']) {
    const result = scene.result(id);
    t.match(result, { baseCommit: base, text: new RegExp(`^${id} is done`), tries: 1, stopReason: 'end_turn', check: { exitCode: 0 } });
    t.match(result.usage, { toolCalls: 3, steps: 4 });
    t.match(result.times, { setupMs: Number, turnsMs: Number, checkMs: Number, totalMs: Number, firstUpdateMs: Number });
    t.match(readFileSync(result.logPath ?? '', 'utf8'), /"type":"turn\/end"/);
    const clean = join(scene.dir, `clean-${id}`);
    git(scene.dir, 'clone', '-q', repo, clean);
    writeFileSync(join(scene.dir, `${id}.patch`), result.patch ?? '');
    git(clean, 'apply', '--binary', join(scene.dir, `${id}.patch`));
    t.equal(readFileSync(join(clean, 'a.txt'), 'utf8'), `mended by ${id}\n`);
    t.same([...readFileSync(join(clean, 'zero.bin'))], Array(9).fill(0));
  }
  t.match(run.events.at(-1), { type: 'run/end', outcome: { total: 12, byStatus: { passed: 12 }, notRun: 0, stopped: undefined } });
  t.match(JSON.parse(readFileSync(`${scene.out}.run.json`, 'utf8')), { version: 1, jobs: { count: 12 }, agent: /^\S+ \d/ });
  await scene.nothingLeft(t, [repo]);
});

t.test('what jobs come to, in the order of the file; the next run runs what is not there yet, and nothing else', async (t) => {
  const scene = new RunScene(t);
  const cwd = scene.folder('work');
  const base = { cwd, mode: 'full-access' };
  const secrets = ['DEEPSEEK_API_KEY', 'GITHUB_TOKEN', 'OTEL_EXPORTER_OTLP_HEADERS', 'PLAIN', 'DSH_ACP_X'];
  const shown = `echo "$A $NPM_TOKEN $DSH_SEED ${secrets.map((name) => `\${${name}-none}`).join(' ')} $CITY"`;
  const path = scene.jobs([
    { ...base, id: 'slow', prompt: 'run sleep 0.3\nsay slow', labels: { kind: 'a' }, meta: { x: [1] } },
    { ...base, id: 'failed', prompt: 'say no', check: 'echo because; exit 4' },
    { ...base, id: 'setup', prompt: 'say never', setup: 'echo no tools >&2; exit 9' },
    { ...base, id: 'nowhere', prompt: 'say never', cwd: 'missing' },
    { ...base, id: 'budget', prompt: 'run true\nrun true\nrun true', budget: { maxSteps: 1 } },
    { ...base, id: 'late', prompt: 'say never', budget: { deadline: '2020-01-01T00:00:00Z' } },
    { ...base, id: 'spent-but-passed', prompt: 'run touch there\nrun true\nrun true', budget: { maxSteps: 2 }, check: 'test -e there' },
    { ...base, id: 'two-turns', prompt: ['say one', 'say two'] },
    { ...base, id: 'refused', prompt: 'run touch forbidden', mode: 'ask' },
    {
      ...base,
      id: 'env',
      prompt: `run ${shown} > session.txt`,
      env: { A: 'of the job', NPM_TOKEN: 'of the job' },
      seed: 30,
      setup: `${shown} > setup.txt`,
      check: 'cmp setup.txt session.txt && cat setup.txt',
    },
  ]);
  const run = scene.start([path, '--out', scene.out, '--json', '--ordered', ...scripted], {
    DEEPSEEK_API_KEY: 'sk-secret-of-ours',
    GITHUB_TOKEN: 'x',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=b',
    PLAIN: 'https://user:password@host',
    NPM_TOKEN: 'of the runner',
    CITY: 'Bern',
  });
  t.equal(await run.exited, 1, run.stderr);
  t.same(
    scene.results().map(({ key, status }) => [key, status]),
    [
      ['slow', 'completed'],
      ['failed', 'failed'],
      ['setup', 'error'],
      ['nowhere', 'error'],
      ['budget', 'budget'],
      ['late', 'budget'],
      ['spent-but-passed', 'passed'],
      ['two-turns', 'completed'],
      ['refused', 'completed'],
      ['env', 'passed'],
    ],
  );
  t.match(scene.result('slow'), { labels: { kind: 'a' }, meta: { x: [1] }, text: /^slow/, patch: undefined });
  t.match(scene.result('failed'), { check: { exitCode: 4, output: 'because\n', timedOut: false } });
  t.match(scene.result('setup'), {
    errorClass: 'setup',
    error: /ended with code 9/,
    setup: { output: 'no tools\n' },
    sessionId: undefined,
  });
  t.match(scene.result('nowhere'), { errorClass: 'setup', error: /no directory/ });
  t.match(scene.result('budget'), { stopReason: 'max_turn_requests' });
  t.match(scene.result('two-turns'), { text: /^two/, usage: { steps: 2 } });
  t.match(scene.result('env'), { check: { output: 'of the job of the job 30 none none none none none Bern\n' }, seed: 30 });
  t.notOk(existsSync(join(cwd, 'forbidden')));
  t.match(run.stderr, /1 permission requests were refused/);
  t.notMatch(readFileSync(scene.out, 'utf8'), /sk-secret/);
  await scene.nothingLeft(t);

  const before = readFileSync(scene.out, 'utf8');
  const again = await scene.run(path, ['--repeat', '1', ...scripted]);
  t.equal(await again.exited, 1);
  t.equal(readFileSync(scene.out, 'utf8'), before);
  t.match(again.events[0], { type: 'run/start', total: 0, done: 10 });
  await scene.nothingLeft(t);
});

t.test('a repeated run draws its order by the seed and numbers its seeds; errors can be tried again later', async (t) => {
  const scene = new RunScene(t);
  const cwd = scene.folder('work');
  const path = scene.jobs([
    { id: 'a', prompt: 'say a', cwd },
    { id: 'b', prompt: 'say b', cwd, setup: 'test -e ready' },
  ]);
  const order = ({ events }: { events: readonly any[] }): string[] =>
    events.filter(({ type, state }) => type === 'job/state' && state === 'preparing').map(({ key }) => key);
  const first = await scene.run(path, ['--repeat', '2', '--shuffle=3', '--concurrency', '1', ...scripted]);
  t.equal(await first.exited, 1);
  t.same(order(first).sort(), ['a', 'a#1', 'b', 'b#1']);
  t.same([scene.result('a#1').seed, scene.result('a#1').repeat, scene.result('b').status], [1, 1, 'error']);
  const [header = ''] = readFileSync(scene.result('a#1').logPath ?? '', 'utf8').split('\n');
  t.match(JSON.parse(header), { options: { sampling: { seed: 1 } } }, 'the model is told the seed of its repeat');
  writeFileSync(join(cwd, 'ready'), '');
  const second = await scene.run(path, ['--repeat', '2', '--retry-errors', ...scripted]);
  t.equal(await second.exited, 0, second.stderr);
  t.same(order(second).sort(), ['b', 'b#1']);
  t.same(scene.statuses(), ['a completed', 'a#1 completed', 'b completed', 'b#1 completed'].sort());
});

t.test('what is wrong is said before anything runs, with exit code 2', async (t) => {
  const scene = new RunScene(t);
  const good = scene.jobs([{ id: 'a', prompt: 'say a', cwd: '.' }]);
  const bad = scene.jobs([{ id: 'a', prompt: 'say a', cwd: '.' }, { id: 'a', prompt: 'say a', cwd: '.' }, '{'], 'bad.jsonl');
  const out = ['--out', scene.out];
  const rows: [string[], RegExp][] = [
    [[bad, ...out, ...scripted], /2 wrong lines.*\n {2}line 2: id: "a" is also the id of line 1\n {2}line 3: this is no JSON/],
    [[good, ...out], /model: expected one: set DEEPSEEK_API_KEY, or --base-url and --model, or --model scripted/],
    [[good], /--out: expected a file for the results/],
    [[good, ...out, '--max-cost', '1', ...scripted], /--max-cost: expected prices/],
    [[good, ...out, '--agent', 'no-such-agent'], /--agent: expected a command that speaks ACP.*no-such-agent could not be started/],
    [[good, ...out, '--agent', 'x', '--model', 'y'], /--model: expected no setting of this server with --agent/],
  ];
  const runs = rows.map(([args, pattern]) => ({ pattern, run: scene.start(args) }));
  for (const { pattern, run } of runs) {
    t.equal(await run.exited, 2, String(pattern));
    t.match(run.stderr, pattern);
    t.equal(run.stdout, '');
  }
  t.same(scene.results(), []);
  const skipping = await scene.run(bad, ['--skip-invalid', ...scripted]);
  t.equal(await skipping.exited, 1, 'lines that were left out are no success');
  t.match(skipping.stderr, /left out: line 2/);
  t.match(skipping.events.at(-1), { outcome: { total: 1, byStatus: { completed: 1 }, invalid: 2 } });
  const changed = await scene.run(scene.jobs([{ id: 'a', prompt: 'say other', cwd: '.' }]));
  t.equal(await changed.exited, 2);
  t.match(changed.stderr, /"a" has changed since/);
  await scene.nothingLeft(t);
});

t.test('one prompt on the command line answers on stdout', async (t) => {
  const scene = new RunScene(t);
  const cwd = scene.folder('work');
  const good = scene.start([
    'run touch made\nsay It is made.',
    '--cwd',
    cwd,
    '--mode',
    'full-access',
    '--check',
    'test -e made',
    ...scripted,
  ]);
  const bad = scene.start(['say hello', '--check', 'exit 1', ...scripted]);
  t.equal(await good.exited, 0, good.stderr);
  t.match(good.stdout, /^It is made\.\n/);
  t.equal(good.stderr, '');
  t.equal(await bad.exited, 1);
  t.match(bad.stdout, /hello/);
  t.equal(bad.stderr, 'dsh-acp: failed\n');
  await scene.nothingLeft(t);
});

t.test('a failure that may pass is tried again, but not behind a tool that has run, unless the job says it may', async (t) => {
  const scene = new RunScene(t);
  const cwd = scene.folder('work');
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const fault = { fault: { kind: 'status', status: 503 } } as const;
  const call = { tools: [{ name: 'bash', arguments: JSON.stringify({ command: 'echo x >> ran', description: 'Append' }) }] };
  const args = [
    `--base-url=${model.baseUrl}`,
    ...'--model m --dialect generic --max-retries 0 --retry-delay 20ms --concurrency 1 --mode full-access'.split(' '),
    ...'--price-input 1000 --price-output 1000 --max-cost 1000000'.split(' '),
  ];
  model.enqueue(fault, fault, { text: ['at last'] });
  model.enqueue(call, fault);
  model.enqueue(call, fault, { text: ['again'] });
  model.enqueue({ fault: { kind: 'status', status: 400 } });
  const path = scene.jobs([
    { id: 'passes', prompt: 'hi', cwd },
    { id: 'has-run', prompt: 'hi', cwd },
    { id: 'idempotent', prompt: 'hi', cwd, idempotent: true },
    { id: 'for-good', prompt: 'hi', cwd },
  ]);
  const run = await scene.run(path, args);
  t.equal(await run.exited, 1, run.stderr);
  t.match(scene.result('passes'), { status: 'completed', text: 'at last', tries: 3 });
  t.match(scene.result('has-run'), { status: 'error', errorClass: 'model', tries: 1 });
  t.match(scene.result('idempotent'), { status: 'completed', text: 'again', tries: 2 });
  t.match(scene.result('for-good'), { status: 'error', errorClass: 'model', tries: 1 });
  t.ok((scene.result('idempotent').costUsd ?? 0) > 0, 'what it cost is told');
  t.equal(readFileSync(join(cwd, 'ran'), 'utf8'), 'x\nx\n');
  t.equal(run.events.filter(({ type }) => type === 'job/retry').length, 3);
});

t.test('a key that does not work stops the run; nothing of it is taken for a result, and the next run does it', async (t) => {
  const scene = new RunScene(t);
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const args = [`--base-url=${model.baseUrl}`, ...'--model m --dialect generic --max-retries 0 --concurrency 1'.split(' ')];
  const path = scene.jobs(['a', 'b', 'c'].map((id) => ({ id, prompt: 'hi', cwd: '.' })));
  model.enqueue({ text: ['well'] }, { fault: { kind: 'status', status: 402 } });
  const run = await scene.run(path, args);
  t.equal(await run.exited, 3, run.stderr);
  t.match(run.stderr, /stopped, as no job can do anything: .*402/);
  t.match(run.events.at(-1), { outcome: { stopped: 'agent', notRun: 2 } });
  t.same(scene.statuses(), ['a completed']);
  model.enqueue({ text: ['well'] }, { text: ['well'] });
  t.equal(await (await scene.run(path, args)).exited, 0);
  await scene.nothingLeft(t);

  const keyless = scene.start(['hi', '--model', 'deepseek-flash']);
  t.equal(await keyless.exited, 3);
  t.match(keyless.stderr, /stopped, as no job can do anything: .*key/);
});

t.test('results of another model, setting or policy do not come into the file unless that is asked for', async (t) => {
  const scene = new RunScene(t);
  const path = scene.jobs(['a', 'b'].map((id) => ({ id, prompt: `say ${id}`, cwd: '.' })));
  const sidecar = () => JSON.parse(readFileSync(`${scene.out}.run.json`, 'utf8'));
  writeFileSync(join(scene.dir, 'policy.json'), JSON.stringify({ rules: [], fallback: 'allow' }));
  t.equal(await (await scene.run(path, [...scripted, '--no-report'])).exited, 0);
  t.notOk(existsSync(join(scene.dir, 'results.report.html')));
  t.equal(scene.result('a').model, 'scripted');
  const { agent, setup } = sidecar();
  t.match(setup, { model: 'scripted', profile: 'automation', isolation: 'shared' });

  const other = ['--model', 'm', '--base-url', 'http://127.0.0.1:9', '--isolation', 'strict', '--policy-file', 'policy.json'];
  const refused = await scene.run(path, ['--repeat', '2', ...other]);
  t.equal(await refused.exited, 2);
  t.match(
    refused.stderr,
    /differ: model \(scripted, now m\), baseUrl \(none, now http:\S+\), isolation \(shared, now strict\), policy \(none/,
  );
  t.equal(refused.events.length, 0);
  t.same(sidecar().setup, setup);

  const again = await scene.run(path);
  t.equal(await again.exited, 0, again.stderr);
  t.match(again.events[0], { total: 0, agent });
  t.equal(sidecar().agent, agent, 'a run that has nothing to do keeps the name of the agent that did it');
  const forced = await scene.run(path, ['--force', ...other]);
  t.equal(await forced.exited, 0, forced.stderr);
  t.equal(sidecar().setup.model, 'm');
  await scene.nothingLeft(t);
});
