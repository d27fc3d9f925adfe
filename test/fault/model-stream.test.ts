/** The model's server misbehaves: it refuses, breaks off, stalls, floods, redirects and lies. Its turn ends in order, the session stays. */
import { createServer } from 'node:net';
import { once } from 'node:events';
import t from 'tap';
import { OpenAiChatModel } from '../../src/worker/model/openai-chat.ts';
import { parseEndpoint } from '../../src/worker/model/model-endpoint.ts';
import { chunkJson } from '../support/answer-frames.ts';
import type { AnswerPlan } from '../support/answer-plan.ts';
import { type FaultRig, type FaultServer, faultTest, logPath, readEvents } from '../support/invariants.ts';
import type { ModelServer } from '../support/model-server.ts';

t.setTimeout(100_000);

const key = 'sk-canary-0123456789abcdef';

async function serve(rig: FaultRig, model: ModelServer, args: readonly string[] = []): Promise<FaultServer> {
  const flags = ['--base-url', model.baseUrl, '--model', 'bench', '--api-key-env', 'FAULT_KEY', '--titles', 'off', '--max-retries', '2'];
  return await rig.serve({ args: [...flags, ...args], env: { FAULT_KEY: key }, saboteur: false });
}

const status = (code: number, headers: Record<string, string> = {}, body?: string): AnswerPlan => ({
  fault: { kind: 'status', status: code, headers, ...(body === undefined ? {} : { body }) },
});
const soon = { 'retry-after-ms': '1' };
const ended = { result: { stopReason: 'end_turn' } };

void faultTest(
  'fault 51, 52, 61: refusals are retried within bounds or told at once, a wait can be cancelled, no redirect is followed',
  async (t, rig) => {
    const model = await rig.model();
    const elsewhere = await rig.model();
    const server = await serve(rig, model, ['--max-retry-after-ms', '200']);
    const session = await server.newSession(rig.dir);
    const asked = async (...plans: AnswerPlan[]) => {
      model.reset();
      model.enqueue(...plans);
      const answer = await server.prompt(session, 'go');
      return { answer, calls: model.requests.length };
    };
    for (const code of [429, 500, 502, 503, 529])
      t.match(await asked(status(code, soon), status(code, soon), { tokens: 1 }), { answer: ended, calls: 3 }, `${code} twice`);
    t.match(await asked(...Array.from({ length: 9 }, () => status(503, soon))), { answer: { error: Object }, calls: 3 }, 'not for ever');
    for (const absurd of ['99999999999', 'Fri, 31 Dec 9999 23:59:59 GMT', '86400'])
      t.match(
        await asked(status(429, { 'retry-after': absurd }), { tokens: 1 }),
        { answer: { error: Object }, calls: 1 },
        `Retry-After: ${absurd}`,
      );
    t.match(
      await asked(status(429, { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }), { tokens: 1 }),
      { answer: ended, calls: 2 },
      'a date that has passed',
    );
    for (const code of [400, 401, 403]) {
      const { answer, calls } = await asked(status(code, {}, JSON.stringify({ error: { message: `bad key ${key}` } })), { tokens: 1 });
      t.match(answer, { error: Object }, String(code));
      t.equal(calls, 1);
    }
    for (const code of [301, 307, 308])
      t.match(
        await asked(status(code, { location: `${elsewhere.baseUrl}/chat/completions` })),
        { answer: { error: Object }, calls: 1 },
        `redirect ${code}`,
      );
    t.equal(elsewhere.requests.length, 0, 'the key went nowhere else');
    for (const url of [
      'file:///etc/passwd',
      'ftp://127.0.0.1/x',
      'http://169.254.169.254/v1',
      'http://[fe80::1]/v1',
      'http://2852039166/v1',
    ])
      t.throws(() => parseEndpoint(url), { code: 'CONFIG_INVALID' }, url);

    model.reset();
    model.enqueue(status(429, { 'retry-after': '50' }));
    const patient = await serve(rig, model);
    const other = await patient.newSession(rig.dir);
    const waiting = patient.startPrompt(other, 'go');
    await model.asked(1);
    patient.notify('session/cancel', { sessionId: other });
    t.match(await patient.response(waiting), { result: { stopReason: 'cancelled' } }, 'a long wait');
    t.notOk(`${JSON.stringify(server.frames)}${server.stderr}`.includes('canary-0123'), 'no answer holds the key');
  },
);

void faultTest(
  'fault 53, 54, 55, 56: connections that fail, break or stall are classified, retried, and never taken as an answer',
  async (t, rig) => {
    const model = await rig.model();
    const server = await serve(rig, model, ['--idle-timeout-ms', '600', '--first-byte-timeout-ms', '1500', '--max-retries', '1']);
    const session = await server.newSession(rig.dir);
    const asked = async (...plans: AnswerPlan[]) => {
      model.reset();
      model.enqueue(...plans);
      return { answer: await server.prompt(session, 'go'), calls: model.requests.length };
    };
    const good: AnswerPlan = { text: ['whole'] };
    for (const kind of ['end-early', 'cut', 'stall-mid'] as const) {
      t.match(await asked({ tokens: 9, fault: { kind, after: 3 } }, good), { answer: ended, calls: 2 }, kind);
      const twice: AnswerPlan = { tokens: 9, fault: { kind, after: 3 } };
      t.match(await asked(twice, twice, good), { answer: { error: Object }, calls: 2 }, `${kind}, again and again`);
    }
    t.match(
      await asked({ tokens: 9, fault: { kind: 'stall-mid', after: 2, keepAliveMs: 20 } }, good),
      { answer: ended, calls: 2 },
      'comments hide no stall',
    );
    t.match(await asked({ fault: { kind: 'stall-before' } }, good), { answer: ended, calls: 2 });
    const tool = { name: 'todo_write', arguments: '{"todos":[]}' };
    t.match(
      await asked({ tools: [tool], fault: { kind: 'no-done' } }, good),
      { answer: ended, calls: 2 },
      'a step with tools is not asked for again',
    );
    const body = `data: ${chunkJson({ content: 'é🙂' })}\r\n\r\nevent: x\r\n\r\ndata: ${chunkJson({}, 'stop')}\r\n\r\n`;
    for (const splitBytes of [1, 3]) t.match(await asked({ rawBody: body, splitBytes }), { answer: ended, calls: 1 });
    for (const rawBody of ['data: {"choices":\n\n', `data: ${'x'.repeat(100)}\n\n`, 'data: 7\n\n', ''])
      t.match(await asked({ rawBody }, good), { answer: ended, calls: 2 }, rawBody.slice(0, 20));

    const bytes = chunkJson({ content: 'bad \xff\xfe\xe2\x82 end' });
    model.reset();
    const before = server.text(session).length;
    t.match(
      await asked({ rawBody: `data: ${bytes}\n\ndata: ${chunkJson({}, 'stop')}\n\n`, rawEncoding: 'latin1', splitBytes: 1 }),
      { answer: ended, calls: 1 },
      'bytes that are no UTF-8',
    );
    t.match(server.text(session).slice(before), /^bad \ufffd+ end$/, 'are replaced');
    t.match(await asked(good), { answer: ended, calls: 1 }, 'and the next prompt is fine');

    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as { port: number };
    closed.close();
    model.reset();
    const failing = [
      [`http://127.0.0.1:${port}`, 'TRANSPORT'],
      ['http://no-such-host.invalid', 'TRANSPORT'],
      [`https://127.0.0.1:${model.port}`, 'TRANSPORT'],
    ] as const;
    for (const [base, reason] of failing) {
      const dead = await rig.serve({
        args: ['--base-url', base, '--model', 'bench', '--max-retries', '1', '--titles', 'off'],
        saboteur: false,
      });
      const id = await dead.newSession(rig.dir);
      t.match((await dead.prompt(id, 'go')).error, { data: { code: 'MODEL_FAILED', reason } }, base);
      const retries = (await readEvents(logPath(dead, id))).filter((event) => event.type === 'llm/retry');
      t.equal(retries.length, 1, `${base}: tried again, once`);
    }
    t.equal(model.stats.connections, 2, 'TLS was begun twice');
    t.match(await asked({ fault: { kind: 'reset' } }, good), { answer: ended, calls: 2 }, 'a reset');
  },
);

void faultTest('fault 57, 59, 60: streams, loops and windows without end are cut off', async (t, rig) => {
  const model = await rig.model();
  const server = await serve(rig, model, ['--max-steps', '4', '--context-window', '4000']);
  const session = await server.newSession(rig.dir);
  model.enqueue({ tokens: 5, finish: 'length' });
  t.match(await server.prompt(session, 'go'), { result: { stopReason: 'max_tokens' } });
  model.reset();
  model.enqueue(...Array.from({ length: 20 }, (): AnswerPlan => ({ tools: [{ name: 'glob', arguments: '{"pattern":"*"}' }] })));
  t.match(await server.prompt(session, 'go'), { result: { stopReason: 'max_turn_requests' } });
  t.equal(model.requests.length, 4, 'the same call over and over');
  const full = await server.newSession(rig.dir);
  model.reset();
  model.enqueue(...Array.from({ length: 30 }, () => status(400, {}, '{"error":{"message":"maximum context length exceeded"}}')));
  t.match(await server.prompt(full, 'go'), { error: { data: { code: String } } }, 'a window that is full');
  t.ok(model.requests.length <= 4, `${model.requests.length} tries at a window that is full`);
  model.reset();
  t.match(await server.prompt(session, 'go'), ended, 'the session goes on');

  // 64 MB of text, if nobody stopped it.
  model.enqueue({ text: Array.from({ length: 64 }, () => 'x'.repeat(1 << 20)) });
  const endless = await server.newSession(rig.dir);
  t.match(await server.prompt(endless, 'go'), { result: { stopReason: 'max_tokens' } }, 'text without end');
  t.ok(server.text(endless).length < 16 * 1024 * 1024, 'is cut');
  model.reset();

  model.enqueue({ tokens: 1_000_000 });
  const config = {
    kind: 'openai-compatible',
    dialect: 'generic',
    baseUrl: model.baseUrl,
    model: 'x',
    contextWindow: 1000,
    maxOutputTokens: 10,
    firstByteTimeoutMs: 5000,
    idleTimeoutMs: 5000,
  };
  const adapter = new OpenAiChatModel(config as never, { maxStreamBytes: 100_000, maxEventChars: 10_000 });
  let taken = 0;
  const stream = adapter.stream({ system: '', messages: [{ role: 'user', text: 'x' }], tools: [] }, () => (taken += 1), {
    signal: new AbortController().signal,
    whenWritable: () => undefined,
  });
  await t.rejects(stream, { code: 'MALFORMED_RESPONSE' }, 'a server that ignores the cap on tokens is cut off by bytes');
  t.ok(taken < 100_000);
});
