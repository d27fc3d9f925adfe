import { PassThrough, Readable, Writable } from 'node:stream';
import { type AgentApp, type AnyMessage, agent, client, ndJsonStream } from '@agentclientprotocol/sdk';
import * as fc from 'fast-check';
import t from 'tap';
import { errorCatalogue } from '../../../../src/shared/errors.ts';
import { type AgentStreamOptions, createAgentStream } from '../../../../src/main/transport/agent-stream.ts';
import { FrameWriter } from '../../../../src/main/transport/frame-writer.ts';
import { testSeed } from '../../../support/test-seed.ts';

type Frame = { id?: string | number | null; method?: string; result?: any; error?: any; params?: any };

interface Harness {
  readonly input: PassThrough;
  /** Every frame that was written, parsed. Each line is checked to be one object. */
  readonly frames: Frame[];
  readonly notes: string[];
  readonly outgoing: AnyMessage[];
  readonly writer: FrameWriter;
  readonly ended: Promise<void>;
  readonly closed: Promise<void>;
  readonly stop: () => void;
  send(...messages: (object | string)[]): void;
  /** Resolves once that many frames, or the one that fits, have been written. */
  until(what: number | ((frame: Frame) => boolean)): Promise<void>;
  readonly connection: ReturnType<AgentApp['connect']>;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i += 1) await turn();
};

function connect(app: AgentApp, options: Partial<AgentStreamOptions> & { out?: Writable } = {}): Harness {
  const frames: Frame[] = [];
  const notes: string[] = [];
  const outgoing: AnyMessage[] = [];
  const input = new PassThrough();
  let wake: () => void = () => {};
  let tail = '';
  const out =
    options.out ??
    new Writable({
      write(chunk: Buffer, _encoding, callback) {
        const lines = (tail + chunk.toString()).split('\n');
        tail = lines.pop() ?? '';
        for (const line of lines) frames.push(JSON.parse(line));
        wake();
        callback();
      },
    });
  const writer = new FrameWriter(out, { stalledReaderMs: 60_000, onBroken: () => {} });
  let end: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const { out: _out, ...overrides } = options;
  const stream = createAgentStream({
    input,
    writer,
    maxFrameBytes: 1024 * 1024,
    onEnd: end,
    onNote: (level, text) => notes.push(`${level}: ${text}`),
    onOutgoing: (message) => outgoing.push(message),
    ...overrides,
  });
  const connection = app.connect(stream);
  t.teardown(() => stream.stop());
  return {
    input,
    frames,
    notes,
    outgoing,
    writer,
    ended,
    closed: connection.closed,
    connection,
    stop: () => stream.stop(),
    send: (...messages) => {
      input.write(messages.map((m) => `${typeof m === 'string' ? m : JSON.stringify(m)}\n`).join(''));
    },
    until: async (what) => {
      const reached = (): boolean => (typeof what === 'number' ? frames.length >= what : frames.some(what));
      const deadline = setTimeout(() => wake(), 30_000);
      const late = performance.now() + 30_000;
      while (!reached()) {
        if (performance.now() > late) throw new Error(`waited too long; got ${JSON.stringify(frames).slice(0, 2000)}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      clearTimeout(deadline);
    },
  };
}

const request = (id: string | number | null, method: string, params: object = {}): object => ({ jsonrpc: '2.0', id, method, params });
const notify = (method: string, params: object = {}): object => ({ jsonrpc: '2.0', method, params });
const initialize = request('init', 'initialize', { protocolVersion: 1, clientCapabilities: {} });
const prompt = (id: string | number | null, sessionId: string): object =>
  request(id, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'hi' }] });

/** Twelve handlers, cancel first and prompt last: the order in which the SDK by itself lets cancels overtake. */
function badOrderApp(seen: string[] = [], fillers = 9): AgentApp {
  const parser = (params: unknown): unknown => params;
  let app = agent({ name: 'bad order' }).onNotification('session/cancel', (c) => {
    seen.push(`cancel ${c.params.sessionId} ${String(c.params._meta?.['n'])}`);
  });
  for (let i = 0; i < fillers; i += 1) app = app.onRequest(`_filler/${i}`, parser, () => ({}));
  return app
    .onRequest('initialize', () => ({ protocolVersion: 1 }))
    .onRequest('session/prompt', (c) => {
      seen.push(`prompt ${c.params.sessionId} ${String(c.params._meta?.['n'])}`);
      return { stopReason: 'end_turn' };
    });
}

t.test('2,000 alternating prompts and cancels in one write reach their handlers in order', async (t) => {
  const seen: string[] = [];
  const h = connect(badOrderApp(seen));
  h.send(initialize);
  await h.until(1);
  const expected: string[] = [];
  const messages: object[] = [];
  for (let n = 0; n < 2000; n += 1) {
    const [kind, method] = n % 2 === 0 ? ['prompt', 'session/prompt'] : ['cancel', 'session/cancel'];
    const params = { sessionId: 's', prompt: [], _meta: { n } };
    messages.push(n % 2 === 0 ? request(n, method ?? '', params) : notify(method ?? '', params));
    expected.push(`${kind} s ${n}`);
  }
  h.send(...messages);
  await h.until(1001);
  await turns(3);
  const inversions = seen.filter((entry, i) => entry !== expected[i]).length;
  t.equal(seen.length, 2000);
  t.equal(inversions, 0);
});

t.test('the SDK alone does invert them, so that the test above proves something', async (t) => {
  const seen: string[] = [];
  const app = badOrderApp(seen);
  const toAgent = new PassThrough();
  const fromAgent = new PassThrough();
  app.connect(ndJsonStream(Writable.toWeb(fromAgent), Readable.toWeb(toAgent) as ReadableStream<Uint8Array>));
  fromAgent.resume();
  toAgent.write(`${JSON.stringify(initialize)}\n`);
  await turns(20);
  const lines: string[] = [];
  for (let n = 0; n < 200; n += 1) {
    const params = { sessionId: 's', prompt: [], _meta: { n } };
    lines.push(JSON.stringify(n % 2 === 0 ? request(n, 'session/prompt', params) : notify('session/cancel', params)));
  }
  toAgent.end(`${lines.join('\n')}\n`);
  await turns(50);
  t.ok(seen.some((entry, i) => !entry.endsWith(` ${i}`)));
});

t.test('200 prompts of 200 sessions share a turn', async (t) => {
  const seen: string[] = [];
  const h = connect(badOrderApp(seen));
  h.send(initialize);
  await h.until(1);
  await turns(3);
  h.send(...Array.from({ length: 200 }, (_, i) => prompt(i, `s${i}`)));
  await turns(3);
  t.equal(seen.length, 200, 'three turns are enough');
  await h.until(201);
});

t.test('a cancel by request id never overtakes, and reaches the request that it names', async (t) => {
  const order: string[] = [];
  const app = agent({ name: 'a' })
    .onRequest('initialize', () => ({ protocolVersion: 1 }))
    .onRequest('session/prompt', async (c) => {
      order.push('start');
      await new Promise<void>((resolve) => {
        if (c.signal.aborted) resolve();
        c.signal.addEventListener('abort', () => resolve());
      });
      order.push('aborted');
      return { stopReason: 'cancelled' };
    });
  const h = connect(app);
  h.send(initialize, prompt(7, 's'), notify('$/cancel_request', { requestId: '7' }), notify('$/cancel_request', { requestId: 7 }));
  await h.until((frame) => frame.id === 7);
  t.same(order, ['start', 'aborted']);
  t.equal(h.frames.length, 2, 'a cancel is not answered');
});

t.test('frames behind initialize wait for its response; frames before it do not', async (t) => {
  const seen: string[] = [];
  let answer: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const app = agent({ name: 'slow' })
    .onRequest('initialize', async () => {
      await gate;
      return { protocolVersion: 1 };
    })
    .onRequest('session/new', () => {
      seen.push('new');
      return { sessionId: 's' };
    })
    .onNotification('session/cancel', () => {
      seen.push('cancel');
    });
  const h = connect(app);
  h.send(request(1, 'session/new', { cwd: '/', mcpServers: [] }), initialize, request(2, 'session/new', { cwd: '/', mcpServers: [] }));
  h.send(notify('session/cancel', { sessionId: 's' }));
  await h.until(1);
  await turns(10);
  t.match(h.frames, [{ id: 1, error: { code: -32600 } }], 'before initialize: refused by the SDK');
  t.equal(h.frames.length, 1);
  t.same(seen, [], 'nothing runs before the response');
  answer();
  await h.until(3);
  await turns(3);
  t.match(h.frames.slice(1), [
    { id: 'init', result: { protocolVersion: 1 } },
    { id: 2, result: { sessionId: 's' } },
  ]);
  t.same(seen, ['new', 'cancel']);
});

t.test('after a failed initialize the frames behind it go on, and a second initialize works', async (t) => {
  const app = agent({ name: 'a' })
    .onRequest('initialize', () => ({ protocolVersion: 1 }))
    .onRequest('session/new', () => ({ sessionId: 's' }));
  const h = connect(app);
  const newSession = (id: number): object => request(id, 'session/new', { cwd: '/', mcpServers: [] });
  h.send(
    request(0, 'initialize', { protocolVersion: 'x' }),
    newSession(1),
    initialize,
    newSession(2),
    { ...initialize, id: 'init2' },
    newSession(3),
  );
  await h.until(6);
  t.match(h.frames, [
    { id: 0, error: { code: -32602, data: { details: 'params.protocolVersion: expected number, received string' } } },
    { id: 1, error: { code: -32600 } },
    { id: 'init', result: {} },
    { id: 2, result: {} },
    { id: 'init2', result: {} },
    { id: 3, result: {} },
  ]);
});

t.test('an id that is still open is refused by type and value, and may be used again afterwards', async (t) => {
  const finish: (() => void)[] = [];
  const app = agent({ name: 'a' }).onRequest('session/prompt', async () => {
    await new Promise<void>((resolve) => finish.push(resolve));
    return { stopReason: 'end_turn' };
  });
  const h = connect(app);
  const ids = [1, '1', null, 0, '', 1.5, 'x'.repeat(10_000)];
  h.send(...ids.map((id, i) => prompt(id, `s${i}`)), ...ids.map((id, i) => prompt(id, `t${i}`)));
  await h.until(ids.length);
  t.same(
    h.frames.map((frame) => [frame.id, frame.error?.code]),
    ids.map((id) => [id, -32600]),
  );
  t.equal(finish.length, ids.length, 'the first ones run');
  for (const done of finish.splice(0)) done();
  await h.until(ids.length * 2);
  t.same(
    h.frames.slice(ids.length).map((frame) => [frame.id, frame.result?.stopReason]),
    ids.map((id) => [id, 'end_turn']),
  );
  h.send(prompt(1, 'again'));
  await turns(3);
  t.equal(finish.length, 1);
  finish[0]?.();
  await h.until(ids.length * 2 + 1);
  t.match(h.frames.at(-1), { id: 1, result: {} });
});

t.test('bad frames are answered without their text, and the next frame works', async (t) => {
  const h = connect(agent({ name: 'a' }).onRequest('session/new', () => ({ sessionId: 's' })));
  const deep = `{"jsonrpc":"2.0","id":1,"method":"session/new","params":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  const table: readonly [line: string, code: number | undefined][] = [
    ['', undefined],
    ['   \t', undefined],
    ['SECRET', -32700],
    ['{"SECRET":1}{"SECRET":2}', -32700],
    ['{"jsonrpc":"2.0","id":1,"method":"SECRET', -32700],
    ['[{"jsonrpc":"2.0","id":1,"method":"SECRET"}]', -32600],
    ['"SECRET"', -32600],
    ['{"SECRET":"SECRET"}', -32600],
    ['{"jsonrpc":"2.0","id":{"SECRET":1},"method":"SECRET"}', -32600],
    ['{"jsonrpc":"2.0","result":"SECRET"}', undefined],
    ['{"jsonrpc":"2.0","id":99,"result":"SECRET"}', undefined],
    ['{"jsonrpc":"2.0","method":"SECRET"}', undefined],
    ['{"jsonrpc":"2.0","method":"session/new","params":{}}', undefined],
    ['{"a":"SECRET\u0000"}', -32700],
    [deep, -32600],
    ['{"k":'.repeat(100_000), -32600],
    ['x'.repeat(2 * 1024 * 1024), -32600],
  ];
  let answers = 0;
  for (const [index, [line, code]] of table.entries()) {
    h.send(line, request(index, 'session/new', { cwd: '/', mcpServers: [] }));
    answers += code === undefined ? 1 : 2;
    await h.until(answers);
    const mine = h.frames.slice(code === undefined ? answers - 1 : answers - 2);
    t.match(mine.at(-1), { id: index, result: { sessionId: 's' } }, `after ${line.slice(0, 40)}`);
    if (code !== undefined) t.match(mine[0], { id: null, error: { code } });
    t.equal(h.frames.length, answers);
  }
  t.notOk(JSON.stringify([h.frames, h.notes]).includes('SECRET'));
  t.equal(({} as { polluted?: unknown }).polluted, undefined);
});

t.test('byte order mark, lone surrogates, odd keys and broken UTF-8 are taken as data', async (t) => {
  const cwds: string[] = [];
  const app = agent({ name: 'a' }).onRequest('session/new', (c) => {
    cwds.push(c.params.cwd);
    return { sessionId: c.params.cwd };
  });
  const h = connect(app);
  const line = (id: string, cwd: string): string =>
    `{"jsonrpc":"2.0","id":${id},"method":"session/new","params":{"cwd":${cwd},"mcpServers":[],"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}`;
  h.send(`\ufeff${line('"\\ud800"', '"\\udfff"')}`);
  h.input.write(Buffer.concat([Buffer.from(line('2', '"')), Buffer.from([0xff]), Buffer.from('","mcpServers":[]}}\n')]));
  h.send(line('3', '"/é😀"'));
  await h.until(3);
  t.ok(
    h.frames.some((frame) => frame.id === '\ud800' && frame.result !== undefined),
    'echoed exactly',
  );
  t.ok(h.frames.some((frame) => frame.id === null && frame.error?.code === -32700));
  t.equal(cwds[1], '/é😀');
  t.equal(({} as { polluted?: unknown }).polluted, undefined);
});

t.test('responses: only open requests are settled, once, by exact id; malformed ones fail the caller', async (t) => {
  const h = connect(agent({ name: 'a' }));
  const ask = (): Promise<unknown> =>
    h.connection.client.request('session/request_permission', { sessionId: 's', toolCall: { toolCallId: 'x' }, options: [] });
  const first = ask();
  const second = ask();
  await h.until(2);
  const id = h.frames[0]?.id;
  h.send(
    { jsonrpc: '2.0', id: String(id), result: { outcome: { outcome: 'selected', optionId: 'wrong' } } },
    { jsonrpc: '2.0', id: 12345, result: {} },
    { jsonrpc: '2.0', id, result: { outcome: { outcome: 'cancelled' } } },
    { jsonrpc: '2.0', id, result: { outcome: { outcome: 'selected', optionId: 'twice' } } },
    { jsonrpc: '2.0', id: h.frames[1]?.id, result: 1, error: { code: 1, message: 'both' } },
  );
  t.same(await first, { outcome: { outcome: 'cancelled' } });
  await t.rejects(second, { code: -32600 });
  t.equal(h.notes.filter((note) => note.startsWith('debug: Ignored a response')).length, 3);
  t.equal(h.frames.length, 2, 'no response is answered');
});

t.test('an answer to a permission request does not overtake the cancel before it', async (t) => {
  const seen: string[] = [];
  const h = connect(badOrderApp(seen));
  h.send(initialize);
  await h.until(1);
  const asked = h.connection.client
    .request('session/request_permission', { sessionId: 's', toolCall: { toolCallId: 'x' }, options: [] })
    .then(() => seen.push('answered'));
  await h.until(2);
  h.send(notify('session/cancel', { sessionId: 's' }), {
    jsonrpc: '2.0',
    id: h.frames[1]?.id,
    result: { outcome: { outcome: 'cancelled' } },
  });
  await asked;
  t.same(seen, ['cancel s undefined', 'answered']);
});

t.test('what cannot be made into JSON becomes an error, and the connection stays', async (t) => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const results: unknown[] = [
    cycle,
    { big: 1n },
    () => 1,
    {
      toJSON: () => {
        throw new Error('SECRET');
      },
    },
  ];
  const any = (params: unknown): unknown => params;
  const app = agent({ name: 'a' }).onRequest('_odd', any, (c) => results[(c.params as { n: number }).n] as object);
  const h = connect(app);
  h.send(...results.map((_, n) => request(n, '_odd', { n })));
  await h.until(results.length);
  for (const frame of h.frames) t.match(frame, { error: { code: -32603, message: /JSON/ } });
  await t.rejects(h.connection.client.request('_ask', { cycle }), { code: -32603 });
  await h.connection.client.notify('_tell', { cycle });
  h.send(request('after', '_none'));
  await h.until((frame) => frame.id === 'after');
  t.match(h.frames.at(-1), { error: { code: -32601, message: 'Method not found: _none', data: { method: '_none' } } });
  t.notOk(JSON.stringify(h.frames).includes('SECRET'));
});

t.test('the text of an unmapped exception stays on stderr', async (t) => {
  const app = agent({ name: 'a' }).onRequest('session/new', () => {
    throw new Error('{"path":"/home/me/SECRET"}');
  });
  const h = connect(app);
  h.send(request(1, 'session/new', { cwd: '/', mcpServers: [] }));
  await h.until(1);
  const message = 'The server met an unexpected fault.';
  const error = { code: -32603, message, data: { code: 'INTERNAL', details: `${message} ${errorCatalogue.INTERNAL.hint}` } };
  t.same(h.frames, [{ jsonrpc: '2.0', id: 1, error }]);
  t.ok(h.notes.some((note) => note.startsWith('debug:') && note.includes('SECRET')));
});

t.test('onOutgoing comes after the response was queued: what it writes stands behind it', async (t) => {
  const app = agent({ name: 'a' }).onRequest('session/new', () => ({ sessionId: 's' }));
  const outer: { h?: Harness } = {};
  const h = connect(app, {
    onOutgoing: (message) => {
      if ('result' in message) outer.h?.writer.write(`${JSON.stringify(notify('session/update', { sessionId: 's' }))}\n`);
    },
  });
  outer.h = h;
  h.send(request(1, 'session/new', { cwd: '/', mcpServers: [] }));
  await h.until(2);
  t.match(h.frames, [{ id: 1, result: { sessionId: 's' } }, { method: 'session/update' }]);
});

t.test('the end of input is told after the frames before it, and answers still go out', async (t) => {
  let finish: () => void = () => {};
  const app = agent({ name: 'a' })
    .onRequest('initialize', () => ({ protocolVersion: 1 }))
    .onRequest('session/prompt', async () => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return { stopReason: 'end_turn' };
    });
  const h = connect(app);
  h.input.end(`${JSON.stringify(initialize)}\n${JSON.stringify(prompt(1, 's'))}\n${JSON.stringify(request(2, '_x'))}`);
  await h.ended;
  finish();
  await h.until(3);
  t.same(new Set(h.frames.map((frame) => frame.id)), new Set([1, 2, 'init']), 'the last line needs no newline');
  h.stop();
  h.stop();
  await h.closed;
});

t.test('an unfinished last frame is dropped without an answer', async (t) => {
  const h = connect(agent({ name: 'a' }));
  h.input.end('{"jsonrpc":"2.0","id":1,"met');
  await h.ended;
  await turns(3);
  t.same(h.frames, []);
});

t.test('an initialize that is never answered does not hold back the end of input; a read error is an end', async (t) => {
  const never = agent({ name: 'a' }).onRequest('initialize', () => new Promise<never>(() => {}));
  const h = connect(never, { endHoldMs: 30 });
  h.input.end(`${JSON.stringify(initialize)}\n${JSON.stringify(prompt(1, 's'))}\n`);
  await h.ended;
  const broken = connect(agent({ name: 'a' }));
  broken.send(request(1, '_x'));
  await broken.until(1);
  broken.input.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
  await broken.ended;
  t.match(broken.notes, [/ECONNRESET/]);
});

t.test('closing the SDK connection stops the stream', async (t) => {
  const h = connect(agent({ name: 'a' }));
  h.send(request(1, '_x'));
  await h.until(1);
  h.connection.close();
  await h.closed;
  await turns(2);
  h.send(request(2, '_x'), '[]');
  h.input.end();
  await turns(3);
  t.equal(h.frames.length, 1);
});

t.test('10,000 requests in one burst are answered once each, with a bounded queue, and a cancel gets through', async (t) => {
  const seen: string[] = [];
  const h = connect(badOrderApp(seen, 0));
  h.send(initialize);
  await h.until(1);
  const lines = Array.from({ length: 10_000 }, (_, i) => JSON.stringify(prompt(i, `s${i % 50}`)));
  lines.splice(5000, 0, JSON.stringify(notify('session/cancel', { sessionId: 's1' })));
  h.input.write(`${lines.join('\n')}\n`);
  await h.until(10_001);
  const ids = h.frames.slice(1).map((frame) => frame.id);
  t.equal(new Set(ids).size, 10_000);
  t.equal(ids.length, 10_000);
  t.ok(h.frames.slice(1).every((frame) => frame.result?.stopReason === 'end_turn'));
  t.equal(seen.indexOf('cancel s1 undefined'), 5000, 'in its place, not at the end');
});

t.test('input is paused while the client does not read its answers, and goes on when it does', async (t) => {
  const takes: (() => void)[] = [];
  const out = new Writable({
    write(_chunk, _encoding, callback) {
      takes.push(callback);
    },
  });
  const h = connect(agent({ name: 'a' }), { out });
  const flood = Buffer.from('x123456\n'.repeat(8192));
  let offered = 0;
  const source = new Readable({
    read() {
      if (offered >= 12) this.push(null);
      else {
        offered += 1;
        this.push(flood);
      }
    },
  });
  source.pipe(h.input);
  await turns(200);
  t.ok(offered < 12, `stopped reading after ${offered} chunks`);
  t.ok(h.writer.queuedBytes < 4 * 1024 * 1024, `${h.writer.queuedBytes} bytes wait`);
  const over = h.ended.then(() => 'over');
  const takeOne = async (): Promise<string> => {
    takes.shift()?.();
    await turn();
    return 'more';
  };
  while ((await Promise.race([over, takeOne()])) !== 'over');
  t.equal(offered, 12);
});

t.test('frames held behind initialize stop the input at the limit, and none is lost', async (t) => {
  let answer: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const app = agent({ name: 'slow' }).onRequest('initialize', async () => {
    await gate;
    return { protocolVersion: 1 };
  });
  const h = connect(app);
  h.send(initialize);
  for (let i = 0; i < 5000; i += 100) h.send(...Array.from({ length: 100 }, (_, n) => request(i + n, '_none')));
  await turns(20);
  t.ok(h.input.isPaused());
  t.ok(h.input.readableLength > 0, 'the rest waits outside');
  answer();
  await h.until(5001);
  t.same(
    h.frames.slice(1).map((frame) => frame.id),
    Array.from({ length: 5000 }, (_, i) => i),
  );
  t.notOk(h.input.isPaused());
});

t.test("the SDK's own client drives an agent through it", async (t) => {
  const toAgent = new PassThrough();
  const toClient = new PassThrough();
  const writer = new FrameWriter(toClient, { stalledReaderMs: 10_000, onBroken: () => {} });
  const app = agent({ name: 'a' })
    .onRequest('initialize', (c) => ({ protocolVersion: c.params.protocolVersion, agentCapabilities: {} }))
    .onRequest('session/new', () => ({ sessionId: 's' }))
    .onRequest('session/prompt', async (c) => {
      const { outcome } = await c.client.request('session/request_permission', {
        sessionId: 's',
        toolCall: { toolCallId: 'x' },
        options: [{ optionId: 'ok', name: 'OK', kind: 'allow_once' }],
      });
      await c.client.notify('session/update', {
        sessionId: 's',
        update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: outcome.outcome } },
      });
      return { stopReason: 'end_turn' };
    });
  const stream = createAgentStream({ input: toAgent, writer, maxFrameBytes: 1 << 20, onEnd: () => {}, onNote: () => {} });
  app.connect(stream);
  t.teardown(() => stream.stop());
  const texts: string[] = [];
  const peer = client({ name: 'c' })
    .onRequest('session/request_permission', () => ({ outcome: { outcome: 'selected', optionId: 'ok' } as const }))
    .onNotification('session/update', (c) => {
      if (c.params.update.sessionUpdate === 'agent_message_chunk' && c.params.update.content.type === 'text')
        texts.push(c.params.update.content.text);
    });
  const reasons = await peer.connectWith(
    ndJsonStream(Writable.toWeb(toAgent), Readable.toWeb(toClient) as ReadableStream<Uint8Array>),
    async (context) => {
      await context.request('initialize', { protocolVersion: 1 });
      const { sessionId } = await context.request('session/new', { cwd: '/', mcpServers: [] });
      const answers = await Promise.all([1, 2, 3].map(() => context.request('session/prompt', { sessionId, prompt: [] })));
      return answers.map((answer) => answer.stopReason);
    },
  );
  t.same(reasons, ['end_turn', 'end_turn', 'end_turn']);
  t.same(texts, ['selected', 'selected', 'selected']);
});

t.test('6000 mutated frames: nothing throws, and no request id is answered twice', async (t) => {
  t.comment(`TEST_SEED=${testSeed}`);
  const app = badOrderApp([], 0);
  const h = connect(app);
  h.send(initialize);
  await h.until(1);
  const mutation = fc.tuple(fc.nat(400), fc.constantFrom('drop', 'flip', 'insert', 'cut', 'none', 'none', 'none'), fc.nat(255));
  const kinds = fc.constantFrom('prompt', 'cancel', 'response', 'initialize', 'scalar', 'unknown');
  const samples = fc.sample(fc.tuple(kinds, mutation), { seed: testSeed, numRuns: 6000 });
  let valid = 0;
  for (const [index, [kind, [at, how, byte]]] of samples.entries()) {
    const line = mutate(Buffer.from(JSON.stringify(fuzzMessage(kind, index))), at, how, byte);
    if (how === 'none' && (kind === 'prompt' || kind === 'unknown')) valid += 1;
    h.input.write(Buffer.concat([line, Buffer.from('\n')]));
    if (index % 500 === 0) await turn();
  }
  h.send(request('the end', '_none'));
  await h.until((frame) => frame.id === 'the end');
  await h.writer.idle();
  const answered = h.frames.filter((frame) => typeof frame.id === 'string' && frame.id.startsWith('ok'));
  t.equal(answered.length, valid, 'every untouched request is answered');
  t.equal(new Set(answered.map((frame) => frame.id)).size, valid, 'and once');
  t.ok(h.frames.every((frame) => frame.error === undefined || !('stack' in (frame.error.data ?? {}))));
});

function fuzzMessage(kind: string, index: number): unknown {
  if (kind === 'prompt') return prompt(`ok${index}`, `s${index % 7}`);
  if (kind === 'cancel')
    return notify(index % 2 === 0 ? 'session/cancel' : '$/cancel_request', { sessionId: 's1', requestId: `ok${index - 3}` });
  if (kind === 'response') return { jsonrpc: '2.0', id: index % 5, result: {} };
  if (kind === 'initialize') return { ...initialize, id: `init${index}` };
  if (kind === 'unknown') return request(`ok${index}`, `_none/${index}`);
  return [index, null, 'text'][index % 3];
}

/** The id is spoilt with the rest, so that a mutated frame cannot pose as an untouched one. */
function mutate(bytes: Buffer, at: number, how: string, byte: number): Buffer {
  if (how === 'none') return bytes;
  const spoilt = Buffer.from(bytes.toString('latin1').replace('"ok', '"no'), 'latin1');
  const index = at % (spoilt.length + 1);
  const [head, tail] = [spoilt.subarray(0, index), spoilt.subarray(index)];
  if (how === 'drop') return Buffer.concat([head, tail.subarray(1)]);
  if (how === 'cut') return head;
  if (how === 'insert') return Buffer.concat([head, Buffer.from([byte]), tail]);
  return Buffer.concat([head, Buffer.from([byte]), tail.subarray(1)]);
}
