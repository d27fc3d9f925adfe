/**
 * What the assembled server makes of bytes: framing, bad frames, ids, and `initialize`. The client here is a raw one, since
 * no well-behaved client would say most of this. Numbers are those of the conformance checklist.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { endServer, exchange, startServer } from '../support/started-server.ts';

const line = (frame: unknown): string => `${JSON.stringify(frame)}\n`;
const call = (id: unknown, method: string, params?: unknown): string => line({ jsonrpc: '2.0', id, method, params });
const note = (method: string, params?: unknown): string => line({ jsonrpc: '2.0', method, params });
const initialize = (id: unknown, params: object = {}): string => call(id, 'initialize', { protocolVersion: 1, ...params });

const storedSessions = (server: ServerProcess): number => {
  try {
    return readdirSync(join(server.stateDir, 'sessions')).length;
  } catch {
    // The directory is made with the first session.
    return 0;
  }
};

/** What a bad line is answered with: nothing, or exactly one error with this number and this id. */
type Expected = 'nothing' | { readonly code: number; readonly id: Frame['id'] };

const valid = { jsonrpc: '2.0', id: 7001, method: 'session/new', params: { cwd: '/', mcpServers: [] } };
const parseError = { code: -32700, id: null };
const invalid = { code: -32600, id: null };

const badLines: readonly (readonly [string, string | Buffer, Expected])[] = [
  ['#3 an empty line', '\n', 'nothing'],
  ['#3 blanks', '  \t \n', 'nothing'],
  ['#3 a lone CRLF', '\r\n', 'nothing'],
  ['#4 text that is not JSON', 'hello\n', parseError],
  ['#4 a truncated object', '{"jsonrpc":"2.0","id":1\n', parseError],
  ['#4 two objects on one line', `${JSON.stringify(valid)}${JSON.stringify(valid)}\n`, parseError],
  ['#4 NUL bytes', Buffer.from([0, 0, 10]), parseError],
  ['#5 an empty array', '[]\n', invalid],
  ['#5 a batch', line([valid, { ...valid, id: 7002 }]), invalid],
  ['#6 a number', '42\n', invalid],
  ['#6 a string', '"x"\n', invalid],
  ['#6 null', 'null\n', invalid],
  ['#6 true', 'true\n', invalid],
  ['#6 an empty object', '{}\n', invalid],
  ['#6 no jsonrpc', line({ id: 7003, method: 'session/list', params: {} }), { code: -32600, id: 7003 }],
  ['#6 jsonrpc 1.0', line({ jsonrpc: '1.0', id: 'a', method: 'session/list', params: {} }), { code: -32600, id: 'a' }],
  ['#6 jsonrpc as a number', line({ jsonrpc: 2, id: 7003, method: 'session/list' }), { code: -32600, id: 7003 }],
  ['#6 an object as id', line({ ...valid, id: {} }), invalid],
  ['#6 an array as id', line({ ...valid, id: [1] }), invalid],
  ['#6 a boolean as id', line({ ...valid, id: true }), invalid],
  ['#6 an id beyond all numbers', '{"jsonrpc":"2.0","id":1e999,"method":"session/list","params":{}}\n', invalid],
  ['#6 a number as method', line({ ...valid, id: 7004, method: 5 }), { code: -32600, id: 7004 }],
  ['#6 null as method', line({ ...valid, id: 7005, method: null }), { code: -32600, id: 7005 }],
  ['params as an array', call(7006, 'session/new', ['/', []]), { code: -32602, id: 7006 }],
  ['params as a number', call(7007, 'session/new', 5), { code: -32602, id: 7007 }],
  ['params as a string', call(7008, 'session/prompt', 'x'), { code: -32602, id: 7008 }],
  ['params as null', call(7009, 'session/new', null), { code: -32602, id: 7009 }],
  ['no params', call(7010, 'session/new'), { code: -32602, id: 7010 }],
  ['#21 an unknown method', call(7011, 'nonsense', {}), { code: -32601, id: 7011 }],
  ['#94 an unknown method of an extension', call(7012, '_acme.com/foo', { a: 1 }), { code: -32601, id: 7012 }],
  ['a method of a client', call(7013, 'fs/read_text_file', { sessionId: 'x', path: '/' }), { code: -32601, id: 7013 }],
  ['session/cancel with an id', call(7014, 'session/cancel', { sessionId: 'x' }), { code: -32601, id: 7014 }],
  ['$/cancel_request with an id', call(7015, '$/cancel_request', { requestId: 1 }), { code: -32601, id: 7015 }],
  ['#39 session/fork of an unknown session', call(7018, 'session/fork', { sessionId: 'x', cwd: '/' }), { code: -32002, id: 7018 }],
  ['#21 session/set_model', call(7019, 'session/set_model', { sessionId: 'x', modelId: 'y' }), { code: -32601, id: 7019 }],
  [
    '#39 session/set_config_option of an unknown session',
    call(7020, 'session/set_config_option', { sessionId: 'x', configId: 'a', value: 'b' }),
    { code: -32002, id: 7020 },
  ],
  ['a method named like a member of every object', call(7022, 'constructor', {}), { code: -32601, id: 7022 }],
  ['an empty method', call(7023, '', {}), { code: -32601, id: 7023 }],
  ['#94 an unknown notification', note('nonsense', { a: 1 }), 'nothing'],
  ['#94 an unknown notification of an extension', note('_acme.com/foo', {}), 'nothing'],
  ['a request without an id', note('session/new', { cwd: '/', mcpServers: [] }), 'nothing'],
  ['#7 a notification with bad params', note('session/cancel', { sessionId: 5 }), 'nothing'],
  ['#7 a notification without params', note('session/cancel'), 'nothing'],
  ['#40 session/cancel of an unknown session', note('session/cancel', { sessionId: 'nobody' }), 'nothing'],
  ['#66 $/cancel_request of an unknown id', note('$/cancel_request', { requestId: 123_456 }), 'nothing'],
  ['#66 $/cancel_request of an object', note('$/cancel_request', { requestId: {} }), 'nothing'],
  ['#66 $/cancel_request of nothing', note('$/cancel_request', {}), 'nothing'],
  ['#7 a result for an unknown id', line({ jsonrpc: '2.0', id: 999, result: {} }), 'nothing'],
  ['#7 an error for an unknown id', line({ jsonrpc: '2.0', id: 'x', error: { code: 1, message: 'm' } }), 'nothing'],
  ['#7 result and error together', line({ jsonrpc: '2.0', id: 999, result: 1, error: { code: 1, message: 'm' } }), 'nothing'],
  ['#7 neither result nor error', line({ jsonrpc: '2.0', id: 999 }), 'nothing'],
  ['#7 a bad error object', line({ jsonrpc: '2.0', id: 999, error: 5 }), 'nothing'],
  ['#7 a result without an id', line({ jsonrpc: '2.0', result: 1 }), 'nothing'],
  ['#7 a result for an object as id', line({ jsonrpc: '2.0', id: {}, result: 1 }), 'nothing'],
  ['a frame nested very deep', `${'['.repeat(200_000)}\n`, invalid],
  ['invalid UTF-8 outside of strings', Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":1,'), Buffer.from([0xff, 0xfe, 10])]), parseError],
];

await t.test('bad frames are answered as JSON-RPC and ACP say, and end nothing', async (t) => {
  const server = await startServer(t);
  const before = storedSessions(server);
  for (const [name, bytes, expected] of badLines) {
    await t.test(name, async (t) => {
      const answers = await exchange(server, bytes, expected === 'nothing' ? 0 : 1);
      if (expected === 'nothing') t.same(answers, []);
      else {
        t.equal(answers.length, 1);
        t.match(answers[0], { id: expected.id, error: { code: expected.code } });
        t.equal(answers[0]?.error?.data ?? undefined, answers[0]?.error?.data, 'data is left out rather than null');
      }
    });
  }
  t.equal(storedSessions(server), before, 'nothing of it made a session');
  await endServer(t, server);
});

await t.test('a shared server', async (t) => {
  const server = await startServer(t);
  const cwd = t.testdir({});

  await t.test('an unknown method is named in data', async (t) => {
    t.match((await server.request('no/such', {})).error?.data, {
      code: 'METHOD_NOT_FOUND',
      method: 'no/such',
      details: /no\/such\. Use only/,
    });
  });

  await t.test('#29 #97 bad params are named by path, without any value', async (t) => {
    const mcpServers = [{ name: 'n', command: 5, args: [], env: [{ name: 'TOKEN', value: 'canary-4711' }] }];
    const answer = await server.request('session/new', { cwd: 5, mcpServers });
    t.equal(answer.error?.code, -32602);
    t.match(answer.error?.message, /cwd/);
    t.notMatch(JSON.stringify(answer), /canary-4711/);
  });

  await t.test('#8 ids of every type come back as they were', async (t) => {
    for (const id of [0, -1, 1.5, 2 ** 53 - 1, '', '1', 'ünï', '\u0000', null, 1e300]) {
      const [answer] = await exchange(server, call(id, 'session/list', {}), 1);
      t.ok(answer?.result, `${JSON.stringify(id)} is answered`);
      t.equal(answer?.id, id);
    }
  });

  await t.test('#9 1 and "1" are open side by side', async (t) => {
    const sessions = [await server.newSession(cwd), await server.newSession(cwd)];
    const prompt = (id: unknown, index: number): string =>
      call(id, 'session/prompt', { sessionId: sessions[index], prompt: [{ type: 'text', text: 'wait 50' }] });
    const from = server.frames.length;
    server.sendRaw(prompt(1_000_001, 0) + prompt('1000001', 1));
    await Promise.all([server.response(1_000_001), server.response('1000001')]);
    const ids = server.frames.slice(from).flatMap((frame) => (frame.method === undefined ? [frame.id] : []));
    t.same(new Set(ids), new Set([1_000_001, '1000001']));
    t.equal(ids.length, 2);
  });

  await t.test('an id that is still open is refused, and its first request goes on', async (t) => {
    const sessionId = await server.newSession(cwd);
    const prompt = { sessionId, prompt: [{ type: 'text', text: 'wait 200' }] };
    const from = server.frames.length;
    server.sendRaw(call('dup', 'session/prompt', prompt) + call('dup', 'session/prompt', prompt));
    await server.next((frame) => frame.id === 'dup' && frame.result !== undefined, 'the first answer');
    const answers = server.frames.slice(from).filter((frame) => frame.id === 'dup');
    t.match(answers, [{ error: { code: -32600 } }, { result: { stopReason: 'end_turn' } }]);
  });

  await t.test('#2 a frame may be split at any byte, inside a character too', async (t) => {
    const bytes = Buffer.from(call('splät-€-😀', 'session/list', { _meta: { note: 'naïve 😀' } }));
    for (let at = 1; at < bytes.length; at += 1) {
      const answer = server.next((frame) => frame.id === 'splät-€-😀', `the answer of the frame split at ${at}`);
      server.sendRaw(bytes.subarray(0, at));
      await new Promise((resolve) => setImmediate(resolve));
      server.sendRaw(bytes.subarray(at));
      t.ok((await answer).result, `split at byte ${at}`);
    }
  });

  await t.test('#2 many frames may come in one chunk, with LF, CRLF and blank lines', async (t) => {
    const ids = Array.from({ length: 500 }, (_, index) => `many-${index}`);
    const ends = ['\n', '\r\n', '\n\n', '\r\n \r\n'];
    const bytes = ids.map((id, index) => call(id, 'session/list', {}).trimEnd() + ends[index % ends.length]).join('');
    const answers = await exchange(server, bytes, ids.length);
    t.same(new Set(answers.map((frame) => frame.id)), new Set(ids));
    t.equal(answers.length, ids.length);
    t.ok(answers.every((frame) => frame.result !== undefined));
  });

  await t.test('invalid UTF-8 inside a string is read with replacement characters', async (t) => {
    const [head, tail] = call('utf8', 'session/list', { _meta: { a: '@' } }).split('@');
    const [answer] = await exchange(server, Buffer.concat([Buffer.from(head!), Buffer.from([0xc3, 0x28, 0xff]), Buffer.from(tail!)]), 1);
    t.match(answer, { id: 'utf8', result: { sessions: [] } });
  });

  await t.test('a byte order mark before a frame is no mistake', async (t) => {
    const [answer] = await exchange(server, `\ufeff${call('bom', 'session/list', {})}`, 1);
    t.ok(answer?.result);
  });

  await t.test('#94 _meta of any shape is taken', async (t) => {
    for (const _meta of [null, {}, { a: [1, { b: null }], 'x.y/z': 'w' }, JSON.parse('{"__proto__":{"polluted":1}}')]) {
      t.ok((await server.request('session/list', { _meta })).result, JSON.stringify(_meta));
    }
  });

  await t.test('members that a method does not know are no mistake', async (t) => {
    t.ok((await server.request('session/new', { cwd, mcpServers: [], future: { x: 1 } })).result);
  });

  await t.test('#39 an unknown session is -32002 with its id, in every method', async (t) => {
    const unknown = '0197f000-0000-7000-8000-000000000000';
    for (const sessionId of [unknown, 'x', '', '../../etc/passwd', '__proto__', 'a'.repeat(5000)]) {
      const answers = await Promise.all([
        server.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'say x' }] }),
        server.request('session/load', { sessionId, cwd, mcpServers: [] }),
        server.request('session/close', { sessionId }),
        server.request('session/set_mode', { sessionId, modeId: 'ask' }),
      ]);
      for (const { error } of answers) t.match(error, { code: -32002, data: { sessionId: sessionId.slice(0, 200) } });
    }
  });

  await t.test('#24 a second initialize leaves running sessions alone', async (t) => {
    const sessionId = await server.newSession(cwd);
    const running = server.startPrompt(sessionId, 'wait 100\nsay still here');
    const again = await server.initialize({ _meta: { terminal_output: true } });
    t.ok(again.result === undefined ? again.error : again.result.protocolVersion === 1, 'it is answered');
    t.match(await server.response(running), { result: { stopReason: 'end_turn' } });
    t.match(server.text(sessionId), /still here/);
  });

  await endServer(t, server);
});

await t.test('#11 a prompt of 20 MB', async (t) => {
  const server = await startServer(t);
  const cwd = t.testdir({});
  const sessionId = await server.newSession(cwd);
  const image = await server.request('session/prompt', {
    sessionId,
    prompt: [{ type: 'image', mimeType: 'image/png', data: 'A'.repeat(20 * 1024 * 1024) }],
  });
  t.match(image.error, { code: -32602 }, '#54 an image, which is not advertised, is refused');
  t.ok(JSON.stringify(image).length < 2000);
  const text = await server.prompt(sessionId, `say hello\n# ${'ä'.repeat(10 * 1024 * 1024)}`);
  t.ok(text.result?.stopReason ?? text.error?.message, 'text is answered');
  t.match(await server.prompt(sessionId, 'say after'), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
});

await t.test('#10 a line over the cap costs one error frame and no session', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--max-frame-bytes', '4096'] });
  const sessionId = await server.newSession(t.testdir({}));
  const running = server.startPrompt(sessionId, 'wait 100\nsay unharmed');
  const refused = server.next((frame) => frame.id === null, 'the error of the long line');
  const long = call('long', 'session/list', { _meta: { pad: 'x'.repeat(2_000_000) } });
  server.sendRaw(long.slice(0, 1_000_000));
  server.sendRaw(long.slice(1_000_000) + call('next', 'session/list', {}));
  t.match(await refused, { error: { code: -32600, message: /4096/ } });
  t.ok((await server.response('next')).result, 'the line behind it is served');
  t.match(await server.response(running), { result: { stopReason: 'end_turn' } });
  t.match(server.text(sessionId), /unharmed/);
  t.equal(server.frames.filter((frame) => frame.id === null).length, 1);
  t.notOk(server.frames.some((frame) => frame.id === 'long'));
  const exactly = (size: number): string => {
    const empty = call('fit', 'session/list', { _meta: { pad: '' } }).length - 1;
    return call('fit', 'session/list', { _meta: { pad: 'x'.repeat(size - empty) } });
  };
  const [fit] = await exchange(server, exactly(4096), 1);
  t.match(fit, { id: 'fit', result: {} }, 'a line of exactly the cap is taken');
  const [over] = await exchange(server, exactly(4097), 1);
  t.match(over, { id: null, error: { code: -32600 } }, 'one byte more is not');
  await endServer(t, server);
});

await t.test('initialize', async (t) => {
  await t.test('#16 #20 #22 version 1, agentInfo, capabilities and no terminal auth', async (t) => {
    const server = await startServer(t, { initialize: false });
    const { result } = await server.request('initialize', { protocolVersion: 1 });
    t.equal(result.protocolVersion, 1);
    t.match(result.agentInfo, { name: 'deepseek-harness-acp', title: String, version: /^\d+\.\d+\.\d+/ });
    t.match(result.agentCapabilities, {
      loadSession: true,
      promptCapabilities: { image: false, audio: false, embeddedContext: true },
      sessionCapabilities: { list: {}, close: {} },
    });
    t.ok(result.authMethods.length >= 1);
    t.ok(result.authMethods.every((method: any) => method.type !== 'terminal'));
    t.equal((await server.request('authenticate', { methodId: 'nonsense' })).error?.code, -32602, '#27');
    t.same((await server.request('authenticate', { methodId: result.authMethods[0].id })).result, {});
    await endServer(t, server);
  });

  await t.test('#16 other versions are answered with 1', async (t) => {
    const server = await startServer(t, { initialize: false });
    for (const protocolVersion of [0, 2, 99, 65_535]) {
      t.equal((await server.request('initialize', { protocolVersion })).result?.protocolVersion, 1, String(protocolVersion));
    }
    await endServer(t, server);
  });

  await t.test('#17 #18 a bad version is refused, requests before initialize too, and a good one is still taken', async (t) => {
    const server = await startServer(t, { initialize: false });
    for (const params of [{}, { protocolVersion: 1.5 }, { protocolVersion: -1 }, { protocolVersion: 65_536 }, { protocolVersion: '1' }]) {
      t.equal((await server.request('initialize', params)).error?.code, -32602, JSON.stringify(params));
      t.equal((await server.request('session/list', {})).error?.code, -32600, 'not initialized');
    }
    server.notify('session/cancel', { sessionId: 'x' });
    t.equal((await server.request('session/new', { cwd: '/', mcpServers: [] })).error?.code, -32600);
    t.equal((await server.initialize()).result.protocolVersion, 1);
    t.ok((await server.request('session/list', {})).result);
    await endServer(t, server);
  });

  await t.test('#19 odd capabilities count as unsupported', async (t) => {
    const odd = [null, undefined, { fs: null }, { fs: { readTextFile: 'yes' }, terminal: {} }, { unknown: { x: 1 }, elicitation: 5 }];
    // What a client says last holds for the sessions that it makes then.
    const server = await startServer(t, { initialize: false });
    for (const clientCapabilities of odd) {
      const answer = await server.request('initialize', {
        protocolVersion: 1,
        clientCapabilities,
        clientInfo: { name: 'c', version: '1' },
      });
      t.equal(answer.result?.protocolVersion, 1, JSON.stringify(clientCapabilities));
      const sessionId = await server.newSession(t.testdir({ 'a.txt': 'content of a\n' }));
      await server.prompt(sessionId, 'read a.txt');
      t.ok(
        server.frames.every((frame) => !/^(fs|terminal|elicitation)\//.test(frame.method ?? '')),
        '#83 nothing is asked of the client',
      );
      t.match(JSON.stringify(server.updates(sessionId)), /content of a/, '#83 the file is read without it');
    }
    await endServer(t, server);
  });

  await t.test('#25 initialize, session/new and a prompt may come in one write, in one byte at a time, and split', async (t) => {
    const cwd = t.testdir({});
    const bytes = Buffer.from(
      initialize('i') +
        call('n', 'session/new', { cwd, mcpServers: [] }) +
        note('session/cancel', { sessionId: 'x' }) +
        call('l', 'session/list', {}),
    );
    for (const step of [bytes.length, 1, 7]) {
      const server = await startServer(t, { initialize: false });
      for (let at = 0; at < bytes.length; at += step) server.sendRaw(bytes.subarray(at, at + step));
      await Promise.all([server.response('i'), server.response('n'), server.response('l')]);
      t.same(server.frames[0]?.id, 'i', 'initialize is answered first');
      t.ok((await server.response('n')).result?.sessionId);
      t.ok((await server.response('l')).result);
      await endServer(t, server);
    }
  });

  await t.test('#23 it is answered before anything else is started', async (t) => {
    const server = await startServer(t, { initialize: false });
    const started = performance.now();
    await server.initialize();
    const ms = performance.now() - started;
    t.comment(`${Math.round(ms)} ms with the start of the process`);
    t.ok(ms < 5000);
    await endServer(t, server);
  });
});

await t.test('#1 debug variables and warnings do not reach stdout', async (t) => {
  const server = await startServer(t, {
    env: { DEBUG: '*', NODE_DEBUG: 'worker,net,stream', NODE_OPTIONS: '--trace-warnings --pending-deprecation', FORCE_COLOR: '1' },
    args: ['--model', 'scripted', '--log-level', 'debug'],
  });
  const sessionId = await server.newSession(t.testdir({}));
  t.match(await server.prompt(sessionId, 'run echo x; echo y >&2'), { result: { stopReason: 'end_turn' } });
  t.equal((await server.close()).code, 0);
  t.same(server.violations, []);
  t.match(server.stderr, /dsh-acp debug|dsh-acp info/);
});

await t.test('#24 two initialize requests in one write', async (t) => {
  const server = await startServer(t, { initialize: false });
  server.sendRaw(initialize('one') + initialize('two') + call('new', 'session/new', { cwd: '/', mcpServers: [] }));
  t.equal((await server.response('one')).result?.protocolVersion, 1);
  t.ok(await server.response('two'));
  t.ok((await server.response('new')).result?.sessionId);
  await endServer(t, server);
});

await t.test('#3 #15 the end of input', async (t) => {
  await t.test('a whole last line without a line feed is served', async (t) => {
    const server = await startServer(t);
    server.sendRaw(call('last', 'session/list', {}).trimEnd());
    await endServer(t, server);
    t.ok((await server.response('last')).result);
  });

  await t.test('half a line is dropped', async (t) => {
    const server = await startServer(t);
    const from = server.frames.length;
    server.sendRaw(call('half', 'session/list', {}).slice(0, -5));
    await endServer(t, server);
    t.same(server.frames.slice(from), []);
  });

  await t.test('everything in one write, initialize included, is answered before the exit', async (t) => {
    const server = await startServer(t, { initialize: false });
    server.sendRaw(initialize('i') + call('n', 'session/new', { cwd: t.testdir({}), mcpServers: [] }));
    await endServer(t, server);
    t.same(
      server.frames.map((frame) => frame.id),
      ['i', 'n'],
    );
  });

  await t.test('without a single byte', async (t) => {
    const server = await startServer(t, { initialize: false });
    await endServer(t, server);
    t.same(server.frames, []);
  });
});
