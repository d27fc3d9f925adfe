/** MCP servers of a session through the assembled server: their tools, who is asked about them, and what becomes of them. */
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { markedProcesses } from '../../src/shared/process-table.ts';
import { fileAppears } from '../support/file-appears.ts';
import { McpHttp } from '../support/mcp-http.ts';
import { logPath, readEvents } from '../support/invariants.ts';
import { ModelServer } from '../support/model-server.ts';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

const main = fileURLToPath(new URL('../support/mcp-server-main.js', import.meta.url));
const canary = 'canary-secret-4711';

/** By which the processes of a test are found. */
const mark = (cwd: string) => ({ name: 'TEST_MARK', value: cwd });
const pids = (cwd: string): number[] => markedProcesses(`TEST_MARK=${cwd}\0`).map(({ pid }) => pid);

const files = (cwd: string, more: object = {}) => ({
  name: 'files',
  command: process.execPath,
  args: [main, 'plain', join(cwd, 'files.journal')],
  env: [{ name: 'SERVER_TOKEN', value: canary }, mark(cwd)],
  ...more,
});
const broken = { name: 'broken', command: process.execPath, args: [main, 'broken'], env: [{ name: 'SERVER_TOKEN', value: canary }] };

const calling = (...tools: [string, object][]): string =>
  JSON.stringify({ plans: [{ tools: tools.map(([name, args]) => ({ name, arguments: JSON.stringify(args) })) }, { text: ['done'] }] });
const cards = (server: ServerProcess, sessionId: string): any[] =>
  server.updates(sessionId).filter(({ sessionUpdate }) => sessionUpdate === 'tool_call' || sessionUpdate === 'tool_call_update');

async function rig(t: Test, { args = [], caps = {} }: { readonly args?: readonly string[]; readonly caps?: object } = {}) {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const cwd = realpathSync(t.testdir({}));
  const questions: any[] = [];
  let choice = 'allow_once';
  const server = await startServer(t, {
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--titles', 'off', '--isolation', 'shared', ...args],
    initialize: caps,
    onRequest: ({ method, params }: Frame) => {
      if (method !== 'session/request_permission') return undefined;
      questions.push(params);
      const option = params.options.find(({ kind }: { kind: string }) => kind === choice);
      return { outcome: { outcome: 'selected', optionId: option?.optionId } };
    },
  });
  const session = async (method: string, mcpServers: readonly object[], more: object = {}): Promise<string> => {
    const { result, error } = await server.request(method, { cwd, mcpServers, ...more });
    if (error !== undefined) throw new Error(JSON.stringify(error));
    return result.sessionId;
  };
  return { model, cwd, server, questions, session, choose: (kind: string) => void (choice = kind) };
}

t.test('the tools of a session: offered, asked about, called, shown, and kept out of the log what is secret', async (t) => {
  const { model, cwd, server, questions, session, choose } = await rig(t, { caps: { session: { notices: {} } } });
  const http = await McpHttp.start({ authorization: `Bearer ${canary}` });
  t.teardown(() => http.close());
  const remote = { type: 'http', name: 'far away', url: http.url, headers: [{ name: 'Authorization', value: `Bearer ${canary}` }] };
  const sessionId = await session('session/new', [files(cwd), broken, remote]);
  t.match(
    await server.prompt(
      sessionId,
      calling(['mcp__files__echo', { text: 'hi' }], ['mcp__far_away__echo', { text: 'ho' }], ['mcp__files__echo', { text: 5 }]),
    ),
    {
      result: { stopReason: 'end_turn' },
    },
  );
  const offered = model.requests[0]?.body.tools.map((tool: any) => tool.function.name);
  t.same(
    offered.filter((name: string) => name.startsWith('mcp__files')),
    ['crash', 'echo', 'giant', 'hang'].map((name) => `mcp__files__${name}`),
  );
  t.equal(offered.filter((name: string) => name.startsWith('mcp__far_away__')).length, 12);
  const results = model.requests.at(-1)?.body.messages.filter(({ role }: { role: string }) => role === 'tool');
  t.match(
    results.map(({ content }: { content: string }) => content),
    ['hi', 'ho', /text: expected string, got number/],
  );
  t.same(
    questions.map(({ toolCall }) => [toolCall.title, toolCall.kind]),
    [
      ['files: echo (hi)', 'other'],
      ['far away: echo (ho)', 'other'],
    ],
  );
  t.match(questions[0].toolCall, { rawInput: { text: 'hi' }, content: [{}, {}] });
  t.match(
    questions[0].options.map(({ name }: { name: string }) => name),
    ['Allow once', /^Always allow echo of the MCP server files/, 'Reject once'],
  );
  const notices = server.updates(sessionId).filter(({ sessionUpdate }) => sessionUpdate === 'notice');
  t.match(notices, [
    { severity: 'warning', title: /"broken" could not be connected to/, description: /code 1\ncannot start with \[redacted\]/ },
  ]);

  await t.test('a lasting answer holds until the server or its tool is another one', async (t) => {
    choose('allow_always');
    const ask = async (id: string): Promise<number> => {
      const before = questions.length;
      await server.prompt(id, calling(['mcp__files__echo', { text: 'again' }]));
      return questions.length - before;
    };
    t.equal(await ask(sessionId), 1);
    t.equal(await ask(sessionId), 0);
    t.equal(pids(cwd).length, 1);
    await server.request('session/close', { sessionId });
    t.same(pids(cwd), [], 'its servers end with it');
    const load = (mcpServers: object[]) => session('session/load', mcpServers, { sessionId });
    const live = cards(server, sessionId);
    const from = server.frames.length;
    await load([files(cwd), broken, remote]);
    const replayed = cards({ updates: () => server.frames.slice(from).flatMap(({ params }) => params?.update ?? []) } as never, sessionId);
    t.same(replayed, live, 'a replayed card is the live one');
    // News that the log had already: not replayed, but told anew to whoever opens the session.
    const isNotice = (frame: Frame): boolean => frame.params?.update?.sessionUpdate === 'notice';
    await server.waitFor((frame) => isNotice(frame) && server.frames.indexOf(frame) >= from, 'the notice of this opening');
    t.equal(await ask(sessionId), 0, 'the same definition');
    t.match(
      server.frames
        .slice(from)
        .filter(isNotice)
        .map(({ params }) => params?.update),
      [{ title: /"broken" could not be connected to/ }],
      'once',
    );
    await server.request('session/close', { sessionId });
    await load([files(cwd, { args: [main, 'plain', join(cwd, 'files.journal'), '--evil'] })]);
    t.equal(await ask(sessionId), 1, 'another command');
    await server.request('session/close', { sessionId });
    await load([files(cwd, { env: [{ name: 'SERVER_TOKEN', value: 'another-canary' }, mark(cwd)] })]);
    t.equal(await ask(sessionId), 1, 'another environment');
  });

  await endServer(t, server);
  t.same(pids(cwd), [], 'end of input ends the servers');
  const log = readFileSync(logPath(server, sessionId), 'utf8');
  t.notMatch(log, /canary/);
  t.notMatch(JSON.stringify(server.frames), /canary/);
  const states = (await readEvents(logPath(server, sessionId))).flatMap((event) =>
    event.type === 'mcp/status' ? [`${event.data.name} ${event.data.state}`] : [],
  );
  t.same(new Set(states), new Set(['files connected', 'broken failed', 'far away connected']));
  t.equal(states.length, 3, 'what has not changed is not logged again');
});

t.test('modes, policies and a list of tools hold for MCP tools, too', async (t) => {
  const { model, cwd, server, questions, session } = await rig(t);
  const said = async (sessionId: string, name = 'mcp__files__echo'): Promise<string> => {
    await server.prompt(sessionId, calling([name, { text: 'hi' }]));
    return model.requests.at(-1)?.body.messages.at(-1).content;
  };
  const withMeta = (meta: object) => session('session/new', [files(cwd)], { _meta: { 'dsh-acp': meta } });
  t.match(await said(await withMeta({ mode: 'read-only' })), /read-only: tools of MCP servers are refused/);
  t.match(await said(await withMeta({ mode: 'full-access' })), /^hi$/);
  const rule = [{ action: 'allow', tools: ['mcp__files__ec*'], access: ['mcp'] }];
  const ruled = await withMeta({ policy: { rule } });
  t.equal(await said(ruled), 'hi');
  t.match(await said(ruled, 'mcp__files__crash'), /No rule of the policy allows this call/);
  const named = await withMeta({ tools: ['read', 'mcp__files__echo', 'mcp__files__gone'], mode: 'full-access' });
  t.match(await said(named, 'mcp__files__crash'), /no tool named "mcp__files__crash"/i);
  t.same(
    model.requests.at(-1)?.body.tools.map((tool: any) => tool.function.name),
    ['read', 'mcp__files__echo'],
  );
  t.equal(questions.length, 0);
  const { error } = await server.request('session/new', { cwd, mcpServers: [], _meta: { 'dsh-acp': { tools: ['mcp__files__echo'] } } });
  t.match(error, { code: -32602, data: { field: '_meta["dsh-acp"].tools.0' } }, 'without servers there are no such tools');
  const before = pids(cwd).length;
  const journal = join(cwd, 'ahead.journal');
  const idle = await session('session/new', [files(cwd, { args: [main, 'plain', journal] })]);
  await fileAppears(journal);
  t.equal(pids(cwd).length, before + 1, 'servers are started ahead of the first prompt');
  await server.request('session/close', { sessionId: idle });
  t.equal(pids(cwd).length, before, 'and end with a session that never had one');
  await endServer(t, server);
  t.same(pids(cwd), []);
});
