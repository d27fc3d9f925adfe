import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { waitGroupGone } from '../../../../src/shared/process-table.ts';
import { BoundedOutput } from '../../../../src/main/run/bounded-output.ts';
import { type CommandSpec, runCommand } from '../../../../src/main/run/command.ts';
import { commandEnvironment } from '../../../../src/main/run/job-environment.ts';
import { fileAppears } from '../../../support/file-appears.ts';

const cwd = mkdtempSync(join(tmpdir(), 'dsh-acp-command-test-'));
t.teardown(() => rmSync(cwd, { recursive: true, force: true }));

const env = { PATH: process.env['PATH'] ?? '' };
const run = (argv: readonly string[], more: Partial<CommandSpec> = {}) =>
  runCommand({ argv, cwd, env, timeoutMs: 20_000, signal: new AbortController().signal, ...more });
const sh = (script: string, more?: Partial<CommandSpec>) => run(['sh', '-c', script], more);

t.test('exit code, signal and output are told', async (t) => {
  t.match(await sh('echo out; echo err >&2; cat; exit 3'), {
    exitCode: 3,
    signal: null,
    timedOut: false,
    output: 'out\nerr\n',
    spawnError: undefined,
  });
  t.match(await sh('kill -9 $$'), { exitCode: null, signal: 'SIGKILL' });
  t.match(await run(['no-such-program-here']), { exitCode: null, spawnError: /no-such-program-here .*ENOENT/ });
  t.match(await sh('true', { cwd: join(cwd, 'missing') }), { spawnError: /ENOENT/ });
});

t.test('a command over its time is ended with all that it started', async (t) => {
  const outcome = await sh('sleep 60 & echo $$ > group; wait', { timeoutMs: 300 });
  t.match(outcome, { timedOut: true, exitCode: null, signal: 'SIGTERM' });
  t.ok(await waitGroupGone(Number(readFileSync(join(cwd, 'group'), 'utf8')), 5_000));
});

t.test('a cancel ends it too, also one that does not heed TERM', async (t) => {
  const stop = new AbortController();
  const running = sh(`trap '' TERM; touch ready; while :; do sleep 0.05; done`, { signal: stop.signal });
  await fileAppears(join(cwd, 'ready'));
  stop.abort();
  t.match(await running, { signal: 'SIGKILL', timedOut: false });
  t.match(await sh('touch never', { signal: stop.signal }), { exitCode: null, output: '' });
});

t.test('what stays in the background holds nothing up, and is ended when asked', async (t) => {
  const outcome = await sh('sleep 60 & echo $$');
  t.equal(outcome.exitCode, 0);
  t.ok(outcome.durationMs < 5_000);
  const group = Number(outcome.output);
  t.notOk(await waitGroupGone(group, 50), 'it runs on');
  await outcome.end();
  t.ok(await waitGroupGone(group, 5_000), 'until it is ended');
});

t.test('of a long output the beginning and the end are kept', async (t) => {
  const { output } = await sh('echo first; head -c 3000000 /dev/zero | tr "\\0" x; echo; echo last');
  t.match(output, /^first\nx/);
  t.match(output, /x\nlast\n$/);
  t.match(output, /\[\d{7} bytes left out\]/);
  t.ok(output.length < 66 * 1024);
  const short = new BoundedOutput();
  for (const byte of Buffer.from('é'.repeat(17_000))) short.push(Buffer.from([byte]));
  t.equal(short.text(), 'é'.repeat(17_000), 'a character that lies on the seam is whole');
});

t.test('keys and settings of ours do not reach a command; the job has the last word on the rest', (t) => {
  const ambient = { PATH: '/bin', DEEPSEEK_API_KEY: 'k', DSH_ACP_API_KEY: 'k', MY_KEY: 'k', HOME: '/h' };
  t.same(commandEnvironment({ ambient, withheld: ['MY_KEY'], mark: 'm;' }, { HOME: '/job' }, 4), {
    PATH: '/bin',
    HOME: '/job',
    DSH_SEED: '4',
    DSH_RUN: 'm;',
  });
  t.end();
});
