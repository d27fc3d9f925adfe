/** Signing in and out over the real server and the real commands, as a client and a person do it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ModelServer } from '../support/model-server.ts';
import { cliPath, type Frame, type ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

const key = 'sk-canary-0123456789abcdef';

/** Runs a command of this program with the home and the variables of a server. */
async function command(args: readonly string[], env: Record<string, string>, input = ''): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, [cliPath, ...args], { env: { PATH: process.env['PATH'], ...env }, stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text.toString()));
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  return { code, output };
}

const open = (server: ServerProcess, cwd: string): Promise<Frame> => server.request('session/new', { cwd, mcpServers: [] });

t.test('a key that is stored while the server runs is used by new sessions, and no more once the client signs out', async (t) => {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const cwd = t.testdir({});
  const home = t.testdir({ home: {} });
  const env = { HOME: join(home, 'home'), DEEPSEEK_BASE_URL: model.baseUrl };
  const server = await startServer(t, { args: ['--model', 'deepseek-flash', '--permission-mode', 'full-access'], env, initialize: false });
  const { result } = await server.initialize({ auth: { terminal: true } });
  t.match(result.agentCapabilities.auth, { logout: {} });
  t.match(result.authMethods, [{ id: 'api-key' }, { id: 'login', type: 'terminal', args: ['--login'] }]);
  t.match(await open(server, cwd), { error: { code: -32000, message: /needs a key.*dsh-acp login/ } });
  t.match((await server.request('session/list', {})).result, { sessions: [] }, 'looking needs no key');
  t.match(await server.request('authenticate', { methodId: 'login' }), { error: { code: -32602 } });
  t.match(await server.request('authenticate', { methodId: 'api-key' }), { error: { code: -32000 } });

  // What a client does with the method: the same command, with its args behind.
  const login = await command(['--model', 'deepseek-flash', '--login', '--key-stdin'], env, `${key}\n`);
  t.match(login, { code: 0, output: /is stored in/ });
  t.match(await server.request('authenticate', { methodId: 'api-key' }), { result: {} });
  const sessionId = (await open(server, cwd)).result.sessionId;
  model.enqueue({ tools: [{ name: 'bash', arguments: JSON.stringify({ command: 'env; cat /proc/$PPID/environ' }) }] }, { text: ['Hi.'] });
  t.match(await server.prompt(sessionId, 'Hello'), { result: { stopReason: 'end_turn' } });
  t.equal(model.requests[0]?.headers.authorization, `Bearer ${key}`);

  t.match(await server.request('logout', {}), { result: {} });
  t.same(readdirSync(join(env.HOME, '.config', 'dsh-acp')), [], 'nothing is left of it');
  t.match(await open(server, cwd), { error: { code: -32000 } });
  model.enqueue({ text: ['Still here.'] });
  t.match(await server.prompt(sessionId, 'Go on'), { result: { stopReason: 'end_turn' } }, 'a session that runs keeps its key');
  t.equal(model.requests.at(-1)?.headers.authorization, `Bearer ${key}`);
  await endServer(t, server);
  t.notMatch(JSON.stringify(server.frames), new RegExp(key), 'the client never sees the key');
  const logged = readdirSync(server.stateDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { parentPath, name } of logged) t.notMatch(readFileSync(join(parentPath, name), 'utf8'), new RegExp(key), name);
});

t.test('the demo gives way to the model as soon as there is a key, without a restart', async (t) => {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const cwd = t.testdir({});
  const home = t.testdir({ home: {} });
  const env = { HOME: join(home, 'home'), DEEPSEEK_BASE_URL: model.baseUrl };
  const server = await startServer(t, { args: ['--log-level', 'warn'], env, initialize: { _meta: { 'terminal-auth': true } } });
  const [, login] = server.frames[0]!.result.authMethods;
  const { command: program, args } = login._meta['terminal-auth'];
  t.equal(program, process.execPath);
  t.same(args.at(-1), '--login');
  const demo = (await open(server, cwd)).result.sessionId;
  await server.prompt(demo, 'say hello');
  t.match(await command([...args.slice(1), '--key-stdin'], env, key), { code: 0 });
  const sessionId = (await open(server, cwd)).result.sessionId;
  model.enqueue({ text: ['From the model.'] });
  await server.prompt(sessionId, 'Hello');
  t.equal(server.text(sessionId), 'From the model.');
  await server.prompt(demo, 'say still a demo');
  t.match(server.text(demo), /still a demo/, 'what was begun with the demo goes on with it');
  t.match(await command(['logout'], env), { code: 0, output: /is removed/ });
  t.match(await open(server, cwd), { error: { code: -32000 } });
  await endServer(t, server);
});
