/**
 * The entry for the registry of ACP agents: whole by its rules, in step with the package, and true of the command that it
 * starts. The folder has the entry and its icon as they are to stand in the registry, in a folder named after the id.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Ajv } from 'ajv';
import t from 'tap';
import { cliPath, projectRoot } from '../support/server-process.ts';

const folder = join(projectRoot, 'registry');
const entry = JSON.parse(readFileSync(join(folder, 'agent.json'), 'utf8'));
const own = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));

const text = { type: 'string', minLength: 1 };
const start = { args: { type: 'array', items: text }, env: { type: 'object', additionalProperties: { type: 'string' } } };
const packageStart = { type: 'object', required: ['package'], properties: { package: text, ...start }, additionalProperties: false };
/** Of an entry; only what has no other place in the registry may be missing here: the icon's address is made by its build. */
const schema = {
  type: 'object',
  required: ['id', 'name', 'version', 'description', 'distribution'],
  properties: {
    id: { type: 'string', pattern: '^[a-z][a-z0-9-]*$' },
    name: text,
    version: { type: 'string', pattern: '^[0-9]+\\.[0-9]+\\.[0-9]+' },
    description: text,
    repository: text,
    website: text,
    authors: { type: 'array', items: text },
    license: text,
    distribution: {
      type: 'object',
      minProperties: 1,
      properties: { npx: packageStart, uvx: packageStart },
      additionalProperties: false,
    },
  },
  additionalProperties: false,
};

t.test('the entry is valid, and says what the package says', async (t) => {
  const ajv = new Ajv();
  t.ok(ajv.validate(schema, entry), ajv.errorsText());
  t.match(entry, { id: own.name, version: own.version, description: own.description, license: own.license });
  t.same(entry.distribution, { npx: { package: `${own.name}@${own.version}` } }, 'one version, and not the latest');
  t.same(Object.keys(own.bin), [own.name], 'which is the command that npx then runs');
  for (const name of ['repository', 'authors', 'website']) t.equal(name in entry, name in own, `${name} is not made up`);
  t.same(readdirSync(folder).sort(), ['agent.json', 'icon.svg']);
});

t.test('the icon is 16 by 16 and takes the colour of the text around it', async (t) => {
  const icon = readFileSync(join(folder, 'icon.svg'), 'utf8');
  t.match(icon, /^<svg [^>]*width="16" height="16" viewBox="0 0 16 16"/);
  t.notMatch(icon, /<!--|<style|style=|<script|href/);
  const colours = [...icon.matchAll(/\b(?:fill|stroke)="([^"]*)"/g)].map(([, colour]) => colour);
  t.ok(colours.includes('currentColor'));
  t.same(
    colours.filter((colour) => colour !== 'currentColor' && colour !== 'none'),
    [],
  );
});

t.test('the command answers the check of the registry: a way to sign in, and nothing else on stdout', async (t) => {
  const home = t.testdir({});
  // As the check does it: hardly any environment, a home without anything in it.
  const child = spawn(process.execPath, [cliPath, ...(entry.distribution.npx.args ?? [])], {
    cwd: home,
    env: { PATH: process.env['PATH'], HOME: home, TERM: 'dumb' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.on('data', (part: Buffer) => (stderr += part.toString()));
  const lines: string[] = [];
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line));
  const capabilities = {
    terminal: true,
    fs: { readTextFile: true, writeTextFile: true },
    _meta: { terminal_output: true, 'terminal-auth': true },
  };
  const params = { protocolVersion: 1, clientInfo: { name: 'check', version: '1' }, clientCapabilities: capabilities };
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
  await once(reader, 'line');
  child.stdin.end();
  t.same(await once(child, 'close'), [0, null]);
  t.equal(lines.length, 1);
  const { id, result } = JSON.parse(lines[0] ?? '');
  t.equal(id, 1);
  t.equal(result.agentInfo.version, own.version);
  t.ok(result.authMethods.length >= 1);
  for (const method of result.authMethods) {
    t.ok(typeof method.id === 'string' && method.id !== '' && typeof method.name === 'string');
    t.ok(method.type === undefined || method.type === 'terminal', 'a kind of method that clients know');
  }
  t.equal(stderr, '');
});
