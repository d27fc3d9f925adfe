/**
 * The assembled server under a hostile model or client: what a session may not do it may not do by a detour either, over
 * subagents, changes of mode, stored sessions, options of the client, or answers that nobody asked for.
 */
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { fileAppears } from '../support/file-appears.ts';
import { ModelServer } from '../support/model-server.ts';
import { type Frame, type ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

t.setTimeout(120_000);

const scripted = ['--model', 'scripted', '--pace-ms', '0'];
const extension = (options: object): object => ({ _meta: { 'dsh-acp': options } });
const heredoc = (head: string, lines: readonly string[], word: string): string => [`${head} <<${word}`, ...lines, word].join('\n');
const write = (path: string): string => `write ${path} <<EOF\nx\nEOF`;
const isAsking = (frame: Frame): boolean => frame.method === 'session/request_permission';

async function newSession(server: ServerProcess, cwd: string, options: object = {}): Promise<string> {
  const { result, error } = await server.request('session/new', { cwd, mcpServers: [], ...extension(options) });
  if (error !== undefined) throw new Error(JSON.stringify(error));
  return result.sessionId;
}

interface Log {
  readonly id: string;
  readonly header: any;
  readonly events: any[];
}

function logs(server: ServerProcess): Log[] {
  const dir = join(server.stateDir, 'sessions');
  const names = readdirSync(dir).filter((name) => name.endsWith('.jsonl'));
  return names.map((name) => {
    const [header, ...events] = readFileSync(join(dir, name), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    return { id: header.id, header, events };
  });
}

/** Which of these files there are. */
const made = (cwd: string, ...names: string[]): string[] => names.filter((name) => existsSync(join(cwd, name)));

t.test('a session that works for another one has no right that the other one has not', async (t) => {
  const cwd = realpathSync(t.testdir({ 'a.txt': 'a' }));
  const server = await startServer(t, { args: [...scripted, '--permission-mode', 'full-access'] });
  const policy = {
    rules: [
      { name: 'guard', action: 'deny', access: ['write'], paths: ['locked*'] },
      { name: 'rest', action: 'allow' },
    ],
  };
  const sessionId = await newSession(server, cwd, { policy, tools: ['subagent', 'write'] });
  const attack = (name: string): string[] => [write(`locked-${name}`), `run touch ran-${name}`, write(`open-${name}`), `grep a`];
  const grandchild = heredoc('delegate self', attack('grandchild'), 'INNER');
  await server.prompt(sessionId, heredoc('delegate self', [...attack('child'), grandchild], 'OUTER'));
  t.same(made(cwd, 'locked-child', 'ran-child', 'open-child', 'locked-grandchild', 'ran-grandchild', 'open-grandchild'), [
    'open-child',
    'open-grandchild',
  ]);
  const children = logs(server).filter(({ header }) => header.options.depth > 0);
  t.same(
    children.map(({ header }) => header.options.depth).sort((a, b) => a - b),
    [1, 2],
  );
  for (const { header, events } of children) {
    t.same(header.options.tools, ['subagent', 'write']);
    t.match(header.options.policy.rules, [{ name: 'guard' }, { name: 'rest' }]);
    const codes = events.flatMap(({ type, data }) => (type === 'tool/result' && data.isError ? [data.code] : []));
    t.same(codes, ['PERMISSION_DENIED', 'UNKNOWN_TOOL', 'UNKNOWN_TOOL']);
  }
  await endServer(t, server);
});

t.test('a change of mode binds the sessions that work for this one, too, also those that run already', async (t) => {
  const cwd = realpathSync(t.testdir({}));
  const server = await startServer(t, { args: [...scripted, '--permission-mode', 'full-access'] });
  const sessionId = await server.newSession(cwd);
  const wait = (name: string): string => `run touch here-${name}; until [ -e go ]; do sleep 0.02; done`;
  const grandchild = heredoc('delegate self', [wait('grandchild'), 'run touch after-grandchild'], 'INNER');
  const child = heredoc('delegate & self', [grandchild, 'run touch after-child'], 'OUTER');
  await server.prompt(sessionId, child);
  await fileAppears(join(cwd, 'here-grandchild'));
  t.ok((await server.request('session/set_mode', { sessionId, modeId: 'read-only' })).result);
  writeFileSync(join(cwd, 'go'), '');
  await server.prompt(sessionId, 'collect');
  t.same(made(cwd, 'after-child', 'after-grandchild'), []);
  await endServer(t, server);
});

t.test('no moment of a change of mode lets a session that is being started keep the old one', async (t) => {
  const cwd = realpathSync(t.testdir({}));
  const server = await startServer(t, { args: [...scripted, '--permission-mode', 'full-access', '--isolation', 'shared'] });
  const rounds = Array.from({ length: 16 }, (_, round) => round);
  const ends = rounds.map(async (round) => {
    const sessionId = await server.newSession(cwd);
    const lines = ['run until [ -e go ]; do sleep 0.02; done', `run touch after-${round}`];
    const prompt = server.startPrompt(sessionId, heredoc('delegate self', lines, 'END'));
    // Each round one answer of the server later.
    for (let answers = 0; answers < round; answers += 1) await server.request('_status', {});
    t.ok((await server.request('session/set_mode', { sessionId, modeId: 'read-only' })).result);
    return () => server.response(prompt);
  });
  const waiting = await Promise.all(ends);
  writeFileSync(join(cwd, 'go'), '');
  for (const end of waiting) t.match(await end(), { result: { stopReason: 'end_turn' } });
  t.same(made(cwd, ...rounds.map((round) => `after-${round}`)), []);
  await endServer(t, server);
});

t.test('what a rule of a policy asks is asked of the client, whatever the questions of sessions of this server get', async (t) => {
  const root = realpathSync(
    t.testdir({
      ws: {},
      'config.toml': '[[subagents]]\nname = "self"\npermission = "allow"\n',
      'policy.toml':
        '[[rule]]\nname = "think"\naction = "ask"\naccess = ["execute"]\n[[rule]]\nname = "self"\naction = "allow"\nproviders = ["self"]\n',
    }),
  );
  const cwd = join(root, 'ws');
  const answers: unknown[] = [];
  const args = [...scripted, '--config', join(root, 'config.toml'), '--policy-file', join(root, 'policy.toml'), '--profile', 'automation'];
  const server = await startServer(t, {
    args,
    onRequest: (frame) => (answers.push(frame.params), { outcome: { outcome: 'selected', optionId: 'reject_once' } }),
  });
  const sessionId = await newSession(server, cwd);
  await server.prompt(sessionId, 'delegate self run touch made');
  t.same(made(cwd, 'made'), []);
  t.equal(answers.length, 1, 'the client was asked');
  await endServer(t, server);
});

t.test('a child does not get the budget anew: what is left of steps and tool calls is its own limit', async (t) => {
  const cwd = realpathSync(t.testdir({}));
  const server = await startServer(t, { args: [...scripted, '--permission-mode', 'full-access'] });
  const sessionId = await newSession(server, cwd, { budget: { maxToolCalls: 3, maxSteps: 6 } });
  await server.prompt(
    sessionId,
    heredoc(
      'delegate self',
      ['1', '2', '3', '4', '5'].map((n) => `run touch made-${n}`),
      'OUTER',
    ),
  );
  t.same(made(cwd, 'made-1', 'made-2', 'made-3', 'made-4', 'made-5'), ['made-1', 'made-2']);
  await endServer(t, server);
});

t.test('a yes for good holds in its workspace and not for those who work below it; a no for good holds for them, too', async (t) => {
  const root = realpathSync(t.testdir({ here: {}, far: {} }));
  const [cwd, elsewhere] = [join(root, 'here'), join(root, 'far')];
  /** For good where that is offered, else what would do the most harm. */
  const answers = (frame: Frame): unknown => {
    const kinds = /echo no/.test(JSON.stringify(frame.params.toolCall)) ? ['reject_always', 'allow_once'] : ['allow_always', 'reject_once'];
    const option = kinds.flatMap((kind) => frame.params.options.find((one: any) => one.kind === kind) ?? [])[0];
    return { outcome: { outcome: 'selected', optionId: option.optionId } };
  };
  const server = await startServer(t, { args: scripted, onRequest: answers });
  const [a, b, far] = [await server.newSession(cwd), await server.newSession(cwd), await server.newSession(elsewhere)];
  const [yes, no] = ['run echo yes >> out', 'run echo no >> out'];
  const asked = (): string[] => server.frames.filter(isAsking).map(({ params }) => params.sessionId);
  await server.prompt(a, `${yes}\n${yes}`);
  await server.prompt(b, yes);
  t.same(asked(), [a], 'once in the workspace');
  await server.prompt(far, yes);
  t.same(asked(), [a, far], 'another workspace');
  await server.prompt(a, `delegate self ${yes}`);
  t.same(asked(), [a, far, a], 'a child is asked for');
  t.equal(readFileSync(join(cwd, 'out'), 'utf8'), 'yes\nyes\nyes\n', 'and is told no where nothing that lasts is offered');
  await server.prompt(b, no);
  t.same(asked(), [a, far, a, b]);
  await server.prompt(a, `${no}\ndelegate self ${no}`);
  t.same(asked(), [a, far, a, b], 'neither the session nor its child is asked again');
  t.notMatch(readFileSync(join(cwd, 'out'), 'utf8'), 'no');
  await endServer(t, server);
});

t.test('a stored session is opened again with all that it was made with', async (t) => {
  const cwd = realpathSync(t.testdir({ 'a.txt': 'a' }));
  const server = await startServer(t, { args: [...scripted, '--permission-mode', 'full-access'] });
  const policy = { rules: [{ action: 'deny', access: ['write'], paths: ['locked'] }], fallback: 'allow' };
  const strict = await newSession(server, cwd, { policy, tools: ['write', 'bash'], depth: 64, budget: { maxToolCalls: 4 } });
  const careful = await newSession(server, cwd, { mode: 'read-only' });
  for (const sessionId of [strict, careful]) await server.request('session/close', { sessionId });
  await endServer(t, server);

  const again = await startServer(t, { args: [...scripted, '--permission-mode', 'full-access'], stateDir: server.stateDir });
  t.match(await again.request('session/resume', { sessionId: careful, cwd }), { result: { modes: { currentModeId: 'read-only' } } });
  await again.prompt(careful, `${write('careful')}\nrun touch careful`);
  t.match(await again.request('session/load', { sessionId: strict, cwd, mcpServers: [] }), { result: {} });
  await again.prompt(strict, `${write('locked')}\nread a.txt\ndelegate self say x\n${write('open')}\n${write('beyond')}`);
  t.same(made(cwd, 'careful', 'locked', 'open', 'beyond'), ['open']);
  const refused = logs(again)
    .find(({ id }) => id === strict)
    ?.events.flatMap(({ type, data }) => (type === 'tool/result' && data.isError ? [data.code] : []));
  t.same(refused, ['PERMISSION_DENIED', 'UNKNOWN_TOOL', 'UNKNOWN_TOOL'], 'and the budget ends it');
  await endServer(t, again);
});

t.test('a policy of a session loosens nothing, and waits no longer for an answer', async (t) => {
  const root = realpathSync(
    t.testdir({ ws: {}, 'policy.toml': 'ask_timeout_ms = 100\n[[rule]]\nname = "think"\naction = "ask"\ncommands = [["touch", "*"]]\n' }),
  );
  const cwd = join(root, 'ws');
  const server = await startServer(t, { args: [...scripted, '--policy-file', join(root, 'policy.toml')], onRequest: () => undefined });
  const everything = { rules: [{ action: 'allow' }], fallback: 'allow', askTimeoutMs: 600_000 };
  const sessionId = await newSession(server, cwd, { policy: everything, mode: 'full-access' });
  const started = performance.now();
  await server.prompt(sessionId, `${write('a')}\nrun touch b\nrun true; touch c`);
  t.ok(performance.now() - started < 10_000);
  t.same(made(cwd, 'a', 'b', 'c'), []);
  await endServer(t, server);
});

t.test('variables of a session take no place of those that this program sets, and reach no other program of it', async (t) => {
  const cwd = realpathSync(
    t.testdir({ 'a.txt': 'needle', bin: { rg: '#!/bin/sh\necho ./a.txt\n', bash: '#!/bin/sh\ntouch "$0.ran"\n', unshare: '#!/bin/sh\n' } }),
  );
  const server = await startServer(t, {
    args: [...scripted, '--permission-mode', 'full-access'],
    env: { DSH_ACP_MAX_STEPS: '987', SECRET_TOKEN: 'canary-1' },
  });
  const env = {
    AGENT_COMMAND_OWNER: 'somebody else;',
    PATH: `${join(cwd, 'bin')}:/usr/bin:/bin`,
    DSH_ACP_MODEL: 'mine',
    RIPGREP_CONFIG_PATH: '/etc/passwd',
  };
  const sessionId = await newSession(server, cwd, { env });
  await server.prompt(sessionId, 'run env > seen\ngrep needle');
  const seen = readFileSync(join(cwd, 'seen'), 'utf8');
  t.match(seen, new RegExp(`AGENT_COMMAND_OWNER=[0-9a-f-]+/${sessionId};`));
  t.notMatch(seen, /somebody|canary|987/);
  t.match(JSON.stringify(server.updates(sessionId)), /a\.txt:1:needle/, 'the search is ours');
  for (const name of ['rg', 'bash', 'unshare']) t.notOk(existsSync(join(cwd, `bin/${name}.ran`)), name);
  const polluted = await server.request(
    'session/new',
    JSON.parse(`{"cwd":${JSON.stringify(cwd)},"mcpServers":[],"_meta":{"dsh-acp":{"env":{"__proto__":"x","constructor":"y"}}}}`),
  );
  t.ok(polluted.result ?? polluted.error);
  await endServer(t, server);
});

t.test('answers that are nested without end, or not what the schema says, end the turn and nothing else', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const server = await startServer(t, {
    args: ['--base-url', models.baseUrl, '--model', 'bench', '--profile', 'automation', '--permission-mode', 'full-access'],
  });
  const cwd = realpathSync(t.testdir({}));
  const other = await newSession(server, cwd);
  const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const call = async (name: string, raw: string): Promise<Frame> => {
    const sessionId = await newSession(server, cwd, { outputSchema: {} });
    models.enqueue({ tools: [{ name, arguments: raw }], finish: 'tool_calls' });
    const end = await server.prompt(sessionId, '{"tokens":1}');
    t.match(await server.prompt(other, '{"tokens":1}'), { result: { stopReason: 'end_turn' } }, 'its neighbour goes on');
    return end;
  };
  t.match(await call('final_answer', `{"answer":${deep(90)}}`), { result: { _meta: { 'dsh-acp': { structured: Array } } } });
  t.match(await call('final_answer', '{"__proto__":{"answer":1},"answer":7}'), { error: { data: { code: 'OUTPUT_SCHEMA_UNMET' } } });
  const unmet = [
    `{"answer":${deep(110)}}`,
    `{"answer":${deep(20_000)}}`,
    deep(20_000),
    `{"answer":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`,
    '{"answer":1',
  ];
  for (const raw of unmet) t.match(await call('final_answer', raw), { error: { data: { code: 'OUTPUT_SCHEMA_UNMET' } } }, raw.slice(0, 20));
  for (const name of ['bash', 'write', 'todo_write', 'subagent', 'no_such_tool']) {
    t.match(
      await call(name, `{"command":${deep(20_000)},"prompt":${deep(200)}}`),
      { error: { data: { code: 'OUTPUT_SCHEMA_UNMET' } } },
      name,
    );
  }
  await endServer(t, server);
});

t.test('an answer counts once, for the question it was given to, and not when the question is gone', async (t) => {
  const cwd = realpathSync(t.testdir({}));
  const asked: Frame[] = [];
  const server = await startServer(t, { args: scripted, onRequest: (frame) => void asked.push(frame) });
  const yes = { outcome: { outcome: 'selected', optionId: 'allow_once' } };
  const answer = (id: unknown, result: object): void => server.send({ jsonrpc: '2.0', id, result });
  for (let id = 0; id < 20; id += 1) answer(id, yes);
  const a = await server.newSession(cwd);
  const b = await server.newSession(cwd);
  const first = server.startPrompt(a, 'run touch a');
  await server.waitFor((frame) => isAsking(frame) && frame.params.sessionId === a);
  const second = server.startPrompt(b, 'delegate self run touch b');
  await server.waitFor((frame) => isAsking(frame) && frame.params.sessionId === b);
  t.equal(asked.length, 2);
  answer(asked[0]?.id, { outcome: { outcome: 'selected', optionId: 'reject_once' } });
  answer(asked[0]?.id, yes);
  await server.response(first);
  server.notify('session/cancel', { sessionId: b });
  t.match(await server.response(second), { result: { stopReason: 'cancelled' } });
  answer(asked[1]?.id, yes);
  answer(asked[1]?.id, yes);
  const third = server.startPrompt(b, 'delegate self run touch c');
  await server.waitFor((frame) => isAsking(frame) && frame !== asked[1] && frame.params.sessionId === b);
  answer(asked[1]?.id, yes);
  answer(asked[2]?.id, { outcome: { outcome: 'selected', optionId: 'allow_always' } });
  await server.response(third);
  t.same(made(cwd, 'a', 'b', 'c'), []);
  await endServer(t, server);
});

t.test('only the id of a session opens a stored one, and one that works for another is opened by nobody while it does', async (t) => {
  const cwd = realpathSync(t.testdir({}));
  const server = await startServer(t, { args: [...scripted, '--permission-mode', 'full-access'] });
  const sessionId = await server.newSession(cwd);
  await server.prompt(sessionId, 'delegate & self run touch here; until [ -e go ]; do sleep 0.02; done');
  await fileAppears(join(cwd, 'here'));
  writeFileSync(join(server.stateDir, 'outside.jsonl'), readFileSync(join(server.stateDir, 'sessions', `${sessionId}.jsonl`)));
  const child = logs(server).find(({ header }) => header.options?.depth === 1)?.id ?? '';
  const codes = async (id: string): Promise<unknown[]> => {
    const params = { sessionId: id, cwd, mcpServers: [] };
    const answers = [
      await server.request('session/load', { ...params, ...extension({ readOnly: true }) }),
      await server.request('session/load', params),
      await server.request('session/resume', params),
    ];
    return answers.map(({ error }) => error?.data?.code);
  };
  const paths = [
    '../outside',
    `../sessions/${child}`,
    `${child}.jsonl`,
    `${child}\0`,
    `${child}\n`,
    child.toUpperCase(),
    `./${child}`,
    '..',
    '',
    'x'.repeat(10_000),
  ];
  for (const id of paths)
    t.same(await codes(id), ['SESSION_NOT_FOUND', 'SESSION_NOT_FOUND', 'SESSION_NOT_FOUND'], JSON.stringify(id.slice(0, 60)));
  t.same(await codes(child), [undefined, 'SESSION_ALREADY_OPEN', 'SESSION_ALREADY_OPEN'], 'it is looked at, which changes nothing');
  t.match(await server.request('session/prompt', { sessionId: child, prompt: [{ type: 'text', text: 'run touch stolen' }] }), {
    error: { data: { code: 'SESSION_READ_ONLY' } },
  });
  t.ok((await server.request('session/close', { sessionId: child })).result);
  const wanted = { sessionId: child, cwd, mcpServers: [] };
  for (const method of ['session/load', 'session/resume'])
    t.match(await server.request(method, wanted), { error: { data: { code: 'SESSION_ALREADY_OPEN' } } }, method);
  for (const [method, more] of [
    ['session/prompt', { prompt: [{ type: 'text', text: 'run touch stolen' }] }],
    ['session/set_mode', { modeId: 'read-only' }],
    ['session/close', {}],
  ] as const) {
    t.match(await server.request(method, { sessionId: child, ...more }), { error: { data: { code: 'SESSION_NOT_FOUND' } } }, method);
  }
  writeFileSync(join(cwd, 'go'), '');
  await server.prompt(sessionId, 'collect');
  // Its run has ended; it leaves its thread behind that.
  let loaded = await server.request('session/load', wanted);
  while (loaded.error?.data?.code === 'SESSION_ALREADY_OPEN') loaded = await server.request('session/load', wanted);
  t.ok(loaded.result, 'behind its end anybody may go on with it');
  await server.prompt(child, 'run touch later');
  t.same(made(cwd, 'stolen', 'later'), ['later']);
  await endServer(t, server);
});

t.test('whoever is asked about a command can read all of it, in the background, too', async (t) => {
  const cwd = realpathSync(t.testdir({}));
  const server = await startServer(t, { args: scripted, onRequest: () => ({ outcome: { outcome: 'selected', optionId: 'reject_once' } }) });
  const sessionId = await server.newSession(cwd);
  const long = `echo ${'all is well '.repeat(40)}; touch hidden`;
  await server.prompt(sessionId, `run ${long}\nbg ${long}\nbg touch plain`);
  const shown = server.frames.filter(isAsking).map(({ params }) => JSON.stringify([params.toolCall.title, params.toolCall.content]));
  t.equal(shown.length, 3);
  for (const text of shown.slice(0, 2)) t.match(text, /touch hidden/);
  t.match(shown[2], /touch plain/);
  await endServer(t, server);
});
