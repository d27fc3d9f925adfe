import t from 'tap';
import type { JsonObject } from '../../../../src/shared/errors.ts';
import type { McpApi, McpCallResult, McpServerStatus } from '../../../../src/shared/mcp-protocol.ts';
import { sessionTools } from '../../../../src/worker/agent/session-tools.ts';
import { looseSchema } from '../../../../src/worker/mcp/loose-schema.ts';
import { McpPresenters } from '../../../../src/worker/mcp/mcp-presenter.ts';
import { McpTool } from '../../../../src/worker/mcp/mcp-tool.ts';
import { offeredTools } from '../../../../src/worker/mcp/offered-tools.ts';
import { serverParts, toolName } from '../../../../src/worker/mcp/tool-names.ts';
import { SessionPermissions } from '../../../../src/worker/permission/session-permissions.ts';
import { Projector } from '../../../../src/worker/projection/projector.ts';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';
import { testContext } from '../tools/tool-context.ts';

const info = (name: string, parameters: JsonObject = { type: 'object', properties: {} }, hints = {}) => {
  return { name, description: `Does ${name}.`, parameters, hints, print: `print of ${name}` };
};

function tool(
  parameters: JsonObject,
  call: () => Promise<McpCallResult> = async () => ({ kind: 'result', text: 'ok', isError: false }),
  hints = {},
) {
  const cancelled: string[] = [];
  const api: Pick<McpApi, 'callMcpTool' | 'cancelMcpCall'> = {
    callMcpTool: call,
    cancelMcpCall: async (_owner, callId) => void cancelled.push(callId),
  };
  return { cancelled, tool: new McpTool({ name: 'mcp__s__t', server: 's', info: info('t', parameters, hints), api }) };
}

t.test('names are those that providers take, and no server can take the names of another', async (t) => {
  t.same(serverParts(['github', 'My Server', 'my server!', 'a__b', '_', 'My-Server', 'x'.repeat(40)]), [
    'github',
    'My_Server',
    'my_server',
    'a_b',
    'server',
    'My-Server',
    'x'.repeat(24),
  ]);
  t.same(serverParts(['a b', 'a_b', 'a-b']), ['a_b', 'a_b-2', 'a-b']);
  const taken = new Set<string>();
  const name = (one: string): string | undefined => {
    const made = toolName('files', one, taken);
    if (made !== undefined) taken.add(made);
    return made;
  };
  t.equal(name('find'), 'mcp__files__find');
  t.match(name('fi nd'), /^mcp__files__fi_nd-[0-9a-f]{6}$/);
  t.match(name('fi/nd'), /^mcp__files__fi_nd-[0-9a-f]{6}$/);
  t.equal(name('fi/nd'), undefined, 'the same once more');
  t.equal(name('///'), undefined);
  t.match(name('y'.repeat(100)), /^mcp__files__y{45}-[0-9a-f]{6}$/);
  for (const one of taken) t.match(one, /^[A-Za-z0-9_-]{1,64}$/);
});

t.test('what is offered is bounded, whatever the servers have', async (t) => {
  const status = (name: string, tools: McpServerStatus['tools']): McpServerStatus => ({ name, state: 'connected', tools, leftOut: [] });
  const many = Array.from({ length: 80 }, (_, index) => info(`tool${index}`));
  const offered = offeredTools([status('a', many), status('b', many)], (server) => server);
  t.equal(offered.tools.length, 100);
  t.equal(offered.leftOut.get('b')?.length, 60);
  const large = info('large', { type: 'object', properties: { a: { type: 'string', description: 'x'.repeat(200_000) } } });
  const two = offeredTools([status('a', [large, info('small')]), status('b', [large])], (server) => server);
  t.same(
    two.tools.map(({ name }) => name),
    ['mcp__a__large', 'mcp__a__small'],
  );
  t.match(two.leftOut.get('b'), [{ tool: 'large', why: /characters together/ }]);
});

t.test('arguments are checked by what cannot be a trap', async (t) => {
  const slow: JsonObject = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } }, required: ['a'] };
  const { tool: first } = tool(slow);
  const start = performance.now();
  t.match(first.parseArguments(JSON.stringify({ a: `${'a'.repeat(40)}!` })), { ok: true });
  t.ok(performance.now() - start < 5000);
  t.match(first.parseArguments('{}'), { ok: false, code: 'INVALID_ARGS', text: /required but missing: a/ });
  t.match(first.parseArguments('[]'), { ok: false });
  t.match(first.parseArguments('{"a":'), { ok: false, text: /cut off/ });
  const circle: JsonObject = { type: 'object', allOf: [{ $ref: '#' }], properties: { a: { $ref: '#' } } };
  t.match(tool(circle).tool.parseArguments('{"a":{"a":1}}'), { ok: true });
  // Doubling references, forty deep.
  const doubling = Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [`d${n}`, { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] }]),
  );
  t.match(tool({ type: 'object', $ref: '#/$defs/d0', $defs: { ...doubling, d40: {} } }).tool.parseArguments('{}'), { ok: true });
});

t.test('a loosened schema never refuses what the whole one takes', async (t) => {
  const text = { type: 'string' };
  t.same(
    looseSchema({
      type: 'object',
      properties: { a: { $ref: '#/$defs/x' }, b: text },
      required: ['b'],
      additionalProperties: false,
      $defs: { x: text },
    }),
    {
      type: 'object',
      properties: { a: {}, b: text },
      required: ['b'],
      additionalProperties: false,
    },
  );
  t.same(looseSchema({ oneOf: [{ $ref: '#/a' }, { $ref: '#/b' }], anyOf: [{ $ref: '#/a' }, text] }), { anyOf: [{}, text] });
  t.same(looseSchema({ oneOf: [text, { type: 'number' }], not: { pattern: 'x' } }), { oneOf: [text, { type: 'number' }] });
  t.same(looseSchema({ patternProperties: { '^x': text }, additionalProperties: false }), {});
  t.same(looseSchema({ contains: { format: 'date' }, if: text, else: text, uniqueItems: true, items: [text, { pattern: 'x' }] }), {
    items: [text, {}],
  });
});

t.test('a call goes to its server, and its cancel, too', async (t) => {
  const { tool: good } = tool({ type: 'object' });
  const context = testContext('/');
  t.same(await good.tool.execute({}, context), { text: 'ok', isError: false });
  const { tool: bad } = tool({ type: 'object' }, async () => ({ kind: 'result', text: 'no', isError: true }));
  t.match(await bad.tool.execute({}, context), { text: 'no', isError: true, code: 'MCP_TOOL_ERROR' });
  t.same(good.tool.access({}, { cwd: '/' }), { kind: 'mcp', server: 's', tool: 't', print: 'print of t' });
  let answer: (result: McpCallResult) => void = () => undefined;
  const { tool: slow, cancelled } = tool({ type: 'object' }, () => new Promise((resolve) => (answer = resolve)));
  const stop = new AbortController();
  const running = slow.tool.execute({}, { ...context, callId: 'c9', signal: stop.signal });
  stop.abort();
  t.same(cancelled, ['c9']);
  answer({ kind: 'failed', code: 'ABORTED', text: 'cancelled' });
  t.match(await running, { isError: true, code: 'ABORTED' });
});

t.test('a card says server, tool and what it is about; hints choose the icon alone, and none says that it only reads', async (t) => {
  const presenters = new McpPresenters();
  const tools = [{ name: 'mcp__My_Files__find', tool: 'find\u202e', kind: 'read' as const }];
  presenters.observe({ type: 'mcp/status', data: { name: 'My Files', state: 'connected', tools } });
  const card = presenters.get('mcp__My_Files__find')?.presentCall({ limit: 3, query: 'a\nb' }, { cwd: '/' });
  t.match(card, { card: 'generic', title: 'My Files: find (a b)', kind: 'other', content: [/^```json\n/] });
  const fetching = [{ name: 'mcp__web__get', tool: 'get', kind: 'fetch' as const }];
  presenters.observe({ type: 'mcp/status', data: { name: 'web', state: 'connected', tools: fetching } });
  t.match(presenters.get('mcp__web__get')?.presentCall({}, { cwd: '/' }), { kind: 'fetch' });
  t.match(presenters.get('mcp__gone__do__it')?.presentCall({}, { cwd: '/' }), { title: 'gone: do__it', kind: 'other', content: [] });
  t.equal(presenters.get('bash'), undefined);
});

t.test('a client that allows reads unseen is asked about every tool of a server, whatever that says of it', async (t) => {
  const projector = new Projector({
    sessionId: 's',
    cwd: '/',
    profile: 'editor',
    client: { terminalOutput: false },
    tools: () => undefined,
  });
  for (const hints of [{ readOnly: true }, { readOnly: true, openWorld: true }, { readOnly: true, destructive: false }, {}]) {
    const { tool: writer } = tool({ type: 'object' }, undefined, hints).tool;
    const view = writer.presentCall({}, { cwd: '/' });
    const gate = new SessionPermissions({
      sessionId: 's',
      cwd: '/',
      mode: 'ask',
      timeoutMs: 0,
      journal: { append: (event) => ({ ...event, seq: 0, time: 0 }) },
      ask: async ({ params }) => {
        const { kind } = (params as { toolCall: { kind: string } }).toolCall;
        t.equal(kind, 'other', JSON.stringify(hints));
        const isUnseen = ['read', 'search', 'fetch', 'think'].includes(kind);
        return { outcome: 'selected', optionId: isUnseen ? 'allow_once' : 'reject_once' };
      },
      withdraw: () => undefined,
      flush: () => 0,
      toolCall: (call, reason) => projector.permissionToolCall(call, reason),
    });
    const call = { turn: 1, callId: 'c', toolName: writer.name, access: writer.access({}, { cwd: '/' }), view, rawInput: {} };
    t.match(await gate.decide(call, new AbortController().signal), { allowed: false });
    t.not(view.card === 'generic' ? view.kind : undefined, 'read', 'nor does its card say so');
  }
});

t.test('tools that come and go change what the model is offered, behind those that stay', async (t) => {
  const tools = sessionTools(createToolRegistry(), {});
  const before = tools.schemas();
  const hash = tools.hash();
  tools.setLate([tool({ type: 'object' }).tool]);
  t.same(tools.schemas().slice(0, before.length), before);
  t.equal(tools.schemas().at(-1)?.name, 'mcp__s__t');
  t.not(tools.hash(), hash);
  t.equal(tools.get('mcp__s__t')?.name, 'mcp__s__t');
  const { length } = tools.schemas();
  const same = tools.schemas();
  tools.setLate([tool({ type: 'object' }).tool]);
  t.equal(tools.schemas(), same, 'the same tools again change nothing');
  t.match(tools.parseArguments('mcp__s__t', '5'), { ok: false });
  t.notOk(tools.ownNames.includes('mcp__s__t'));
  tools.setLate([]);
  t.equal(tools.schemas().length, length - 1);
  t.equal(tools.hash(), hash);
  t.equal(tools.get('mcp__s__t'), undefined);
  t.match(tools.parseArguments('mcp__s__t', '{}'), { ok: false, code: 'UNKNOWN_TOOL' });
  const named = sessionTools(createToolRegistry(), { tools: ['read', 'mcp__s__t'] });
  named.setLate([
    tool({ type: 'object' }).tool,
    { tool: { ...tool({}).tool.tool, name: 'mcp__s__u' }, parseArguments: () => ({ ok: true, args: {} }) },
  ]);
  t.same(
    named.schemas().map(({ name }) => name),
    ['read', 'mcp__s__t'],
    'a client that named its tools gets these alone',
  );
});
