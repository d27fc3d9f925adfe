/**
 * session/resume: a stored session goes on without its history being sent; a log that is not good is refused there.
 */
import { appendFileSync, copyFileSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { logPath, readEvents } from '../support/invariants.ts';
import { ModelServer } from '../support/model-server.ts';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

const args = ['--model', 'scripted', '--pace-ms', '0'];
const resume = (server: ServerProcess, sessionId: string, cwd: string, more: object = {}): Promise<Frame> =>
  server.request('session/resume', { sessionId, cwd, ...more });

for (const profile of ['editor', 'automation']) {
  await t.test(`${profile}: nothing is sent, and the next turn knows what was said`, async (t) => {
    const models = await ModelServer.start();
    t.teardown(() => models.close());
    const modelArgs = ['--base-url', models.baseUrl, '--model', 'bench', '--profile', profile];
    const cwd = realpathSync(t.testdir({}));
    const first = await startServer(t, { args: modelArgs });
    const sessionId = await first.newSession(cwd);
    await first.prompt(sessionId, 'the word is lantern {"tokens":2}');
    await endServer(t, first);

    const server = await startServer(t, { args: modelArgs, stateDir: first.stateDir });
    const { result } = await resume(server, sessionId, cwd);
    if (profile === 'editor') t.equal(result.modes.currentModeId, 'ask');
    else t.same(result, {});
    t.same(server.updates(sessionId), [], 'no history');
    t.match(await server.prompt(sessionId, 'and now {"tokens":2}'), { result: { stopReason: 'end_turn' } });
    t.match(JSON.stringify(models.requests.at(-1)?.body), /lantern/);
    t.match((await resume(server, sessionId, cwd)).error, { data: { code: 'SESSION_ALREADY_OPEN' } });
    await server.request('session/close', { sessionId });
    t.ok((await resume(server, sessionId, cwd)).result, 'a closed session can be resumed again');
    await endServer(t, server);
  });
}

await t.test('resume checks as load does, and finds a bad log at once', async (t) => {
  const owner = await startServer(t, { args });
  const cwd = realpathSync(t.testdir({}));
  const other = realpathSync(t.testdir({ more: {} }));
  const sessionId = await owner.newSession(cwd);
  await owner.prompt(sessionId, 'say hello');
  const server = await startServer(t, { args, stateDir: owner.stateDir });
  const refused = async (id: string, dir: string, more: object = {}): Promise<unknown> =>
    (await resume(server, id, dir, more)).error?.data?.code;
  t.equal(await refused(sessionId, cwd), 'SESSION_LOCKED', 'another server has it');
  await endServer(t, owner);
  t.equal(await refused(sessionId, '/'), 'CWD_MISMATCH');
  t.equal(await refused(sessionId, 'relative'), 'CWD_INVALID');
  t.equal(await refused('00000000-0000-7000-8000-000000000000', other), 'SESSION_NOT_FOUND');
  t.equal(await refused('../x', other), 'SESSION_NOT_FOUND');
  t.equal(await refused(sessionId, cwd, { additionalDirectories: ['tmp'] }), 'INVALID_PARAMS');
  t.equal(await refused(sessionId, cwd, { mcpServers: [{ name: 'm', command: './c', args: [], env: [] }] }), 'INVALID_PARAMS');
  t.equal(await refused(sessionId, cwd, { _meta: { 'dsh-acp': { persona: 'x' } } }), 'INVALID_PARAMS');
  t.equal(await refused(sessionId, cwd, { _meta: { 'dsh-acp': { readOnly: true } } }), 'INVALID_PARAMS');

  const path = logPath(server, sessionId);
  copyFileSync(path, `${path}.kept`);
  const lines = readFileSync(path, 'utf8').split('\n');
  writeFileSync(path, [...lines.slice(0, 3), 'not a line', ...lines.slice(3)].join('\n'));
  const { error } = await resume(server, sessionId, cwd);
  t.match(error, { data: { code: 'LOG_CORRUPT', line: 4 } });
  copyFileSync(`${path}.kept`, path);
  appendFileSync(path, '{"type":"turn/st');
  t.ok((await resume(server, sessionId, cwd)).result, 'a torn tail is cut off, as ever');
  t.match(await server.prompt(sessionId, 'say again'), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
});

await t.test('mode and environment may be given with a resume; the mode is in the log then', async (t) => {
  const server = await startServer(t, { args });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  await server.request('session/close', { sessionId });
  const _meta = { 'dsh-acp': { mode: 'full-access', env: { WORD: 'plum' } } };
  t.equal((await resume(server, sessionId, cwd, { _meta })).result.modes.currentModeId, 'full-access');
  await server.prompt(sessionId, 'run echo "$WORD" > out');
  t.equal(readFileSync(`${cwd}/out`, 'utf8'), 'plum\n');
  await server.request('session/close', { sessionId });
  t.equal((await resume(server, sessionId, cwd)).result.modes.currentModeId, 'full-access');
  const modes = (await readEvents(logPath(server, sessionId))).flatMap((event) => (event.type === 'mode/change' ? [event.data.mode] : []));
  t.same(modes, ['full-access']);
  await endServer(t, server);
});
