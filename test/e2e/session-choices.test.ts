/**
 * What a client chooses for a session while it runs: modes, options and slash commands say the same, whoever chose, and the
 * log brings it back.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ModelServer } from '../support/model-server.ts';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

const model = await ModelServer.start();
t.teardown(() => model.close());
const args = ['--base-url', model.baseUrl, '--model', 'flash', '--models', 'pro,mini', '--dialect', 'deepseek', '--titles', 'off'];
const env = { DSH_ACP_API_KEY: 'test' };
const switches = { session: { configOptions: { boolean: {} } } };

const set = (server: ServerProcess, sessionId: string, configId: string, value: string | boolean): Promise<Frame> =>
  server.request('session/set_config_option', { sessionId, configId, value, ...(typeof value === 'boolean' ? { type: 'boolean' } : {}) });
const valuesOf = (options: readonly { id: string; currentValue: unknown }[]) =>
  Object.fromEntries(options.map(({ id, currentValue }) => [id, currentValue]));
/** What the client was told of choices, in order. */
const told = (server: ServerProcess, sessionId: string, from = 0): unknown[] =>
  server
    .updates(sessionId)
    .slice(from)
    .flatMap((update) => {
      if (update.sessionUpdate === 'current_mode_update') return [update.currentModeId];
      return update.sessionUpdate === 'config_option_update' ? [valuesOf(update.configOptions)] : [];
    });
const askedModels = () => model.requests.map(({ body }) => [body.model, body.reasoning_effort ?? 'off']);
const headers = (server: ServerProcess, sessionId: string): string[] =>
  readFileSync(join(server.stateDir, 'sessions', `${sessionId}.jsonl`), 'utf8')
    .split('\n')
    .flatMap((line) => (line.includes('"request/header"') ? [JSON.parse(line).data.model] : []));

async function session(t: Test, server: ServerProcess, files: Record<string, string> = {}) {
  const cwd = realpathSync(t.testdir(files));
  const { result } = await server.request('session/new', { cwd, mcpServers: [] });
  return { cwd, result, sessionId: result.sessionId as string };
}

await t.test('an editor', async (t) => {
  let answer: (frame: Frame) => unknown = () => ({ outcome: { outcome: 'cancelled' } });
  const server = await startServer(t, { args, env, initialize: switches, onRequest: (frame) => answer(frame) });
  t.beforeEach(() => model.reset());

  await t.test('modes and options say the same, whichever of them is set, and every answer has the whole list', async (t) => {
    const { sessionId, result } = await session(t, server);
    const start = { mode: 'ask', model: 'flash', thought_level: 'high', show_thoughts: true };
    t.same(valuesOf(result.configOptions), start);
    t.equal(result.modes.currentModeId, 'ask');
    t.same(valuesOf((await set(server, sessionId, 'mode', 'read-only')).result.configOptions), { ...start, mode: 'read-only' });
    t.same(told(server, sessionId), ['read-only', { ...start, mode: 'read-only' }], 'before the answer');
    t.same((await server.request('session/set_mode', { sessionId, modeId: 'accept-edits' })).result, {});
    t.same(told(server, sessionId).slice(2), ['accept-edits', { ...start, mode: 'accept-edits' }]);
    const changed = { mode: 'accept-edits', model: 'mini', thought_level: 'off', show_thoughts: false };
    await set(server, sessionId, 'model', 'mini');
    await set(server, sessionId, 'thought_level', 'off');
    t.same(valuesOf((await set(server, sessionId, 'show_thoughts', false)).result.configOptions), changed);
    const count = told(server, sessionId).length;
    t.same(valuesOf((await set(server, sessionId, 'model', 'mini')).result.configOptions), changed);
    t.equal(told(server, sessionId).length, count, 'what holds already is no news');
    await server.prompt(sessionId, JSON.stringify({ tokens: 1, reasoning: 2 }));
    t.same(askedModels(), [['mini', 'off']]);
    t.notOk(server.updates(sessionId).some((update) => update.sessionUpdate === 'agent_thought_chunk'));
  });

  await t.test('what is not offered is refused, with what is', async (t) => {
    const { sessionId } = await session(t, server);
    const refusals: [string, string | boolean, string[]][] = [
      ['nope', 'x', ['mode', 'model', 'thought_level', 'show_thoughts']],
      ['model', 'toString', ['flash', 'pro', 'mini']],
      ['mode', true, ['ask', 'accept-edits', 'read-only', 'plan', 'full-access']],
      ['show_thoughts', 'true', ['true', 'false']],
    ];
    for (const [id, value, expected] of refusals) {
      const { error } = await set(server, sessionId, id, value);
      t.match(error, { code: -32602, data: { code: 'INVALID_PARAMS' } }, id);
      t.same(error?.data.expected.map(String), expected);
      for (const name of expected) t.match(error?.message, name);
    }
    t.match((await set(server, '00000000-0000-7000-8000-000000000000', 'mode', 'ask')).error, { code: -32002 });
    t.same(told(server, sessionId), []);
  });

  await t.test('a choice in the middle of a turn holds from the next step on, and the log says what was asked', async (t) => {
    const { sessionId } = await session(t, server);
    const asked = server.next((frame) => frame.method === 'session/request_permission', 'the question');
    answer = () => undefined;
    const bash = { name: 'bash', arguments: JSON.stringify({ command: 'true', description: 'Nothing' }) };
    model.enqueue({ tools: [bash] }, { tokens: 1 });
    const prompt = server.startPrompt(sessionId, 'go');
    const question = await asked;
    t.match(
      (await set(server, sessionId, 'model', 'pro')).result.configOptions.find(({ id }: any) => id === 'model'),
      { currentValue: 'pro' },
    );
    await set(server, sessionId, 'thought_level', 'max');
    server.send({ jsonrpc: '2.0', id: question.id, result: { outcome: { outcome: 'selected', optionId: 'allow_once' } } });
    t.match(await server.response(prompt), { result: { stopReason: 'end_turn' } });
    t.same(askedModels(), [
      ['flash', 'high'],
      ['pro', 'max'],
    ]);
    t.same(headers(server, sessionId), ['flash', 'pro']);
  });

  await t.test('a plan that is approved is carried out in the same turn, with nothing changed of what is cached', async (t) => {
    const { sessionId, cwd } = await session(t, server);
    await server.request('session/set_mode', { sessionId, modeId: 'plan' });
    const questions: Frame[] = [];
    answer = (frame) => {
      questions.push(frame);
      return { outcome: { outcome: 'selected', optionId: questions.length === 1 ? 'keep_planning' : 'approve_accept_edits' } };
    };
    const write = { name: 'write', arguments: JSON.stringify({ file_path: 'new.txt', content: 'made' }) };
    const plan = (text: string) => ({ tools: [{ name: 'exit_plan_mode', arguments: JSON.stringify({ plan: text }) }] });
    model.enqueue({ tools: [write] }, plan('too little'), plan('# All of it'), { tools: [write] }, { tokens: 1 });
    const from = server.updates(sessionId).length;
    t.match(await server.prompt(sessionId, 'make a file'), { result: { stopReason: 'end_turn' } });
    t.equal(readFileSync(join(cwd, 'new.txt'), 'utf8'), 'made');
    t.equal(questions.length, 2, 'in accept-edits nobody was asked about the write');
    t.match(questions[1]?.params.toolCall, {
      kind: 'switch_mode',
      content: [{ type: 'content', content: { type: 'text', text: '# All of it' } }],
    });
    t.match(told(server, sessionId, from), ['accept-edits', { mode: 'accept-edits' }]);
    const cards = server.updates(sessionId).filter((update) => update.sessionUpdate === 'tool_call_update' && update.status === 'failed');
    t.equal(cards.length, 2, 'the write in plan mode, and the plan that was not approved');
    const [first, ...later] = model.requests.map(({ body }) => body);
    for (const body of later) {
      t.same(body.tools, first.tools);
      t.same(body.messages.slice(0, first.messages.length), first.messages, 'each request begins with the one before');
    }
    const texts = JSON.stringify(later.at(-1)?.messages);
    t.equal(texts.match(/Plan mode is on/g)?.length, 1);
    t.match(texts, /stays in plan mode/);
    t.match(texts, /plan mode is over: the mode is now \\"accept-edits\\"/);
    t.notMatch(texts, /\[Plan mode is over/, 'the result has said so');
  });

  await t.test('slash commands choose, too, and main knows of it', async (t) => {
    const { sessionId } = await session(t, server);
    t.match(await server.prompt(sessionId, '/model'), { result: { stopReason: 'end_turn' } });
    t.match(server.text(sessionId), /Model: \*\*flash\*\*[^]*`pro`/);
    await server.prompt(sessionId, '/model pro');
    await server.prompt(sessionId, '/mode full-access');
    await server.prompt(sessionId, '/mode sudo');
    t.match(server.text(sessionId), /There is no such mode/);
    t.same(told(server, sessionId).slice(-2), [
      'full-access',
      { mode: 'full-access', model: 'pro', thought_level: 'high', show_thoughts: true },
    ]);
    t.same(valuesOf((await set(server, sessionId, 'thought_level', 'low')).result.configOptions), {
      mode: 'full-access',
      model: 'pro',
      thought_level: 'low',
      show_thoughts: true,
    });
    t.same(model.requests, [], 'none of it went to a model');
    await server.prompt(sessionId, '/plan find the bug');
    t.equal(told(server, sessionId).at(-2), 'plan');
    const [request] = model.requests;
    t.match(request?.body.messages.slice(1), [{ content: 'find the bug' }, { content: /Plan mode is on/ }]);
  });

  await endServer(t, server);
});

await t.test('what was chosen is what a later server answers, shows and does', async (t) => {
  const first = await startServer(t, { args, env });
  const { sessionId, cwd, result } = await session(t, first);
  t.same(Object.keys(valuesOf(result.configOptions)), ['mode', 'model', 'thought_level'], 'no switch for a client that has none');
  await set(first, sessionId, 'model', 'pro');
  await set(first, sessionId, 'thought_level', 'low');
  await set(first, sessionId, 'mode', 'plan');
  const { stateDir } = first;
  t.teardown(() => first.dispose());
  t.equal((await first.close()).code, 0);
  const chosen = { mode: 'plan', model: 'pro', thought_level: 'low' };

  const second = await startServer(t, { args, env, stateDir });
  const loaded = await second.request('session/load', { sessionId, cwd, mcpServers: [] });
  t.same(valuesOf(loaded.result.configOptions), chosen);
  t.equal(loaded.result.modes.currentModeId, 'plan');
  t.same(told(second, sessionId).slice(-2), ['plan', chosen]);
  model.reset();
  await second.prompt(sessionId, 'plan it');
  t.same(askedModels(), [['pro', 'low']]);
  await endServer(t, second);

  const without = await startServer(t, { args: [...args, '--models', 'mini'], env, stateDir });
  const resumed = await without.request('session/resume', { sessionId, cwd });
  t.same(
    valuesOf(resumed.result.configOptions),
    { ...chosen, model: 'flash' },
    'a model that is not offered any more gives way to the configured one',
  );
  await endServer(t, without);
  t.ok(existsSync(stateDir));
});

await t.test('automation is not shown choices, and has no method for them', async (t) => {
  const server = await startServer(t, { args: [...args, '--profile', 'automation'], env });
  const { sessionId, result } = await session(t, server);
  t.same(Object.keys(result), ['sessionId']);
  t.match((await set(server, sessionId, 'model', 'pro')).error, { code: -32601, data: { method: 'session/set_config_option' } });
  await endServer(t, server);
});

await t.test('the built-in model has itself and the modes to choose from', async (t) => {
  const server = await startServer(t);
  const { sessionId, result } = await session(t, server);
  t.same(valuesOf(result.configOptions), { mode: 'ask', model: 'scripted' });
  t.match((await set(server, sessionId, 'thought_level', 'low')).error, { code: -32602 });
  t.ok((await set(server, sessionId, 'model', 'scripted')).result);
  await endServer(t, server);
});
