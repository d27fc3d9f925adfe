/** MCP servers that break, and a server of ours that breaks under them: the session lives, and nothing of them is left. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { fileAppears } from '../support/file-appears.ts';
import { type FaultServer, faultTest, logPath, processesIn, readEvents } from '../support/invariants.ts';

t.setTimeout(100_000);

const main = fileURLToPath(new URL('../support/mcp-server-main.js', import.meta.url));
const bench = (baseUrl: string) => ['--base-url', baseUrl, '--model', 'bench', '--titles', 'off', '--permission-mode', 'full-access'];
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

void faultTest(
  'fault 88: MCP servers that crash, hang, flood or lie cost their calls alone, and a cancel ends a call at once',
  async (t, rig) => {
    const model = await rig.model();
    const server = await rig.serve({ args: [...bench(model.baseUrl), '--mcp-call-timeout-ms', '300'] });
    const [one, other] = [child(rig.dir, 'one', 'plain'), child(rig.dir, 'two', 'plain')];
    const session = await open(server, rig.dir, [one, child(rig.dir, 'evil', 'hostile'), child(rig.dir, 'broken', 'broken')]);
    const bystander = await open(server, rig.dir, [other]);
    const work = calls('mcp__one__crash', 'mcp__one__echo', 'mcp__one__hang', 'mcp__one__giant', 'mcp__evil__good', 'mcp__evil__deep');
    t.match(await server.prompt(session, work), { result: { stopReason: 'end_turn' } });
    const results = (await readEvents(logPath(server, session))).flatMap((event) => (event.type === 'tool/result' ? [event.data] : []));
    t.match(results, [
      { isError: true, code: 'MCP_FAILED', text: /exited with code 3/ },
      { isError: false, text: 'hi' },
      { isError: true, code: 'MCP_TIMEOUT', text: /within 300 ms/ },
      { isError: true, code: 'MCP_FAILED', text: /more than 16 MB|Timeout|within 300 ms/i },
      { isError: false, text: 'hi' },
      { isError: true, code: 'UNKNOWN_TOOL' },
    ]);
    t.match(await server.prompt(bystander, calls('mcp__two__echo')), { result: { stopReason: 'end_turn' } });
    await server.close();
    t.same(processesIn(rig.dir), [], 'end of input ends every server');
  },
);

void faultTest(
  'fault 88: a cancel reaches an MCP call, and a thread that dies takes no server with it into the next life',
  async (t, rig) => {
    const model = await rig.model();
    const server = await rig.serve({ args: bench(model.baseUrl) });
    const session = await open(server, rig.dir, [child(rig.dir, 'one', 'plain')]);
    const prompt = server.startPrompt(session, calls('mcp__one__hang'));
    await server.waitFor(({ params }) => params?.update?.status === 'in_progress', 'the call to begin');
    const start = performance.now();
    server.notify('session/cancel', { sessionId: session });
    t.match(await server.response(prompt), { result: { stopReason: 'cancelled' } });
    t.ok(performance.now() - start < 1000);
    const before = processesIn(rig.dir).length;
    const lost = await server.prompt(session, `[!throw 200]\n${calls('mcp__one__hang')}`);
    t.match(lost.error, { data: { code: 'THREAD_LOST' } });
    t.match(await server.prompt(session, calls('mcp__one__echo')), { result: { stopReason: 'end_turn' } }, 'the servers are there again');
    t.equal(processesIn(rig.dir).length, before, 'the earlier ones are gone');
    const starts = readFileSync(join(rig.dir, 'one.journal'), 'utf8').match(/started/g);
    t.equal(starts?.length, 2);
  },
);

void faultTest('fault 88: what a killed server leaves of its MCP servers is ended by whoever loads the session', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: bench(model.baseUrl) });
  const servers = [child(rig.dir, 'one', 'stubborn'), child(rig.dir, 'two', 'plain')];
  const session = await open(server, rig.dir, servers);
  await server.prompt(session, calls('mcp__one__echo', 'mcp__two__echo'));
  await fileAppears(join(rig.dir, 'one.journal'));
  await server.crash();
  const next = await rig.serve({ args: bench(model.baseUrl) });
  await open(next, rig.dir, [], session);
  t.match(await next.prompt(session, '{"tokens":1}'), { result: { stopReason: 'end_turn' } });
});
