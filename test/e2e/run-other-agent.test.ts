/** Runs of `dsh-acp run` with an agent that is not this program and knows nothing of its extensions. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { otherAgent, RunScene } from '../support/batch-run.ts';
import { cliPath } from '../support/server-process.ts';

const agent = ['--agent', otherAgent[0]!, ...otherAgent.slice(1).map((arg) => `--agent-arg=${arg}`), '--retry-delay', '20ms'];

t.test('another agent is driven with its own manners, and held to mode, policy and time by the runner', async (t) => {
  const scene = new RunScene(t);
  const cwd = scene.folder('work');
  const repo = scene.repository('repo', { 'a.txt': 'a\n' });
  writeFileSync(
    join(scene.dir, 'reads.json'),
    JSON.stringify({ rules: [{ action: 'allow', access: ['read', 'execute'] }], fallback: 'deny' }),
  );
  const path = scene.jobs([
    { id: 'text', prompt: ['say first', 'say before\ntool read\nsay Final\nlate  words'], cwd },
    { id: 'default', prompt: 'ask read\nask edit\nask execute', cwd },
    { id: 'edits', prompt: 'ask read\nask edit\nask execute\nask fetch', cwd, mode: 'accept-edits' },
    {
      id: 'policy',
      prompt: `ask read ${join(cwd, 'a.txt')}\nask read\nask edit ${join(cwd, 'a.txt')}\nask execute`,
      cwd,
      policy: 'reads.json',
      mode: 'full-access',
    },
    { id: 'wall', prompt: 'say working\nhang', cwd, budget: { maxWallMs: 150 } },
    { id: 'wall-passed', prompt: 'hang', cwd, budget: { maxWallMs: 150 }, check: 'true' },
    { id: 'refusal', prompt: 'stop refusal', cwd },
    { id: 'tokens', prompt: ['stop max_tokens', 'say never'], cwd },
    { id: 'params', prompt: 'fail -32602', cwd },
    { id: 'tool-then-fail', prompt: 'tool edit\nfail -32603', cwd },
    { id: 'fails', prompt: 'fail -32603', cwd },
    { id: 'cost', prompt: 'cost 0.25\nsay dear', cwd },
    { id: 'flood', prompt: 'flood 3000\nsay done', cwd },
    { id: 'worktree', prompt: 'say nothing to do', repo: 'repo', check: 'test -e a.txt' },
  ]);
  const run = await scene.run(path, [...agent, '--retries', '1', '--permission-mode', 'read-only']);
  t.equal(await run.exited, 1, run.stderr);
  t.match(scene.result('text'), { status: 'completed', text: 'Final words', stopReason: 'end_turn', logPath: undefined });
  t.equal(scene.result('default').text, 'read:yes edit:no execute:no ');
  t.equal(scene.result('edits').text, 'read:yes edit:yes execute:no fetch:no ');
  t.equal(scene.result('policy').text, 'read:yes read:no edit:no execute:yes ', 'a file that is not named may be any');
  t.match(scene.result('wall'), { status: 'budget', text: 'working', stopReason: 'cancelled' });
  t.match(scene.result('wall-passed'), { status: 'passed' });
  t.match(scene.result('refusal'), { status: 'error', errorClass: 'model' });
  t.match(scene.result('tokens'), { status: 'budget', text: '' });
  t.match(scene.result('params'), { status: 'error', errorClass: 'request', tries: 1 });
  t.match(scene.result('tool-then-fail'), { status: 'error', errorClass: 'agent', tries: 1 });
  t.match(scene.result('fails'), { status: 'error', errorClass: 'agent', tries: 2, error: /The other agent failed\. as it was asked to/ });
  t.match(scene.result('cost'), { costUsd: 0.25, text: 'dear' });
  t.equal(scene.result('flood').text, 'done');
  t.match(scene.result('worktree'), { status: 'passed', patch: '' });
  t.match(run.events[0], { agent: 'other-agent 1' });
  t.match(run.stderr, /6 permission requests were refused/);
  await scene.nothingLeft(t, [repo]);
});

t.test('an agent that dies is started again; its jobs are lost, and tried again where nothing has run', async (t) => {
  const scene = new RunScene(t);
  const cwd = scene.folder('work');
  const path = scene.jobs([
    { id: 'first', prompt: 'say ok', cwd },
    { id: 'dies', prompt: 'die', cwd },
    { id: 'goes', prompt: 'flood 200\nsay last words\nbye', cwd },
    { id: 'after', prompt: 'say alive', cwd },
  ]);
  const run = await scene.run(path, [...agent, '--concurrency', '1', '--retries', '1']);
  t.equal(await run.exited, 1, run.stderr);
  t.match(scene.result('dies'), {
    status: 'error',
    errorClass: 'lost',
    tries: 2,
    error: /ended with code 7; its stderr: other agent: ready/,
  });
  t.match(scene.result('goes'), { status: 'completed', text: 'last words', tries: 1 });
  t.match(scene.result('after'), { status: 'completed', text: 'alive' });
  await scene.nothingLeft(t);
});

t.test('a server of this kind that somebody else configured is held to the policy of the run, and takes no second one', async (t) => {
  const scene = new RunScene(t);
  const policy = { rules: [{ action: 'deny', access: ['execute'] }], fallback: 'allow' };
  writeFileSync(join(scene.dir, 'policy.json'), JSON.stringify(policy));
  const path = scene.jobs([
    { id: 'denied', prompt: 'run touch there', cwd: '.', check: 'test ! -e there' },
    { id: 'two', prompt: 'say no', cwd: '.', policy },
  ]);
  const server = ['--agent', `${process.execPath} ${cliPath} serve --model scripted --pace-ms 0`];
  const run = await scene.run(path, [...server, '--policy-file', 'policy.json', '--mode', 'full-access']);
  t.equal(await run.exited, 1, run.stderr);
  t.match(scene.result('denied'), { status: 'passed', usage: { toolCalls: 1 } });
  t.match(scene.result('two'), { status: 'error', errorClass: 'request', error: /takes one/ });
  await scene.nothingLeft(t);
});

t.test('an agent that cannot be started any more ends the run; what was not run is left to the next', async (t) => {
  const scene = new RunScene(t);
  const path = scene.jobs([
    { id: 'dies', prompt: 'die', cwd: '.', setup: 'touch gone' },
    { id: 'next', prompt: 'say no', cwd: '.' },
    { id: 'last', prompt: 'say no', cwd: '.' },
  ]);
  const command = ['sh', '-c', '[ ! -e gone ] && exec "$0" "$@"', ...otherAgent];
  const flags = ['--agent', command[0]!, ...command.slice(1).map((arg) => `--agent-arg=${arg}`)];
  const run = await scene.run(path, [...flags, '--retry-delay', '20ms', '--concurrency', '1']);
  t.equal(await run.exited, 3, run.stderr);
  t.same(scene.statuses(), ['dies error']);
  t.match(scene.result('dies'), { errorClass: 'agent', tries: 3, error: /the agent did not start: .*it ended with code 1/ });
  t.match(run.events.at(-1), { outcome: { stopped: 'agent', notRun: 1, byStatus: { error: 1, cancelled: 1 } } });
  await scene.nothingLeft(t);
});

t.test('a run stops at its cost, at its first failure, or at its time, and says what was not run', async (t) => {
  const cases: { name: string; prompts: string[]; args: string[]; stopped: string; left: number; lines: number }[] = [
    { name: 'cost', prompts: ['cost 0.6', 'cost 0.6', 'say no'], args: ['--max-cost', '1'], stopped: 'max-cost', left: 1, lines: 2 },
    { name: 'unknown', prompts: ['say free?', 'say no'], args: ['--max-cost', '1'], stopped: 'max-cost', left: 1, lines: 1 },
    { name: 'failed', prompts: ['stop refusal', 'say no'], args: ['--fail-fast'], stopped: 'fail-fast', left: 1, lines: 1 },
    { name: 'time', prompts: ['say quick', 'hang', 'say no'], args: ['--max-time', '2s'], stopped: 'max-time', left: 1, lines: 1 },
  ];
  await Promise.all(
    cases.map(async ({ name, prompts, args, stopped, left, lines }) => {
      const scene = new RunScene(t);
      const path = scene.jobs(prompts.map((prompt, index) => ({ id: `j${index}`, prompt, cwd: '.' })));
      const run = await scene.run(path, [...agent, '--concurrency', '1', ...args]);
      t.equal(await run.exited, 3, `${name}: ${run.stderr}`);
      t.match(run.events.at(-1), { type: 'run/end', outcome: { stopped, notRun: left } }, name);
      t.equal(scene.results().length, lines, name);
      t.ok(
        run.events.some(({ type }) => type === 'run/draining'),
        name,
      );
      await scene.nothingLeft(t);
    }),
  );
});
