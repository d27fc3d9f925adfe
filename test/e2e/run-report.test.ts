/**
 * What a run leaves for people and for training: report, pages, JUnit and trajectories, made by the program from real sessions.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import type { TrajectoryLine } from '../../src/main/run/report/trajectory-file.ts';
import { otherAgent, RunScene } from '../support/batch-run.ts';
import { ModelServer } from '../support/model-server.ts';
import { attributeOf, parsePage } from '../support/parse-page.ts';

const trajectoriesIn = (path: string): TrajectoryLine[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

const bash = (command: string) => ({ name: 'bash', arguments: JSON.stringify({ command, description: 'Do it' }) });

/** As trajectories say it: a field that says nothing is left out. */
const withoutBlankReasoning = (messages: readonly any[]): any[] =>
  messages.map(({ reasoning_content: reasoning, ...rest }) =>
    reasoning === undefined || reasoning === '' ? rest : { ...rest, reasoning_content: reasoning },
  );

t.test('a trajectory is what the model server was asked, message by message, and what it answered last', async (t) => {
  const scene = new RunScene(t);
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const cwd = scene.folder('work');
  model.enqueue(
    { reasoning: 3, text: ['I look ', 'first.'], tools: [bash('echo héllo <b>'), bash('true')] },
    { fault: { kind: 'status', status: 503 } },
    {
      tools: [
        { name: 'bash', arguments: '{"command": "broken' },
        { name: 'no_such_tool', arguments: '' },
      ],
    },
    { text: ['That is ', 'done.'] },
    { reasoning: 2, text: ['And ', 'this.'] },
  );
  const jobs = scene.jobs([
    { id: 'talk', prompt: ['Say *hello* & more', 'Go on\nplease'], cwd, check: ['true'], labels: { suite: 'x' }, seed: 7 },
  ]);
  const files = [
    '--trajectories',
    join(scene.dir, 'out/t.jsonl'),
    '--junit',
    join(scene.dir, 'out/j.xml'),
    '--report',
    join(scene.dir, 'out/r.html'),
  ];
  const args = ['--base-url', model.baseUrl, '--model', 'deepseek-test', '--dialect', 'deepseek', '--mode', 'full-access'];
  const run = scene.start([jobs, '--out', scene.out, '--json', ...files, ...args], { DSH_ACP_API_KEY: 'none' });
  t.equal(await run.exited, 0, run.stderr);

  const [line, ...others] = trajectoriesIn(join(scene.dir, 'out/t.jsonl'));
  t.equal(others.length, 0);
  t.match(line, { version: 1, key: 'talk', id: 'talk', repeat: 0, seed: 7, status: 'passed', reward: 1, complete: true, compactions: 0 });
  t.match(line, { stop_reason: 'end_turn', labels: { suite: 'x' }, header_changed: false });
  const asked = model.requests.at(-1)!.body;
  t.same(line!.messages.slice(0, -1), withoutBlankReasoning(asked.messages));
  t.match(line!.messages.at(-1), { role: 'assistant', content: 'And this.', reasoning_content: /\S/ });
  t.same(
    line!.messages.map(({ role }) => role),
    ['system', 'user', 'assistant', 'tool', 'tool', 'assistant', 'tool', 'tool', 'assistant', 'user', 'assistant'],
    'nothing was tested on an empty conversation',
  );
  t.same(
    line!.tools.map((tool) => tool.function),
    asked.tools.map((tool: any) => tool.function),
  );
  const usage = scene.result('talk').usage!;
  t.match(line!.usage, { completion_tokens: usage.outputTokens, prompt_tokens: usage.inputTokens + usage.cacheReadTokens, steps: 4 });

  const page = parsePage(readFileSync(join(scene.dir, 'out/r.html'), 'utf8'));
  const link = page.elements.find(({ tagName }) => tagName === 'a')!;
  const jobPage = join(scene.dir, 'out', decodeURIComponent(attributeOf(link, 'href')!));
  const { raw, errors } = parsePage(readFileSync(jobPage, 'utf8'));
  t.same(errors, []);
  for (const words of [
    'Say *hello* & more',
    'héllo <b>',
    'exit 0',
    'INVALID',
    'no_such_tool',
    'model call retried',
    'turn ended: completed',
  ]) {
    t.ok(raw.includes(words), `the page of the job shows: ${words}`);
  }
  t.match(
    readFileSync(join(scene.dir, 'out/j.xml'), 'utf8'),
    '<testsuite name="dsh-acp run" tests="1" failures="0" errors="0" skipped="0"',
  );
  t.match(run.stderr, /report {7}\S+r\.html\ntrajectories|report {7}\S+r\.html\njunit/);
  t.ok(existsSync(dirname(jobPage)));
});

t.test('of another agent there is no log: prompts and the last text make an incomplete trajectory', async (t) => {
  const scene = new RunScene(t);
  const jobs = scene.jobs([
    { id: 'theirs', prompt: ['say one', 'say two'], cwd: scene.folder('a') },
    { id: 'bad', prompt: ['say three'], cwd: scene.folder('b'), check: ['false'] },
  ]);
  const path = join(scene.dir, 't.jsonl');
  const run = await scene.run(jobs, [
    '--trajectories',
    path,
    ...otherAgent.flatMap((word, index) => [index === 0 ? '--agent' : '--agent-arg', word]),
  ]);
  t.equal(await run.exited, 1, run.stderr);
  const lines = trajectoriesIn(path).sort((a, b) => b.id.localeCompare(a.id));
  t.match(lines, [
    {
      id: 'theirs',
      complete: false,
      reward: null,
      model: null,
      tools: [],
      messages: [
        { role: 'user', content: 'say one' },
        { role: 'user', content: 'say two' },
        { role: 'assistant', content: 'two' },
      ],
    },
    { id: 'bad', complete: false, reward: 0, status: 'failed' },
  ]);
  const page = readFileSync(`${scene.out.replace(/\.jsonl$/, '')}.report.html`, 'utf8');
  t.match(parsePage(page).text, /theirs/);
});
