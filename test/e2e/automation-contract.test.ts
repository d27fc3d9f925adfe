/**
 * The automation profile as a contract: what a program may send, what it gets, and nothing beside it.
 */
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { finalAnswerName } from '../../src/worker/tools/final-answer.ts';
import { logPath, readEvents } from '../support/invariants.ts';
import { ModelServer } from '../support/model-server.ts';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

const automation = ['--model', 'scripted', '--pace-ms', '0', '--profile', 'automation', '--permission-mode', 'full-access'];
const start = (t: Test, ...more: string[]): Promise<ServerProcess> => startServer(t, { args: [...automation, ...more] });
const ours = (frame: Frame): any => frame.result?._meta?.['dsh-acp'];
const extension = (value: object): object => ({ _meta: { 'dsh-acp': value } });
const newSession = (server: ServerProcess, cwd: string, more: object = {}): Promise<Frame> =>
  server.request('session/new', { cwd, mcpServers: [], ...more });
const ask = (server: ServerProcess, sessionId: string, text: string, more: object = {}): Promise<Frame> =>
  server.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }], ...more });

t.setTimeout(60_000);

/** For all that needs no more than sessions of its own. */
const shared = await start(t);

await t.test('initialize advertises what works in the profile, and a connection may choose it', async (t) => {
  const server = await startServer(t, { args: automation, initialize: false });
  const { agentCapabilities: capabilities, authMethods } = (await server.initialize()).result;
  t.notOk(capabilities.loadSession);
  t.same(capabilities.sessionCapabilities, { resume: {}, close: {} });
  t.match(capabilities._meta['dsh-acp'], {
    version: 1,
    profile: 'automation',
    isolation: 'shared',
    promptQueueing: true,
    status: '_status',
    subagent: { persona: true, tools: true, depth: true, outputSchema: true },
  });
  const extensions = {
    initialize: ['profile'],
    'session/new': ['budget', 'policy', 'persona', 'tools', 'outputSchema', 'depth', 'maxDepth', 'sampling', 'mode', 'env'],
    'session/resume': ['mode', 'env'],
    'session/prompt': ['budget', 'key', 'messageId', 'priority', 'traceparent'],
  };
  t.same(capabilities._meta['dsh-acp'].extensions, extensions);
  t.equal(authMethods.length, 1);
  await endServer(t, server);

  const editor = await startServer(t, { args: automation, initialize: false });
  const answer = (await editor.initialize(extension({ profile: 'editor' }))).result.agentCapabilities;
  t.ok(answer.loadSession);
  t.same(answer.sessionCapabilities, { list: {}, additionalDirectories: {}, resume: {}, delete: {}, fork: {}, close: {} });
  t.match(
    answer._meta['dsh-acp'],
    { profile: 'editor', isolation: 'shared', subagent: { persona: true } },
    'isolation stays as it was started',
  );
  t.same(answer._meta['dsh-acp'].extensions, {
    ...extensions,
    'session/load': ['mode', 'env', 'readOnly'],
    'session/fork': ['mode', 'env'],
  });
  const cwd = realpathSync(t.testdir({ 'a.txt': 'x' }));
  const { sessionId, modes } = (await newSession(editor, cwd)).result;
  t.equal(modes.currentModeId, 'full-access');
  await editor.prompt(sessionId, 'read a.txt');
  t.ok(
    editor.updates(sessionId).some((update) => update.sessionUpdate === 'tool_call'),
    'the connection is shown tool cards',
  );
  await endServer(t, editor);

  const chosen = await startServer(t, {
    args: ['--model', 'scripted', '--pace-ms', '0'],
    initialize: extension({ profile: 'automation' }),
  });
  const made = (await newSession(chosen, cwd)).result;
  t.same(Object.keys(made), ['sessionId']);
  t.match(await ask(chosen, made.sessionId, 'read a.txt\nsay done'), { result: { stopReason: 'end_turn' } });
  t.same([...new Set(chosen.updates(made.sessionId).map((update) => update.sessionUpdate))], ['agent_message_chunk']);
  t.equal((await chosen.request('session/list', {})).error?.code, -32601);
  await endServer(t, chosen);

  const wrong = await startServer(t, { args: automation, initialize: false });
  t.match((await wrong.initialize(extension({ profile: 'batch' }))).error, { code: -32602, data: { field: '_meta["dsh-acp"].profile' } });
  t.equal((await wrong.initialize()).result?.protocolVersion, 1, 'and may try again');
  await endServer(t, wrong);
});

await t.test('a turn of every kind sends one update for each committed message with text, and nothing else', async (t) => {
  const server = shared;
  const cwd = realpathSync(t.testdir({ 'a.txt': 'alpha\nbeta\n' }));
  const { sessionId } = (await newSession(server, cwd)).result;
  const script = `think about it
say I begin.
todo *look; change
fail SERVER 1
read a.txt
& grep alpha
run echo out; exit 3
edit a.txt /alpha/beta/
say And now:
read missing.txt
think and again
say All is done.`;
  const answer = await ask(server, sessionId, script);
  t.equal(answer.result?.stopReason, 'end_turn');
  await server.request('_status', {});
  const events = await readEvents(logPath(server, sessionId));
  const said = events.flatMap((event) => (event.type === 'assistant/message' && event.data.text !== '' ? [event.data] : []));
  t.ok(said.length >= 3 && events.some((event) => event.type === 'llm/retry') && events.some((event) => event.type === 'todo/write'));
  t.same(
    server.updates(sessionId),
    said.map(({ messageId, text }) => ({ sessionUpdate: 'agent_message_chunk', messageId, content: { type: 'text', text } })),
  );
  t.same(
    [...new Set(server.frames.filter((frame) => frame.method !== undefined).map((frame) => frame.method))],
    ['session/update'],
    'no request, no other notification',
  );
  t.match(ours(answer), { text: said.at(-1)?.text, usage: { steps: Number, toolCalls: 6, inputTokens: Number, elapsedMs: Number } });
  t.ok(ours(answer).usage.firstTokenMs >= 0);
  t.notOk('stored' in ours(answer));

  t.match(await ask(server, sessionId, 'todo only a plan'), { result: { stopReason: 'end_turn' } });
  const silent = server.startPrompt(sessionId, 'run sleep 20');
  server.notify('session/cancel', { sessionId });
  t.match(await server.response(silent), { result: { stopReason: 'cancelled' } });
});

await t.test('what an editor alone has is not there', async (t) => {
  const server = shared;
  const cwd = realpathSync(t.testdir({}));
  const { sessionId } = (await newSession(server, cwd)).result;
  for (const [method, params] of [
    ['session/load', { sessionId, cwd, mcpServers: [] }],
    ['session/list', {}],
    ['session/set_mode', { sessionId, modeId: 'ask' }],
    ['session/fork', { sessionId, cwd }],
    ['session/delete', { sessionId }],
    ['session/set_config_option', { sessionId, configId: 'x', value: 'y' }],
  ] as const) {
    t.match((await server.request(method, params)).error?.data, { code: 'METHOD_NOT_FOUND', method }, method);
  }
  t.same((await server.request('authenticate', { methodId: 'api-key' })).result, {});
});

await t.test('what is refused, is refused with its code, and the session goes on', async (t) => {
  const server = await start(t, '--overlap', 'reject');
  const cwd = realpathSync(t.testdir({}));
  const { sessionId } = (await newSession(server, cwd)).result;
  const sessions: [string, object, string][] = [
    ['additional directories', { additionalDirectories: ['/tmp'] }, 'INVALID_PARAMS'],
    ['MCP servers', { mcpServers: [{ name: 'm', command: '/bin/true', args: [], env: [] }] }, 'INVALID_PARAMS'],
    ['an unknown member', extension({ budgets: {} }), 'INVALID_PARAMS'],
    ['a budget of the wrong type', extension({ budget: { maxSteps: 'ten' } }), 'INVALID_PARAMS'],
    ['dollars without prices', extension({ budget: { maxCostUsd: 1 } }), 'INVALID_PARAMS'],
    ['a relative directory', { cwd: '.' }, 'CWD_INVALID'],
  ];
  for (const [name, more, code] of sessions) t.match((await newSession(server, cwd, more)).error, { data: { code } }, name);
  const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' };
  const text = { type: 'text', text: 'say x' };
  const prompts: [string, object, string][] = [
    ['an image', { prompt: [text, image] }, 'UNSUPPORTED_CONTENT'],
    ['audio', { prompt: [{ type: 'audio', data: 'aGk=', mimeType: 'audio/wav' }] }, 'UNSUPPORTED_CONTENT'],
    ['an embedded resource', { prompt: [{ type: 'resource', resource: { uri: 'file:///x', text: 'x' } }] }, 'UNSUPPORTED_CONTENT'],
    ['nothing', { prompt: [] }, 'EMPTY_PROMPT'],
    ['blanks', { prompt: [{ type: 'text', text: ' \n' }] }, 'EMPTY_PROMPT'],
    ['an unknown session', { sessionId: '00000000-0000-7000-8000-000000000000' }, 'SESSION_NOT_FOUND'],
    ['an unknown member', extension({ deadline: 1 }), 'INVALID_PARAMS'],
    ['an option of sessions', extension({ persona: 'x' }), 'INVALID_PARAMS'],
  ];
  for (const [name, more, code] of prompts) {
    const { error } = await server.request('session/prompt', { sessionId, prompt: [text], ...more });
    t.match(error, { data: { code } }, name);
  }
  const running = server.startPrompt(sessionId, 'wait 20000');
  t.match((await ask(server, sessionId, 'say y')).error, { code: -31001, data: { code: 'SESSION_BUSY' } }, 'an overlap');
  server.notify('session/cancel', { sessionId });
  t.match(await server.response(running), { result: { stopReason: 'cancelled' } });
  t.match(await ask(server, sessionId, 'say z', { _meta: { 'other.vendor': { budget: 'x' } } }), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
});

await t.test('the model reads links as quoted references, the persona, and only the tools that were named', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const server = await startServer(t, { args: ['--base-url', models.baseUrl, '--model', 'bench', '--profile', 'automation'] });
  const cwd = realpathSync(t.testdir({}));
  const options = { persona: 'You are the reviewer of the north wing.', tools: ['read', 'grep'] };
  const { sessionId } = (await newSession(server, cwd, extension(options))).result;
  const link = { type: 'resource_link', name: 'a "b"\nc', uri: 'file:///srv/a.ts' };
  const prompt = [{ type: 'text', text: 'Look at' }, link, { type: 'text', text: '{"tokens":3}' }];
  t.match(await server.request('session/prompt', { sessionId, prompt }), { result: { stopReason: 'end_turn' } });
  const body = models.requests.at(-1)?.body;
  const asked = body.messages.filter((message: any) => message.role === 'user').map((message: any) => message.content);
  t.ok(asked.some((content: string) => content.includes('Look at\n\n[resource "a \\"b\\" c" "file:///srv/a.ts"]\n\n{"tokens":3}')));
  t.match(body.messages[0], { role: 'system', content: /north wing/ });
  t.same(body.tools.map((tool: any) => tool.function.name).sort(), ['grep', 'read']);
  await endServer(t, server);
});

await t.test('a session says how its model draws words, over what the server says, and keeps it', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const settings = ['--temperature', '0.3', '--seed', '5'];
  const server = await startServer(t, { args: ['--base-url', models.baseUrl, '--model', 'bench', '--profile', 'automation', ...settings] });
  const cwd = realpathSync(t.testdir({}));
  const sent = async (sessionId: string): Promise<object> => {
    t.match(await ask(server, sessionId, '{"tokens":1}'), { result: { stopReason: 'end_turn' } });
    const { temperature, top_p, seed } = models.requests.at(-1)?.body ?? {};
    return { temperature, top_p, seed };
  };
  const { sessionId: plain } = (await newSession(server, cwd)).result;
  t.same(await sent(plain), { temperature: 0.3, top_p: undefined, seed: 5 });
  const { sessionId } = (await newSession(server, cwd, extension({ sampling: { temperature: 0, topP: 0.5 } }))).result;
  t.same(await sent(sessionId), { temperature: 0, top_p: 0.5, seed: 5 });
  await server.request('session/close', { sessionId });
  t.match(await server.request('session/resume', { sessionId, cwd }), { result: {} });
  t.same(await sent(sessionId), { temperature: 0, top_p: 0.5, seed: 5 }, 'after a resume, too');
  await server.request('session/close', { sessionId });
  const headers = (await readEvents(logPath(server, sessionId))).filter((event) => event.type === 'request/header');
  t.same(
    headers.map((event) => event.data.sampling),
    [{ temperature: 0, topP: 0.5, seed: 5 }],
    'what was sent is on record, once',
  );
  await endServer(t, server);
});

await t.test('mode and environment come with the session; neither the environment nor a secret in it is written anywhere', async (t) => {
  const server = await startServer(t, {
    args: ['--model', 'scripted', '--pace-ms', '0', '--profile', 'automation', '--log-level', 'debug'],
  });
  const cwd = realpathSync(t.testdir({}));
  const options = { mode: 'full-access', env: { GREETING: 'moin', MY_TOKEN: 'sesame-4711' } };
  const { sessionId } = (await newSession(server, cwd, extension(options))).result;
  t.match(await ask(server, sessionId, 'run echo "$GREETING" > out.txt; test -n "$MY_TOKEN" && echo set >> out.txt'), {
    result: { stopReason: 'end_turn' },
  });
  t.equal(readFileSync(join(cwd, 'out.txt'), 'utf8'), 'moin\nset\n');
  const log = readFileSync(logPath(server, sessionId), 'utf8');
  t.notMatch(log, /sesame-4711|"env"/);
  t.notMatch(server.stderr, /sesame-4711/);
  await server.request('session/close', { sessionId });

  t.match(await server.request('session/resume', { sessionId, cwd }), { result: {} });
  await ask(server, sessionId, 'run echo "[$GREETING]" > out.txt');
  t.equal(readFileSync(join(cwd, 'out.txt'), 'utf8'), '[]\n', 'the mode is in the log, the environment is to be given again');
  t.same((await server.close()).code, 0);
  t.same(server.violations, []);
});

await t.test('stop reasons are true, and say which budget was spent', async (t) => {
  const server = shared;
  const cwd = realpathSync(t.testdir({ 'a.txt': 'x\n' }));
  const loop = 'read a.txt\nread a.txt\nread a.txt\nread a.txt\nsay end';
  const { sessionId } = (await newSession(server, cwd)).result;
  const steps = await ask(server, sessionId, loop, extension({ budget: { maxSteps: 2 } }));
  t.equal(steps.result?.stopReason, 'max_turn_requests');
  t.match(ours(steps), { spent: { budget: 'steps', scope: 'turn' }, usage: { steps: 2 } });
  const late = await ask(server, sessionId, loop, extension({ budget: { deadline: '2020-01-01T00:00:00Z' } }));
  t.equal(late.result?.stopReason, 'max_turn_requests', 'a deadline that is past is no error');
  t.match(ours(late), { spent: { budget: 'deadline' }, usage: { steps: 0 } });

  const deadline = '2099-01-01T00:00:00+01:00';
  const { sessionId: fresh } = (await newSession(server, cwd)).result;
  const within = extension({ budget: { deadline, maxSteps: 10, maxTokens: 1_000_000 } });
  const enough = ours(await ask(server, fresh, 'read a.txt\nsay end', within));
  t.match(enough.left, { deadline: '2098-12-31T23:00:00.000Z', maxSteps: 8 });
  t.ok(enough.left.maxTokens < 1_000_000 && !('spent' in enough));

  const budget = { maxToolCalls: 5 };
  const { sessionId: limited } = (await newSession(server, cwd, extension({ budget }))).result;
  t.match(await ask(server, limited, loop), { result: { stopReason: 'end_turn' } });
  await server.request('session/close', { sessionId: limited });
  t.match(
    await server.request('session/resume', { sessionId: limited, cwd, ...extension({ budget: { maxToolCalls: 500 } }) }),
    { error: { data: { code: 'INVALID_PARAMS', field: '_meta["dsh-acp"].budget' } } },
    'what the log keeps is not given again',
  );
  await server.request('session/resume', { sessionId: limited, cwd });
  const spent = await ask(server, limited, loop);
  t.equal(spent.result?.stopReason, 'max_turn_requests', 'the budget of a session is of all its turns, also after a resume');
  t.match(ours(spent), { spent: { budget: 'tool-calls', scope: 'session' } });
});

await t.test('an answer by the output schema is there, also when it is read from the log', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const server = await startServer(t, { args: ['--base-url', models.baseUrl, '--model', 'bench', '--profile', 'automation'] });
  const outputSchema = { type: 'object', properties: { verdict: { enum: ['good', 'bad'] } }, required: ['verdict'] };
  const { sessionId } = (await newSession(server, realpathSync(t.testdir({})), extension({ outputSchema }))).result;
  models.enqueue({ tokens: 2, tools: [{ name: finalAnswerName, arguments: '{"verdict":"good"}' }], finish: 'tool_calls' });
  const fresh = await ask(server, sessionId, 'judge', extension({ key: 'k' }));
  t.match(fresh, { result: { stopReason: 'end_turn', _meta: { 'dsh-acp': { structured: { verdict: 'good' } } } } });
  t.same(ours(await ask(server, sessionId, 'judge', extension({ key: 'k' }))), { ...ours(fresh), stored: true });
  t.equal(models.requests.length, 1);
  await endServer(t, server);
});

await t.test('an error of a turn that had begun says what it used and what it said', async (t) => {
  const server = shared;
  const { sessionId } = (await newSession(server, realpathSync(t.testdir({ 'a.txt': 'x\n' })))).result;
  const { error } = await ask(server, sessionId, 'say So far.\nread a.txt\nfail AUTH 9');
  t.match(error, { data: { code: 'AUTH_REQUIRED', text: /So far\./, usage: { toolCalls: 1 } } });
});

await t.test('a session keeps what it was made with in the header of its log', async (t) => {
  const server = shared;
  const options = {
    persona: 'P',
    depth: 1,
    outputSchema: { type: 'object' },
    sampling: { temperature: 0, seed: 0 },
    budget: { maxSteps: 9 },
    policy: { rules: [], fallback: 'deny' },
  };
  const { sessionId } = (await newSession(server, t.testdir({}), extension({ ...options, mode: 'ask', env: { A: '1' } }))).result;
  const [header = ''] = readFileSync(logPath(server, sessionId), 'utf8').split('\n');
  t.same(JSON.parse(header).options, { ...options, mode: 'ask' });

  const { sampling } = options;
  const { sessionId: parent } = (await newSession(server, t.testdir({}), extension({ sampling }))).result;
  t.match(await ask(server, parent, 'delegate self <<END\nsay hello\nEND'), { result: { stopReason: 'end_turn' } });
  const folder = dirname(logPath(server, parent));
  const logs = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  const headers = logs.map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8').split('\n')[0] ?? ''));
  const child = headers.find((one) => one.options?.depth === 1 && one.options.persona === undefined);
  t.same(child?.options.sampling, sampling, 'who works for it draws words as it does');
});

await t.test('the server of all these ends in order, with nothing but frames on stdout', (t) => endServer(t, shared));
