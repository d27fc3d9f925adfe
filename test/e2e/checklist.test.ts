/**
 * The conformance checklist for agents of ACP, point by point, over few shared servers. Most points are also tested at length
 * elsewhere; here each has one short proof under its number, so that a look at the names says what holds.
 */
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { validateAgentFrame } from '../support/acp-schema.ts';
import type { AnswerPlan } from '../support/answer-plan.ts';
import { ClientScreen } from '../support/client-screen.ts';
import { FaultServer, processesIn, readEvents } from '../support/invariants.ts';
import { ModelServer } from '../support/model-server.ts';
import { allowOnce, cliPath, type Frame, isCommandList, projectRoot, ServerProcess } from '../support/server-process.ts';
import {
  callIds,
  checkOutput,
  endServer,
  exchange,
  sentOfCall,
  startServer,
  statusesOfCall,
  updatesOfCall,
} from '../support/started-server.ts';

t.setTimeout(110_000);
// The points, and that there are a hundred.
t.plan(101);

const canary = 'sk-canary-4711-of-the-checklist';
const unknownId = '0197f000-0000-7000-8000-000000000000';
const mcpMain = join(projectRoot, 'build/test/support/mcp-server-main.js');
const dirs = t.testdir({
  work: { 'a.txt': 'alpha\nbeta\n', 'who.txt': 'I am work' },
  other: { 'who.txt': 'I am other', 'a.txt': 'alpha\n' },
  third: {},
  file: 'x',
});
const root = realpathSync(dirs);
const [work, other, third] = [join(root, 'work'), join(root, 'other'), join(root, 'third')];
const model = await ModelServer.start();
t.teardown(() => model.close());

const scripted = ['--model', 'scripted', '--pace-ms', '0', '--max-retries', '0'];
const every = {
  _meta: { terminal_output: true },
  session: { configOptions: { boolean: {} }, notices: {} },
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
};
/** How the plain client, and the one that can everything, answer what they are asked; `undefined` does not. */
let answer: (frame: Frame) => unknown = allowOnce;
let richAnswer: (frame: Frame) => unknown = allowOnce;

const plain = await startServer(t, { args: scripted, env: { DEBUG: '*' }, onRequest: (frame) => answer(frame) });
const rich = await startServer(t, { args: scripted, initialize: every, onRequest: (frame) => richAnswer(frame) });
const keyed = await startServer(t, {
  args: '--model deepseek-flash --permission-mode full-access --max-steps 3 --max-retries 0 --model-images on --price-input 1 --price-output 2'.split(
    ' ',
  ),
  env: { DEEPSEEK_API_KEY: canary, DEEPSEEK_BASE_URL: model.baseUrl },
});
const servers = [plain, rich, keyed];

const seen = new Set<number>();

/** One point of the checklist. */
async function point(number: number, says: string, body: (t: Test) => Promise<unknown> | void): Promise<void> {
  seen.add(number);
  await t.test(`checklist ${number}: ${says}`, async (t) => {
    answer = allowOnce;
    richAnswer = allowOnce;
    model.reset();
    await body(t);
  });
}

/** The proof stands elsewhere: fails when it is gone. */
function provedBy(t: Test, file: string, name: string): void {
  t.ok(readFileSync(join(projectRoot, file), 'utf8').includes(name), `${file} has the test "${name}"`);
}

const call = (id: unknown, method: string, params?: unknown): string => `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
const note = (method: string, params?: unknown): string => `${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`;
const promptFrame = (id: unknown, sessionId: string, text: string): string =>
  call(id, 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
const cancelFrame = (sessionId: string): string => note('session/cancel', { sessionId });
const codes = (frames: readonly Frame[]): unknown[] => frames.map(({ id, error }) => [id, error?.code]);
const code = async (server: ServerProcess, method: string, params: object): Promise<number | undefined> =>
  (await server.request(method, params)).error?.code;
const stop = ({ result, error }: Frame): unknown => result?.stopReason ?? error?.code;
const load = (server: ServerProcess, sessionId: string, cwd: string, more: object = {}): Promise<Frame> =>
  server.request('session/load', { sessionId, cwd, mcpServers: [], ...more });
const isAsking =
  (sessionId: string) =>
  (frame: Frame): boolean =>
    frame.method === 'session/request_permission' && frame.params.sessionId === sessionId;
const nextUpdate = (server: ServerProcess, sessionId: string, fits: (update: any) => boolean): Promise<Frame> =>
  server.next(({ params }) => params?.sessionId === sessionId && params.update !== undefined && fits(params.update), 'an update');
const isText = ({ sessionUpdate }: any): boolean => sessionUpdate === 'agent_message_chunk';
const isRunning = ({ status }: any): boolean => status === 'in_progress';
const isEnded = (server: ServerProcess, sessionId: string): boolean =>
  callIds(server, sessionId).every((id) => ['completed', 'failed'].includes(statusesOfCall(server, sessionId, id).at(-1)!));
const ask = (sessionId: string, ...plans: AnswerPlan[]): Promise<Frame> => {
  model.enqueue(...plans);
  return keyed.prompt(sessionId, 'go');
};
const done: AnswerPlan = { text: ['Done.'] };
const bash = (command: string) => ({ name: 'bash', arguments: JSON.stringify({ command, description: 'd' }) });
const logOf = (server: ServerProcess, sessionId: string): string => join(server.stateDir, 'sessions', `${sessionId}.jsonl`);
const valueOf = (list: any[], id: string): unknown => list.find((one) => one.id === id)?.currentValue;

/** A session that has used every file tool; made once. */
const toolSession = await plain.newSession(work);
const everyTool =
  'think first\nsay I begin.\ntodo *look; change\nread a.txt\n& grep alpha\nrun echo out; exit 3\nedit a.txt /beta/gamma/\nwrite new.txt <<EOF\nfresh\nEOF\nread missing.txt\ntodo x look; x change\nsay Done.';
for (const text of [everyTool, 'say a second turn']) await plain.prompt(toolSession, text);
const toolUpdates = plain.updates(toolSession);
const cards = callIds(plain, toolSession).map((id) => updatesOfCall(plain, toolSession, id));

// Framing

await point(2, 'frames may be split at any byte, and many may come at once', async (t) => {
  const bytes = Buffer.from(call('splät-😀', 'session/list', { _meta: { note: '😀' } }));
  for (let at = 1; at < bytes.length; at += 5) {
    plain.sendRaw(bytes.subarray(0, at));
    await new Promise((resolve) => setImmediate(resolve));
    const [frame] = await exchange(plain, bytes.subarray(at), 1);
    t.match(frame, { id: 'splät-😀', result: {} }, `split at ${at}`);
  }
  const many = Array.from({ length: 100 }, (_, index) => call(`m${index}`, 'session/list', {})).join('');
  t.equal(new Set((await exchange(plain, many, 100)).map(({ id }) => id)).size, 100);
});

await point(4, 'what is not JSON is -32700 with id null, and the next line is served', async (t) => {
  t.same(codes(await exchange(plain, 'hello\n{"jsonrpc"\n', 2)), [
    [null, -32_700],
    [null, -32_700],
  ]);
});

await point(5, 'an array is one -32600, and nothing of it is run', async (t) => {
  const before = readdirSync(join(plain.stateDir, 'sessions')).length;
  const batch = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'session/new', params: { cwd: work, mcpServers: [] } }));
  t.same(codes(await exchange(plain, `${JSON.stringify(batch)}\n`, 1)), [[null, -32_600]]);
  t.same(codes(await exchange(plain, '[]\n', 1)), [[null, -32_600]]);
  t.equal(readdirSync(join(plain.stateDir, 'sessions')).length, before);
});

await point(6, 'scalars, a wrong version, a method that is none and an id that is none are -32600', async (t) => {
  const lines = ['42', '"x"', 'null', '{}', '{"id":1,"method":"session/list"}', '{"jsonrpc":"2.0","id":{},"method":"session/list"}'];
  lines.push('{"jsonrpc":"2.0","id":true,"method":"session/list"}', '{"jsonrpc":"2.0","id":3,"method":5}');
  for (const line of lines) t.equal((await exchange(plain, `${line}\n`, 1))[0]?.error?.code, -32_600, line);
});

await point(7, 'responses and notifications are never answered', async (t) => {
  const lines = [
    { id: 999, result: {} },
    { id: 'x', error: { code: 1, message: 'm' } },
    { id: 999 },
    { result: 1 },
    { method: 'nonsense' },
  ];
  t.same(await exchange(plain, lines.map((line) => `${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`).join(''), 0), []);
});

await point(8, 'ids come back with their type and value', async (t) => {
  for (const id of [0, -1, 2 ** 53 - 1, '1', '', null]) t.equal((await exchange(plain, call(id, 'session/list', {}), 1))[0]?.id, id);
});

await point(9, '1 and "1" are two ids', async (t) => {
  const [one, two] = [await plain.newSession(work), await plain.newSession(work)];
  plain.sendRaw(promptFrame(800_001, one, 'wait 30') + promptFrame('800001', two, 'wait 30'));
  t.same([stop(await plain.response(800_001)), stop(await plain.response('800001'))], ['end_turn', 'end_turn']);
});

await point(10, 'a line over the cap costs one error frame and no session', async (t) => {
  const tiny = await startServer(t, { args: [...scripted, '--max-frame-bytes', '4096'] });
  const sessionId = await tiny.newSession(work);
  const running = tiny.startPrompt(sessionId, 'wait 50\nsay unharmed');
  const refused = tiny.next((frame) => frame.id === null, 'the error');
  tiny.sendRaw(call('long', 'session/list', { _meta: { pad: 'x'.repeat(1_000_000) } }) + call('next', 'session/list', {}));
  t.match(await refused, { error: { code: -32_600 } });
  t.ok((await tiny.response('next')).result);
  t.equal(stop(await tiny.response(running)), 'end_turn');
  t.equal(tiny.frames.filter(({ id }) => id === null).length, 1);
  await endServer(t, tiny);
});

await point(11, 'a prompt of 20 MB with images is handled', async (t) => {
  const sessionId = await keyed.newSession(work);
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(7_500_000, 7)]).toString('base64');
  const image = { type: 'image', mimeType: 'image/png', data: png };
  model.enqueue({ text: ['Two pictures.'] });
  t.equal(stop(await keyed.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'Look' }, image, image] })), 'end_turn');
  t.ok((model.requests[0]?.text.length ?? 0) > 20_000_000, 'it went to the model whole');
  await keyed.request('session/close', { sessionId });
});

await point(12, 'a client that stops reading stops the production', (t) => {
  provedBy(t, 'test/e2e/protocol-prompts.test.ts', '#12 a client that stops reading stops the production, and nothing is lost');
  provedBy(t, 'test/fault/slow-reader.test.ts', 'fault 32');
});

// Initialize

const fresh = await startServer(t, { args: scripted, initialize: false });
const started = performance.now();

await point(17, 'a version that is no number of the protocol is -32602', async (t) => {
  for (const params of [{}, { protocolVersion: 1.5 }, { protocolVersion: -1 }, { protocolVersion: 65_536 }, { protocolVersion: '1' }]) {
    t.equal(await code(fresh, 'initialize', params), -32_602, JSON.stringify(params));
  }
});

await point(18, 'before initialize other requests are -32600', async (t) => {
  t.equal(await code(fresh, 'session/new', { cwd: work, mcpServers: [] }), -32_600);
  t.equal(await code(fresh, 'session/list', {}), -32_600);
});

await point(23, 'initialize is answered soon after the start', async (t) => {
  const { result } = await fresh.request('initialize', { protocolVersion: 1 });
  t.equal(result.protocolVersion, 1);
  const ms = performance.now() - started;
  t.comment(`${Math.round(ms)} ms with the refusals above; the bench measures it`);
  t.ok(ms < 8000);
});

await point(16, 'every version is answered with 1', async (t) => {
  for (const protocolVersion of [0, 1, 2, 99, 65_535]) {
    t.equal((await fresh.request('initialize', { protocolVersion })).result?.protocolVersion, 1, String(protocolVersion));
  }
});

await point(19, 'capabilities that are unknown, null or of a wrong type count as unsupported', async (t) => {
  const odd = [null, { fs: null }, { fs: { readTextFile: 'yes' }, terminal: {} }, { unknown: { x: 1 }, elicitation: 5, session: [] }];
  for (const clientCapabilities of odd) {
    const answer = await fresh.request('initialize', { protocolVersion: 1, clientCapabilities });
    t.equal(answer.result?.protocolVersion, 1, JSON.stringify(clientCapabilities));
  }
  const sessionId = await fresh.newSession(work);
  t.equal(stop(await fresh.prompt(sessionId, 'read a.txt')), 'end_turn');
  t.notOk(fresh.frames.some(({ method }) => /^(fs|terminal|elicitation)\//.test(method ?? '')));
});

await point(20, 'agentInfo and agentCapabilities are explicit', async (t) => {
  const { result } = await fresh.request('initialize', { protocolVersion: 1 });
  t.match(result.agentInfo, { name: String, title: String, version: /^\d+\.\d+\.\d+/ });
  t.match(result.agentCapabilities, {
    loadSession: true,
    promptCapabilities: { image: false, audio: false, embeddedContext: true },
    mcpCapabilities: { http: true, sse: true },
    sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
    auth: { logout: {} },
  });
});

await point(21, 'what is advertised works, and nothing else is a method', async (t) => {
  const sessionId = await fresh.newSession(work);
  await fresh.request('session/close', { sessionId });
  t.ok((await fresh.request('session/resume', { sessionId, cwd: work })).result);
  await fresh.request('session/close', { sessionId });
  t.ok((await load(fresh, sessionId, work)).result);
  t.ok((await fresh.request('session/fork', { sessionId, cwd: work })).result.sessionId);
  t.ok((await fresh.request('session/list', {})).result.sessions.length > 0);
  t.same((await fresh.request('session/close', { sessionId })).result, {});
  t.same((await fresh.request('session/delete', { sessionId })).result, {});
  t.ok((await fresh.request('_status', {})).result);
  for (const method of [
    'session/set_model',
    'session/archive',
    'providers/list',
    'mcp/message',
    'auth/status',
    'fs/read_text_file',
    'constructor',
  ])
    t.equal(await code(fresh, method, { sessionId }), -32_601, method);
});

await point(22, 'a login on a terminal is offered to clients that have one', async (t) => {
  const types = async (clientCapabilities: object): Promise<unknown[]> =>
    (await fresh.request('initialize', { protocolVersion: 1, clientCapabilities })).result.authMethods.map(
      ({ type }: any) => type ?? 'agent',
    );
  t.notOk((await types({})).includes('terminal'));
  t.ok((await types({ auth: { terminal: true } })).includes('terminal'));
  t.notOk((await types({ auth: { terminal: false } })).includes('terminal'));
});

await point(24, 'a second initialize leaves running sessions alone', async (t) => {
  const sessionId = await fresh.newSession(work);
  const running = fresh.startPrompt(sessionId, 'wait 50\nsay still here');
  await fresh.initialize();
  t.equal(stop(await fresh.response(running)), 'end_turn');
  t.match(fresh.text(sessionId), /still here/);
  await endServer(t, fresh);
});

await point(25, 'initialize, session/new and what follows may come in one write', async (t) => {
  const piped = await startServer(t, { args: scripted, initialize: false });
  const made = { cwd: work, mcpServers: [] };
  piped.sendRaw(call('i', 'initialize', { protocolVersion: 1 }) + call('n', 'session/new', made) + call('l', 'session/list', {}));
  for (const id of ['n', 'l']) t.ok((await piped.response(id)).result, id);
  t.equal(piped.frames[0]?.id, 'i');
  // The last line of point 3.
  piped.sendRaw(call('unended', 'session/list', {}).trimEnd());
  await endServer(t, piped);
  t.ok((await piped.response('unended')).result);
});

await point(3, 'LF and CRLF end lines, blank ones are passed over, and a whole last line without an end is served', async (t) => {
  const lines = `\n \r\n${call('crlf', 'session/list', {}).trimEnd()}\r\n\n${call('lf', 'session/list', {})}`;
  t.same(
    new Set(codes(await exchange(plain, lines, 2))),
    new Set([
      ['crlf', undefined],
      ['lf', undefined],
    ]),
  );
  // The last line is tried by point 25, which ends its server.
});

// Sessions

await point(30, 'cwd is an absolute directory that can be entered', async (t) => {
  for (const cwd of ['.', 'relative', '', '~', null, undefined, 5, join(root, 'nowhere'), join(root, 'file')])
    t.equal(await code(plain, 'session/new', { cwd, mcpServers: [] }), -32_602, String(cwd));
});

await point(31, 'mcpServers may be [] and null, and must be there', async (t) => {
  t.equal(await code(plain, 'session/new', { cwd: work, mcpServers: null }), undefined);
  t.equal(await code(plain, 'session/new', { cwd: work }), -32_602);
});

await point(32, 'sessions that are made at once have ids of their own', async (t) => {
  t.equal(new Set(await Promise.all(Array.from({ length: 20 }, () => plain.newSession(third)))).size, 20);
});

await point(33, 'the response that names a session comes before its first update', (t) => {
  const made = servers.flatMap((server) => server.frames.map((frame, at) => ({ server, at, id: frame.result?.sessionId })));
  for (const { server, at, id } of made.filter((one) => one.id !== undefined)) {
    const early = server.frames.slice(0, at).filter(({ params }) => params?.sessionId === id);
    if (early.length > 0) t.fail(JSON.stringify(early[0]));
  }
  t.ok(made.filter(({ id }) => id !== undefined).length > 20);
});

await point(34, 'the list of commands follows new, load and resume', async (t) => {
  const lists = (sessionId: string) => plain.frames.filter((frame) => isCommandList(frame) && frame.params.sessionId === sessionId);
  const sessionId = await plain.newSession(third);
  await plain.prompt(sessionId, 'say hi');
  for (const [index, method] of ['session/new', 'session/load', 'session/resume'].entries()) {
    if (index > 0) {
      await plain.request('session/close', { sessionId });
      await plain.request(method, { sessionId, cwd: third, mcpServers: [] });
    }
    await plain.waitFor(() => lists(sessionId).length > index, `the list behind ${method}`);
    t.match(lists(sessionId)[index]?.params.update.availableCommands[0], { name: String, description: String });
  }
});

await point(35, 'two sessions work in their own directories at once', async (t) => {
  const ids = [await plain.newSession(work), await plain.newSession(other)];
  await Promise.all(ids.map((id) => plain.prompt(id, 'read who.txt\nrun pwd')));
  const [one, two] = ids.map((id) => JSON.stringify(plain.updates(id)));
  t.ok(one!.includes('I am work') && one!.includes(work) && !one!.includes('I am other') && !one!.includes(other));
  t.ok(two!.includes('I am other') && two!.includes(other) && !two!.includes('I am work'));
});

await point(36, 'further directories are absolute, and are not restored by a load that does not name them', async (t) => {
  const make = { cwd: work, mcpServers: [], additionalDirectories: [other] };
  t.equal(await code(plain, 'session/new', { ...make, additionalDirectories: ['relative'] }), -32_602);
  const { sessionId } = (await plain.request('session/new', make)).result;
  const questions = (): number => plain.frames.filter(isAsking(sessionId)).length;
  await plain.prompt(sessionId, `read ${join(other, 'who.txt')}`);
  t.equal(questions(), 0, 'it belongs to the workspace');
  await plain.request('session/close', { sessionId });
  await load(plain, sessionId, work);
  await plain.prompt(sessionId, `read ${join(other, 'who.txt')}`);
  t.equal(questions(), 1, 'it does no longer');
});

await point(37, 'history, mode and answers for good are those of one session or workspace', async (t) => {
  const [one, two] = [await keyed.newSession(work), await keyed.newSession(work)];
  await keyed.prompt(one, 'only the first knows');
  await keyed.prompt(two, 'and the second');
  t.notMatch(model.requests.at(-1)?.text, /only the first knows/);
  await keyed.request('session/set_mode', { sessionId: one, modeId: 'plan' });
  await keyed.request('session/close', { sessionId: two });
  t.equal((await load(keyed, two, work)).result.modes.currentModeId, 'full-access');
});

await point(38, 'updates carry their own session with eight prompts at once', async (t) => {
  const ids = await Promise.all(Array.from({ length: 8 }, () => plain.newSession(third)));
  const from = plain.frames.length;
  await Promise.all(ids.map((id, index) => plain.prompt(id, `repeat 150 mine${index}x`)));
  for (const [index, id] of ids.entries()) t.same(new Set(plain.text(id).match(/mine\d+x/g)), new Set([`mine${index}x`]));
  const order = plain.frames.slice(from).flatMap(({ params }) => (params?.update === undefined ? [] : [params.sessionId]));
  t.ok(order.filter((id, index) => id !== order[index - 1]).length > 8, 'they alternated');
});

await point(13, 'bytes of two frames never mix', (t) => {
  for (const server of servers) t.same(server.violations, []);
});

await point(39, 'an unknown session is -32002 with its id', async (t) => {
  const methods: [string, object][] = [
    ['session/prompt', { prompt: [{ type: 'text', text: 'x' }] }],
    ['session/load', { cwd: work, mcpServers: [] }],
    ['session/resume', { cwd: work }],
    ['session/set_mode', { modeId: 'ask' }],
    ['session/set_config_option', { configId: 'mode', value: 'ask' }],
    ['session/close', {}],
  ];
  for (const [method, params] of methods) {
    const { error } = await plain.request(method, { sessionId: unknownId, ...params });
    t.match(error, { code: -32_002, data: { sessionId: unknownId } }, method);
  }
});

await point(40, 'a cancel of an unknown session is passed over', async (t) => {
  t.same(await exchange(plain, cancelFrame(unknownId) + cancelFrame(''), 0), []);
});

const history = await (async () => {
  await plain.request('session/close', { sessionId: toolSession });
  const from = plain.frames.length;
  const answer = await load(plain, toolSession, work);
  await plain.request('session/list', {});
  const frames = plain.frames.slice(from);
  return { answer, before: frames.slice(0, frames.indexOf(answer)), behind: frames.slice(frames.indexOf(answer) + 1) };
})();
const historyUpdates = history.before.flatMap(({ params }) => (params?.sessionId === toolSession ? [params.update] : []));

await point(41, 'a load shows prompts, answers, thoughts, calls and plans in order before its response', (t) => {
  const kinds = historyUpdates.map(({ sessionUpdate }) => sessionUpdate);
  for (const kind of ['user_message_chunk', 'agent_thought_chunk', 'agent_message_chunk', 'tool_call', 'tool_call_update', 'plan'])
    t.ok(kinds.includes(kind), kind);
  const said = historyUpdates.filter(({ sessionUpdate }) => sessionUpdate === 'user_message_chunk').map(({ content }) => content.text);
  t.same(said, [everyTool, 'say a second turn']);
  t.equal(kinds[0], 'user_message_chunk');
  t.same(
    history.behind.filter((frame) => frame.params?.sessionId === toolSession && !isCommandList(frame)),
    [],
  );
});

await point(42, 'its cards are those that were there live', (t) => {
  const view = (updates: readonly any[]): unknown => [...new ClientScreen().takeAll(updates).cards.values()];
  t.same(view(historyUpdates), view(toolUpdates));
  provedBy(t, 'test/e2e/replay-equals-live.test.ts', 'every kind of card, for');
});

await point(43, 'it repeats no notice and no question, and leaves no call open', (t) => {
  t.notOk(
    history.before.some(
      ({ method, params }) => (method !== undefined && method !== 'session/update') || params?.update?.sessionUpdate === 'notice',
    ),
  );
  t.same(new ClientScreen().takeAll(historyUpdates).open, []);
});

await point(45, 'a resume sends no history before its response', async (t) => {
  await plain.request('session/close', { sessionId: toolSession });
  const from = plain.frames.length;
  const resumed = await plain.request('session/resume', { sessionId: toolSession, cwd: work });
  t.ok(resumed.result);
  const before = plain.frames.slice(from, plain.frames.indexOf(resumed));
  t.same(
    before.filter(({ params }) => params?.update?.sessionUpdate?.endsWith('_chunk') || params?.update?.toolCallId !== undefined),
    [],
  );
});

await point(46, 'load and resume answer with the modes and options that the session has', async (t) => {
  await plain.request('session/set_mode', { sessionId: toolSession, modeId: 'accept-edits' });
  for (const method of ['session/load', 'session/resume']) {
    await plain.request('session/close', { sessionId: toolSession });
    const { result } = await plain.request(method, { sessionId: toolSession, cwd: work, mcpServers: [] });
    t.equal(result.modes.currentModeId, 'accept-edits', method);
    t.equal(valueOf(result.configOptions, 'mode'), 'accept-edits', method);
  }
});

await point(47, 'a session that is prompting is not loaded a second time', async (t) => {
  const running = plain.startPrompt(toolSession, 'wait 50');
  t.match(await load(plain, toolSession, work), { error: { code: -32_602, data: { code: 'SESSION_ALREADY_OPEN' } } });
  t.equal(stop(await plain.response(running)), 'end_turn');
});

await point(48, 'the list is empty at first, filters by cwd, and has absolute directories and ISO times', async (t) => {
  t.same((await keyed.request('session/list', { cwd: third })).result, { sessions: [] });
  const { sessions } = (await plain.request('session/list', { cwd: other })).result;
  t.ok(sessions.length > 0);
  for (const session of sessions) t.match(session, { sessionId: String, cwd: other, updatedAt: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ });
  t.same((await plain.request('session/list', { cwd: root })).result.sessions, []);
});

await point(49, 'pages give each session once, and a cursor that is none is -32602', async (t) => {
  await Promise.all(Array.from({ length: 100 }, () => plain.newSession(third)));
  const all: string[] = [];
  let pages = 0;
  for (let cursor: string | undefined; pages < 50; ) {
    const { result } = await plain.request('session/list', cursor === undefined ? {} : { cursor });
    all.push(...result.sessions.map(({ sessionId }: any) => sessionId));
    pages += 1;
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  t.ok(pages > 1 && pages < 50, `${pages} pages`);
  t.equal(new Set(all).size, all.length);
  t.equal(all.length, readdirSync(join(plain.stateDir, 'sessions')).filter((name) => name.endsWith('.jsonl')).length);
  for (const cursor of ['nonsense', '']) t.equal(await code(plain, 'session/list', { cursor }), -32_602);
});

await point(50, 'a deletion cancels what runs, takes the session out of the list, and succeeds again', async (t) => {
  const sessionId = await plain.newSession(other);
  const running = plain.startPrompt(sessionId, 'say begun\nwait 60000');
  await nextUpdate(plain, sessionId, isText);
  t.same((await plain.request('session/delete', { sessionId })).result, {});
  t.equal(stop(await plain.response(running)), 'cancelled');
  t.notMatch(JSON.stringify((await plain.request('session/list', { cwd: other })).result), sessionId);
  for (const id of [sessionId, unknownId]) t.same((await plain.request('session/delete', { sessionId: id })).result, {});
});

await point(51, 'a close answers the running prompt first; then the session is unknown, and still listed', async (t) => {
  const sessionId = await plain.newSession(other);
  const running = plain.startPrompt(sessionId, 'say begun\nwait 60000');
  await nextUpdate(plain, sessionId, isText);
  const closing = plain.start('session/close', { sessionId });
  t.same((await plain.response(closing)).result, {});
  const order = plain.frames.filter(({ id, method }) => method === undefined && (id === running || id === closing));
  t.same(
    order.map((frame) => [frame.id, stop(frame)]),
    [
      [running, 'cancelled'],
      [closing, undefined],
    ],
  );
  t.equal(await code(plain, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'x' }] }), -32_002);
  t.match(JSON.stringify((await plain.request('session/list', { cwd: other })).result), sessionId);
});

const journal = join(root, 'mcp.journal');
const stdio = { name: 'files', command: process.execPath, args: [mcpMain, 'plain', journal], env: [] };

await point(52, 'MCP servers on stdio work, a failing one costs nothing, an unknown type is -32602', async (t) => {
  const broken = { name: 'broken', command: join(root, 'no-such-program'), args: [], env: [] };
  t.equal(await code(keyed, 'session/new', { cwd: work, mcpServers: [{ type: 'other', name: 'n', url: 'http://127.0.0.1:1/' }] }), -32_602);
  const { sessionId } = (await keyed.request('session/new', { cwd: work, mcpServers: [broken, stdio] })).result;
  t.equal(stop(await ask(sessionId, { tools: [{ name: 'mcp__files__echo', arguments: '{"text":"through MCP"}' }] }, done)), 'end_turn');
  t.match(JSON.stringify(keyed.updates(sessionId)), /through MCP/);
  await keyed.request('session/close', { sessionId });
});

await point(53, 'the children of MCP end with their session', (t) => {
  const [, pid] = /started (\d+)/.exec(readFileSync(journal, 'utf8')) ?? [];
  t.throws(() => process.kill(Number(pid), 0), 'the process is gone');
});

// Prompts

await point(54, 'text and links are taken; what is not advertised is refused', async (t) => {
  const sessionId = await plain.newSession(work);
  const link = { type: 'resource_link', uri: 'file:///tmp/x.txt', name: 'x.txt' };
  const prompt = (...blocks: object[]) => plain.request('session/prompt', { sessionId, prompt: blocks });
  t.equal(stop(await prompt({ type: 'text', text: 'say hi' }, link)), 'end_turn');
  for (const block of [
    { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
    { type: 'image', data: 'AAAA', mimeType: 'image/png' },
  ])
    t.equal(stop(await prompt({ type: 'text', text: 'say hi' }, block)), -32_602, block.type);
});

await point(55, 'an empty prompt is -32602', async (t) => {
  const sessionId = await plain.newSession(work);
  for (const prompt of [[], [{ type: 'text', text: ' ' }], 'x', null])
    t.equal(await code(plain, 'session/prompt', { sessionId, prompt }), -32_602);
});

await point(56, 'the response comes behind 10,000 chunks', async (t) => {
  const sessionId = await plain.newSession(work);
  const answered = await plain.prompt(sessionId, 'repeat 10000 w');
  await plain.request('session/list', {});
  const behind = plain.frames.slice(plain.frames.indexOf(answered));
  t.notOk(behind.some((frame) => frame.params?.sessionId === sessionId));
  t.equal(plain.text(sessionId).match(/\bw\b/g)?.length, 10_000);
});

await point(57, 'a prompt has one response, also when a cancel races its end', async (t) => {
  const sessionId = await plain.newSession(work);
  const ids = Array.from({ length: 20 }, (_, index) => `race-${index}`);
  for (const [index, id] of ids.entries()) {
    plain.sendRaw(promptFrame(id, sessionId, `repeat ${1 + index * 5} w`));
    if (index % 2 === 0) await nextUpdate(plain, sessionId, isText);
    plain.sendRaw(cancelFrame(sessionId));
    t.ok(['end_turn', 'cancelled'].includes(String(stop(await plain.response(id)))));
  }
  await plain.request('session/list', {});
  t.equal(plain.frames.filter(({ id }) => ids.includes(String(id))).length, 20);
  const ends = (await readEvents(logOf(plain, sessionId))).flatMap((event) => (event.type === 'turn/end' ? [event.data.reason.kind] : []));
  const natural = plain.frames.filter((frame) => ids.includes(String(frame.id)) && stop(frame) === 'end_turn').length;
  t.equal(ends.filter((kind) => kind === 'completed').length, natural, 'and the log says the same');
});

await point(58, 'a cancel ends whatever the turn waits for', async (t) => {
  const cancelled = async (server: ServerProcess, sessionId: string, id: number, what: string): Promise<void> => {
    const begun = performance.now();
    server.notify('session/cancel', { sessionId });
    t.equal(stop(await server.response(id)), 'cancelled', what);
    t.ok(performance.now() - begun < 5000, `${what}: ${Math.round(performance.now() - begun)} ms`);
  };
  const of = async (text: string, fits: (update: any) => boolean, what: string): Promise<void> => {
    const sessionId = await plain.newSession(work);
    const seen = nextUpdate(plain, sessionId, (update) => update.sessionUpdate !== 'available_commands_update' && fits(update));
    const id = plain.startPrompt(sessionId, text);
    await seen;
    await cancelled(plain, sessionId, id, what);
  };
  await of('say begun\nwait 60000', isText, 'a model that does not go on');
  await of('repeat 100000 w', isText, 'a stream');
  await of('run sleep 30', isRunning, 'a command');
  answer = () => undefined;
  await of('run sleep 30', ({ status }) => status === 'pending', 'a question');
  const { sessionId } = (await keyed.request('session/new', { cwd: work, mcpServers: [stdio] })).result;
  model.enqueue({ tools: [{ name: 'mcp__files__hang', arguments: '{}' }] });
  const running = nextUpdate(keyed, sessionId, isRunning);
  const hanging = keyed.startPrompt(sessionId, 'go');
  await running;
  await cancelled(keyed, sessionId, hanging, 'a call of MCP');
  richAnswer = () => undefined;
  const reader = await rich.newSession(work);
  const asked = rich.next(({ method }) => method === 'fs/read_text_file', 'the file');
  const reading = rich.startPrompt(reader, 'read a.txt');
  await asked;
  await cancelled(rich, reader, reading, 'a file of the client');
});

await point(59, 'a cancel is no error, and a turn that ended by itself is not called cancelled', async (t) => {
  const sessionId = await plain.newSession(work);
  t.equal(stop(await plain.prompt(sessionId, 'say by itself')), 'end_turn');
  plain.notify('session/cancel', { sessionId });
  t.equal(stop(await plain.prompt(sessionId, 'say by itself, too')), 'end_turn');
  for (const server of servers) t.notMatch(JSON.stringify(server.frames.filter(({ error }) => error !== undefined)), /aborted|AbortError/i);
});

await point(60, 'a cancel ends all calls before its response, and the next prompt has its history', async (t) => {
  const sessionId = await keyed.newSession(work);
  model.enqueue({ text: ['I run two. '], tools: [bash('sleep 30'), bash('echo never')] });
  const running = nextUpdate(keyed, sessionId, isRunning);
  const id = keyed.startPrompt(sessionId, 'remember this');
  await running;
  keyed.notify('session/cancel', { sessionId });
  const answered = await keyed.response(id);
  t.equal(stop(answered), 'cancelled');
  t.equal(callIds(keyed, sessionId).length, 2);
  t.ok(isEnded(keyed, sessionId));
  const ends = keyed.frames.flatMap(({ params }, at) =>
    params?.sessionId === sessionId && params.update?.status === 'failed' ? [at] : [],
  );
  t.ok(ends.every((at) => at < keyed.frames.indexOf(answered)));
  model.reset();
  t.equal(stop(await ask(sessionId, { text: ['On.'] })), 'end_turn');
  t.match(model.requests.at(-1)?.text, /remember this[^]*I run two/);
});

await point(61, 'a cancel without a prompt does nothing to the next', async (t) => {
  const sessionId = await plain.newSession(work);
  plain.notify('session/cancel', { sessionId });
  plain.notify('session/cancel', { sessionId });
  t.equal(stop(await plain.prompt(sessionId, 'say one')), 'end_turn');
});

await point(62, 'a prompt and its cancel in one write: cancelled', async (t) => {
  const sessionId = await plain.newSession(work);
  plain.sendRaw(promptFrame('62', sessionId, 'wait 60000') + cancelFrame(sessionId));
  t.equal(stop(await plain.response('62')), 'cancelled');
});

await point(63, 'a cancel and the next prompt in one write: the first is cancelled, the second runs', async (t) => {
  const sessionId = await plain.newSession(work);
  plain.sendRaw(promptFrame('63a', sessionId, 'say begun\nwait 60000'));
  await nextUpdate(plain, sessionId, isText);
  plain.sendRaw(cancelFrame(sessionId) + promptFrame('63b', sessionId, 'say second'));
  t.same([stop(await plain.response('63a')), stop(await plain.response('63b'))], ['cancelled', 'end_turn']);
});

await point(64, 'overlapping prompts of a session run one after the other', async (t) => {
  const sessionId = await plain.newSession(work);
  const ids = ['wait 50\nsay p0', 'say p1', 'say p2'].map((text) => plain.startPrompt(sessionId, text));
  for (const id of ids) t.equal(stop(await plain.response(id)), 'end_turn');
  t.same(plain.text(sessionId).match(/p\d/g), ['p0', 'p1', 'p2']);
});

await point(65, 'prompts of different sessions run side by side', async (t) => {
  const [one, two] = [await plain.newSession(work), await plain.newSession(work)];
  const waiting = plain.startPrompt(one, 'wait 60000');
  t.equal(stop(await plain.prompt(two, 'say done')), 'end_turn', 'while the first one waits');
  plain.notify('session/cancel', { sessionId: one });
  t.equal(stop(await plain.response(waiting)), 'cancelled');
});

await point(66, '$/cancel_request cancels a prompt, may meet any other request, and is passed over for what is unknown', async (t) => {
  const sessionId = await plain.newSession(work);
  const id = plain.startPrompt(sessionId, 'wait 60000');
  const wrong = note('$/cancel_request', { requestId: String(id) }) + note('$/cancel_request', { requestId: {} });
  const come = await exchange(plain, wrong, 0);
  t.same(
    come.filter(({ method }) => method !== 'session/update'),
    [],
  );
  plain.notify('$/cancel_request', { requestId: id });
  t.equal(stop(await plain.response(id)), 'cancelled');
  const [listed] = await exchange(plain, call('66', 'session/list', {}) + note('$/cancel_request', { requestId: '66' }), 1);
  t.ok(listed?.result !== undefined || listed?.error?.code === -32_800);
});

await point(67, 'a cancel takes back what the agent has asked, and either answer is fine', async (t) => {
  answer = () => undefined;
  for (const reply of [{ result: { outcome: { outcome: 'cancelled' } } }, { error: { code: -32_800, message: 'Request cancelled' } }]) {
    const sessionId = await plain.newSession(work);
    const asked = plain.next(isAsking(sessionId), 'the question');
    const id = plain.startPrompt(sessionId, 'run touch never-67');
    const question = await asked;
    const taken = plain.next(({ method }) => method === '$/cancel_request', 'the withdrawal');
    plain.notify('session/cancel', { sessionId });
    t.equal((await taken).params.requestId, question.id);
    plain.send({ jsonrpc: '2.0', id: question.id, ...reply });
    t.equal(stop(await plain.response(id)), 'cancelled');
  }
  t.notOk(existsSync(join(work, 'never-67')));
});

await point(68, 'stop reasons are those of the model', async (t) => {
  const sessionId = await keyed.newSession(work);
  t.equal(stop(await ask(sessionId, { tokens: 2, finish: 'length' })), 'max_tokens');
  t.equal(stop(await ask(sessionId, { tokens: 2, finish: 'content_filter' })), 'refusal');
  const read = { tools: [{ name: 'read', arguments: '{"file_path":"a.txt"}' }] };
  t.equal(stop(await ask(sessionId, read, read, read)), 'max_turn_requests');
});

await point(69, 'a failure of the model is a readable error, a refused key -32000, and the session goes on', async (t) => {
  const sessionId = await keyed.newSession(work);
  const status = (number: number, body?: string): AnswerPlan => ({
    fault: { kind: 'status', status: number, ...(body === undefined ? {} : { body }) },
  });
  const { error } = await ask(sessionId, status(400, '{"error":{"message":"bad field xyz"}}'));
  t.match(error, { code: -32_603, message: /bad field xyz/, data: { details: String } });
  t.equal(stop(await ask(sessionId, { tokens: 9, fault: { kind: 'cut', after: 3 } })), -32_603);
  t.match(keyed.text(sessionId), /tok0 tok1/, 'what came is kept');
  t.equal(stop(await ask(sessionId, status(401))), -32_000);
  t.equal(stop(await ask(sessionId, { tokens: 2 })), 'end_turn');
});

await point(70, 'an unknown slash command is no error', async (t) => {
  const sessionId = await plain.newSession(work);
  t.equal(stop(await plain.prompt(sessionId, '/no-such-command with words')), 'end_turn');
});

// Calls and content

await point(71, 'a tool_call comes before every update of its id, and ids are used once', async (t) => {
  for (const [first] of cards) t.equal(first.sessionUpdate, 'tool_call');
  const sessionId = await keyed.newSession(work);
  const again = { tools: [{ id: 'call_0', name: 'read', arguments: '{"file_path":"a.txt"}' }] };
  await ask(sessionId, again, again, done);
  await ask(sessionId, again, done);
  const ids = callIds(keyed, sessionId);
  t.equal(new Set(ids).size, ids.length);
  t.equal(ids.length, 3);
});

await point(72, 'a call is pending, in progress, and then ended once', (t) => {
  for (const updates of cards) {
    const statuses = updates.flatMap(({ status }) => status ?? []).filter((status, index, all) => status !== all[index - 1]);
    t.match(statuses.join(), /^pending,(in_progress,)?(completed|failed)$/);
    t.equal(updates.filter(({ status }) => status === 'completed' || status === 'failed').length, 1);
  }
});

await point(73, 'every call has a kind, absolute places and lines from 1', (t) => {
  for (const [first] of cards) {
    t.ok(['read', 'search', 'execute', 'edit', 'think'].includes(first.kind), first.kind);
    for (const { path, line = 1 } of first.locations ?? []) t.ok(path.startsWith('/') && line >= 1);
  }
});

await point(74, 'titles are one line with paths from the cwd; secrets are not in the input', (t) => {
  const titles = cards.map(([first]) => first.title);
  t.ok(
    titles.every((title) => !/\n/.test(title) && !title.includes(work)),
    titles.join(' | '),
  );
  t.ok(titles.some((title) => /a\.txt/.test(title)));
  provedBy(t, 'test/e2e/mcp.test.ts', 'kept out of the log what is secret');
});

await point(75, 'changes are diffs with an absolute path; a new file has no old text', (t) => {
  const diffs = toolUpdates.flatMap(({ content }) => content ?? []).filter(({ type }: any) => type === 'diff');
  const of = (name: string): any => diffs.findLast(({ path }: any) => path === join(work, name));
  t.match(of('a.txt'), { oldText: /beta/, newText: /gamma/ });
  t.equal(of('new.txt').oldText ?? null, null);
  t.match(of('new.txt').newText, /^fresh\n?$/);
});

await point(76, 'the content of an update is the whole list', async (t) => {
  const [edit] = cards.filter(([first]) => first.kind === 'edit');
  const lists = edit!.filter(({ content }) => content !== undefined).map(({ content }) => content);
  t.ok(lists.length > 0 && lists.every((list) => list.some(({ type }: any) => type === 'diff')), 'each has the diff again');
  const sessionId = await rich.newSession(work);
  await rich.prompt(sessionId, 'run echo kept');
  const updates = sentOfCall(rich, sessionId, callIds(rich, sessionId)[0]!);
  t.ok(
    updates.every(({ content }) => content === undefined || content.some(({ type }: any) => type === 'terminal')),
    'nothing takes a terminal away',
  );
});

await point(77, 'input and output of a call are bounded', async (t) => {
  const sessionId = await keyed.newSession(work);
  const content = 'x'.repeat(1_000_000);
  await ask(
    sessionId,
    { tools: [{ name: 'nonsense', arguments: JSON.stringify({ content }) }, bash('head -c 1000000 /dev/zero | tr "\\0" x')] },
    done,
  );
  const longest = Math.max(...keyed.updates(sessionId).map((update) => JSON.stringify(update).length));
  t.ok(longest < 600_000, `${longest} characters`);
});

await point(78, 'chunks have ids, each message its own, the same in a replay', (t) => {
  const ids = (updates: readonly any[]): string[] => [
    ...new Set(updates.filter((one) => /^agent_.*_chunk$/.test(one.sessionUpdate)).map(({ messageId }) => messageId)),
  ];
  t.ok(ids(toolUpdates).length > 2 && ids(toolUpdates).every((id) => typeof id === 'string'));
  t.same(ids(historyUpdates), ids(toolUpdates));
});

await point(79, 'a plan is always whole, nothing of it is in progress behind the turn, and a finished one goes', async (t) => {
  const plans = toolUpdates.filter(({ sessionUpdate }) => sessionUpdate === 'plan').map(({ entries }) => entries);
  t.ok(plans.every((entries) => entries.length === 2 || entries.length === 0));
  t.same(plans.at(-1), []);
  const sessionId = await plain.newSession(work);
  await plain.prompt(sessionId, 'todo *look; change');
  const { entries } = plain.updates(sessionId).findLast(({ sessionUpdate }) => sessionUpdate === 'plan');
  t.same(
    entries.map(({ status }: any) => status),
    ['pending', 'pending'],
  );
});

await point(80, 'usage is in whole tokens, never more than the window, and cost has its currency', (t) => {
  const usages = keyed.frames.flatMap(({ params }) => (params?.update?.sessionUpdate === 'usage_update' ? [params.update] : []));
  t.ok(usages.length > 5);
  t.ok(usages.every(({ used, size }) => Number.isInteger(used) && Number.isInteger(size) && used <= size));
  t.ok(usages.some(({ cost }) => cost?.currency === 'USD' && cost.amount > 0));
});

await point(81, 'notices, compactions and switches go to clients that know them', async (t) => {
  const broken = [{ name: 'broken', command: join(root, 'no-such-program'), args: [], env: [] }];
  for (const [server, told] of [
    [rich, true],
    [plain, false],
  ] as const) {
    const { result } = await server.request('session/new', { cwd: work, mcpServers: broken });
    await server.prompt(result.sessionId, 'say hi');
    t.equal(
      server.updates(result.sessionId).some(({ sessionUpdate }) => sessionUpdate === 'notice'),
      told,
    );
  }
  t.notMatch(JSON.stringify(plain.frames), /"(compaction_update|notice)"|"type":"boolean"/);
});

await point(82, 'terminals of the agent need the capability; one is made by the tool_call and has one exit', async (t) => {
  const sessionId = await rich.newSession(work);
  await rich.prompt(sessionId, 'run echo shown; exit 4');
  const [id = ''] = callIds(rich, sessionId);
  const updates = updatesOfCall(rich, sessionId, id);
  const info = updates.filter(({ _meta }) => _meta?.terminal_info !== undefined);
  t.match(info, [{ sessionUpdate: 'tool_call', content: [], _meta: { terminal_info: { terminal_id: id, cwd: work } } }]);
  const exits = updates.filter(({ _meta }) => _meta?.terminal_exit !== undefined);
  t.match(exits, [{ _meta: { terminal_exit: { terminal_id: id, exit_code: 4 } } }]);
  t.equal(new ClientScreen().takeAll(rich.updates(sessionId)).card(id).terminal?.output, 'shown\n');
  t.notMatch(JSON.stringify(plain.frames), /terminal_(info|output|exit)/);
});

// Requests to the client

await point(83, 'without the capability nothing is asked of the client, and files are read all the same', async (t) => {
  const sessionId = await plain.newSession(work);
  await plain.prompt(sessionId, 'read who.txt\nrun echo ran');
  t.match(JSON.stringify(plain.updates(sessionId)), /I am work[^]*ran/);
  t.notOk(plain.frames.some(({ method }) => /^(fs|terminal|elicitation)\//.test(method ?? '')));
});

await point(84, 'no terminal of the client is left: none is made, also where it has some', (t) => {
  t.notOk(rich.frames.some(({ method }) => method?.startsWith('terminal/')));
});

await point(85, 'a question is complete, and whatever is no clear yes is a no', async (t) => {
  const replies: ((question: Frame) => object)[] = [
    () => ({ result: { outcome: { outcome: 'cancelled' } } }),
    () => ({ result: { outcome: { outcome: 'selected', optionId: 'no-such' } } }),
    () => ({ result: { outcome: 'selected', optionId: 'allow_once' } }),
    () => ({ result: {} }),
    () => ({ result: null }),
    () => ({ error: { code: -32_601, message: 'Method not found' } }),
    () => ({ error: { code: -32_603, message: 'Internal error' } }),
  ];
  answer = () => undefined;
  await Promise.all(
    replies.map(async (reply, index) => {
      const sessionId = await plain.newSession(third);
      const asked = plain.next(isAsking(sessionId), 'the question');
      const id = plain.startPrompt(sessionId, `run touch refused-${index}`);
      const question = await asked;
      t.match(question.params.toolCall, { title: /touch refused/, kind: 'execute', rawInput: {} });
      const kinds = question.params.options.map(({ kind }: any) => kind);
      t.ok(kinds.includes('allow_once') && kinds.includes('reject_once'));
      plain.send({ jsonrpc: '2.0', id: question.id, ...reply(question) });
      t.equal(stop(await plain.response(id)), 'end_turn');
      t.notOk(existsSync(join(third, `refused-${index}`)), JSON.stringify(reply(question)));
    }),
  );
  provedBy(t, 'test/e2e/protocol-permissions.test.ts', '#85 #51 a close and the end of input while requests are open: nothing runs');
});

/** Prompts with a command and answers what is asked by an option of this kind. @returns how often it was asked */
async function run(sessionId: string, command: string, kind: string): Promise<number> {
  const asked: Frame[] = [];
  answer = (frame) => {
    asked.push(frame);
    return { outcome: { outcome: 'selected', optionId: frame.params.options.find((one: any) => one.kind === kind).optionId } };
  };
  await plain.prompt(sessionId, `run ${command}`);
  return asked.length;
}

await point(86, 'answers for good hold for this very command in the workspace, yes and no alike', async (t) => {
  const sessionId = await plain.newSession(third);
  t.equal(await run(sessionId, 'printf a >> ran', 'allow_always'), 1);
  t.equal(await run(sessionId, 'printf a >> ran', 'reject_once'), 0);
  t.equal(await run(sessionId, 'printf b >> ran', 'reject_always'), 1);
  t.equal(await run(sessionId, 'printf b >> ran', 'allow_once'), 0);
  t.equal(readFileSync(join(third, 'ran'), 'utf8'), 'aa');
  t.equal(await run(await plain.newSession(other), 'printf a >> ran', 'reject_once'), 1, 'not in another workspace');
});

await point(87, 'two questions that are answered in reverse order reach their calls', async (t) => {
  answer = () => undefined;
  const ids = [await plain.newSession(third), await plain.newSession(third)];
  const asked = ids.map((id) => plain.next(isAsking(id), 'a question'));
  const prompts = ids.map((id, index) => plain.startPrompt(id, `run touch from-${index}`));
  const [one, two] = await Promise.all(asked);
  plain.send({ jsonrpc: '2.0', id: two!.id, result: { outcome: { outcome: 'selected', optionId: 'reject_once' } } });
  plain.send({ jsonrpc: '2.0', id: one!.id, result: { outcome: { outcome: 'selected', optionId: 'allow_once' } } });
  for (const id of prompts) t.equal(stop(await plain.response(id)), 'end_turn');
  t.same([existsSync(join(third, 'from-0')), existsSync(join(third, 'from-1'))], [true, false]);
});

await point(88, 'a question that nobody answers blocks its own session, until it is cancelled', async (t) => {
  answer = () => undefined;
  const [stuck, free] = [await plain.newSession(third), await plain.newSession(third)];
  const asked = plain.next(isAsking(stuck), 'the question');
  const id = plain.startPrompt(stuck, 'run touch never-88');
  const question = await asked;
  t.equal(stop(await plain.prompt(free, 'say free')), 'end_turn');
  plain.notify('session/cancel', { sessionId: stuck });
  t.equal(stop(await plain.response(id)), 'cancelled');
  const late = `${JSON.stringify({ jsonrpc: '2.0', id: question.id, result: { outcome: { outcome: 'selected', optionId: 'allow_once' } } })}\n`;
  t.same(await exchange(plain, late + late, 0), []);
  t.notOk(existsSync(join(third, 'never-88')));
});

await point(89, 'an error of fs/read_text_file is at most a failed call', async (t) => {
  richAnswer = ({ id }) => {
    rich.send({ jsonrpc: '2.0', id, error: { code: -32_002, message: 'Resource not found' } });
    return undefined;
  };
  const sessionId = await rich.newSession(work);
  t.equal(stop(await rich.prompt(sessionId, 'read missing-89.txt\nsay the turn goes on')), 'end_turn');
  t.equal(statusesOfCall(rich, sessionId, callIds(rich, sessionId)[0]!).at(-1), 'failed');
  t.match(rich.text(sessionId), /the turn goes on/);
});

await point(90, 'ids of the agent are unique over all sessions, and late answers are passed over', (t) => {
  const ids = plain.frames.flatMap(({ id, method }) => (method !== undefined && id !== undefined ? [JSON.stringify(id)] : []));
  t.ok(ids.length > 10);
  t.equal(new Set(ids).size, ids.length);
});

// Modes and options

await point(91, 'an unknown mode is -32602; a known one is {} and holds for the next call', async (t) => {
  const sessionId = await plain.newSession(third);
  const set = (modeId: string) => plain.request('session/set_mode', { sessionId, modeId });
  t.equal((await set('nonsense')).error?.code, -32_602);
  t.same((await set('read-only')).result, {});
  await plain.prompt(sessionId, 'write refused-91 <<EOF\nx\nEOF');
  t.notOk(existsSync(join(third, 'refused-91')));
  await plain.prompt(sessionId, '/mode ask');
  t.equal(plain.updates(sessionId).findLast(({ sessionUpdate }) => sessionUpdate === 'current_mode_update').currentModeId, 'ask');
});

await point(92, 'options are checked, answered with all of them, and in step with the modes, also in a turn', async (t) => {
  const sessionId = await plain.newSession(third);
  const set = (configId: string, value: string) => plain.request('session/set_config_option', { sessionId, configId, value });
  t.equal((await set('nonsense', 'x')).error?.code, -32_602);
  t.equal((await set('mode', 'x')).error?.code, -32_602);
  const running = plain.startPrompt(sessionId, 'say begun\nwait 60000');
  await nextUpdate(plain, sessionId, isText);
  const { configOptions } = (await set('mode', 'accept-edits')).result;
  t.ok(configOptions.length >= 2);
  t.equal(valueOf(configOptions, 'mode'), 'accept-edits');
  const told = plain.updates(sessionId);
  t.equal(told.findLast(({ sessionUpdate }) => sessionUpdate === 'current_mode_update').currentModeId, 'accept-edits');
  await plain.request('session/set_mode', { sessionId, modeId: 'plan' });
  const options = plain.updates(sessionId).findLast(({ sessionUpdate }) => sessionUpdate === 'config_option_update').configOptions;
  t.equal(valueOf(options, 'mode'), 'plan');
  plain.notify('session/cancel', { sessionId });
  t.equal(stop(await plain.response(running)), 'cancelled');
});

await point(93, 'switches are offered to clients that know them', async (t) => {
  const types = async (server: ServerProcess): Promise<unknown[]> =>
    (await server.request('session/new', { cwd: work, mcpServers: [] })).result.configOptions.map(({ type }: any) => type);
  t.notOk((await types(plain)).includes('boolean'));
  t.notOk((await types(keyed)).includes('boolean'));
  provedBy(
    t,
    'test/e2e/session-choices.test.ts',
    "const start = { mode: 'ask', model: 'flash', thought_level: 'high', show_thoughts: true };",
  );
});

// Extensions and robustness

await point(94, 'an unknown extension is -32601, an unknown notification is passed over, any _meta is taken', async (t) => {
  t.same(codes(await exchange(plain, call('94', '_acme.com/foo', {}) + note('_acme.com/bar', {}), 1)), [['94', -32_601]]);
  for (const _meta of [null, {}, { 'x.y/z': [1, { b: null }] }]) t.ok((await plain.request('session/list', { _meta })).result);
});

await point(95, 'no frame has members of our own at its root: the check knows them, and found none', (t) => {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'x' }, ours: 1 };
  const frame = { jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update } };
  t.match(validateAgentFrame(frame), [/ours/]);
  t.match(validateAgentFrame({ jsonrpc: '2.0', id: 1, result: { stopReason: 'end_turn', ours: 1 } }, { method: 'session/prompt' }), [
    /ours/,
  ]);
  for (const server of servers) t.same(server.violations, []);
});

await point(96, 'a thread that dies fails its own prompt, leaves the others alone, and its session comes back', async (t) => {
  const dying = new FaultServer({ stateDir: join(root, 'dying'), args: ['--model', 'scripted', '--pace-ms', '0'] });
  t.teardown(() => dying.dispose());
  await dying.initialize();
  const [victim, bystander] = [await dying.newSession(work), await dying.newSession(other)];
  const running = dying.startPrompt(bystander, 'wait 300\nsay unharmed');
  t.match(await dying.prompt(victim, '[!throw 0]\nsay before\nwait 60000'), { error: { data: { code: 'THREAD_LOST' } } });
  t.equal(stop(await dying.response(running)), 'end_turn');
  t.equal(stop(await dying.prompt(victim, 'say again')), 'end_turn');
  await dying.request('session/close', { sessionId: victim });
  t.ok((await load(dying, victim, work)).result);
  t.equal((await dying.close()).code, 0);
});

await point(97, 'an error has no stack, no path of the program and no parameter', async (t) => {
  const env = [{ name: 'TOKEN', value: canary }];
  const refused = await plain.request('session/new', { cwd: 5, mcpServers: [{ name: 'n', command: 5, args: [], env }] });
  t.equal(refused.error?.code, -32_602);
  for (const server of servers) {
    const errors = JSON.stringify(server.frames.filter(({ error }) => error !== undefined));
    t.notMatch(errors, /\\n\s+at |node_modules|node:internal/);
    t.notOk(errors.includes(canary) || errors.includes(join(projectRoot, 'dist')));
  }
});

await point(98, 'mutated frames: no crash, no hang', async (t) => {
  const sessionId = await plain.newSession(third);
  const frames = [promptFrame('f', sessionId, 'say x'), call('g', 'session/new', { cwd: third, mcpServers: [] }), cancelFrame(sessionId)];
  for (const frame of frames) {
    for (let at = 1; at < frame.length - 1; at += 3) {
      plain.sendRaw(`${frame.slice(0, at)}${'}]"0,'[at % 5]}${frame.slice(at + 1)}`);
      plain.sendRaw(`${frame.slice(0, at)}\n`);
    }
    t.ok((await plain.request('session/list', {})).result);
  }
  t.equal(stop(await plain.prompt(await plain.newSession(third), 'say alive')), 'end_turn');
  provedBy(t, 'test/e2e/protocol-frames.test.ts'.replace('frames', 'prompts'), '#98 1000 mutated frames');
});

await point(99, 'a server that is killed in a turn leaves a log that is valid to its last event', async (t) => {
  const killed = await startServer(t, { args: scripted, stateDir: join(root, 'killed') });
  const sessionId = await killed.newSession(work);
  killed.startPrompt(sessionId, 'read who.txt\nrun sleep 30');
  await nextUpdate(killed, sessionId, (update) => update.kind === 'execute');
  await killed.waitFor(
    ({ params }) => params?.update?.status === 'in_progress' && params.update.toolCallId === callIds(killed, sessionId)[1],
    'the command',
  );
  killed.child.kill('SIGKILL');
  await killed.exited;
  checkOutput(t, killed);
});

await point(44, 'after a restart a session loads, and a damaged one is an error', async (t) => {
  const next = await startServer(t, { args: scripted, stateDir: join(root, 'killed') });
  const [{ sessionId }] = (await next.request('session/list', {})).result.sessions;
  t.ok((await load(next, sessionId, work)).result);
  t.match(JSON.stringify(next.updates(sessionId)), /I am work/);
  t.ok(isEnded(next, sessionId), 'the interrupted command has its end');
  t.equal(stop(await next.prompt(sessionId, 'say on')), 'end_turn');
  await next.request('session/close', { sessionId });
  const lines = readFileSync(logOf(next, sessionId), 'utf8').split('\n');
  writeFileSync(logOf(next, sessionId), lines.with(2, lines[2]!.replace('"', '~')).join('\n'));
  t.match(await load(next, sessionId, work), { error: { code: -32_603, message: /line 3/ } });
  await endServer(t, next);
});

await point(100, 'the entry of the registry is valid', (t) => {
  const entry = JSON.parse(readFileSync(join(projectRoot, 'registry/agent.json'), 'utf8'));
  const own = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  t.match(entry.id, /^[a-z][a-z0-9-]*$/);
  t.match(entry, { version: own.version, distribution: { npx: { package: `${own.name}@${own.version}` } } });
  t.ok(plain.frames[0]?.result.authMethods.length >= 1);
  provedBy(t, 'test/e2e/registry.test.ts', 'the command answers the check of the registry');
});

// Keys, and the ends of the servers: last, since they change what all share.

await point(27, 'a method to sign in that is unknown, or for the terminal, is -32602', async (t) => {
  for (const methodId of ['nonsense', 'login', '']) t.equal(await code(keyed, 'authenticate', { methodId }), -32_602, methodId);
});

await point(28, 'after a logout what needs a key is -32000', async (t) => {
  t.same((await keyed.request('logout', {})).result, {});
  t.equal(await code(keyed, 'session/new', { cwd: work, mcpServers: [] }), -32_000);
});

await point(26, 'a missing key is -32000 for session/new, and for no list and no initialize', async (t) => {
  const { error } = await keyed.request('session/new', { cwd: work, mcpServers: [] });
  t.match(error, { code: -32_000, data: { code: 'AUTH_REQUIRED', details: String } });
  t.ok((await keyed.request('session/list', {})).result);
  t.ok((await keyed.initialize()).result);
  t.same((await keyed.request('authenticate', { methodId: 'api-key' })).result, {});
  t.ok(await keyed.newSession(work), 'and is found again');
});

await point(15, 'the end of input ends the server and its children; a closed output does, too', async (t) => {
  const sessionId = await rich.newSession(third);
  const running = nextUpdate(rich, sessionId, isRunning);
  richAnswer = allowOnce;
  rich.startPrompt(sessionId, 'run sleep 60');
  await running;
  t.ok(processesIn(rich.stateDir).length > 0);
  const begun = performance.now();
  t.same(await rich.close(), { code: 0, signal: null });
  t.ok(performance.now() - begun < 6000);
  t.same(processesIn(rich.stateDir), [], 'the command is gone');
  provedBy(t, 'test/e2e/protocol-prompts.test.ts', '#15 a closed stdout ends the server');
  for (const server of [plain, keyed]) t.same(await server.close(), { code: 0, signal: null });
});

await point(1, 'stdout has nothing but single frames, from the first byte to the exit', (t) => {
  for (const server of servers) {
    t.same(server.violations, []);
    t.ok(server.frames.length > 50);
  }
  t.ok(existsSync(cliPath));
});

await point(14, 'nothing is on stderr, also with DEBUG set', (t) => {
  for (const server of servers) t.equal(server.stderr, '');
});

await point(29, 'no key is in a frame, on stderr or in a log', (t) => {
  t.ok(model.requests.every(({ headers }) => headers.authorization === `Bearer ${canary}`));
  t.notOk(JSON.stringify(keyed.frames).includes(canary) || JSON.stringify(plain.frames).includes(canary));
  const files = readdirSync(keyed.stateDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  t.notOk(files.some(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8').includes(canary)));
});

t.same(
  [...seen].sort((a, b) => a - b),
  Array.from({ length: 100 }, (_, index) => index + 1),
  'every point is here, once',
);
