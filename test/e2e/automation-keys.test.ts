/**
 * Idempotent prompts of the assembled server: a key is run at most once, whoever asks again, and whenever.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { logPath, readEvents } from '../support/invariants.ts';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';
import { fileAppears } from '../support/file-appears.ts';

const args = ['--model', 'scripted', '--pace-ms', '0', '--profile', 'automation', '--permission-mode', 'full-access'];
const start = (t: Test, stateDir?: string, ...more: string[]): Promise<ServerProcess> =>
  startServer(t, { args: [...args, ...more], ...(stateDir === undefined ? {} : { stateDir }) });
const ours = (frame: Frame): any => frame.result?._meta?.['dsh-acp'];

function send(server: ServerProcess, sessionId: string, key: string, text: string, more: object = {}): number {
  const _meta = { 'dsh-acp': { key, ...more } };
  return server.start('session/prompt', { sessionId, prompt: [{ type: 'text', text }], _meta });
}

const ask = (server: ServerProcess, sessionId: string, key: string, text: string): Promise<Frame> =>
  server.response(send(server, sessionId, key, text));

const starts = async (server: ServerProcess, sessionId: string): Promise<number> =>
  (await readEvents(logPath(server, sessionId))).filter((event) => event.type === 'turn/start').length;

await t.test('requests with one key share one turn while it waits or runs', async (t) => {
  const server = await start(t);
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  const script = 'run touch begun; while [ ! -e go ]; do sleep 0.02; done; echo x >> count\nsay done';
  const first = send(server, sessionId, 'a', script);
  await fileAppears(join(cwd, 'begun'));
  const queued = send(server, sessionId, 'b', 'run echo y >> count\nsay b');
  const again = [
    send(server, sessionId, 'a', script),
    send(server, sessionId, 'a', script),
    send(server, sessionId, 'b', 'run echo y >> count\nsay b'),
  ];
  const conflict = await ask(server, sessionId, 'a', 'say something else');
  t.match(conflict.error, { code: -32602, data: { code: 'KEY_CONFLICT' } });
  const left = send(server, sessionId, 'a', script);
  server.notify('$/cancel_request', { requestId: left });
  t.match(await server.response(left), { result: { stopReason: 'cancelled' } }, 'a request that joined leaves alone');
  server.notify('$/cancel_request', { requestId: first });
  t.match(await server.response(first), { result: { stopReason: 'cancelled' } }, 'and so does the one that began');
  t.notOk(existsSync(join(cwd, 'count')), 'the turn runs on for those who wait');
  const go = await server.newSession(cwd);
  await server.prompt(go, 'run touch go');
  const [one, two, three] = await Promise.all(again.map((id) => server.response(id)));
  t.match(await server.response(queued), { result: { stopReason: 'end_turn' } });
  t.same(one?.result, two?.result);
  t.match(ours(one as Frame), { text: 'done' });
  t.match(ours(three as Frame), { text: 'b' });
  t.equal(readFileSync(join(cwd, 'count'), 'utf8'), 'x\ny\n', 'each ran once');
  t.equal(await starts(server, sessionId), 2);
  await endServer(t, server);
});

await t.test('the last request of a key that leaves ends the turn, and session/cancel ends it for all', async (t) => {
  const server = await start(t);
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  const wait = 'run touch begun; sleep 30';
  const two = [send(server, sessionId, 'k', wait), send(server, sessionId, 'k', wait)];
  await fileAppears(join(cwd, 'begun'));
  for (const requestId of two) server.notify('$/cancel_request', { requestId });
  for (const id of two) t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
  const stored = await ask(server, sessionId, 'k', wait);
  t.match(stored, { result: { stopReason: 'cancelled', _meta: { 'dsh-acp': { stored: true, usage: { toolCalls: 1 } } } } });

  const three = [send(server, sessionId, 'l', 'wait 30000'), send(server, sessionId, 'l', 'wait 30000')];
  server.notify('session/cancel', { sessionId });
  for (const id of three) t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
  await endServer(t, server);
});

await t.test('a key whose turn has ended is answered from the log: here, after close, and in another process', async (t) => {
  const first = await start(t);
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await first.newSession(cwd);
  const script = 'run echo x >> count\nsay The answer.';
  const fresh = await ask(first, sessionId, 'job 1', script);
  const failed = await ask(first, sessionId, 'job 2', 'say So far.\nrun echo y >> count\nfail AUTH 9');
  const spent = await ask(first, sessionId, 'job 3', 'say nothing');
  t.match(fresh, { result: { stopReason: 'end_turn' } });
  const { stored, ...same } = ours(await ask(first, sessionId, 'job 1', script));
  t.equal(stored, true);
  t.same(same, ours(fresh), 'text and usage are those of the turn');
  await first.request('session/close', { sessionId });
  t.match(await first.request('session/resume', { sessionId, cwd }), { result: {} });
  t.match(ours(await ask(first, sessionId, 'job 1', script)).text, /^The answer\./);
  await endServer(t, first);

  const second = await start(t, first.stateDir);
  await second.request('session/resume', { sessionId, cwd });
  t.same(ours(await ask(second, sessionId, 'job 1', script)), { ...ours(fresh), stored: true });
  t.same(ours(await ask(second, sessionId, 'job 3', 'say nothing')).text, ours(spent).text);
  const error = await ask(second, sessionId, 'job 2', 'say So far.\nrun echo y >> count\nfail AUTH 9');
  t.match(error.error, { ...failed.error, data: { ...failed.error?.data, stored: true } }, 'an error, too');
  t.match((await ask(second, sessionId, 'job 1', 'say other')).error, { data: { code: 'KEY_CONFLICT' } });
  t.equal(readFileSync(join(cwd, 'count'), 'utf8'), 'x\ny\n');
  t.match(await ask(second, sessionId, 'job 4', 'say new'), { result: { stopReason: 'end_turn' } });
  t.equal(await starts(second, sessionId), 4);
  t.equal(second.updates(sessionId).length, 1, 'an answer from the log sends no updates');
  await endServer(t, second);
});

await t.test('a turn that a crash cut short is not run again, and the answer says so', async (t) => {
  const first = await start(t);
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await first.newSession(cwd);
  const script = 'say Working.\nrun echo x >> count; sleep 30';
  send(first, sessionId, 'k', script);
  await fileAppears(join(cwd, 'count'));
  first.child.kill('SIGKILL');
  await first.exited;

  const second = await start(t, first.stateDir);
  t.match(await second.request('session/resume', { sessionId, cwd }), { result: {} });
  const cut = await ask(second, sessionId, 'k', script);
  t.match(cut.error, { data: { code: 'TURN_INTERRUPTED', text: /Working/, usage: { toolCalls: 1 }, details: /new key/ } });
  t.equal(readFileSync(join(cwd, 'count'), 'utf8'), 'x\n');
  t.match(await ask(second, sessionId, 'k2', 'say go on'), { result: { stopReason: 'end_turn' } });
  await endServer(t, second);
});

await t.test('a key outlives parking, and prompts without keys are as before', async (t) => {
  const server = await start(t, undefined, '--isolation', 'dedicated', '--max-threads', '1');
  const cwd = realpathSync(t.testdir({}));
  const [one, two] = [await server.newSession(cwd), await server.newSession(cwd)];
  await ask(server, one, 'k', 'run echo x >> count\nsay one');
  await ask(server, two, 'k', 'run echo y >> count\nsay two');
  t.match(ours(await ask(server, one, 'k', 'run echo x >> count\nsay one')), { text: 'one', stored: true }, 'keys are of one session');
  for (let i = 0; i < 2; i += 1) await server.prompt(one, 'run echo z >> count');
  t.equal(readFileSync(join(cwd, 'count'), 'utf8'), 'x\ny\nz\nz\n');
  await endServer(t, server);
});
