import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly seconds: number;
}

const cli = join(process.cwd(), 'dist', 'main', 'cli.js');

async function run(t: Test, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Run> {
  const start = performance.now();
  const home = t.testdir({});
  const child = spawn(process.execPath, [cli, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: home, TMPDIR: home, ...env },
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), 45_000);
  t.teardown(() => {
    clearTimeout(timer);
    child.kill('SIGKILL');
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, stdout, stderr, seconds: (performance.now() - start) / 1000 };
}

const row = (text: string, name: string) => new RegExp(`^${name} +(.*)$`, 'm').exec(text)?.[1] ?? '';

t.test('the demo runs eight sessions, mends eight workspaces, and ends by itself', async (t) => {
  // Settings of the person who starts it must not reach the demo's server.
  const { code, stdout, stderr, seconds } = await run(t, ['demo'], { DEEPSEEK_API_KEY: 'sk-none' });
  t.equal(code, 0, `${stdout.slice(-2_000)}\n${stderr}`);
  t.ok(seconds < 30, `${seconds} s`);
  t.match(row(stdout, 'sessions'), /^8 /);
  t.match(row(stdout, 'threads'), /^8 /);
  t.equal(row(stdout, 'turns'), '16 (16 ended with end_turn)');
  t.match(row(stdout, 'checked'), /^8 of 8 .* tests failed before and pass now/);
  t.match(row(stdout, 'tool calls'), /execute 16.*edit 8|edit 8.*execute 16/);
  t.match(row(stdout, 'logs'), /8 logs/);
  t.match(row(stdout, 'time'), /the server ended with code 0/);
  t.notOk(stdout.includes('\u001b'), 'no drawing where there is no terminal');
  const workspaces = row(stdout, 'workspaces');
  t.teardown(() => rmSync(join(workspaces, '..'), { recursive: true, force: true }));
  for (let number = 1; number <= 8; number += 1) {
    const mended = readFileSync(join(workspaces, `session-${number}`, 'src', 'stock.js'), 'utf8');
    t.match(mended, /item\.quantity <= item\.minimum/);
  }
  t.match(readFileSync('examples/inventory/src/stock.js', 'utf8'), /item\.quantity < item\.minimum/, 'the example itself is untouched');
});

t.test('help, version and wrong settings answer at once with the right exit code', async (t) => {
  const version = await run(t, ['--version']);
  t.match(version, { code: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' });
  const help = await run(t, ['--help']);
  t.match(help, { code: 0, stdout: /^Usage: dsh-acp/m, stderr: '' });
  const wrong = await run(t, ['--max-treads', '3']);
  t.match(wrong, { code: 2, stdout: '', stderr: /^dsh-acp: CONFIG_INVALID: .*Did you mean --max-threads\?\n$/ });
  const variable = await run(t, [], { DSH_ACP_PROFIL: 'editor' });
  t.match(variable, { code: 2, stdout: '', stderr: /DSH_ACP_PROFILE/ });
});

t.test('config prints where each value comes from and no key', async (t) => {
  const { code, stdout } = await run(t, ['config', '--max-threads', '3', '--format', 'json'], { DEEPSEEK_API_KEY: 'sk-secret' });
  t.equal(code, 0);
  t.notMatch(stdout, /sk-secret/);
  const { settings } = JSON.parse(stdout);
  const find = (key: string) => settings.find((setting: any) => setting.key === key);
  t.match(find('[threads] max_threads'), { value: 3, source: 'flag', where: '--max-threads' });
  t.match(find('model'), { value: 'deepseek-flash', source: 'default' });
  t.equal(find('[provider] api_key').value, '(set, hidden)');
});

t.test('serve ends in order when there is no client at all', async (t) => {
  const { code, stdout } = await run(t, ['serve', '--model', 'scripted']);
  t.equal(code, 0);
  t.equal(stdout, '');
});
