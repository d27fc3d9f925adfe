/** Canaries: a secret goes in by every door, everything is done that writes something down, and it is found nowhere. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { faultTest, logPath } from '../support/invariants.ts';
import { cliPath } from '../support/server-process.ts';

t.setTimeout(110_000);

/** Of the shape of real ones, and each its own, so that a find says where it came from. */
const canary = {
  model: 'sk-canary0model0a1b2c3d4e5f6',
  ambient: 'canary-ambient-9f8e7d6c5b4a',
  session: 'canary-session-1a2b3c4d5e6f',
  mcp: 'canary-mcpenv-77aa88bb99cc',
  header: 'canary-header-00ff11ee22dd',
};

function finds(text: string): string[] {
  return Object.entries(canary).flatMap(([name, value]) => (text.includes(value) ? [name] : []));
}

function clean(t: Test, text: string, where: string): void {
  t.same(finds(text), [], `${where} holds no secret`);
}

function everyFile(dir: string): string {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) });
const plan = (...tools: object[]): string => JSON.stringify({ plans: [{ tools }, { tokens: 2 }] });
const bash = (command: string) => call('bash', { command, description: 'a command' });

function childEnvironments(pid: number): string {
  const children = readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ')[1] === String(pid);
    } catch {
      return false; // It ended while we looked.
    }
  });
  return children.map((name) => readFileSync(`/proc/${name}/environ`, 'latin1')).join('\n');
}

void faultTest('fault 79: secrets from every door are in no frame, log, line of stderr, child, page or export', async (t, rig) => {
  const model = await rig.model();
  const env = { DEEPSEEK_API_KEY: canary.model, MY_SERVICE_TOKEN: canary.ambient };
  const args = [
    '--base-url',
    model.baseUrl,
    '--model',
    'bench',
    '--api-key-env',
    'DEEPSEEK_API_KEY',
    '--permission-mode',
    'full-access',
    '--log-level',
    'debug',
    '--metrics-port',
    '0',
  ];
  const server = await rig.serve({ args, env });
  const work = join(rig.dir, 'work');
  mkdirSync(work);
  const answer = await server.request('session/new', {
    cwd: work,
    mcpServers: [
      { name: 'gone', command: '/bin/false', args: [], env: [{ name: 'GONE_SECRET', value: canary.mcp }] },
      { type: 'http', name: 'away', url: 'http://127.0.0.1:9/mcp', headers: [{ name: 'Authorization', value: `Bearer ${canary.header}` }] },
    ],
    _meta: { 'dsh-acp': { env: { SESSION_PASSWORD: canary.session } } },
  });
  const sessionId = answer.result.sessionId as string;
  const prompt = async (text: string) => await server.prompt(sessionId, text);
  // What the client gave is for its commands: the model sees what they print, less what is known to be secret.
  await prompt(plan(bash('printenv; cat /proc/self/environ | tr "\\0" "\\n"')));
  await prompt(
    plan(bash(`printf '%s' "$SESSION_PASSWORD"; echo; exit 3`), call('write', { file_path: join(work, 'a.txt'), content: 'x' })),
  );
  t.match(JSON.stringify(model.requests.at(-1)?.body), /\[redacted\]/, 'what a command printed was taken out');
  // The provider repeats the key in every way it can.
  for (const status of [400, 401, 403, 404, 422]) {
    model.enqueue({
      fault: { kind: 'status', status, body: JSON.stringify({ error: { message: `bad key ${canary.model} for Bearer ${canary.model}` } }) },
    });
    t.ok((await prompt('again')).error !== undefined, `HTTP ${status}`);
  }
  // The model says them: whole, and in two pieces.
  model.enqueue({ text: ['I found ', canary.session.slice(0, 12), canary.session.slice(12), ' there'] });
  const frames = server.frames.length;
  await prompt('what is it?');
  const streamed = server.frames.length;
  server.send({
    jsonrpc: '2.0',
    id: 'odd',
    method: 'session/new',
    params: { cwd: 'relative', mcpServers: [{ name: 'x', command: 7, env: [{ name: 'A_KEY', value: canary.mcp }] }] },
  });
  await server.request('session/list', {});
  const running = server.startPrompt(sessionId, plan(bash('sleep 0.3')));
  await server.nextUpdate(sessionId, 'tool_call');
  clean(t, childEnvironments(server.pid).replaceAll(canary.session, ''), 'the environment of children');
  await server.response(running);
  t.ok((await prompt('[!throw 100] {"tokens":4000,"delayMs":5}')).error !== undefined, 'a killed thread');
  await prompt('{"tokens":1}');
  const { metrics } = (await server.request('_status', {})).result;
  clean(t, await (await fetch(`http://127.0.0.1:${metrics.port}/metrics`)).text(), 'the metrics');
  clean(t, readFileSync(`/proc/${server.pid}/cmdline`, 'latin1'), 'the command line');
  await server.close();
  // Streamed text is shown as it comes: a secret in two deltas is two frames, neither of which holds it.
  const shown = server.frames.filter((_, index) => index < frames || index >= streamed);
  clean(t, JSON.stringify(shown), 'a frame');
  clean(t, JSON.stringify(server.frames.slice(frames, streamed)), 'a streamed frame');
  clean(t, server.stderr, 'stderr at level debug');
  clean(t, readFileSync(logPath(server, sessionId), 'utf8'), 'the log');
  t.match(readFileSync(logPath(server, sessionId), 'utf8'), /I found \[redacted\] there/, 'also what came in two pieces');
  clean(t, everyFile(server.stateDir), 'the state directory');
  const around = { PATH: process.env['PATH'], HOME: server.stateDir, ...env };
  for (const command of [
    ['config', ...args],
    ['doctor', ...args],
    ['sessions', 'show', sessionId, '--state-dir', server.stateDir],
  ]) {
    const { stdout, stderr } = spawnSync(process.execPath, [cliPath, ...command], { env: around, encoding: 'utf8', timeout: 20_000 });
    t.not(stdout, '');
    clean(t, stdout + stderr, `dsh-acp ${command.join(' ').slice(0, 20)}`);
  }
});

void t.test('a key file that others can read is not used, and says how to make it private', async (t) => {
  const home = t.testdir({ '.config': { 'dsh-acp': {} } });
  const path = join(home, '.config', 'dsh-acp', 'credentials.json');
  writeFileSync(path, JSON.stringify({ version: 1, keys: { 'https://api.deepseek.com': { key: canary.model } } }));
  chmodSync(path, 0o644);
  const { stdout, stderr } = spawnSync(process.execPath, [cliPath, 'doctor'], {
    env: { PATH: process.env['PATH'], HOME: home },
    encoding: 'utf8',
  });
  t.match(stdout + stderr, /chmod 600/);
  clean(t, stdout + stderr, 'what it says');
  t.equal(statSync(path).mode & 0o777, 0o644, 'it is left to its owner');
});
