import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { fileAppears } from '../../../../support/file-appears.ts';
import { mcpRig } from './mcp-rig.ts';

async function until(what: string, condition: () => boolean, ms = 5000): Promise<void> {
  const deadline = performance.now() + ms;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`);
    await delay(10);
  }
}

t.test('a server on stdio is connected to, listed, called, cancelled, and gone with its session', async (t) => {
  const rig = mcpRig(t);
  process.env['DSH_TEST_SECRET'] = 'canary';
  await rig.open([rig.stdio('one', 'good', { env: { SERVER_TOKEN: 'canary-token-1' } })]);
  t.match((await rig.broker.awaitMcp('s1', 0, 0)).servers, [{ name: 'one', state: 'connecting', tools: [] }], 'nobody waits for it');
  const status = await rig.settled('one');
  t.match(status, { state: 'connected', leftOut: [], error: undefined });
  t.equal(status.tools.length, 12, 'both pages were read');
  t.match(
    status.tools.find(({ name }) => name === 'echo'),
    {
      description: 'Says the text again.',
      parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      hints: { readOnly: true },
      print: /^[0-9a-f]{32}$/,
    },
  );
  t.same([...rig.groups.values()], ['mcp:s1'], 'main knows the group');

  await t.test('results are text', async (t) => {
    const spill = join(rig.dir, 'spill');
    t.same(await rig.call('one', 'echo', { text: 'hello' }), { kind: 'result', text: 'hello', isError: false });
    t.same(await rig.call('one', 'fail'), { kind: 'result', text: 'it did not work', isError: true });
    t.same(await rig.call('one', 'structured'), { kind: 'result', text: '{\n  "answer": 42\n}', isError: false });
    const image = await rig.call('one', 'image');
    const path = /^\[image image\/png, 9 bytes, in (.+)\]$/.exec(image.text)?.[1] ?? '';
    t.equal(readFileSync(path, 'utf8'), 'a picture');
    t.ok(path.startsWith(spill));
    const long = await rig.call('one', 'long');
    t.ok(
      long.text.length < 70_000 &&
        long.text.startsWith('begin') &&
        / end\n\[result truncated: 200010 bytes in all; all of it is in /.test(long.text),
    );
    t.equal(readFileSync(/is in (.+)\]$/.exec(long.text)?.[1] ?? '').length, 200_010);
    t.same(await rig.call('one', 'garbage'), { kind: 'result', text: 'after the garbage', isError: false });
    t.match(await rig.call('one', 'nothing'), { kind: 'failed', code: 'MCP_FAILED', text: /refused the call.*no such tool/ });
    t.match(await rig.call('two', 'echo'), { kind: 'failed', code: 'MCP_UNAVAILABLE' });
  });

  await t.test('it learns the roots of the workspace and nothing else', async (t) => {
    t.match(await rig.call('one', 'roots'), { text: `file://${rig.dir}` });
    t.match(await rig.call('one', 'sample'), { text: /Method not found/ });
    const { text } = await rig.call('one', 'environment');
    t.match(text, /SERVER_TOKEN/);
    t.notMatch(text, /AMBIENT_TOKEN|DSH_TEST_SECRET|HARMLESS_LOOKING/, 'the environment is scrubbed');
  });

  await t.test('a cancelled call ends at once, and the server hears of it', async (t) => {
    const call = rig.broker.callMcpTool({ owner: 's1', callId: 'c1', server: 'one', tool: 'hang', args: {} });
    await until('the call has begun', () => rig.journal('one').includes('hang'));
    await rig.broker.cancelMcpCall('s2', 'c1');
    const start = performance.now();
    await rig.broker.cancelMcpCall('s1', 'c1');
    t.match(await call, { kind: 'failed', code: 'ABORTED' });
    t.ok(performance.now() - start < 5000);
    await until('the server has heard', () => rig.journal('one').includes('cancelled hang'));
  });

  await t.test('tools that change are listed again, for whoever waits', async (t) => {
    await rig.call('one', 'change');
    const { tools } = await rig.status('one', (one) => one.tools.some(({ name }) => name === 'added'));
    t.ok(tools.length > status.tools.length);
    t.match(await rig.call('one', 'added'), { text: 'the new tool' });
  });

  await rig.broker.releaseOwner('s1');
  t.same(rig.living(), []);
  t.match(await rig.broker.awaitMcp('s1', 0, 1000), { closed: true, servers: [] });
  t.match(await rig.call('one', 'echo'), { kind: 'failed', code: 'MCP_UNAVAILABLE' });
});

t.test('a crash fails the call, and the next call starts the server again', async (t) => {
  const rig = mcpRig(t);
  await rig.open([rig.stdio('one', 'plain', { env: { SERVER_TOKEN: 'canary-token-1' } })]);
  await rig.settled('one');
  const crash = await rig.call('one', 'crash');
  t.match(crash, {
    kind: 'failed',
    code: 'MCP_FAILED',
    text: /broke during the call: it exited with code 3\ngoing down with \[redacted\]/,
  });
  t.match(await rig.status('one', ({ state }) => state === 'ended'), { tools: { length: 4 }, error: /code 3/ });
  t.same(await rig.call('one', 'echo', { text: 'again' }), { kind: 'result', text: 'again', isError: false });
  t.match(await rig.settled('one', ['ended', 'connecting']), { state: 'connected' });
  t.equal(rig.journal('one').filter((line) => line.startsWith('started')).length, 2);
  await rig.call('one', 'crash');
  const soon = await rig.call('one', 'echo', { text: 'x' });
  t.match(
    soon,
    { kind: 'failed', code: 'MCP_UNAVAILABLE', text: /not started again for 1 s/ },
    'one that keeps ending is left alone for a while',
  );
});

t.test('servers that do not start, say why, and hold up nobody', async (t) => {
  const rig = mcpRig(t);
  await rig.open([
    rig.stdio('broken', 'broken', { env: { SERVER_TOKEN: 'canary-token-2' } }),
    rig.stdio('missing', 'x', { command: '/no/such/program' }),
    rig.stdio('unknown', 'x', { command: 'no-such-program' }),
    rig.stdio('good', 'plain', { command: 'node' }),
  ]);
  await rig.open([rig.stdio('silent', 'silent')], { owner: 's2', times: { connectMs: 300 } });
  t.match(await rig.settled('missing'), { state: 'failed', error: /ENOENT: the program \/no\/such\/program was not found/ });
  t.match(await rig.settled('unknown'), { state: 'failed', error: /no-such-program was not found in the absolute directories of PATH/ });
  t.match(await rig.settled('broken'), { state: 'failed', error: /code 1\ncannot start with \[redacted\]$/ });
  t.match(await rig.settled('good'), { state: 'connected' }, 'a bare name is found');
  t.match(await rig.settled('silent', undefined, 's2'), { state: 'failed', error: /not ready within 300 ms/ });
  t.equal(rig.living().length, 1, 'only the good one is left');
});

t.test('a reply without an end, and a call without one, cost the call and no more', async (t) => {
  const rig = mcpRig(t);
  await rig.open([rig.stdio('one', 'plain')], { times: { callMs: 300 } });
  await rig.settled('one');
  t.match(await rig.call('one', 'hang'), { kind: 'failed', code: 'MCP_TIMEOUT', text: /no result within 300 ms/ });
  await until('the server has heard', () => rig.journal('one').includes('cancelled'));
  await rig.open([rig.stdio('two', 'plain')], { owner: 's2' });
  await rig.settled('two', undefined, 's2');
  const before = process.memoryUsage().rss;
  t.match(await rig.call('two', 'giant', {}, 's2'), { kind: 'failed', code: 'MCP_FAILED', text: /a message of more than 16 MB/ });
  t.ok(process.memoryUsage().rss - before < 300 * 1024 * 1024);
  await until('it is gone', () => rig.living().length === 1);
  t.match(await rig.call('two', 'echo', { text: 'x' }, 's2'), { kind: 'result', text: 'x' }, 'it is started again');
});

t.test('hostile tools are left out or made harmless, each by itself', async (t) => {
  const rig = mcpRig(t);
  await rig.open([rig.stdio('evil', 'hostile')]);
  const { tools, leftOut } = await rig.settled('evil');
  t.same(
    tools.map(({ name }) => name),
    ['circle', 'good', 'hang', `long_${'x'.repeat(100)}`, 'slow_pattern', 'with spaces/and: signs', 'with spaces/and; signs'],
  );
  const good = tools.find(({ name }) => name === 'good');
  t.equal(good?.description, 'Fine. red');
  t.same(good?.parameters, { type: 'object', properties: {} }, 'what is unknown is left out');
  t.match(Object.fromEntries(leftOut.map(({ tool, why }) => [tool, why])), {
    deep: /nested deeper than 24/,
    huge: /longer than 32768/,
    elsewhere: /refers to another document/,
    nowhere: /refers to a part that there is not/,
    wrong: /names a type that there is not/,
    list: /not an object/,
    hidden: /hidden characters/,
    good: /twice/,
    'a tool without a name': /missing/,
  });
});

t.test('two sessions have servers of their own', async (t) => {
  const rig = mcpRig(t);
  await rig.open([rig.stdio('mine', 'plain')]);
  await rig.open([rig.stdio('mine', 'plain', { env: { X: '1' } })], { owner: 's2' });
  const [one, two] = [await rig.settled('mine'), await rig.settled('mine', undefined, 's2')];
  t.not(one.tools[0]?.print, two.tools[0]?.print);
  t.equal(rig.living().length, 2);
  await rig.call('mine', 'crash');
  t.match(await rig.call('mine', 'echo', { text: 'there' }, 's2'), { text: 'there' });
  await rig.broker.releaseOwner('s1');
  t.equal(rig.living().length, 1);
});

t.test('an approval is bound to what the server is started with and to what the tool says of itself', async (t) => {
  const rig = mcpRig(t);
  const printOf = async (env: Record<string, string>, owner = 's1', directories = [rig.dir]) => {
    await rig.open([rig.stdio('one', 'plain', { env })], { owner, directories });
    const { tools } = await rig.status('one', ({ state }) => state === 'connected', owner);
    return tools.map(({ print }) => print);
  };
  const first = await printOf({ A: '1', B: '2' });
  t.equal(new Set(first).size, first.length);
  const pid = rig.living();
  t.same(await printOf({ B: '2', A: '1' }), first, 'the same servers are kept');
  t.same(rig.living(), pid);
  const changed = await printOf({ A: '1', B: '3' });
  t.notOk(
    changed.some((print) => first.includes(print)),
    'another definition, another print',
  );
  t.not(rig.living().join(), pid.join(), 'and another process');
  t.same(await printOf({ A: '1', B: '2' }, 's2'), first, 'it holds for the workspace');
  const elsewhere = await printOf({ A: '1', B: '2' }, 's3', [tmpdir()]);
  t.notOk(
    elsewhere.some((print) => first.includes(print)),
    'and tells nothing in another one',
  );
});

t.test('a session that is parked keeps its servers for a while', async (t) => {
  const rig = mcpRig(t);
  await rig.open([rig.stdio('one', 'plain')], { times: { idleMs: 400 } });
  await rig.settled('one');
  const [pid] = rig.living();
  const waiting = rig.broker.awaitMcp('s1', 1000, 60_000);
  await rig.broker.parkOwner('s1');
  t.match(await waiting, { servers: [{ state: 'connected' }] }, 'whoever waited is let go');
  await rig.open([rig.stdio('one', 'plain')], { times: { idleMs: 400 } });
  t.same(rig.living(), [pid], 'the same process goes on');
  t.match(await rig.call('one', 'echo', { text: 'x' }), { text: 'x' });
  await rig.broker.parkOwner('s1');
  await until('it is ended when nobody comes back', () => rig.living().length === 0);
  await rig.open([rig.stdio('two', 'plain')], { ahead: true, times: { idleMs: 0 } });
  t.match(await rig.broker.awaitMcp('s1', 0, 0), { closed: true }, 'where nothing is kept, nothing is started ahead');
  await rig.open([rig.stdio('three', 'plain')], { ahead: true });
  await rig.settled('three');
  await rig.open([rig.stdio('three', 'plain')]);
  t.equal(rig.living().length, 1, 'what was started ahead is taken over');
});

t.test('a server that ends for nothing is killed with what it started', async (t) => {
  const rig = mcpRig(t);
  await rig.open([rig.stdio('stubborn', 'stubborn')]);
  await rig.settled('stubborn');
  t.equal(rig.living().length, 2);
  await rig.broker.releaseOwner('s1');
  t.same(rig.living(), []);
});

t.test('a program of the workspace is not taken for one of PATH', async (t) => {
  const rig = mcpRig(t);
  mkdirSync(join(rig.dir, 'bin'));
  symlinkSync(process.execPath, join(rig.dir, 'bin', 'my-server'));
  const env = { PATH: `.:bin:${join(rig.dir, 'bin')}:${process.env['PATH']}` };
  await rig.open([rig.stdio('one', 'plain', { command: 'my-server', env })]);
  t.match(await rig.settled('one'), { state: 'failed', error: /my-server was not found/ });
});

t.test('shutdown ends everything, also what is just being started', async (t) => {
  const rig = mcpRig(t);
  await rig.open([rig.stdio('silent', 'silent'), rig.stdio('one', 'plain')]);
  await fileAppears(join(rig.dir, 'silent.journal'));
  await rig.broker.shutdown();
  t.same(rig.living(), []);
  await rig.open([rig.stdio('two', 'plain')], { owner: 's3' });
  t.same(rig.living(), [], 'nothing is started any more');
});
