/** The server process dies under a supervisor: the client keeps its connection, and each of its requests is answered once. */
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { sessionsDir } from '../../src/shared/log/session-paths.ts';
import { fileAppears } from '../support/file-appears.ts';
import { type FaultRig, FaultServer, faultTest, logPath, readEvents } from '../support/invariants.ts';
import { callIds, statusesOfCall, updatesOfCall } from '../support/started-server.ts';
import { cliPath, type Frame } from '../support/server-process.ts';

t.setTimeout(110_000);

const args = ['--supervise', '--model', 'scripted', '--pace-ms', '0'];
const fullAccess = [...args, '--permission-mode', 'full-access'];

function supervised(rig: FaultRig, more: readonly string[] = [], onRequest?: (frame: Frame) => unknown): Promise<FaultServer> {
  return rig.serve({ saboteur: false, args: [...fullAccess, ...more], ...(onRequest === undefined ? {} : { onRequest }) });
}

/** The server process below the supervisor. */
function serverPid({ pid }: FaultServer): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
}

/** The server dies before it reads any of what `send` sends, and after the supervisor has passed it on. */
async function killUnread<T>(server: FaultServer, send: () => T): Promise<T> {
  const pid = serverPid(server);
  process.kill(pid, 'SIGSTOP');
  const sent = send();
  // The supervisor itself refuses the second one of an id.
  const refused = server.next(({ id, error }) => id === 'mark' && error !== undefined, 'the refusal of a double');
  for (let i = 0; i < 2; i += 1) server.send({ jsonrpc: '2.0', id: 'mark', method: '_status', params: {} });
  await refused;
  process.kill(pid, 'SIGKILL');
  return sent;
}

async function statusOf(server: FaultServer): Promise<any> {
  return (await server.request('_status', {})).result;
}

const keyed = (sessionId: string, key: string, text: string): object => ({
  sessionId,
  prompt: [{ type: 'text', text }],
  _meta: { 'dsh-acp': { key } },
});

void faultTest('fault 10: killed in a tool call, the server is started again and the session goes on', async (t, rig) => {
  const server = await supervised(rig);
  const session = await server.newSession(rig.dir);
  const update = server.nextUpdate(session, 'tool_call_update');
  const prompt = server.startPrompt(session, 'say Working.\nrun echo x >> count && sleep 30');
  await update;
  while (!existsSync(join(rig.dir, 'count'))) await delay(5);
  const waiting = server.startPrompt(session, 'say later');
  process.kill(serverPid(server), 'SIGKILL');
  const { error } = await server.response(prompt);
  t.match(error, { code: -31020, data: { code: 'SERVER_RESTARTED', sessionId: session, usage: { toolCalls: 1 } } });
  const [call] = callIds(server, session);
  t.equal(statusesOfCall(server, session, call!).at(-1), 'failed');
  t.match(JSON.stringify(updatesOfCall(server, session, call!).at(-1)), 'Outcome unknown: the server process ended');
  t.match(await server.response(waiting), { result: { stopReason: 'end_turn' } }, 'what had not begun is run');
  t.match(await server.prompt(session, 'say on'), { result: { stopReason: 'end_turn' } });
  t.match(server.text(session), /Working\..*later.*on/s);
  t.equal(readFileSync(join(rig.dir, 'count'), 'utf8'), 'x\n', 'nothing ran twice');
  process.kill(serverPid(server), 'SIGKILL');
  t.match(await statusOf(server), { process: { restarts: 2 } }, 'a death that nobody notices');
  t.match(await server.prompt(session, 'say more'), { result: {} });
  t.match(server.stderr, /^(dsh-acp: the server process was ended by SIGKILL; it is started again\n){2}$/);
});

void faultTest('fault 9: a native crash while text streams ends that turn alone, and a keyed prompt is never run twice', async (t, rig) => {
  const server = await supervised(rig);
  const [first, second, third] = [await server.newSession(rig.dir), await server.newSession(rig.dir), await server.newSession(rig.dir)];
  t.match(await server.request('session/prompt', keyed(first, 'k', 'say stored')), { result: { stopReason: 'end_turn' } });
  const streaming = server.startPrompt(second, 'say one\nwait 30000');
  const own = server.start('session/prompt', keyed(third, 'own', 'say two\nwait 30000'));
  for (const session of [second, third]) while (!/one|two/.test(server.text(session))) await server.nextUpdate(session);
  process.kill(serverPid(server), 'SIGSEGV');
  t.match((await server.response(streaming)).error, { code: -31020, data: { code: 'SERVER_RESTARTED' } });
  t.match((await server.response(own)).error, { data: { code: 'TURN_INTERRUPTED', stored: true } }, 'its own key answers in its own words');
  t.match(await server.request('session/prompt', keyed(first, 'k', 'say stored')), { result: { _meta: { 'dsh-acp': { stored: true } } } });
  t.equal(server.text(first).match(/stored/g)?.length, 1);
  t.match(await server.prompt(first, 'say on'), { result: { stopReason: 'end_turn' } });
  t.match(server.stderr, 'was ended by SIGSEGV');
  const turns = (await readEvents(logPath(server, third))).filter(({ type }) => type === 'turn/start');
  t.equal(turns.length, 1);
});

void faultTest('what the dead server had not read is asked of the next one', async (t, rig) => {
  const server = await supervised(rig);
  const session = await server.newSession(rig.dir);
  t.match(await server.prompt(session, 'say before'), { result: {} });
  const stored = await server.newSession(rig.dir);
  await server.prompt(stored, 'say history');
  await server.request('session/close', { sessionId: stored });
  const doomed = await server.newSession(rig.dir);
  const asked = await killUnread(server, () => ({
    list: server.start('session/list', {}),
    made: server.start('session/new', { cwd: rig.dir, mcpServers: [] }),
    loaded: server.start('session/load', { sessionId: stored, cwd: rig.dir, mcpServers: [] }),
    forked: server.start('session/fork', { sessionId: session, cwd: rig.dir, mcpServers: [] }),
    deleted: server.start('session/delete', { sessionId: doomed }),
    prompt: server.startPrompt(session, 'run echo x >> count'),
    command: server.startPrompt(session, '/help'),
    steered: server.start('_session/steer', { sessionId: session, prompt: [{ type: 'text', text: 'x' }], messageId: 'm' }),
  }));
  t.match(await server.response(asked.list), { result: { sessions: [] } });
  const { result: made } = await server.response(asked.made);
  t.match(await server.response(asked.loaded), { result: {} });
  t.equal(server.text(stored).match(/history/g)?.length, 2, 'shown live, and by the load');
  const { result: forked } = await server.response(asked.forked);
  t.match(await server.response(asked.deleted), { result: {} });
  t.match(await server.response(asked.prompt), { result: { stopReason: 'end_turn' } });
  t.match((await server.response(asked.command)).error, { data: { code: 'SERVER_RESTARTED' } }, 'a command is no turn of the log');
  t.match((await server.response(asked.steered)).error, { data: { code: 'SERVER_RESTARTED' } });
  t.equal(readFileSync(join(rig.dir, 'count'), 'utf8'), 'x\n');
  const logs = readdirSync(sessionsDir(server.stateDir)).filter((name) => name.endsWith('.jsonl'));
  t.same(new Set(logs), new Set([session, stored, made.sessionId, forked.sessionId].map((id) => `${id}.jsonl`)), 'no log is nobody’s');
});

void faultTest(
  'a cancelled prompt and an open permission request end with the server, and a late answer reaches nobody',
  async (t, rig) => {
    const questions: Frame[] = [];
    const server = await rig.serve({ saboteur: false, args, onRequest: (frame) => void questions.push(frame) });
    const dir = realpathSync(rig.dir);
    const session = await server.newSession(dir);
    const isQuestion = ({ method }: Frame): boolean => method === 'session/request_permission';
    const asks = server.next(isQuestion, 'a permission request');
    const prompt = server.startPrompt(session, 'run touch allowed');
    const first = await asks;
    const withdrawn = server.next(({ method }) => method === '$/cancel_request', 'the withdrawal');
    process.kill(serverPid(server), 'SIGKILL');
    t.equal((await withdrawn).params.requestId, first.id);
    t.match((await server.response(prompt)).error, { data: { code: 'SERVER_RESTARTED' } });
    const again = server.next(isQuestion, 'another permission request');
    const next = server.startPrompt(session, 'run touch denied');
    const second = await again;
    t.not(second.id, first.id, 'ids of two processes differ');
    const choose = (question: Frame, kind: string): void => {
      const { optionId } = question.params.options.find((option: { kind: string }) => option.kind === kind);
      server.send({ jsonrpc: '2.0', id: question.id, result: { outcome: { outcome: 'selected', optionId } } });
    };
    choose(first, 'allow_once');
    choose(second, 'reject_once');
    t.match(await server.response(next), { result: { stopReason: 'end_turn' } });
    t.notOk(existsSync(join(dir, 'denied')));
    const cancelled = await killUnread(server, () => {
      const id = server.startPrompt(session, 'run touch cancelled');
      server.notify('session/cancel', { sessionId: session });
      return id;
    });
    t.match(await server.response(cancelled), { result: { stopReason: 'cancelled' } });
    t.match(await server.prompt(session, 'say on'), { result: { stopReason: 'end_turn' } });
    t.notOk(existsSync(join(dir, 'cancelled')));
  },
);

void faultTest('fault 6: a server whose main thread stands still is killed and started again, and the session goes on', async (t, rig) => {
  const server = await supervised(rig, ['--stuck-server-ms', '1500']);
  const session = await server.newSession(rig.dir);
  const began = join(rig.dir, 'began');
  const prompt = server.startPrompt(session, `run echo x >> count && touch ${began} && sleep 30`);
  await fileAppears(began);
  process.kill(serverPid(server), 'SIGSTOP');
  const waiting = server.startPrompt(session, 'say later');
  const { error } = await server.response(prompt);
  t.match(error, { code: -31020, message: /did not react for 2 s and was ended/ });
  t.match(await server.response(waiting), { result: { stopReason: 'end_turn' } }, 'what no process had read is run');
  t.equal(readFileSync(join(rig.dir, 'count'), 'utf8'), 'x\n', 'nothing ran twice');
  t.match(server.stderr, 'the server process did not react for 2 s and was ended; it is started again');
});

void faultTest('a server that dies too often stays dead, and what waits is answered', async (t, rig) => {
  const server = await supervised(rig, ['--max-restarts', '1']);
  server.expectedExit = 1;
  const session = await server.newSession(rig.dir);
  process.kill(serverPid(server), 'SIGKILL');
  await statusOf(server);
  const prompt = await killUnread(server, () => server.startPrompt(session, 'say never'));
  t.match((await server.response(prompt)).error, { data: { code: 'SERVER_RESTARTED' }, message: /is not started again/ });
  await server.exited;
  t.match(server.stderr, 'died too often');
});

void faultTest('a supervisor that is killed leaves no server, and one that is told to end ends with it', async (t, rig) => {
  const [killed, told] = await Promise.all([supervised(rig), supervised(rig)]);
  const session = await killed.newSession(rig.dir);
  killed.startPrompt(session, 'run sleep 30');
  await killed.nextUpdate(session, 'tool_call_update');
  const pids = [killed, told].map(serverPid);
  await killed.crash();
  told.child.kill('SIGTERM');
  t.same(await told.exited, { code: 0, signal: null });
  const deadline = performance.now() + 10_000;
  while (pids.some((pid) => existsSync(`/proc/${pid}`)) && performance.now() < deadline) await delay(10);
  t.same(
    pids.filter((pid) => existsSync(`/proc/${pid}`)),
    [],
  );
});

void faultTest(
  'a program is told what the log knows of its turn; a server that dies before it is initialized is none the worse',
  async (t, rig) => {
    const server = await supervised(rig, ['--profile', 'automation']);
    const session = await server.newSession(rig.dir);
    const prompt = server.startPrompt(session, 'say part\nrun echo x > began && sleep 30');
    while (!existsSync(join(rig.dir, 'began'))) await delay(5);
    process.kill(serverPid(server), 'SIGABRT');
    const { error } = await server.response(prompt);
    t.match(error, { data: { code: 'SERVER_RESTARTED', sessionId: session, usage: { steps: 1 } } });
    t.notMatch(error, { data: { stored: true } });
    t.match(await server.prompt(session, 'say on'), { result: { stopReason: 'end_turn' } });
    // It has just been started, and has answered nothing.
    const early = new FaultServer({ saboteur: false, command: [process.execPath, cliPath], args: fullAccess });
    t.teardown(() => early.dispose());
    const asked = early.initialize();
    while (serverPid(early) === 0) await delay(1);
    process.kill(serverPid(early), 'SIGKILL');
    t.match(await asked, { result: { protocolVersion: 1 } });
    t.ok(await early.newSession(rig.dir));
    t.same(await early.close(), { code: 0, signal: null });
    t.same(early.violations, []);
  },
);
