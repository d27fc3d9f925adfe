import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { printConfig } from '../../../../../src/main/cli/config-command.ts';
import { checkSubagents } from '../../../../../src/main/cli/doctor/check-subagents.ts';
import { loadConfig } from '../../../../../src/main/config/load-config.ts';
import { providerTable } from '../../../../../src/main/config/subagents/provider-fields.ts';
import type { SubagentProvider } from '../../../../../src/shared/subagent-protocol.ts';
import { projectRoot } from '../../../../support/server-process.ts';

async function load(t: Test, toml: string, mode = 0o600): Promise<readonly SubagentProvider[]> {
  const home = t.testdir({ 'config.toml': toml });
  const file = join(home, 'config.toml');
  chmodSync(file, mode);
  const { config } = await loadConfig({ env: {}, home, cwd: home, flags: new Map(), file, cores: 2, version: '0', ripgrepPath: undefined });
  return config.session.subagents;
}

async function refuses(t: Test, toml: string, data: Record<string, unknown>, message: RegExp, mode?: number): Promise<void> {
  const error: any = await load(t, toml, mode).then(
    () => undefined,
    (caught: unknown) => caught,
  );
  t.equal(error?.code, 'CONFIG_INVALID', toml);
  t.match(error?.data, data, toml);
  t.match(error?.message, message, toml);
}

t.test('without a word about it a session may delegate to sessions of this server', async (t) => {
  const [self, ...others] = await load(t, '');
  t.same(others, []);
  t.match(self, { name: 'self', command: undefined, permission: 'ask', maxRunning: 8, maxDepth: 3, idleTimeoutMs: 600_000 });
});

t.test('delegate = off takes the built-in agent away and leaves the others', async (t) => {
  t.same(await load(t, 'delegate = "off"'), []);
  const names = (await load(t, 'delegate = "off"\n[[subagents]]\nname = "other"\ncommand = "agent"')).map(({ name }) => name);
  t.same(names, ['other']);
});

t.test('every key of a table reaches its provider', async (t) => {
  const [self, other] = await load(
    t,
    `[[subagents]]
name = "other"
command = "~/bin/agent"
args = ["--acp", ""]
cwd = "/srv"
description = "For long reads."
permission = "allow"
env = { GREETING = "hello" }
env_mode = "allow"
env_allow = ["PATH", "LC_*"]
dispose_eof_grace_ms = 10
dispose_grace_ms = 20
start_timeout_ms = 30
idle_timeout_ms = 0
max_running = 2
max_depth = 1
pool_size = 4
pool_idle_ms = 50
persona = "Be brief."
tools = ["read"]
output_schema = { type = "object", properties = { ok = { type = "boolean" } } }

[[subagents]]
name = "self"
permission = "reject"
max_running = 3
`,
  );
  t.match(self, { name: 'self', permission: 'reject', maxRunning: 3, maxDepth: 3 });
  t.match(other, {
    name: 'other',
    args: ['--acp', ''],
    cwd: '/srv',
    description: 'For long reads.',
    permission: 'allow',
    env: { GREETING: 'hello' },
    envMode: 'allow',
    envAllow: ['PATH', 'LC_*'],
    disposeEofGraceMs: 10,
    disposeGraceMs: 20,
    startTimeoutMs: 30,
    idleTimeoutMs: 0,
    maxRunning: 2,
    maxDepth: 1,
    poolSize: 4,
    poolIdleMs: 50,
    persona: 'Be brief.',
    tools: ['read'],
    outputSchema: { type: 'object', properties: { ok: { type: 'boolean' } } },
  });
  t.match(other?.command, /^\/.*\/bin\/agent$/, 'the home directory stands in for ~');
});

t.test('what is wrong in a table is named with its place', async (t) => {
  const table = (rest: string) => `[[subagents]]\nname = "a"\ncommand = "agent"\n\n[[subagents]]\nname = "b"\ncommand = "agent"\n${rest}`;
  const place = /\[\[subagents\]\] 2 of .*config\.toml/;
  await refuses(t, table('comand = "x"'), { key: 'comand', suggestion: 'command' }, place);
  await refuses(t, table('permission = "alow"'), { key: 'permission', suggestion: 'allow' }, place);
  await refuses(t, table('cwd = "relative"'), { key: 'cwd' }, place);
  await refuses(t, table('args = "one text"'), { key: 'args' }, place);
  await refuses(t, table('args = [1]'), { key: 'args' }, place);
  await refuses(t, table('max_running = 0'), { key: 'max_running', expected: /1 to 1000/ }, place);
  await refuses(t, table('env = { "a b" = "c" }'), { key: 'env' }, place);
  await refuses(t, table('env = { A = 1 }'), { key: 'env' }, place);
  await refuses(t, table('env_allow = ["PATH"]'), { key: 'env_allow', expected: /env_mode = "allow"/ }, place);
  await refuses(t, table('output_schema = { since = 2026-01-01 }'), { key: 'output_schema' }, place);
  await refuses(t, '[[subagents]]\ncommand = "agent"', { key: 'name' }, /1 of/);
  await refuses(t, '[[subagents]]\nname = "Upper"\ncommand = "agent"', { key: 'name' }, /1 of/);
  await refuses(t, '[[subagents]]\nname = "a"', { key: 'command' }, /1 of/);
  await refuses(t, '[[subagents]]\nname = "a"\ncommand = "./agent"', { key: 'command' }, /absolute path/);
  await refuses(t, table('[[subagents]]\nname = "a"\ncommand = "agent"'), { key: 'name', expected: /no other agent/ }, /3 of/);
  await refuses(t, '[[subagents]]\nname = "self"\ncommand = "agent"', { key: 'command', expected: /starts no process/ }, /1 of/);
  await refuses(t, '[[subagents]]\nname = "self"\npool_size = 2', { key: 'pool_size' }, /1 of/);
  await refuses(t, '[subagents]\nname = "a"', { key: 'subagents' }, /\[\[subagents\]\]/);
  await refuses(t, '[[subagent]]\nname = "a"', { key: 'subagent', suggestion: 'subagents' }, /subagents/);
});

t.test('a file with a secret for an agent must be private, and its value is never repeated', async (t) => {
  const table = (env: string) => `[[subagents]]\nname = "a"\ncommand = "agent"\nenv = ${env}`;
  for (const env of ['{ MY_API_KEY = "abc" }', '{ DATABASE = "postgres://me:hidden@db/x" }', '{ X = "abcdefgh12345678ijklmnop90" }']) {
    await refuses(t, table(env), { expected: /mode 0600/ }, /^(?!.*(?:hidden|abcdefgh12345678))/s, 0o644);
    t.equal((await load(t, table(env))).length, 2, 'a private file is taken');
  }
  t.equal((await load(t, table('{ GREETING = "hello there" }'), 0o644)).length, 2, 'a plain value needs no private file');
  await refuses(t, table('{ MY_TOKEN = 12345678 }'), { key: 'env' }, /^(?!.*12345678)/s);
});

t.test('the table in docs/subagents.md is the one of the program', async (t) => {
  t.ok(readFileSync(join(projectRoot, 'docs/subagents.md'), 'utf8').includes(providerTable()), `put this in:\n${providerTable()}`);
});

t.test('dsh-acp config shows the agents in the form of the file, without the values of their variables', async (t) => {
  const toml = '[[subagents]]\nname = "a"\ncommand = "agent"\nenv = { MY_KEY = "hidden" }\n';
  const home = t.testdir({ 'config.toml': toml });
  const file = join(home, 'config.toml');
  chmodSync(file, 0o600);
  const loaded = await loadConfig({ env: {}, home, cwd: home, flags: new Map(), file, cores: 2, version: '0', ripgrepPath: undefined });
  const text = printConfig(loaded, 'text');
  t.match(text, '[[subagents]]\nname = "self"\n');
  t.match(text, '[[subagents]]\nname = "a"\ncommand = "agent"\n');
  const json = JSON.parse(printConfig(loaded, 'json'));
  t.match(json.subagents, [{ name: 'self' }, { name: 'a', command: 'agent', env: { MY_KEY: '(set, hidden)' } }]);
  t.notMatch(text + JSON.stringify(json), 'hidden"');
});

t.test('the doctor looks for the programs of the agents, and starts none', async (t) => {
  const dir = t.testdir({ there: '', plain: '' });
  chmodSync(join(dir, 'there'), 0o755);
  chmodSync(join(dir, 'plain'), 0o644);
  const toml = ['there', 'plain', 'absent']
    .map((name) => `[[subagents]]\nname = "${name}"\ncommand = "${name}"\nenv = { PATH = "${dir}" }\n`)
    .join('\n');
  const providers = await load(t, `${toml}\n[[subagents]]\nname = "lost"\ncommand = "/bin/sh"\ncwd = "/nowhere/at/all"`);
  // `load` makes a directory of its own in place of the first one.
  const again = t.testdir({ there: '', plain: '' });
  chmodSync(join(again, 'there'), 0o755);
  const findings = await checkSubagents(providers);
  t.same(
    findings.map(({ level, text }) => [level, text.split(':')[0]]),
    [
      ['ok', 'self'],
      ['ok', 'there'],
      ['fail', 'plain'],
      ['fail', 'absent'],
      ['fail', 'lost'],
    ],
  );
});

t.test('the example in docs/subagents.md is a file that the server takes', async (t) => {
  const [, example = ''] = /```toml\n([\s\S]*?)```/.exec(readFileSync(join(projectRoot, 'docs/subagents.md'), 'utf8')) ?? [];
  const [self, reviewer] = await load(t, example);
  t.match(self, { name: 'self', maxRunning: 16 });
  t.match(reviewer, { name: 'reviewer', command: 'dsh-acp', envMode: 'allow' });
});
