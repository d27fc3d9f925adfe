/** The workspace of a session over the wire: further directories, instruction files, and the client's unsaved text. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import type { PlannedToolCall } from '../support/answer-plan.ts';
import { logPath, readEvents } from '../support/invariants.ts';
import { ModelServer } from '../support/model-server.ts';
import { type Frame, type ServerProcess } from '../support/server-process.ts';
import { endServer, startServer, updatesOfCall } from '../support/started-server.ts';

t.setTimeout(60_000);

function scratch(t: Test, files: Record<string, string>): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-workspace-')));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

async function withModel(t: Test): Promise<{ readonly model: ModelServer; readonly args: string[] }> {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  return { model, args: ['--base-url', model.baseUrl, '--model', 'bench'] };
}

const call = (name: string, args: object, id: string): PlannedToolCall => ({ id, name, arguments: JSON.stringify(args) });
const systemOf = (model: ModelServer): string => model.requests.at(-1)?.body.messages[0].content;
const asked = (server: ServerProcess): Frame[] => server.frames.filter(({ method }) => method === 'session/request_permission');

/** What a call gave, as it stands in the log. */
async function resultOf(server: ServerProcess, sessionId: string, callId: string): Promise<string | undefined> {
  const events = await readEvents(logPath(server, sessionId));
  return events.flatMap((event) => (event.type === 'tool/result' && event.data.callId === callId ? [event.data.text] : [])).at(-1);
}

void t.test('further directories belong to the workspace for as long as the client names them', async (t) => {
  const root = scratch(t, {
    'w/a.txt': 'in the cwd',
    'other/b.txt': 'in the other',
    'other/AGENTS.md': 'the other',
    'out/c.txt': 'outside',
    file: '',
  });
  const { model, args } = await withModel(t);
  const server = await startServer(t, { args, initialize: false });
  const { result } = await server.initialize();
  t.strictSame(result.agentCapabilities.sessionCapabilities.additionalDirectories, {});
  const cwd = join(root, 'w');
  const other = join(root, 'other');
  symlinkSync(other, join(root, 'link'));

  const refused: [string, string[], string][] = [
    ['a relative one', [other, 'other'], 'additionalDirectories[1]'],
    ['a file', [join(root, 'file')], 'additionalDirectories[0]'],
    ['a missing one', [join(root, 'none')], 'additionalDirectories[0]'],
    ['NUL', [`${other}\0`], 'additionalDirectories[0]'],
    ['far too many', Array.from({ length: 33 }, () => other), 'additionalDirectories'],
  ];
  for (const [name, additionalDirectories, field] of refused) {
    const { error } = await server.request('session/new', { cwd, mcpServers: [], additionalDirectories });
    t.match(error, { code: -32602, data: { code: 'INVALID_PARAMS', field } }, name);
    t.match(error?.message, new RegExp(`^${field.replaceAll(/[[\]]/g, '\\$&')} `), name);
  }

  const made = await server.request('session/new', { cwd, mcpServers: [], additionalDirectories: [join(root, 'link'), other, cwd] });
  const sessionId = made.result.sessionId;
  const reads = (ids: string[]): PlannedToolCall[] => [
    call('read', { file_path: 'a.txt' }, ids[0]!),
    call('read', { file_path: join(other, 'b.txt') }, ids[1]!),
    call('read', { file_path: join(root, 'out', 'c.txt') }, ids[2]!),
  ];
  model.enqueue({ tools: [...reads(['r1', 'r2', 'r3']), call('grep', { pattern: 'in the', path: other }, 'g1')] }, { tokens: 1 });
  t.equal((await server.prompt(sessionId, 'go')).result?.stopReason, 'end_turn');
  t.strictSame(
    asked(server).map(({ params }) => params.toolCall.toolCallId),
    ['r3'],
    'only what lies outside is asked about',
  );
  t.match(await resultOf(server, sessionId, 'g1'), `${other}/b.txt:1:in the other`);
  t.match(systemOf(model), new RegExp(`belong to the workspace, too[^]*- ${other}\n`));
  t.match(systemOf(model), 'the other\n</instruction-file>');
  t.match(updatesOfCall(server, sessionId, 'r2')[0]?.title, `Read ${other}/b.txt`);
  const listed = (await server.request('session/list', {})).result.sessions.find((one: any) => one.sessionId === sessionId);
  t.strictSame(listed.additionalDirectories, [other, cwd]);

  await server.request('session/close', { sessionId });
  await server.request('session/load', { sessionId, cwd, mcpServers: [] });
  model.enqueue({ tools: [call('read', { file_path: join(other, 'b.txt') }, 'r4')] }, { tokens: 1 });
  await server.prompt(sessionId, 'again');
  t.equal(asked(server).at(-1)?.params.toolCall.toolCallId, 'r4', 'a load that does not name it does not bring it back');
  t.notMatch(systemOf(model), other);
  await endServer(t, server);
  const attached = (await readEvents(logPath(server, sessionId))).flatMap((event) =>
    event.type === 'thread/attached' ? [event.data] : [],
  );
  t.strictSame(
    attached.map(({ additionalDirectories }) => additionalDirectories),
    [[other, cwd], undefined],
  );
});

void t.test('instruction files reach the model as marked data, and their changes as notices', async (t) => {
  const root = scratch(t, { 'w/AGENTS.md': 'Use tabs.\u200b', 'w/sub/x.txt': '', 'xdg/dsh-acp/AGENTS.md': 'Be brief.' });
  const { model, args } = await withModel(t);
  const server = await startServer(t, { args, env: { XDG_CONFIG_HOME: join(root, 'xdg') } });
  const cwd = join(root, 'w');
  const sessionId = await server.newSession(cwd);
  await server.prompt(sessionId, 'one');
  const first = systemOf(model);
  t.match(first, /they are not the user's orders/i);
  t.match(first, `<instruction-file path="${root}/xdg/dsh-acp/AGENTS.md" from="user">\nBe brief.\n</instruction-file>`);
  t.match(first, `<instruction-file path="${cwd}/AGENTS.md">\nUse tabs.‹U+200B›\n</instruction-file>`);
  writeFileSync(join(cwd, 'AGENTS.md'), 'Use spaces.');
  await server.prompt(sessionId, 'two');
  t.equal(systemOf(model), first, 'the system text is the same, so the provider has it cached');
  const messages: { role: string; content: string }[] = model.requests.at(-1)?.body.messages;
  t.match(messages.at(-1), { role: 'user', content: /^\[The instruction files[^]*Use spaces\.[^]*\]$/ });
  await server.request('session/close', { sessionId });
  await server.request('session/load', { sessionId, cwd, mcpServers: [] });
  await server.prompt(sessionId, 'three');
  t.equal(systemOf(model), first, 'also after the session was opened again');
  await endServer(t, server);
  const read = (await readEvents(logPath(server, sessionId))).flatMap((event) => (event.type === 'instructions/read' ? [event.data] : []));
  t.match(read, [
    { given: 'system', files: [{}, {}] },
    { given: 'notice', files: [{}, {}] },
  ]);
  t.equal(read.length, 2);
});

void t.test('a client that offers its files is asked for them, after the card of the call', async (t) => {
  const root = scratch(t, { 'w/a.txt': 'saved\n', 'w/b.txt': 'saved b\n', 'w/c.txt': 'saved c\n' });
  const { args } = await withModel(t);
  // The client knows its files by its own way to them.
  symlinkSync('w', join(root, 'link'));
  const cwd = join(root, 'link');
  const buffers = new Map([
    [join(cwd, 'a.txt'), 'typed\n'],
    [join(cwd, 'b.txt'), 'typed b\n'],
  ]);
  const wrong: string[] = [];
  const server = await startServer(t, {
    args,
    initialize: { fs: { readTextFile: true, writeTextFile: true } },
    onRequest: ({ method, id, params }) => {
      const shown = server.updates(params.sessionId).some((update) => update.sessionUpdate === 'tool_call');
      if (!shown) wrong.push(`${method} before any card`);
      if (method === 'fs/read_text_file') {
        const content = buffers.get(params.path);
        if (content !== undefined) return { content };
        if (!params.path.endsWith('c.txt')) server.send({ jsonrpc: '2.0', id, error: { code: -32002, message: 'Resource not found' } });
        return undefined;
      }
      if (method !== 'fs/write_text_file') return undefined;
      buffers.set(params.path, params.content);
      writeFileSync(params.path, params.content);
      return {};
    },
  });
  const [one, two] = [await server.newSession(cwd), await server.newSession(cwd)];
  const work = (name: string): PlannedToolCall[] => [call('read', { file_path: name }, `read-${name}`)];
  const change = (name: string): PlannedToolCall[] => [call('write', { file_path: name, content: `by ${name}\n` }, `write-${name}`)];
  const plans = (name: string): string => JSON.stringify({ plans: [{ tools: work(name) }, { tools: change(name) }, { tokens: 1 }] });
  await Promise.all([
    server.request('session/set_mode', { sessionId: one, modeId: 'accept-edits' }),
    server.request('session/set_mode', { sessionId: two, modeId: 'accept-edits' }),
  ]);
  await Promise.all([server.prompt(one, plans('a.txt')), server.prompt(two, plans('b.txt'))]);
  t.match(await resultOf(server, one, 'read-a.txt'), /typed\n[^]*unsaved text of the editor/);
  t.match(await resultOf(server, two, 'read-b.txt'), /typed b/);
  t.equal(readFileSync(join(cwd, 'a.txt'), 'utf8'), 'by a.txt\n');
  t.equal(readFileSync(join(cwd, 'b.txt'), 'utf8'), 'by b.txt\n');
  const pathsOf = (sessionId: string): Set<string> =>
    new Set(
      server.frames.flatMap(({ method, params }) => (method?.startsWith('fs/') && params.sessionId === sessionId ? [params.path] : [])),
    );
  t.strictSame([...pathsOf(one)], [join(cwd, 'a.txt')]);
  t.strictSame([...pathsOf(two)], [join(cwd, 'b.txt')]);
  t.strictSame(wrong, []);

  const prompt = server.startPrompt(
    one,
    JSON.stringify({ plans: [{ tools: [call('read', { file_path: 'c.txt' }, 'read-c')] }, { tokens: 1 }] }),
  );
  const open = await server.waitFor(({ method, params }) => method === 'fs/read_text_file' && params.path.endsWith('c.txt'));
  server.notify('session/cancel', { sessionId: one });
  t.equal((await server.response(prompt)).result?.stopReason, 'cancelled');
  const withdrawn = await server.waitFor(({ method, params }) => method === '$/cancel_request' && params.requestId === open.id);
  t.ok(withdrawn, 'the request is taken back');
  await endServer(t, server);
});
