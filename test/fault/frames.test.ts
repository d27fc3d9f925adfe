/** What a client sends is broken, hostile or out of place: it costs its own frame, and the sessions go on. */
import t, { type Test } from 'tap';
import { type FaultServer, faultTest, residentMb } from '../support/invariants.ts';
import type { Frame } from '../support/server-process.ts';

t.setTimeout(100_000);

const scripted = ['--model', 'scripted', '--permission-mode', 'full-access', '--pace-ms', '0'];
let lastProbe = 0;

/** Sends bytes; gives the responses that came before that of a request sent behind them. */
async function answersTo(server: FaultServer, bytes: string | Buffer): Promise<Frame[]> {
  const from = server.frames.length;
  server.sendRaw(bytes);
  const id = `probe ${(lastProbe += 1)}`;
  server.send({ jsonrpc: '2.0', id, method: '_status' });
  const probe = await server.response(id);
  return server.frames.slice(from).filter((frame) => frame.method === undefined && frame !== probe);
}

async function goesOn(t: Test, server: FaultServer, session: string): Promise<void> {
  t.match(await server.prompt(session, 'say still-here'), { result: { stopReason: 'end_turn' } });
}

void faultTest('fault 33: frames cut at any byte, many in a chunk, CRLF and blank lines give the same', async (t, rig) => {
  const server = await rig.serve({ args: scripted, saboteur: false });
  const session = await server.newSession(rig.dir);
  const frame = (id: string) => Buffer.from(`{"jsonrpc":"2.0","id":"${id}","method":"session/list","params":{"cwd":"/ä🙂"}}\n`);
  const length = frame('cut').length;
  for (let at = 1; at < length; at += 1) {
    const bytes = frame(`cut${at}`);
    server.sendRaw(bytes.subarray(0, at));
    await new Promise((resolve) => setImmediate(resolve));
    server.sendRaw(bytes.subarray(at));
  }
  server.sendRaw(
    Buffer.concat(Array.from({ length: 200 }, (_, index) => Buffer.from(`\r\n \n${frame(`many${index}`).toString().trim()}\r\n`))),
  );
  for (let at = 1; at < length; at += 1) t.match(await server.response(`cut${at}`), { result: { sessions: [] } });
  for (let index = 0; index < 200; index += 1) t.match(await server.response(`many${index}`), { result: { sessions: [] } });
  await goesOn(t, server, session);
});

void faultTest('fault 34, 35, 37, 38, 39, 41, 42: what is no request costs one error at most, and the next frame works', async (t, rig) => {
  const server = await rig.serve({ args: scripted, saboteur: false });
  const session = await server.newSession(rig.dir);
  const call = (rest: string) => `{"jsonrpc":"2.0",${rest}}`;
  const codes = async (line: string | Buffer) =>
    (await answersTo(server, Buffer.concat([Buffer.from(line), Buffer.from('\n')]))).map(({ id, error }) => [id, error?.code]);
  for (const line of ['{', 'x', '\u0000', '{"a":1}}', '{"jsonrpc":"2.0","id":1,"method":"x"', '"\\u00'])
    t.same(await codes(line), [[null, -32_700]], line);
  for (const line of [
    '[]',
    `[${call('"id":1,"method":"_status"')}]`,
    '7',
    'null',
    '"x"',
    '{}',
    call('"id":{},"method":"x"'),
    call('"id":true,"method":"x"'),
  ])
    t.same(await codes(line), [[null, -32_600]], line);
  t.same(await codes('{"id":5,"method":"_status"}'), [[5, -32_600]], 'without a version');
  t.same(await codes('{"jsonrpc":"1.0","id":6,"method":"_status"}'), [[6, -32_600]], 'of another version');
  t.same(await codes(call('"id":7,"method":8')), [[7, -32_600]]);
  for (const deep of ['['.repeat(100_000), `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`])
    t.same(await codes(deep), [[null, -32_600]], 'nested without end');
  for (const line of [
    call('"id":99,"result":{}'),
    call('"id":99,"error":{}'),
    call('"result":{}'),
    call('"method":"_none","params":1'),
    call('"method":"session/none"'),
  ])
    t.same(await codes(line), [], line);
  t.same(await codes(call('"id":10,"method":"session/none"')), [[10, -32_601]]);
  t.same(
    await codes(Buffer.from('\ufeff{"jsonrpc":"2.0","id":11,"method":"_status","_meta":{"x":1},"more":[]}')),
    [[11, undefined]],
    'a mark, and members unknown',
  );
  t.same(
    await codes(Buffer.from([...Buffer.from('{"jsonrpc":"2.0","id":"b'), 0xff, 0xc0, ...Buffer.from('\\ud800","method":"_status"}')])),
    [['b\ufffd\ufffd\ud800', undefined]],
  );
  const odd = `"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}`;
  t.same(
    await codes(call(`"id":12,"id":13,"method":"_status","params":{${odd},"_meta":{${odd}}},${odd}`)),
    [[13, undefined]],
    'the last of doubled members counts',
  );
  t.match(await server.request('session/new', { cwd: rig.dir, mcpServers: [] }), { result: { sessionId: String } });
  await goesOn(t, server, session);
});

void faultTest('fault 36: a frame without end is refused once, is not kept, and the next line works', async (t, rig) => {
  const server = await rig.serve({ args: [...scripted, '--max-frame-bytes', '1048576'], saboteur: false });
  const session = await server.newSession(rig.dir);
  const before = residentMb(server.pid);
  const piece = Buffer.alloc(1024 * 1024, 'x');
  for (let sent = 0; sent < 100; sent += 1) {
    server.sendRaw(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const answers = await answersTo(server, '\n');
  t.match(answers, [{ id: null, error: { data: { code: 'FRAME_TOO_LARGE' } } }]);
  t.equal(answers.length, 1);
  t.ok(residentMb(server.pid) - before < 60, `grew by ${(residentMb(server.pid) - before).toFixed(0)} MB`);
  await goesOn(t, server, session);
});

void faultTest('fault 40: an id that is open is refused; ids come back as they were, and may be used again', async (t, rig) => {
  const server = await rig.serve({ args: scripted, saboteur: false });
  const session = await server.newSession(rig.dir);
  const long = 'i'.repeat(100_000);
  for (const id of [null, 0, -1, 1.5, 9_007_199_254_740_991, '', '1', '__proto__', long]) {
    const line = `${JSON.stringify({ jsonrpc: '2.0', id, method: '_status' })}\n`;
    for (const time of ['first', 'second'])
      t.same(
        (await answersTo(server, line)).map((frame) => [frame.id, frame.error]),
        [[id, undefined]],
        `${String(id).slice(0, 20)}, ${time} time`,
      );
  }
  server.send({
    jsonrpc: '2.0',
    id: 'open',
    method: 'session/prompt',
    params: { sessionId: session, prompt: [{ type: 'text', text: 'run sleep 30' }] },
  });
  await server.nextUpdate(session, 'tool_call');
  t.match(await answersTo(server, '{"jsonrpc":"2.0","id":"open","method":"_status"}\n'), [{ id: 'open', error: { code: -32_600 } }]);
  server.notify('session/cancel', { sessionId: session });
  await server.next((frame) => frame.id === 'open');
  t.match(server.frames.filter(({ id }) => id === 'open').at(-1), { result: { stopReason: 'cancelled' } }, 'the first one goes on');
});

void faultTest(
  'fault 45, 46, 47, 49: prompts to nobody, prompts in a row, and cancels at every stage touch nothing else',
  async (t, rig) => {
    const server = await rig.serve({ args: scripted, saboteur: false });
    const [a, b] = [await server.newSession(rig.dir), await server.newSession(rig.dir)];
    t.match((await server.prompt('01900000-0000-7000-8000-000000000000', 'say x')).error, { code: -32_002 });
    const gone = await server.newSession(rig.dir);
    await server.request('session/close', { sessionId: gone });
    t.match((await server.prompt(gone, 'say x')).error, { code: -32_002 });

    server.notify('session/cancel', { sessionId: a });
    t.match(await server.prompt(a, 'say one'), { result: { stopReason: 'end_turn' } }, 'a cancel before the prompt is for nobody');
    const other = server.startPrompt(b, 'run sleep 0.7; echo b-$((40+2))');
    const [first, second] = [server.startPrompt(a, 'run sleep 30'), server.startPrompt(a, 'say two')];
    await server.nextUpdate(a, 'tool_call');
    t.equal(server.responses(second).length, 0, 'the second one waits');
    server.notify('session/cancel', { sessionId: a });
    for (const id of [first, second]) t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
    const quick = server.startPrompt(a, 'repeat 100000 word');
    server.notify('session/cancel', { sessionId: a });
    t.match(await server.response(quick), { result: { stopReason: 'cancelled' } }, 'right behind its prompt');
    const streaming = server.startPrompt(a, 'repeat 100000 word');
    await server.nextUpdate(a);
    server.notify('session/cancel', { sessionId: a });
    t.match(await server.response(streaming), { result: { stopReason: 'cancelled' } }, 'while it streams');
    server.notify('session/cancel', { sessionId: a });
    t.match(await server.response(other), { result: { stopReason: 'end_turn' } });
    t.match(JSON.stringify(server.updates(b)), /b-42/, 'the other session never noticed');
    await goesOn(t, server, a);
  },
);
