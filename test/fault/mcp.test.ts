/** MCP servers that break, and a server of ours that breaks under them: the session lives, and nothing of them is left. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { type FaultServer, faultTest, logPath, processesIn, readEvents } from '../support/invariants.ts';

t.setTimeout(100_000);

const main = fileURLToPath(new URL('../support/mcp-server-main.js', import.meta.url));
const bench = (baseUrl: string) => [
  '--base-url',
  baseUrl,
  '--model',
  'bench',
  '--titles',
  'off',
  '--permission-mode',
  'full-access',
  '--isolation',
  'shared',
];
const child = (dir: string, name: string, mode: string) => ({
  name,
  command: process.execPath,
  args: [main, mode, join(dir, `${name}.journal`)],
  env: [{ name: 'TEST_MARK', value: dir }],
});

async function open(server: FaultServer, cwd: string, mcpServers: readonly object[], sessionId?: string): Promise<string> {
  const { result, error } = await server.request(sessionId === undefined ? 'session/new' : 'session/load', { cwd, mcpServers, sessionId });
  if (error !== undefined) throw new Error(JSON.stringify(error));
  return result.sessionId;
}

/** One call of each tool, one after the other. */
const calls = (...names: readonly string[]): string =>
  JSON.stringify({ plans: [...names.map((name) => ({ tools: [{ name, arguments: '{"text":"hi"}' }] })), { text: ['done'] }] });

void faultTest('fault 88: MCP servers that crash, hang, flood or lie cost their calls, and end with their session', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: [...bench(model.baseUrl), '--mcp-call-timeout-ms', '1500'] });
  const session = await open(server, rig.dir, [
    child(rig.dir, 'one', 'plain'),
    child(rig.dir, 'evil', 'hostile'),
    child(rig.dir, 'broken', 'broken'),
  ]);
  const work = calls('mcp__one__crash', 'mcp__one__echo', 'mcp__one__hang', 'mcp__one__giant', 'mcp__evil__good', 'mcp__evil__deep');
  t.match(await server.prompt(session, work), { result: { stopReason: 'end_turn' } });
  const results = (await readEvents(logPath(server, session))).flatMap((event) => (event.type === 'tool/result' ? [event.data] : []));
  t.match(results, [
    { isError: true, code: 'MCP_FAILED', text: /exited with code 3/ },
    { isError: false, text: 'hi' },
    { isError: true, code: 'MCP_TIMEOUT', text: /within 1500 ms/ },
    { isError: true, code: /MCP_FAILED|MCP_TIMEOUT/, text: /more than 16 MB|within 1500 ms/ },
    { isError: false, text: 'hi' },
    { isError: true, code: 'UNKNOWN_TOOL' },
  ]);
  const asked = async (): Promise<void> => {
    await server.next(({ params }) => params?.update?.name === 'mcp__evil__hang', 'the call');
  };
  const running = asked();
  const prompt = server.startPrompt(session, calls('mcp__evil__good', 'mcp__evil__hang'));
  await running;
  const start = performance.now();
  server.notify('session/cancel', { sessionId: session });
  t.match(await server.response(prompt), { result: { stopReason: 'cancelled' } });
  t.ok(performance.now() - start < 5000, 'a cancel ends a call at once');

  const lost = await server.prompt(session, '[!throw 200] {"tokens":4000,"delayMs":5}');
  t.match(lost.error, { data: { code: 'THREAD_LOST' } });
  t.match(await server.prompt(session, calls('mcp__evil__good')), { result: { stopReason: 'end_turn' } });
  t.equal(processesIn(`TEST_MARK=${rig.dir}`).length, 2, 'a thread that dies takes them along, and they come back');
  await server.close();
  t.same(processesIn(rig.dir), [], 'end of input ends every server');
});

void faultTest('fault 88: what a killed server leaves of its MCP servers is ended by whoever loads the session', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: bench(model.baseUrl), saboteur: false });
  const servers = [child(rig.dir, 'one', 'stubborn')];
  const session = await open(server, rig.dir, servers);
  await server.prompt(session, calls('mcp__one__echo'));
  await server.crash();
  const left = processesIn(rig.dir);
  t.equal(left.length, 2);
  const next = await rig.serve({ args: bench(model.baseUrl), saboteur: false });
  await open(next, rig.dir, servers, session);
  t.match(await next.prompt(session, calls('mcp__one__echo')), { result: { stopReason: 'end_turn' } });
  t.notOk(processesIn(rig.dir).some((pid) => left.includes(pid)));
  const states = (await readEvents(logPath(next, session))).flatMap((event) => (event.type === 'mcp/status' ? [event.data.state] : []));
  t.same(states, ['connected'], 'its own servers were left alone');
});
