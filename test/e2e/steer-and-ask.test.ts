/**
 * A person in the middle of a turn: messages into it (`_session/steer`), and questions of the model to them (`elicitation/create`),
 * in raw frames.
 */
import { realpathSync } from 'node:fs';
import t from 'tap';
import { logPath, readEvents } from '../support/invariants.ts';
import { ModelServer } from '../support/model-server.ts';
import type { Frame } from '../support/server-process.ts';
import { callIds, endServer, startServer, statusesOfCall } from '../support/started-server.ts';

const model = await ModelServer.start();
t.teardown(() => model.close());
const args = ['--base-url', model.baseUrl, '--model', 'bench', '--titles', 'off'];
const say = (text: string) => [{ type: 'text', text }];
const lastSaid = (): unknown => model.requests.at(-1)?.body.messages.at(-1);
/** The `user_message_chunk`s of a session so far. */
const echoed = (updates: readonly any[]): unknown[] =>
  updates.flatMap((one) => (one.sessionUpdate === 'user_message_chunk' ? [[one.messageId, one.content.text]] : []));

await t.test('messages into a turn', async (t) => {
  const server = await startServer(t, { args, initialize: { elicitation: { form: {} } } });
  const cwd = realpathSync(t.testdir({}));
  const steer = (sessionId: string, text: string, more: object = {}): Promise<Frame> =>
    server.request('_session/steer', { sessionId, prompt: say(text), ...more });

  await t.test('a running turn takes one at its next step, shows where, and a replay shows the same', async (t) => {
    model.reset();
    const sessionId = await server.newSession(cwd);
    model.enqueue({ tokens: 400, delayMs: 5 }, { text: ['Blue it is.'] });
    const id = server.startPrompt(sessionId, 'paint it');
    await server.waitFor((frame) => frame.params?.update?.sessionUpdate === 'agent_message_chunk', 'the first words');
    t.same((await steer(sessionId, 'in blue', { messageId: 'my-1' })).result, { outcome: 'injected', messageId: 'my-1' });
    t.match(await steer(sessionId, 'in red', { messageId: 'my-1' }), {
      error: { code: -32602, data: { code: 'INVALID_PARAMS', field: 'messageId' } },
    });
    t.match(await server.response(id), { result: { stopReason: 'end_turn' } });
    t.equal(model.requests.length, 2);
    t.same(lastSaid(), { role: 'user', content: 'in blue' });
    t.same(echoed(server.updates(sessionId)), [['my-1', 'in blue']]);
    t.match(server.text(sessionId), /tok399 .*Blue it is\./s);
    await server.request('session/close', { sessionId });
    const before = server.updates(sessionId).length;
    t.ok((await server.request('session/load', { sessionId, cwd, mcpServers: [] })).result);
    const replayed = server.updates(sessionId).slice(before);
    t.same(
      echoed(replayed).map((one: any) => one[1]),
      ['paint it', 'in blue'],
    );
  });

  await t.test('where nothing runs it begins a turn, and is answered with its end', async (t) => {
    model.reset();
    const sessionId = await server.newSession(cwd);
    model.enqueue({ text: ['Yes.'] });
    const { result } = await steer(sessionId, 'begin');
    t.match(result, { outcome: 'started', messageId: String, stopReason: 'end_turn', _meta: { 'dsh-acp': { usage: { steps: 1 } } } });
    t.equal(server.text(sessionId), 'Yes.', 'its updates came first');
    const said = (await readEvents(logPath(server, sessionId))).flatMap((event) => (event.type === 'user/message' ? [event.data] : []));
    t.match(said, [{ source: 'prompt', messageId: result.messageId }]);
    model.enqueue({ tokens: 5, fault: { kind: 'status', status: 401 } });
    t.match(await steer(sessionId, 'again'), { error: { code: -32000 } }, 'as a prompt is');
  });

  await t.test('a steer and a cancel in one write: it is dropped with its turn; behind the cancel it begins one', async (t) => {
    model.reset();
    const sessionId = await server.newSession(cwd);
    model.enqueue({ tokens: 400, delayMs: 5 }, { text: ['Fresh.'] });
    const id = server.startPrompt(sessionId, 'long');
    await server.next((frame) => frame.params?.update?.sessionUpdate === 'agent_message_chunk', 'the first words');
    server.notify('session/cancel', { sessionId });
    const started = steer(sessionId, 'then this');
    t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
    t.match(await started, { result: { outcome: 'started', stopReason: 'end_turn' } });
    t.same(lastSaid(), { role: 'user', content: 'then this' });
  });

  await t.test('content and params are checked as those of a prompt', async (t) => {
    const sessionId = await server.newSession(cwd);
    const wrong: [object, object][] = [
      [{ prompt: say('x') }, { code: -32602, data: { field: 'sessionId' } }],
      [{ sessionId: 'none', prompt: say('x') }, { code: -32002 }],
      [
        { sessionId, prompt: [] },
        { code: -32602, data: { code: 'EMPTY_PROMPT' } },
      ],
      [
        { sessionId, prompt: say('  ') },
        { code: -32602, data: { code: 'EMPTY_PROMPT' } },
      ],
      [
        { sessionId, prompt: 'x' },
        { code: -32602, data: { field: 'prompt' } },
      ],
      [
        { sessionId, prompt: [{ type: 'audio', data: '', mimeType: 'audio/wav' }] },
        { code: -32602, data: { code: 'UNSUPPORTED_CONTENT' } },
      ],
      [
        { sessionId, prompt: [{ type: 'text' }] },
        { code: -32602, data: { field: 'prompt.0.text' } },
      ],
      [
        { sessionId, prompt: say('x'), messageId: '' },
        { code: -32602, data: { field: 'messageId' } },
      ],
      [
        { sessionId, prompt: say('x'), mesageId: 'y' },
        { code: -32602, data: { field: 'mesageId' } },
      ],
    ];
    for (const [params, error] of wrong) t.match(await server.request('_session/steer', params), { error }, JSON.stringify(params));
    const { result } = await server.request('initialize', { protocolVersion: 1, clientCapabilities: { elicitation: { form: {} } } });
    t.equal(result.agentCapabilities._meta['dsh-acp'].steer, '_session/steer');
  });

  await endServer(t, server);
});

await t.test('questions of the model', async (t) => {
  const server = await startServer(t, { args, initialize: { elicitation: { form: {} } }, onRequest: () => undefined });
  const cwd = realpathSync(t.testdir({}));
  const questions = [{ question: 'Which colour?', choices: [{ label: 'red' }, { label: 'blue' }] }];
  const call = { tools: [{ id: 'ask-1', name: 'ask_user', arguments: JSON.stringify({ questions }) }] };
  const isForm = (frame: Frame): boolean => frame.method === 'elicitation/create';

  await t.test('a form about the call, its answer for the model', async (t) => {
    model.reset();
    const sessionId = await server.newSession(cwd);
    model.enqueue(call, { text: ['Blue, then.'] });
    const asked = server.next(isForm, 'the form');
    const id = server.startPrompt(sessionId, 'paint it');
    const form = await asked;
    t.match(form.params, {
      sessionId,
      mode: 'form',
      message: 'Which colour?',
      requestedSchema: { properties: { q1: { oneOf: [{}, {}] } } },
    });
    t.same(callIds(server, sessionId), [form.params.toolCallId], 'its card came first');
    server.send({ jsonrpc: '2.0', id: form.id, result: { action: 'accept', content: { q1: 'blue' } } });
    t.match(await server.response(id), { result: { stopReason: 'end_turn' } });
    t.match(lastSaid(), { role: 'tool', content: 'The user answered:\nWhich colour?\n  - blue' });
    t.same(statusesOfCall(server, sessionId, form.params.toolCallId), ['pending', 'in_progress', 'completed']);
  });

  await t.test('a cancel takes the form back; a late answer changes nothing', async (t) => {
    model.reset();
    const sessionId = await server.newSession(cwd);
    model.enqueue(call);
    const asked = server.next(isForm, 'the form');
    const id = server.startPrompt(sessionId, 'paint it');
    const form = await asked;
    const withdrawn = server.next((frame) => frame.method === '$/cancel_request', 'the withdrawal');
    server.notify('session/cancel', { sessionId });
    t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
    t.equal((await withdrawn).params.requestId, form.id);
    server.send({ jsonrpc: '2.0', id: form.id, result: { action: 'accept', content: { q1: 'red' } } });
    model.enqueue({ text: ['Well.'] });
    t.match(await server.prompt(sessionId, 'go on'), { result: { stopReason: 'end_turn' } });
    t.notMatch(JSON.stringify(model.requests.at(-1)?.body), /The user answered/);
  });

  await endServer(t, server);
});

await t.test('without forms, and for a program, the model has no such tool', async (t) => {
  for (const [flags, capabilities] of [
    [[], { elicitation: { url: {} } }],
    [['--profile', 'automation'], { elicitation: { form: {} } }],
  ] as const) {
    model.reset();
    const server = await startServer(t, { args: [...args, ...flags], initialize: capabilities });
    model.enqueue({ text: ['Hi.'] });
    await server.prompt(await server.newSession(realpathSync(t.testdir({}))), 'hello');
    const names = model.requests[0]?.body.tools.map((tool: any) => tool.function.name);
    t.ok(names.includes('read') && !names.includes('ask_user'), names.join());
    await endServer(t, server);
  }
});
