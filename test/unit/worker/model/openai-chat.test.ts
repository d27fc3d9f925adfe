/**
 * The chat-completions adapter against a real HTTP server on loopback: what it sends, what it makes of a stream, and how it fails.
 */
import { once } from 'node:events';
import { createServer as createTcpServer } from 'node:net';
import * as fc from 'fast-check';
import t, { type Test } from 'tap';
import {
  type ModelEvent,
  ModelFailure,
  type ModelFinish,
  type ModelRequest,
  type StreamOptions,
} from '../../../../src/worker/model/model-adapter.ts';
import type { ChatConfig } from '../../../../src/worker/model/chat-request.ts';
import { OpenAiChatModel } from '../../../../src/worker/model/openai-chat.ts';
import { guardedLookup, parseEndpoint } from '../../../../src/worker/model/model-endpoint.ts';
import type { SseLimits } from '../../../../src/worker/model/sse-decoder.ts';
import { chunkJson } from '../../../support/answer-frames.ts';
import type { AnswerPlan } from '../../../support/answer-plan.ts';
import { ModelServer } from '../../../support/model-server.ts';

const key = 'sk-canary-0123456789abcdef';
const canary = 'canary-0123';

const server = await ModelServer.start();
t.teardown(() => server.close());

function config(overrides: Partial<ChatConfig> = {}): ChatConfig {
  return {
    kind: 'openai-compatible',
    dialect: 'deepseek',
    baseUrl: server.baseUrl,
    model: 'local-model',
    apiKey: key,
    contextWindow: 1000,
    maxOutputTokens: 500,
    thinking: 'high',
    firstByteTimeoutMs: 5000,
    idleTimeoutMs: 5000,
    maxRetries: 5,
    maxRetryAfterMs: 60_000,
    ...overrides,
  };
}

const tool = { name: 'read', description: 'Reads.', parameters: { type: 'object' } };
const hello: ModelRequest = { system: 'Be brief.', messages: [{ role: 'user', text: 'hello' }], tools: [tool] };

interface Outcome {
  readonly events: ModelEvent[];
  readonly text: string;
  readonly reasoning: string;
  readonly finish: ModelFinish | undefined;
  readonly failure: ModelFailure | undefined;
}

interface RunOptions extends Partial<StreamOptions> {
  readonly config?: Partial<ChatConfig>;
  readonly request?: ModelRequest;
  readonly limits?: SseLimits;
  readonly onEvent?: (event: ModelEvent) => void;
}

async function ask(plan: AnswerPlan | undefined, options: RunOptions = {}): Promise<Outcome> {
  if (plan !== undefined) server.enqueue(plan);
  const model = new OpenAiChatModel(config(options.config), options.limits);
  const events: ModelEvent[] = [];
  const sink = (event: ModelEvent): void => {
    events.push(event);
    options.onEvent?.(event);
  };
  const streamOptions = { signal: options.signal ?? new AbortController().signal, whenWritable: options.whenWritable ?? (() => undefined) };
  let finish: ModelFinish | undefined;
  let failure: ModelFailure | undefined;
  try {
    finish = await model.stream(options.request ?? hello, sink, streamOptions);
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error;
    failure = error;
  }
  const join = (type: string): string => events.map((event) => (event.type === type && 'text' in event ? event.text : '')).join('');
  return { events, text: join('text'), reasoning: join('reasoning'), finish, failure };
}

const lastBody = (): any => server.requests.at(-1)?.body;

/** Waits for something that another turn of the loop brings about, with a deadline. */
async function until(t: Test, what: string, check: () => boolean): Promise<void> {
  const deadline = performance.now() + 3000;
  while (!check()) {
    if (performance.now() > deadline) {
      t.fail(`never came: ${what}`);
      return;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

t.test('images go as parts of the message to a model that takes them, and as a mark to any other', async (t) => {
  const parts = [
    { type: 'text', text: 'what is' },
    { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' },
    { type: 'text', text: 'this?' },
  ] as const;
  const request: ModelRequest = { ...hello, messages: [{ role: 'user', text: 'what is\n\n[image "image/png"]\n\nthis?', parts }] };
  await ask({ tokens: 1 }, { request, config: { dialect: 'generic', images: 'on' } });
  t.same(lastBody().messages[1].content, [
    { type: 'text', text: 'what is' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
    { type: 'text', text: 'this?' },
  ]);
  await ask({ tokens: 1 }, { request, config: { images: 'off', model: 'gpt-4o' } });
  t.equal(lastBody().messages[1].content, 'what is\n\n[image "image/png"]\n\nthis?');
});

t.test('a plain answer', async (t) => {
  t.test('text, reasoning, usage and the model name arrive', async (t) => {
    const { text, reasoning, finish } = await ask({ tokens: 3, reasoning: 2 });
    t.equal(text, 'tok0 tok1 tok2 ');
    t.equal(reasoning, 'why0 why1 ');
    t.same(finish, {
      reason: 'stop',
      toolCalls: [],
      usage: { inputTokens: 36, outputTokens: 5, cacheReadTokens: 64, reasoningTokens: 0 },
      model: 'local-model',
    });
  });

  t.test('the field `reasoning` is read too, and usage on the finish chunk', async (t) => {
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 4,
      prompt_tokens_details: { cached_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 3 },
    };
    const { reasoning, finish } = await ask({ tokens: 1, reasoning: 2, reasoningField: 'reasoning', usage, usageOn: 'finish-chunk' });
    t.equal(reasoning, 'why0 why1 ');
    t.same(finish?.usage, { inputTokens: 7, outputTokens: 4, cacheReadTokens: 2, reasoningTokens: 3 });
  });

  t.test('no usage is no usage, and absurd counts are not believed', async (t) => {
    t.equal((await ask({ tokens: 1, usage: false })).finish?.usage, undefined);
    const absurd = { prompt_tokens: 5, completion_tokens: -1, prompt_cache_hit_tokens: 900, completion_tokens_details: null };
    const { finish } = await ask({ tokens: 1, usage: absurd });
    t.same(finish?.usage, { inputTokens: 0, outputTokens: 0, cacheReadTokens: 5, reasoningTokens: 0 });
  });

  t.test('a missing [DONE] is accepted behind a finish_reason', async (t) => {
    t.equal((await ask({ tokens: 2, fault: { kind: 'no-done' } })).finish?.reason, 'stop');
  });

  t.test('CRLF, a byte order mark, comments and unknown fields do no harm', async (t) => {
    t.equal((await ask({ tokens: 3, crlf: true })).text, 'tok0 tok1 tok2 ');
    t.equal((await ask({ tokens: 3, comments: { count: 3, everyMs: 5 } })).text, 'tok0 tok1 tok2 ');
    const rawBody = `\ufeffevent: x\ndata: ${chunkJson({ content: 'hi' }, 'stop')}\n\nretry: no\nstrange: 1\n\n: c\n\ndata: [DONE]\n\n`;
    t.equal((await ask({ rawBody })).text, 'hi');
  });

  t.test('any split of the bytes gives the same text', async (t) => {
    const property = fc.asyncProperty(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 40 }),
      fc.boolean(),
      async (text, splitBytes, crlf) => {
        const raw = [chunkJson({ content: text }), chunkJson({ content: 'é🙂' }), chunkJson({}, 'stop'), '[DONE]'];
        const outcome = await ask({ raw, splitBytes, crlf });
        return outcome.text === `${text}é🙂`;
      },
    );
    await t.resolves(fc.assert(property, { numRuns: 25 }));
  });

  t.test('connections are used again', async (t) => {
    server.reset();
    for (let i = 0; i < 5; i += 1) {
      await ask({ tokens: 1 });
      await until(t, 'the stream ends', () => server.activeStreams === 0);
    }
    t.ok(server.stats.connections <= 1, `${server.stats.connections} new connections for 5 requests`);
  });

  t.test('a pooled connection that the server has closed is not an error', async (t) => {
    await ask({ tokens: 1 });
    await until(t, 'the stream ends', () => server.activeStreams === 0);
    server.closeIdleConnections();
    t.equal((await ask({ tokens: 2 })).text, 'tok0 tok1 ');
  });
});

t.test('tool calls', async (t) => {
  t.test('parallel calls are joined by index, in order, and announced once', async (t) => {
    const tools = [
      { name: 'read', id: 'a', arguments: '{"file_path":"one.txt","limit":10}' },
      { name: 'grep', id: 'b', arguments: '{"pattern":"x"}' },
    ];
    const { events, finish } = await ask({ tokens: 1, tools });
    t.equal(finish?.reason, 'tool-calls');
    t.same(
      finish?.toolCalls,
      tools.map((call) => ({ callId: call.id, name: call.name, arguments: call.arguments })),
    );
    t.same(
      events.filter((event) => event.type === 'tool-call-start'),
      [
        { type: 'tool-call-start', callId: 'a', name: 'read' },
        { type: 'tool-call-start', callId: 'b', name: 'grep' },
      ],
    );
  });

  t.test('missing ids and ids used before are replaced by unique ones', async (t) => {
    const request: ModelRequest = {
      ...hello,
      messages: [
        { role: 'user', text: 'go' },
        { role: 'assistant', text: '', reasoning: '', toolCalls: [{ callId: 'a', name: 'read', arguments: '{}' }] },
        { role: 'tool', callId: 'a', text: 'x' },
      ],
    };
    const tools = [
      { name: 'read', arguments: '{}' },
      { name: 'read', id: 'a', arguments: '{}' },
      { name: 'read', arguments: '{}' },
    ];
    const ids = (await ask({ tools }, { request })).finish?.toolCalls.map((call) => call.callId) ?? [];
    t.same(ids, ['call_2', 'call_3', 'call_4']);
  });

  t.test('a server without indexes, with whole calls and object arguments', async (t) => {
    const raw = [
      chunkJson({ tool_calls: [{ id: 'a', function: { name: 'read', arguments: { file_path: 'x' } } }] }),
      chunkJson({ tool_calls: [{ id: 'b', function: { name: 'glob', arguments: '{"pat' } }] }),
      chunkJson({ tool_calls: [{ function: { arguments: 'tern":"*"}' } }] }, 'stop'),
    ];
    const { finish } = await ask({ raw });
    t.equal(finish?.reason, 'tool-calls', 'although the server said stop');
    t.same(
      finish?.toolCalls.map((call) => call.arguments),
      ['{"file_path":"x"}', '{"pattern":"*"}'],
    );
  });

  t.test('broken arguments are handed over as they came', async (t) => {
    const { finish } = await ask({ tools: [{ name: 'read', id: 'a', arguments: '{"file_pa' }], finish: 'length' });
    t.equal(finish?.reason, 'length');
    t.equal(finish?.toolCalls[0]?.arguments, '{"file_pa');
  });

  t.test('a call without a name, a call that is no object and too many calls are malformed', async (t) => {
    const nameless = [chunkJson({ tool_calls: [{ index: 0, id: 'a', function: { arguments: '{}' } }] }, 'tool_calls')];
    t.equal((await ask({ raw: nameless })).failure?.code, 'MALFORMED_RESPONSE');
    t.equal((await ask({ raw: [chunkJson({ tool_calls: ['x'] })] })).failure?.code, 'MALFORMED_RESPONSE');
    const many = Array.from({ length: 600 }, (_, index) => ({ index, id: `c${index}`, function: { name: 'read', arguments: '{}' } }));
    t.equal((await ask({ raw: [chunkJson({ tool_calls: many }, 'tool_calls')] })).failure?.code, 'MALFORMED_RESPONSE');
  });
});

t.test('how an answer ends', async (t) => {
  const ends: readonly (readonly [string, string])[] = [
    ['stop', 'stop'],
    ['tool_calls', 'stop'],
    ['length', 'length'],
    ['content_filter', 'refusal'],
    ['insufficient_system_resource', 'SERVER'],
    ['something_new', 'MALFORMED_RESPONSE'],
  ];
  for (const [finish, expected] of ends) {
    const outcome = await ask({ tokens: 1, finish });
    t.equal(outcome.finish?.reason ?? outcome.failure?.code, expected, finish);
  }
  t.equal((await ask({ tokens: 0 })).failure?.code, 'EMPTY_RESPONSE');
  t.equal((await ask({ tokens: 0, finish: 'length' })).finish?.reason, 'length');
  t.equal((await ask({ raw: [chunkJson({ refusal: 'No.' }, 'stop')] })).finish?.reason, 'refusal');
  for (const fault of [
    { kind: 'end-early', after: 2 },
    { kind: 'cut', after: 2 },
  ] as const) {
    const outcome = await ask({ tokens: 9, fault });
    t.equal(outcome.failure?.code, 'STREAM_CLOSED', fault.kind);
    t.equal(outcome.text, 'tok0 tok1 ', 'what came was shown');
  }
  t.equal((await ask({ raw: ['[DONE]'] })).failure?.code, 'STREAM_CLOSED', '[DONE] without finish_reason is no success');
});

t.test('bad streams', async (t) => {
  for (const raw of [['{"choices": ['], ['"text"'], ['[]'], ['null'], [chunkJson({ content: 'x' }), 'oops']]) {
    t.equal((await ask({ raw })).failure?.code, 'MALFORMED_RESPONSE', raw.join());
  }
  t.equal(
    (await ask({ raw: ['{"choices":[{"delta":{"content":7,"tool_calls":null}}]}', '{"choices":"x"}', '{}'] })).failure?.code,
    'STREAM_CLOSED',
  );
  const limits = { maxStreamBytes: 50_000, maxEventChars: 10_000 };
  t.match((await ask({ raw: [chunkJson({ content: 'x'.repeat(20_000) }, 'stop')] }, { limits })).failure, {
    code: 'MALFORMED_RESPONSE',
    message: /10000 characters/,
  });
  t.match((await ask({ tokens: 5000 }, { limits })).failure, { code: 'MALFORMED_RESPONSE', message: /50000 bytes/ });
  t.match((await ask({ tokens: 1, contentType: 'text/html', rawBody: '<html>hi</html>' })).failure, {
    code: 'MALFORMED_RESPONSE',
    message: /without a stream/,
  });
});

t.test('an error object inside the stream is classified', async (t) => {
  const cases: readonly (readonly [object, string])[] = [
    [{ error: { message: 'slow down', code: 429 } }, 'RATE_LIMIT'],
    [{ error: { message: 'x', type: 'rate_limit_exceeded' } }, 'RATE_LIMIT'],
    [{ error: { message: 'Insufficient Balance' } }, 'QUOTA'],
    [{ error: { message: 'maximum context length is 10' } }, 'CONTEXT_WINDOW'],
    [{ error: { message: 'no', type: 'invalid_request_error' } }, 'INVALID_REQUEST'],
    [{ error: { message: 'no', code: 'invalid_api_key' } }, 'AUTH'],
    [{ error: 'boom' }, 'SERVER'],
    [{ object: 'error', message: 'bad', code: 400 }, 'INVALID_REQUEST'],
  ];
  for (const [error, code] of cases) t.equal((await ask({ raw: [JSON.stringify(error)] })).failure?.code, code, JSON.stringify(error));
});

t.test('HTTP statuses', async (t) => {
  const status = (code: number, body?: string, headers?: Record<string, string>): AnswerPlan => ({
    fault: { kind: 'status', status: code, ...(body === undefined ? {} : { body }), ...(headers === undefined ? {} : { headers }) },
  });
  const cases: readonly (readonly [number, string | undefined, string])[] = [
    [400, undefined, 'INVALID_REQUEST'],
    [400, '{"error":{"message":"This model\'s maximum context length is 4096 tokens"}}', 'CONTEXT_WINDOW'],
    [401, undefined, 'AUTH'],
    [402, undefined, 'QUOTA'],
    [403, undefined, 'AUTH'],
    [404, undefined, 'INVALID_REQUEST'],
    [413, undefined, 'INVALID_REQUEST'],
    [422, undefined, 'INVALID_REQUEST'],
    [429, undefined, 'RATE_LIMIT'],
    [429, '{"error":{"code":"insufficient_quota","message":"x"}}', 'QUOTA'],
    [500, 'not json', 'SERVER'],
    [503, '', 'SERVER'],
    [529, undefined, 'SERVER'],
  ];
  for (const [code, body, expected] of cases) {
    const { failure } = await ask(status(code, body));
    t.match(failure, { code: expected, status: code }, `${code} ${body ?? ''}`);
  }

  t.test('Retry-After in seconds, as a date, absurd and unreadable', async (t) => {
    t.equal((await ask(status(429, '{}', { 'retry-after': '7' }))).failure?.retryAfterMs, 7000);
    t.equal((await ask(status(429, '{}', { 'retry-after-ms': '250' }))).failure?.retryAfterMs, 250);
    const date = (await ask(status(503, '{}', { 'retry-after': new Date(Date.now() + 30_000).toUTCString() }))).failure?.retryAfterMs ?? 0;
    t.ok(date > 27_000 && date <= 30_000, `${date}`);
    t.equal((await ask(status(429, '{}', { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }))).failure?.retryAfterMs, 0);
    t.equal((await ask(status(429, '{}', { 'retry-after': '9'.repeat(30) }))).failure?.retryAfterMs, Number.MAX_SAFE_INTEGER);
    t.equal((await ask(status(429, '{}', { 'retry-after': 'soon' }))).failure?.retryAfterMs, undefined);
  });

  t.test('the key never shows, however it is echoed, also across the cut', async (t) => {
    for (const echo of [
      `bad key ${key}`,
      `Authorization: Bearer ${key}.`,
      `key sk-canary-012345****`,
      `${'x'.repeat(290)}${key}`,
      `url?key=${encodeURIComponent(key)}`,
    ]) {
      const { failure } = await ask(status(401, JSON.stringify({ error: { message: echo } })));
      t.equal(failure?.code, 'AUTH');
      t.notMatch(failure?.message, canary, echo.slice(0, 30));
      t.ok((failure?.message.length ?? 0) < 450);
    }
    const plain = await ask(status(500, `\u001b[31mstack ${key}\u0000\n${'y'.repeat(200_000)}`));
    t.notMatch(plain.failure?.message, canary);
    t.notMatch(plain.failure?.message, /\p{Cc}/u);
    const inStream = await ask({ raw: [JSON.stringify({ error: { message: `key ${key}` } })] });
    t.notMatch(inStream.failure?.message, canary);
    const started = performance.now();
    await ask(status(500, 'w'.repeat(60_000)));
    t.ok(performance.now() - started < 5000, 'looking for keys takes time in proportion to the text');
    for (const failure of [plain.failure, inStream.failure]) t.notMatch(JSON.stringify([failure?.stack, failure?.cause]), canary);
  });

  t.test('a redirect is not followed, so the key goes nowhere else', async (t) => {
    const other = await ModelServer.start();
    t.teardown(() => other.close());
    for (const code of [301, 302, 307, 308]) {
      const { failure } = await ask(status(code, '', { location: `${other.baseUrl}/chat/completions` }));
      t.match(failure, { code: 'INVALID_REQUEST', status: code });
    }
    t.equal(other.requests.length, 0);
  });
});

t.test('transport', async (t) => {
  const closed = createTcpServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as { port: number };
  closed.close();
  await once(closed, 'close');
  t.match((await ask(undefined, { config: { baseUrl: `http://127.0.0.1:${port}/v1` } })).failure, {
    code: 'TRANSPORT',
    message: /nothing listens/,
  });
  t.equal((await ask(undefined, { config: { baseUrl: 'http://no-such-host.invalid/v1' } })).failure?.code, 'TRANSPORT');
  t.equal(
    (await ask(undefined, { config: { baseUrl: `https://127.0.0.1:${server.port}/v1` } })).failure?.code,
    'TRANSPORT',
    'TLS to a plain port',
  );
  t.equal(
    (await ask({ fault: { kind: 'reset' } }, { config: { idleTimeoutMs: 0 } })).failure?.code ?? 'resent',
    'resent',
    'a pooled connection may be stale: sent again once',
  );
  server.enqueue({ fault: { kind: 'reset' } }, { fault: { kind: 'reset' } });
  t.equal((await ask(undefined)).failure?.code, 'TRANSPORT', 'but only once');
  server.reset();
});

t.test('servers that do not speak HTTP, or something else than asked', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n';
  const event = `data: ${chunkJson({ content: 'hi' }, 'stop')}\n\n`;
  const cases: readonly (readonly [string, string])[] = [
    ['220 mail.example ESMTP\r\n', 'TRANSPORT'],
    ['HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', 'TRANSPORT'],
    ['', 'TRANSPORT'],
    [`${head}transfer-encoding: chunked\r\n\r\nzz\r\n`, 'STREAM_CLOSED'],
    [`${head}content-length: 9999\r\n\r\n${event}`, 'STREAM_CLOSED'],
    [`HTTP/1.0 200 OK\r\n\r\n${event}`, 'stop'],
    ['HTTP/1.1 204 No Content\r\n\r\n', 'MALFORMED_RESPONSE'],
    ['HTTP/1.1 500 Oops\r\ncontent-length: 9999\r\n\r\npart', 'SERVER'],
  ];
  for (const [answer, expected] of cases) {
    const raw = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(answer));
    }).listen(0, '127.0.0.1');
    await once(raw, 'listening');
    const { port } = raw.address() as { port: number };
    const outcome = await ask(undefined, { config: { baseUrl: `http://127.0.0.1:${port}` } });
    t.equal(outcome.failure?.code ?? outcome.finish?.reason, expected, answer.slice(0, 60));
    raw.close();
  }
});

t.test('timeouts', async (t) => {
  // Long enough that the request has reached the server, on a busy machine, too: one that comes late would take the next test's answer.
  const quick = { firstByteTimeoutMs: 400, idleTimeoutMs: 400 };
  for (const fault of [{ kind: 'hang' }, { kind: 'stall-before' }, { kind: 'stall-mid', after: 2 }] as const) {
    const started = performance.now();
    const { failure } = await ask({ tokens: 9, fault }, { config: quick });
    t.equal(failure?.code, 'TIMEOUT', fault.kind);
    t.ok(performance.now() - started < 10_000);
  }
  await until(t, 'every stream is gone', () => server.activeStreams === 0);

  t.test('keep-alive comments extend the wait for the first delta, though not for ever', async (t) => {
    // Twenty times the pause between two comments: on a busy machine one comes late.
    const heard = { firstByteTimeoutMs: 400, idleTimeoutMs: 400 };
    const patient = await ask({ tokens: 2, comments: { count: 30, everyMs: 20 } }, { config: heard });
    t.equal(patient.text, 'tok0 tok1 ');
    t.match((await ask({ tokens: 2, comments: { count: 1000, everyMs: 20 } }, { config: heard })).failure, {
      code: 'TIMEOUT',
      message: /did not begin/,
    });
  });

  t.test('keep-alive comments do not hide a stall in the middle', async (t) => {
    const { failure, text } = await ask({ tokens: 9, fault: { kind: 'stall-mid', after: 2, keepAliveMs: 10 } }, { config: quick });
    t.match(failure, { code: 'TIMEOUT', message: /middle/ });
    t.equal(text, 'tok0 tok1 ');
  });

  t.test('a slow stream is no stall', async (t) => {
    t.equal((await ask({ tokens: 25, delayMs: 20 }, { config: quick })).finish?.reason, 'stop');
  });
});

t.test('abort', async (t) => {
  t.test('before the call, before the first byte, in the middle, from inside the sink', async (t) => {
    server.reset();
    t.equal((await ask(undefined, { signal: AbortSignal.abort() })).failure?.code, 'ABORTED');
    t.equal(server.requests.length, 0, 'nothing was sent');

    const waiting = new AbortController();
    const pending = ask({ fault: { kind: 'hang' } }, { signal: waiting.signal });
    await until(t, 'the request arrives', () => server.activeStreams === 1);
    const started = performance.now();
    waiting.abort();
    t.equal((await pending).failure?.code, 'ABORTED');
    t.ok(performance.now() - started < 5000);

    const middle = new AbortController();
    let seen = 0;
    const outcome = await ask(
      { tokens: 5000 },
      {
        signal: middle.signal,
        onEvent: () => {
          seen += 1;
          if (seen === 10) middle.abort();
        },
      },
    );
    t.equal(outcome.failure?.code, 'ABORTED');
    t.equal(outcome.events.length, 10, 'nothing is shown after the abort');
    await until(t, 'the sockets are destroyed', () => server.activeStreams === 0);
  });

  t.test('while paused for room', async (t) => {
    const controller = new AbortController();
    let pauses = 0;
    const whenWritable = (): Promise<void> => {
      pauses += 1;
      return new Promise(() => undefined);
    };
    const running = ask({ tokens: 5000 }, { signal: controller.signal, whenWritable });
    await until(t, 'the pause', () => pauses > 0);
    controller.abort();
    t.equal((await running).failure?.code, 'ABORTED');
    t.equal(pauses, 1, 'a paused stream is not asked about');
    await until(t, 'the socket is destroyed', () => server.activeStreams === 0);
  });

  t.test('a sink that throws ends the call with its own error', async (t) => {
    const fault = new Error('disk full');
    const broken = ask(
      { tokens: 5000 },
      {
        onEvent: () => {
          throw fault;
        },
      },
    );
    await t.rejects(broken, fault);
    await until(t, 'the socket is destroyed', () => server.activeStreams === 0);
  });
});

t.test('backpressure pauses the stream, and its wait is not the model’s silence', async (t) => {
  let open: (() => void) | undefined;
  let pauses = 0;
  let deltas = 0;
  const total = 60_000;
  const whenWritable = (): Promise<void> | undefined => {
    pauses += 1;
    return pauses === 1 ? new Promise((resolve) => (open = resolve)) : undefined;
  };
  server.reset();
  const running = ask(
    { tokens: total },
    { whenWritable, onEvent: () => (deltas += 1), config: { idleTimeoutMs: 1000, firstByteTimeoutMs: 1000 } },
  );
  await until(t, 'the pause', () => open !== undefined);
  const atPause = deltas;
  await new Promise((resolve) => setTimeout(resolve, 1200));
  t.equal(deltas, atPause, 'nothing came while paused');
  t.ok(server.stats.tokensSent < total, `the server is held back at ${server.stats.tokensSent} tokens`);
  open?.();
  const { finish, failure } = await running;
  t.equal(failure, undefined);
  t.equal(finish?.reason, 'stop');
  t.equal(deltas, total);
});

t.test('the request', async (t) => {
  const messages: ModelRequest['messages'] = [
    { role: 'user', text: 'go' },
    { role: 'assistant', text: '', reasoning: 'because', toolCalls: [{ callId: 'a', name: 'read', arguments: '{"file_path":"x"}' }] },
    { role: 'tool', callId: 'a', text: '' },
    { role: 'assistant', text: 'done', reasoning: '', toolCalls: [] },
    { role: 'user', text: 'again' },
  ];

  t.test('the deepseek dialect sends its thinking fields, reasoning back (also empty), no null and no empty result', async (t) => {
    await ask({ tokens: 1 }, { request: { ...hello, messages } });
    t.same(lastBody(), {
      model: 'local-model',
      stream: true,
      stream_options: { include_usage: true },
      thinking: { type: 'enabled' },
      reasoning_effort: 'high',
      max_tokens: 500,
      tools: [{ type: 'function', function: tool }],
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: '',
          reasoning_content: 'because',
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'read', arguments: '{"file_path":"x"}' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: '(no output)' },
        { role: 'assistant', content: 'done', reasoning_content: '' },
        { role: 'user', content: 'again' },
      ],
    });
    t.equal(server.requests.at(-1)?.path, '/v1/chat/completions');
    t.equal(server.requests.at(-1)?.headers.authorization, `Bearer ${key}`);
    await ask({ tokens: 1 }, { config: { thinking: 'off' }, request: { ...hello, tools: [], messages, maxOutputTokens: 7 } });
    t.same(lastBody().thinking, { type: 'disabled' });
    t.equal(lastBody().max_tokens, 7);
    await ask({ tokens: 1 }, { config: { sampling: { temperature: 0, seed: 3 } }, request: { ...hello, messages } });
    t.match(lastBody(), { temperature: 0, seed: 3, thinking: { type: 'enabled' } });
    t.notOk('top_p' in lastBody());
    await ask({ tokens: 1 }, { config: { thinking: 'off' }, request: { ...hello, tools: [], messages, maxOutputTokens: 7 } });
    t.notOk('reasoning_effort' in lastBody() || 'tools' in lastBody() || 'reasoning_content' in lastBody().messages[2]);
  });

  t.test('the generic dialect sends none of it, and no key when there is none', async (t) => {
    await ask({ tokens: 1 }, { config: { dialect: 'generic', apiKey: undefined }, request: { ...hello, messages } });
    t.notMatch(server.requests.at(-1)?.text, /thinking|reasoning/);
    t.equal(server.requests.at(-1)?.headers.authorization, undefined);
  });

  t.test('a longer history only appends: the earlier body is a prefix', async (t) => {
    const bodies: string[] = [];
    for (let length = 1; length <= messages.length; length += 1) {
      await ask({ tokens: 1 }, { request: { ...hello, messages: messages.slice(0, length) } });
      bodies.push(server.requests.at(-1)?.text ?? '');
    }
    for (const [index, body] of bodies.slice(1).entries()) t.ok(body.startsWith(bodies[index]?.slice(0, -2) ?? '?'), `body ${index + 1}`);
  });

  t.test('broken arguments of an earlier call are sent as an object that says so', async (t) => {
    const broken: ModelRequest['messages'] = [
      { role: 'user', text: 'go' },
      { role: 'assistant', text: '', reasoning: '', toolCalls: [{ callId: 'a', name: 'read', arguments: '{"file' }] },
      { role: 'tool', callId: 'a', text: 'broken' },
    ];
    await ask({ tokens: 1 }, { request: { ...hello, messages: broken } });
    t.same(JSON.parse(lastBody().messages[2].tool_calls[0].function.arguments), { malformed_arguments: '{"file' });
  });

  t.test('a key that cannot be a header is refused before anything is sent', async (t) => {
    server.reset();
    const { failure } = await ask(undefined, { config: { apiKey: `${key}\nx-evil: 1` } });
    t.equal(failure?.code, 'AUTH');
    t.notMatch(failure?.message, canary);
    t.equal(server.requests.length, 0);
  });
});

t.test('addresses', async (t) => {
  for (const address of [
    'file:///etc/passwd',
    'ftp://example.test/v1',
    'not an address',
    '',
    'http://169.254.169.254/latest',
    'http://2852039166/',
    'http://0xa9fea9fe/v1',
    'http://[fe80::1]/v1',
    'http://[::ffff:169.254.169.254]/v1',
    'http://user:hunter2@example.test/v1',
  ]) {
    t.throws(() => parseEndpoint(address), { code: 'CONFIG_INVALID' }, address);
  }
  try {
    parseEndpoint('http://user:hunter2@example.test/v1');
  } catch (error) {
    t.notMatch(String(error), 'hunter2');
  }
  t.match(parseEndpoint('https://example.test'), { secure: true, port: 443, path: '/chat/completions' });
  t.match(parseEndpoint('http://[::1]:8080/v1//?api=2'), {
    hostname: '::1',
    port: 8080,
    path: '/v1/chat/completions?api=2',
    label: '[::1]:8080',
  });

  t.equal(
    (await ask({ tokens: 1 }, { config: { baseUrl: server.baseUrl.replace('127.0.0.1', 'localhost') } })).text,
    'tok0 ',
    'a name is looked up',
  );
  for (const all of [true, false]) {
    const refused = await new Promise((resolve) => guardedLookup('169.254.169.254', { all }, (error) => resolve(error?.code)));
    t.equal(refused, 'ELINKLOCAL', 'also when only the resolver tells');
  }
});
