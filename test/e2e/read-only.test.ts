/**
 * Sessions that are only looked at: an editor sees the log of a run that another server is making, or that a killed one has
 * left, and changes nothing.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { fileAppears } from '../support/file-appears.ts';
import { logPath } from '../support/invariants.ts';
import { mergedUpdates } from '../support/merged-updates.ts';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { callIds, endServer, startServer, statusesOfCall } from '../support/started-server.ts';

const runArgs = ['--model', 'scripted', '--pace-ms', '0', '--profile', 'automation', '--permission-mode', 'full-access'];
const viewArgs = ['--model', 'scripted', '--pace-ms', '0'];

const look = (server: ServerProcess, sessionId: string, cwd: string): Promise<Frame> =>
  server.request('session/load', { sessionId, cwd, mcpServers: [], _meta: { 'dsh-acp': { readOnly: true } } });

const shows = (server: ServerProcess, text: string): Promise<Frame> =>
  server.waitFor(
    // The prompt says it as well.
    ({ params }) => params?.update?.sessionUpdate === 'agent_message_chunk' && params.update.content.text.includes(text),
    `a chunk with ${text}`,
  );

await t.test('an editor looks at a run while it goes on, and after', async (t) => {
  const runner = await startServer(t, { args: runArgs });
  const cwd = realpathSync(t.testdir({}));
  const made = await runner.request('session/new', { cwd, mcpServers: [], _meta: { 'dsh-acp': { mode: 'full-access' } } });
  const { sessionId } = made.result;
  const running = runner.startPrompt(
    sessionId,
    'say Before.\nrun touch begun; while [ ! -e go ]; do sleep 0.02; done\nthink of it\nsay After.',
  );
  await fileAppears(join(cwd, 'begun'));

  const viewer = await startServer(t, { args: viewArgs, stateDir: runner.stateDir });
  t.match((await viewer.request('session/load', { sessionId, cwd, mcpServers: [] })).error, { data: { code: 'SESSION_LOCKED' } });
  const lock = readFileSync(logPath(runner, sessionId).replace('.jsonl', '.lock'), 'utf8');
  const { result } = await look(viewer, sessionId, cwd);
  t.equal(result.modes.currentModeId, 'full-access');
  const before = mergedUpdates(viewer.updates(sessionId));
  t.same(
    before.map((update) => update.sessionUpdate),
    [
      'current_mode_update',
      'config_option_update',
      'user_message_chunk',
      'agent_message_chunk',
      'tool_call',
      'tool_call_update',
      'session_info_update',
    ],
  );
  const [call = ''] = callIds(viewer, sessionId);
  t.same(statusesOfCall(viewer, sessionId, call), ['pending', 'in_progress']);

  for (const [method, params] of [
    ['session/prompt', { sessionId, prompt: [{ type: 'text', text: 'say x' }] }],
    ['session/set_mode', { sessionId, modeId: 'ask' }],
  ] as const) {
    t.match((await viewer.request(method, params)).error, { data: { code: 'SESSION_READ_ONLY' } }, method);
  }
  viewer.notify('session/cancel', { sessionId });
  t.match((await look(viewer, sessionId, cwd)).error, { data: { code: 'SESSION_ALREADY_OPEN' } });

  await runner.prompt(await runner.newSession(cwd), 'run touch go');
  t.match(await runner.response(running), { result: { stopReason: 'end_turn' } }, 'the cancel of who only looks ends nothing');
  await shows(viewer, 'After.');
  t.same(statusesOfCall(viewer, sessionId, call), ['pending', 'in_progress', 'completed']);
  await runner.prompt(sessionId, 'say A second turn.');
  await shows(viewer, 'A second turn.');
  t.equal(readFileSync(logPath(runner, sessionId).replace('.jsonl', '.lock'), 'utf8'), lock, 'the lock is as it was');

  t.same((await viewer.request('session/close', { sessionId })).result, {});
  const seen = viewer.updates(sessionId).length;
  await runner.prompt(sessionId, 'say Unseen.');
  t.match(
    await look(viewer, sessionId, cwd),
    { result: { modes: { currentModeId: 'full-access' } } },
    'a log at rest, with its writer alive',
  );
  const again = mergedUpdates(viewer.updates(sessionId).slice(seen));
  t.match(
    again.findLast(({ content }) => content !== undefined),
    { content: { text: 'Unseen.' } },
  );
  await endServer(t, runner);
  t.match((await viewer.request('session/load', { sessionId, cwd, mcpServers: [] })).error, { data: { code: 'SESSION_ALREADY_OPEN' } });
  await viewer.request('session/close', { sessionId });

  const loaded = viewer.updates(sessionId).length;
  await viewer.request('session/load', { sessionId, cwd, mcpServers: [] });
  t.same(mergedUpdates(viewer.updates(sessionId).slice(loaded)), again, 'what was looked at is what a load shows');
  await endServer(t, viewer);
});

await t.test('a log whose writer was killed is shown as it is, then goes on with whoever takes it over', async (t) => {
  const runner = await startServer(t, { args: runArgs });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await runner.newSession(cwd);
  runner.startPrompt(sessionId, 'say Before.\nrun touch begun; sleep 30');
  await fileAppears(join(cwd, 'begun'));
  const viewer = await startServer(t, { args: viewArgs, stateDir: runner.stateDir });
  const witness = await startServer(t, { args: viewArgs, stateDir: runner.stateDir });
  t.ok((await look(witness, sessionId, cwd)).result);
  const [call = ''] = callIds(witness, sessionId);
  t.same(statusesOfCall(witness, sessionId, call), ['pending', 'in_progress']);
  runner.child.kill('SIGKILL');
  await runner.exited;
  const path = logPath(runner, sessionId);
  const log = readFileSync(path);
  await witness.waitFor(({ params }) => params?.update?.toolCallId === call && params.update.status === 'failed', 'the end of the card');
  await endServer(t, witness);

  t.ok((await look(viewer, sessionId, cwd)).result);
  t.same(statusesOfCall(viewer, sessionId, call), ['pending', 'in_progress', 'failed'], 'nobody is left to end the call');
  t.ok(readFileSync(path).equals(log), 'the log was not touched');
  t.ok(existsSync(path.replace('.jsonl', '.lock')), 'nor was the lock that the dead server left');

  const next = await startServer(t, { args: runArgs, stateDir: runner.stateDir });
  t.ok((await next.request('session/resume', { sessionId, cwd })).result);
  await next.prompt(sessionId, 'say Back again.');
  await shows(viewer, 'Back again.');
  t.same(statusesOfCall(viewer, sessionId, call), ['pending', 'in_progress', 'failed']);
  await endServer(t, next);
  await endServer(t, viewer);
});

await t.test('looking checks as a load does, and takes no other option', async (t) => {
  const server = await startServer(t, { args: [...viewArgs, '--isolation', 'strict', '--max-threads', '2'] });
  const cwd = realpathSync(t.testdir({}));
  const [one, two, three] = [await server.newSession(cwd), await server.newSession(cwd), await server.newSession(cwd)];
  t.match((await look(server, one, cwd)).error, { data: { code: 'SESSION_ALREADY_OPEN' } }, 'it is open here');
  for (const sessionId of [one, two]) await server.request('session/close', { sessionId });
  t.match((await look(server, one, '/')).error, { data: { code: 'CWD_MISMATCH' } });
  t.match((await look(server, '00000000-0000-7000-8000-000000000000', cwd)).error, { data: { code: 'SESSION_NOT_FOUND' } });
  const more = { sessionId: one, cwd, mcpServers: [], _meta: { 'dsh-acp': { readOnly: true, mode: 'ask' } } };
  t.match((await server.request('session/load', more)).error, { data: { code: 'INVALID_PARAMS' } });
  t.ok((await look(server, one, cwd)).result, 'a session that never ran');
  t.match((await look(server, two, cwd)).error, { data: { code: 'OVERLOADED' } }, 'the last thread is kept for turns');
  t.match(await server.prompt(three, 'say still here'), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
});

await t.test('a session is shown when its directory is gone, and only by the name of that', async (t) => {
  const runner = await startServer(t, { args: runArgs });
  const dir = realpathSync(t.testdir({ other: {} }));
  const cwd = join(dir, 'worktree');
  mkdirSync(cwd);
  const sessionId = await runner.newSession(cwd);
  await runner.prompt(sessionId, 'say Done.\nrun touch result');
  symlinkSync(cwd, join(dir, 'link'));
  const viewer = await startServer(t, { args: viewArgs, stateDir: runner.stateDir });
  t.ok((await look(viewer, sessionId, join(dir, 'link'))).result, 'while it is there another name will do');
  await viewer.request('session/close', { sessionId });
  await endServer(t, runner);
  rmSync(cwd, { recursive: true });

  const seen = viewer.updates(sessionId).length;
  t.match((await look(viewer, sessionId, join(dir, 'gone too'))).error, { data: { code: 'CWD_INVALID' } });
  t.match((await look(viewer, sessionId, join(dir, 'other'))).error, { data: { code: 'CWD_MISMATCH' } });
  t.match((await look(viewer, sessionId, 'worktree')).error, { data: { code: 'CWD_INVALID' } });
  t.equal((await viewer.request('session/list', { cwd })).result.sessions[0].cwd, cwd);
  t.ok((await look(viewer, sessionId, `${cwd}/`)).result);
  t.match(JSON.stringify(viewer.updates(sessionId).slice(seen)), /Done\./);
  t.match((await viewer.request('session/close', { sessionId })).result, {});
  const open = { sessionId, cwd, mcpServers: [] };
  t.match((await viewer.request('session/load', open)).error, { data: { code: 'CWD_INVALID' } }, 'to go on it must be there');
  await endServer(t, viewer);
});

await t.test('a server that was started only to look makes and changes nothing, whatever the client sends', async (t) => {
  const runner = await startServer(t, { args: runArgs });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await runner.newSession(cwd);
  await runner.prompt(sessionId, 'say Before.');
  const log = readFileSync(logPath(runner, sessionId));
  const viewer = await startServer(t, { args: [...viewArgs, '--look-only', 'on'], stateDir: runner.stateDir, initialize: false });
  const capabilities = (await viewer.initialize()).result.agentCapabilities;
  t.match(capabilities, { loadSession: true, sessionCapabilities: { list: {}, close: {} } });
  t.notOk('resume' in capabilities.sessionCapabilities);
  t.same(capabilities._meta['dsh-acp'].extensions, { initialize: ['profile'], 'session/load': ['readOnly'] });
  const open = { sessionId, cwd, mcpServers: [] };
  t.match((await viewer.request('session/new', { cwd, mcpServers: [] })).error, { data: { code: 'SESSION_READ_ONLY' } });
  t.match((await viewer.request('session/resume', open)).error, { data: { code: 'SESSION_READ_ONLY' } });
  t.ok((await viewer.request('session/load', open)).result, 'though the other server has it open');
  const prompt = { sessionId, prompt: [{ type: 'text', text: 'say x' }] };
  t.match((await viewer.request('session/prompt', prompt)).error, { data: { code: 'SESSION_READ_ONLY' } });
  await runner.prompt(sessionId, 'say After.');
  await shows(viewer, 'After.');
  t.ok(readFileSync(logPath(runner, sessionId)).subarray(0, log.length).equals(log));
  t.equal((await viewer.request('session/list', {})).result.sessions.length, 1);
  await endServer(t, viewer);
  await endServer(t, runner);
});
