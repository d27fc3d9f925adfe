/** Forking and deleting sessions of the assembled server, also under another server and in the middle of a turn. */
import { existsSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

const fork = (server: ServerProcess, sessionId: string, cwd: string, more: object = {}): Promise<Frame> =>
  server.request('session/fork', { sessionId, cwd, ...more });
const remove = (server: ServerProcess, sessionId: string): Promise<Frame> => server.request('session/delete', { sessionId });
const listed = async (server: ServerProcess, params: object = {}): Promise<{ sessionId: string; title?: string }[]> =>
  (await server.request('session/list', params)).result.sessions;
const left = (server: ServerProcess): string[] => readdirSync(join(server.stateDir, 'sessions')).sort();
const log = (server: ServerProcess, sessionId: string): any[] =>
  readFileSync(join(server.stateDir, 'sessions', `${sessionId}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
const workspace = (t: Test): string => realpathSync(t.testdir({}));

await t.test('forks', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access'] });

  await t.test('a fork knows what its source knew, goes its own way, and outlives it', async (t) => {
    const cwd = workspace(t);
    const source = await server.newSession(cwd);
    await server.prompt(source, 'say first\nrun seq 1 200000');
    await server.request('session/set_mode', { sessionId: source, modeId: 'accept-edits' });
    const { result } = await fork(server, source, cwd);
    t.not(result.sessionId, source);
    t.equal(result.modes.currentModeId, 'accept-edits');
    t.match(result.configOptions, [{ id: 'mode', currentValue: 'accept-edits' }, { id: 'model' }]);
    const copy = result.sessionId;
    t.match(await server.prompt(source, 'say only here'), { result: { stopReason: 'end_turn' } });
    t.match(await server.prompt(copy, 'say only there'), { result: { stopReason: 'end_turn' } });
    t.notMatch(JSON.stringify(log(server, source)), 'only there');
    t.notMatch(JSON.stringify(log(server, copy)), 'only here');
    const titles = (await listed(server, { cwd })).map(({ title }) => title);
    t.same(titles, [titles[0], titles[0]], 'both have the same title');
    t.ok(titles[0]);
    const kept = await remove(server, source);
    t.same(kept.result, {});
    const [, spilled = ''] = / is in (\S+)\]/.exec(log(server, copy).find(({ type }) => type === 'tool/result').data.text) ?? [];
    t.match(spilled, `${copy}.d`);
    t.match(readFileSync(spilled, 'utf8'), /^1\n2\n[^]*\n200000\n$/);
    t.same(
      (await listed(server, { cwd })).map(({ sessionId }) => sessionId),
      [copy],
    );
    t.same((await server.request('session/close', { sessionId: copy })).result, {});
    const before = server.updates(copy).length;
    t.ok((await server.request('session/load', { sessionId: copy, cwd, mcpServers: [] })).result);
    t.match(JSON.stringify(server.updates(copy).slice(before)), /say first[^]*only there/, 'and shows the past as its own');
  });

  await t.test('the fork of a session that runs has what is finished, and the turn runs on', async (t) => {
    const cwd = workspace(t);
    const source = await server.newSession(cwd);
    await server.prompt(source, 'say done');
    const running = server.startPrompt(source, 'say begun\nwait 60000');
    await server.waitFor(({ params }) => params?.sessionId === source && params.update?.content?.text?.includes('begun'), 'the turn');
    const { result } = await fork(server, source, cwd);
    const events = log(server, result.sessionId);
    const begun = log(server, source).filter(({ type }) => type === 'turn/start')[1].seq;
    t.match(events[0], { id: result.sessionId, forkedFrom: { sessionId: source, seq: begun - 1 } });
    t.equal(events.filter(({ type }) => type === 'turn/start').length, 1);
    t.match(await server.prompt(result.sessionId, 'say mine'), { result: { stopReason: 'end_turn' } });
    server.notify('session/cancel', { sessionId: source });
    t.match(await server.response(running), { result: { stopReason: 'cancelled' } });
  });

  await t.test('what cannot be forked is refused by name, and nothing is made', async (t) => {
    const cwd = workspace(t);
    const source = await server.newSession(cwd);
    const before = left(server);
    t.match((await fork(server, source, '/')).error, { data: { code: 'CWD_MISMATCH' } });
    t.match((await fork(server, source, 'here')).error, { code: -32602 });
    t.match((await fork(server, '00000000-0000-7000-8000-000000000000', cwd)).error, { code: -32002 });
    t.match((await fork(server, '../../etc/passwd', cwd)).error, { code: -32002 });
    t.match((await server.request('session/fork', { cwd })).error, { code: -32602, message: /^sessionId: / });
    t.match((await fork(server, source, cwd, { mcpServers: [{ name: 'x' }] })).error, { code: -32602, message: /^mcpServers/ });
    t.match((await fork(server, source, cwd, { _meta: { 'dsh-acp': { readOnly: true } } })).error, { code: -32602 });
    t.same(left(server), before);
  });

  await t.test('a damaged session is refused, and its copy is gone again', async (t) => {
    const cwd = workspace(t);
    const source = await server.newSession(cwd);
    await server.prompt(source, 'say hello');
    const path = join(server.stateDir, 'sessions', `${source}.jsonl`);
    await server.request('session/close', { sessionId: source });
    writeFileSync(path, readFileSync(path, 'utf8').replace('hello', 'hallo'));
    const before = left(server);
    t.match((await fork(server, source, cwd)).error, { data: { code: 'LOG_CORRUPT' } });
    t.same(left(server), before);
  });

  await endServer(t, server);
});

await t.test('deletions', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access'] });
  const { stateDir } = server;

  await t.test('a session that runs is ended, answered, and then gone with all that it had', async (t) => {
    const cwd = workspace(t);
    const sessionId = await server.newSession(cwd);
    await server.prompt(sessionId, 'delegate self run seq 1 200000\nbg sleep 300');
    t.equal(left(server).filter((name) => name.endsWith('.jsonl')).length, 2, 'the session and the one that it delegated to');
    const [running, queued] = [server.startPrompt(sessionId, 'wait 60000'), server.startPrompt(sessionId, 'say never')];
    const [gone, ...ends] = await Promise.all([remove(server, sessionId), server.response(running), server.response(queued)]);
    t.same(gone.result, {});
    for (const { result } of ends) t.equal(result.stopReason, 'cancelled');
    t.same(left(server), []);
    t.same(await listed(server), []);
    t.match((await server.prompt(sessionId, 'say more')).error, { code: -32002 });
    t.match((await server.request('session/load', { sessionId, cwd, mcpServers: [] })).error, { code: -32002 });
    t.same((await remove(server, sessionId)).result, {}, 'again');
  });

  await t.test('what there is not is gone already, whatever it is called', async (t) => {
    const outside = join(stateDir, 'precious.jsonl');
    writeFileSync(outside, 'x');
    for (const id of ['00000000-0000-7000-8000-000000000000', '', '..', '../precious', outside])
      t.same((await remove(server, id)).result, {}, id);
    t.ok(existsSync(outside));
    t.match((await server.request('session/delete', {})).error, { code: -32602 });
  });

  await t.test('a session that another server has open is refused; one that is looked at is not looked at any more', async (t) => {
    const cwd = workspace(t);
    const other = await startServer(t, { stateDir });
    const sessionId = await other.newSession(cwd);
    await other.prompt(sessionId, 'say mine');
    t.match((await remove(server, sessionId)).error, { code: -31006, data: { code: 'SESSION_LOCKED', pid: other.pid } });
    t.match(await other.prompt(sessionId, 'say still here'), { result: { stopReason: 'end_turn' } });
    await server.request('session/load', { sessionId, cwd, mcpServers: [], _meta: { 'dsh-acp': { readOnly: true } } });
    await endServer(t, other);
    t.same((await remove(server, sessionId)).result, {});
    t.match((await server.request('session/load', { sessionId, cwd, mcpServers: [] })).error, { code: -32002 });
  });

  await t.test('what a killed server left running for it ends with it', async (t) => {
    const cwd = workspace(t);
    const other = await startServer(t, { stateDir, args: ['--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access'] });
    const sessionId = await other.newSession(cwd);
    await other.prompt(sessionId, 'bg echo $$ > pid; exec sleep 300\nrun while [ ! -s pid ]; do sleep 0.01; done');
    const pid = Number(readFileSync(join(cwd, 'pid'), 'utf8'));
    t.ok(existsSync(`/proc/${pid}`));
    await other.dispose();
    t.same((await remove(server, sessionId)).result, {});
    // It was sent its end before the answer; on a busy machine it takes it a little later.
    for (let left = 500; left > 0 && isAlive(pid); left -= 1) await delay(10);
    t.notOk(isAlive(pid));
    t.same(left(server), []);
  });

  await t.test('a list knows its directory under any name, and no cursor but its own', async (t) => {
    const dir = realpathSync(t.testdir({ real: {} }));
    symlinkSync(join(dir, 'real'), join(dir, 'link'));
    const sessionId = await server.newSession(join(dir, 'link'));
    for (const name of ['link', 'real', 'real/', 'real/../link/.']) {
      t.same(
        (await listed(server, { cwd: join(dir, name) })).map((one) => one.sessionId),
        [sessionId],
        name,
      );
    }
    t.same(await listed(server, { cwd: join(dir, 'gone') }), []);
    for (const cursor of ['', 'x', Buffer.from(`1/${sessionId}/`).toString('base64url')]) {
      t.match((await server.request('session/list', { cursor })).error, { code: -32602, data: { field: 'cursor' } }, cursor);
    }
  });

  await endServer(t, server);
});

await t.test('automation deletes and forks nothing, and neither does a server that only looks', async (t) => {
  for (const args of [
    ['--profile', 'automation'],
    ['--look-only', 'on'],
  ]) {
    const server = await startServer(t, { args: ['--model', 'scripted', ...args], initialize: false });
    const { result } = await server.initialize();
    for (const name of ['delete', 'fork']) t.notOk(name in result.agentCapabilities.sessionCapabilities, `${args[0]} ${name}`);
    const sessionId = '00000000-0000-7000-8000-000000000000';
    const code = args[0] === '--profile' ? 'METHOD_NOT_FOUND' : 'SESSION_READ_ONLY';
    t.match((await remove(server, sessionId)).error, { data: { code } });
    t.match((await fork(server, sessionId, '/')).error, { data: { code } });
    await endServer(t, server);
  }
});

function isAlive(pid: number): boolean {
  try {
    // A zombie that nobody has reaped yet is gone for everybody else.
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
