/** Canaries: a secret goes in by every door, everything is done that says something or writes it down, and it is found nowhere. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readConfigFile } from '../../src/main/config/read-config-file.ts';
import { KeyStore } from '../../src/main/credentials/key-store.ts';
import { canaries, filesWithCanary, holdsCanary } from '../support/canaries.ts';
import { faultTest, logPath } from '../support/invariants.ts';
import { SessionPicture } from '../support/session-picture.ts';
import { cliPath, type Frame } from '../support/server-process.ts';

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
const halves = (secret: string): string[] => [secret.slice(0, 12), secret.slice(12)];

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
  const env = { DEEPSEEK_API_KEY: canary.model, MY_SERVICE_TOKEN: canary.ambient, DSH_ACP_API_KEY_ENV: 'DEEPSEEK_API_KEY' };
  const args = [
    '--base-url',
    model.baseUrl,
    '--model',
    'bench',
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
  t.equal(model.requests[0]?.headers.authorization, `Bearer ${canary.model}`, 'the key is used');
  // The provider repeats the key in every way it can.
  for (const status of [400, 401, 403, 404, 422]) {
    const words = `bad key ${canary.model} for Bearer ${canary.model} beside ${canary.ambient}`;
    model.enqueue({ fault: { kind: 'status', status, body: JSON.stringify({ error: { message: words } }) } });
    t.ok((await prompt('again')).error !== undefined, `HTTP ${status}`);
  }
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
  t.ok((await prompt('[!throw 100] {"tokens":4000,"delayMs":5}')).error !== undefined, 'a killed thread, which died with all of them');
  await prompt('{"tokens":1}');
  const { metrics } = (await server.request('_status', {})).result;
  clean(t, await (await fetch(`http://127.0.0.1:${metrics.port}/metrics`)).text(), 'the metrics');
  clean(t, readFileSync(`/proc/${server.pid}/cmdline`, 'latin1'), 'the command line');
  await server.close();
  t.match(server.stderr, /sabotage: thrown [^]*\[redacted\]/, 'what the thread died of is told at level debug');
  clean(t, JSON.stringify(server.frames), 'a frame');
  clean(t, server.stderr, 'stderr at level debug');
  clean(t, readFileSync(logPath(server, sessionId), 'utf8'), 'the log');
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

void faultTest('fault 79: what model and commands say of secrets is shown without them, wherever it is cut', async (t, rig) => {
  const model = await rig.model();
  const questions: Frame[] = [];
  const server = await rig.serve({
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--titles', 'off'],
    capabilities: { _meta: { terminal_output: true } },
    onRequest: (frame) => {
      questions.push(frame);
      const option = frame.params.options.find(({ kind }: { kind: string }) => kind === 'allow_once');
      return { outcome: { outcome: 'selected', optionId: option.optionId } };
    },
  });
  const { result } = await server.request('session/new', {
    cwd: rig.dir,
    mcpServers: [],
    _meta: { 'dsh-acp': { env: { SESSION_PASSWORD: canary.session } } },
  });
  const sessionId: string = result.sessionId;
  const { FAULT_API_KEY: key, FAULT_SERVICE_TOKEN: token, FAULT_DB_PASSWORD: password } = canaries;
  // Text, whole, in two pieces and character by character; the last begins like one and is none.
  model.enqueue({
    text: [`I found ${key}.`, ' And ', ...halves(canary.session), ' there, ', ...token.split(''), `. ${halves(password)[0]}`],
  });
  t.match(await server.prompt(sessionId, 'what is it?'), { result: { stopReason: 'end_turn' } });
  const said = server.text(sessionId);
  t.match(said, /^I found \[redacted\]\. And (ca)?\[redacted\] there, (cn)?\[redacted\]\. cnry-/);
  t.ok(said.endsWith(halves(password)[0]!), 'what is no secret is shown to its end');

  // A call, while the model writes it, in the question about it, while its command runs, and in its result.
  const [first, second] = halves(canary.session);
  const command = `echo ${token}; printf '%s' '${first}'; sleep 0.4; echo '${second}' "$SESSION_PASSWORD"`;
  model.enqueue({ tools: [bash(command)], toolDelayMs: 25 }, { tokens: 1 });
  t.match(await server.prompt(sessionId, 'use it'), { result: { stopReason: 'end_turn' } });
  t.match(questions[0]?.params.toolCall.rawInput.command, /^echo \[redacted\]; printf '%s' 'canary-sess/);
  const picture = new SessionPicture().takeAll(server.updates(sessionId));
  t.ok(picture.texts.includes(`[redacted]\nca[redacted] [redacted]\n`), JSON.stringify(picture.texts.at(-1)));
  t.match(
    JSON.stringify(model.requests.at(-1)?.body.messages),
    /\[redacted\]\\\\n\[redacted\] \[redacted\]|\[redacted\]/,
    'the model sees as little',
  );

  // A person, or an editor, that sends one.
  await server.prompt(sessionId, `keep ${password} {"tokens":1}`);
  const live = server.updates(sessionId).length;
  await server.request('session/close', { sessionId });
  t.match(await server.request('session/load', { sessionId, cwd: rig.dir, mcpServers: [] }), { result: {} });
  for (const secret of [...Object.values(canaries), canary.session]) {
    t.notOk(JSON.stringify(server.frames).includes(secret));
    for (const updates of [server.updates(sessionId).slice(0, live), server.updates(sessionId).slice(live)])
      t.notOk(new SessionPicture().takeAll(updates).texts.some((text) => text.includes(secret)));
  }
  t.notOk(JSON.stringify(model.requests.map(({ body }) => body)).includes(password), 'nor is it sent to the model');
});

void faultTest('fault 79: a process that dies says no secret, and writes no report', async (t, rig) => {
  const cwd = join(rig.dir, 'work');
  mkdirSync(cwd);
  const NODE_OPTIONS = '--report-on-fatalerror --report-uncaught-exception --report-on-signal';
  const server = await rig.serve({ args: ['--model', 'scripted', '--log-level', 'debug'], env: { NODE_OPTIONS, SABOTAGE: 'main' } });
  const session = await server.newSession(cwd);
  server.startPrompt(session, '[!abort 20]\nrepeat 4000 word');
  t.match(await server.exited, { code: null }, 'the process is aborted by one of its threads');
  server.killed = true;
  t.match(server.stderr, /Fatal JavaScript invalid size error/);

  // The program itself, as it is published, out of memory in its main thread.
  const preload = join(cwd, 'fill.mjs');
  writeFileSync(
    preload,
    `import { isMainThread } from 'node:worker_threads';
     const fill = () => { const kept = []; for (;;) kept.push(new Array(1_000_000).fill(0.5), Object.values(process.env).join()); };
     if (isMainThread) process.once('SIGUSR2', fill);`,
  );
  const env = { ...canaries, PATH: process.env['PATH'], HOME: rig.dir, NODE_OPTIONS };
  const child = spawn(
    process.execPath,
    ['--max-old-space-size=96', '--import', preload, cliPath, '--model', 'scripted', '--state-dir', join(rig.dir, 'other')],
    { cwd, env },
  );
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => said.push(piece));
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n');
  await once(child.stdout, 'data');
  child.kill('SIGUSR2');
  t.match(await once(child, 'close'), [null, 'SIGABRT']);
  const text = Buffer.concat(said).toString();
  t.match(text, /heap out of memory/);
  t.notOk(holdsCanary(text));
  t.same(
    readdirSync(cwd).filter((name) => name.startsWith('report.')),
    [],
    'no report',
  );
  t.same(filesWithCanary(rig.dir), []);
});

void faultTest(
  'fault 79: a key file that others can read is not used; what login writes is private, whatever the umask',
  async (t, rig) => {
    const model = await rig.model();
    const config = join(rig.dir, '.config', 'dsh-acp');
    const path = join(config, 'credentials.json');
    const env = { PATH: process.env['PATH'], HOME: rig.dir };
    const shell = (command: string, input = ''): string => {
      const { stdout, stderr } = spawnSync('/bin/sh', ['-c', command, process.execPath, cliPath], { env, input, encoding: 'utf8' });
      return stdout + stderr;
    };
    // Asynchronously: the model server that the key is tried at is in this process.
    const login = spawn(
      '/bin/sh',
      ['-c', `umask 0; exec "$0" "$1" login --key-stdin --base-url ${model.baseUrl} --model m`, process.execPath, cliPath],
      { env },
    );
    let told = '';
    for (const stream of [login.stdout, login.stderr]) stream.on('data', (piece: Buffer) => (told += piece.toString()));
    login.stdin.end(canary.model);
    t.same(await once(login, 'close'), [0, null], told);
    t.match(told, `stored in ${path}`);
    clean(t, told, 'what login says');
    t.same(
      [path, config].map((one) => statSync(one).mode & 0o777),
      [0o600, 0o700],
    );
    const store = new KeyStore(path);
    t.same(store.has(model.baseUrl), { stored: true });
    const settings = join(rig.dir, 'config.toml');
    writeFileSync(settings, `[provider]\napi_key = "${canary.model}"\n`);
    const around = { env, home: rig.dir, cwd: rig.dir };
    chmodSync(settings, 0o600);
    t.equal((await readConfigFile(settings, around))?.found, true);
    for (const mode of [0o640, 0o604, 0o660, 0o602, 0o644, 0o610]) {
      chmodSync(path, mode);
      t.match(store.has(model.baseUrl), { stored: false, reason: /chmod 600/ }, mode.toString(8));
      chmodSync(settings, mode);
      await t.rejects(readConfigFile(settings, around), { code: 'CONFIG_INVALID', message: /chmod 600/ }, mode.toString(8));
    }
    const doctor = shell('exec "$0" "$1" doctor');
    t.match(doctor, /chmod 600/);
    clean(t, doctor, 'what doctor says');
    t.equal(statSync(path).mode & 0o777, 0o610, 'it is left to its owner');
  },
);
