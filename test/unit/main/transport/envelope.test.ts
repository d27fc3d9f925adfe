import { type AnyMessage, agent } from '@agentclientprotocol/sdk';
import * as fc from 'fast-check';
import t from 'tap';
import { readEnvelope } from '../../../../src/main/transport/envelope.ts';
import { cleanError } from '../../../../src/main/transport/error-hygiene.ts';
import { isNestedDeeperThan } from '../../../../src/shared/framing/nesting-limit.ts';

type Row = readonly [line: string, kind: string, id?: string | number | null];

/** One row or more for each row of the protocol's table of bad frames; the id is the echoed one. */
const rows: readonly Row[] = [
  ['[]', 'reject', null],
  ['[{"jsonrpc":"2.0","id":1,"method":"a"}]', 'reject', null],
  ['42', 'reject', null],
  ['"x"', 'reject', null],
  ['null', 'reject', null],
  ['true', 'reject', null],
  ['{}', 'reject', null],
  ['{"jsonrpc":"2.0"}', 'reject', null],
  ['{"jsonrpc":"2.0","params":{}}', 'reject', null],
  ['{"id":7,"method":"a"}', 'reject', 7],
  ['{"jsonrpc":"1.0","id":"7","method":"a"}', 'reject', '7'],
  ['{"jsonrpc":2,"id":null,"method":"a"}', 'reject', null],
  ['{"method":"a"}', 'reject', null],
  ['{"jsonrpc":"2.0","id":{},"method":"a"}', 'reject', null],
  ['{"jsonrpc":"2.0","id":[1],"method":"a"}', 'reject', null],
  ['{"jsonrpc":"2.0","id":true,"method":"a"}', 'reject', null],
  ['{"jsonrpc":"2.0","id":1e999,"method":"a"}', 'reject', null],
  ['{"jsonrpc":"2.0","id":1,"method":5}', 'reject', 1],
  ['{"jsonrpc":"2.0","id":1,"method":null}', 'reject', 1],
  ['{"jsonrpc":"2.0","method":["a"]}', 'reject', null],
  ['{"jsonrpc":"2.0","id":{},"method":5}', 'reject', null],
  ['{"jsonrpc":"2.0","id":1.5,"method":"a"}', 'request', 1.5],
  ['{"jsonrpc":"2.0","id":0,"method":"a"}', 'request', 0],
  ['{"jsonrpc":"2.0","id":-1,"method":"a"}', 'request', -1],
  ['{"jsonrpc":"2.0","id":9007199254740991,"method":"a"}', 'request', 9007199254740991],
  ['{"jsonrpc":"2.0","id":"1","method":"a"}', 'request', '1'],
  ['{"jsonrpc":"2.0","id":"","method":"a"}', 'request', ''],
  ['{"jsonrpc":"2.0","id":null,"method":"a"}', 'request', null],
  ['{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}', 'request', 1],
  ['{"jsonrpc":"2.0","id":1,"method":"a","result":1}', 'request', 1],
  ['{"jsonrpc":"2.0","method":"a"}', 'notification'],
  ['{"jsonrpc":"2.0","method":""}', 'notification'],
  ['{"jsonrpc":"2.0","id":1,"result":{}}', 'response', 1],
  ['{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"m"}}', 'response', '1'],
  ['{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', 'response', 1],
  ['{"jsonrpc":"2.0","id":1}', 'response', 1],
  ['{"jsonrpc":"2.0","id":1,"error":"bad"}', 'response', 1],
  ['{"id":1,"result":1}', 'response', 1],
  ['{"jsonrpc":"2.0","result":1}', 'ignore'],
  ['{"jsonrpc":"2.0","error":{}}', 'ignore'],
  ['{"jsonrpc":"2.0","id":{},"result":1}', 'ignore'],
  ['{"__proto__":{"jsonrpc":"2.0","id":9,"method":"a"}}', 'reject', null],
  ['{"jsonrpc":"2.0","id":1,"__proto__":{"method":"a"}}', 'response', 1],
  ['{"jsonrpc":"2.0","method":"a","__proto__":{"id":9}}', 'notification'],
  ['{"constructor":1,"toString":2}', 'reject', null],
  ['{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}', 'request', 2],
];

t.test('every row of the table of frames', async (t) => {
  for (const [line, kind, id] of rows) {
    const envelope = readEnvelope(JSON.parse(line));
    t.equal(envelope.kind, kind, line);
    if (envelope.kind === 'request' || envelope.kind === 'response') t.equal(envelope.id, id, line);
    if (envelope.kind === 'reject') {
      t.equal(envelope.answer.id, id, `echo of ${line}`);
      t.equal(envelope.answer.error.code, -32600);
    }
  }
  t.equal(({} as { method?: unknown }).method, undefined, 'no prototype was touched');
});

t.test('an answer repeats no text of the input but the id', async () => {
  const secret = 'SECRET';
  fc.assert(
    fc.property(fc.json({ maxDepth: 3 }), fc.constantFrom('id', 'method', 'jsonrpc', 'params', 'result'), (json, key) => {
      const value = { [key]: { [secret]: JSON.parse(json), list: [secret] } };
      const envelope = readEnvelope(value);
      return envelope.kind !== 'reject' || !JSON.stringify(envelope.answer).includes(secret);
    }),
  );
});

t.test('nesting is measured outside strings only', async (t) => {
  const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  t.notOk(isNestedDeeperThan(deep(50), 50));
  t.ok(isNestedDeeperThan(deep(51), 50));
  t.ok(isNestedDeeperThan('{"a":'.repeat(100_000), 1000));
  t.notOk(isNestedDeeperThan(JSON.stringify({ a: '['.repeat(10_000), b: `\\"${'{'.repeat(5000)}\\` }), 50));
  t.ok(isNestedDeeperThan(`["\\\\",${deep(60)}]`, 50));
  t.notOk(isNestedDeeperThan(`[${'[],'.repeat(1000)}[]]`, 2));
  t.notOk(isNestedDeeperThan(`["${'['.repeat(100)}`, 50), 'an open string ends the text');
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.integer({ min: 0, max: 6 }), (value, limit) => {
      const text = JSON.stringify(value);
      return text.length <= limit || isNestedDeeperThan(text, limit) === depthOf(value) > limit;
    }),
  );
});

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** What the SDK itself answers to these params. */
async function sdkErrors(calls: readonly (readonly [string, unknown])[]): Promise<{ code: number; message: string; data?: unknown }[]> {
  const app = agent({ name: 'a' })
    .onRequest('session/new', () => ({ sessionId: 'a' }))
    .onRequest('session/prompt', () => ({ stopReason: 'end_turn' as const }));
  const errors: { code: number; message: string; data?: unknown }[] = [];
  return await new Promise((resolve) => {
    const readable = new ReadableStream({
      start: (controller) => {
        for (const [id, [method, params]] of calls.entries()) controller.enqueue({ jsonrpc: '2.0', id, method, params });
      },
    });
    const writable = new WritableStream<AnyMessage>({
      write: (message) => {
        if ('error' in message) errors.push(message.error);
        if (errors.length === calls.length) resolve(errors);
      },
    });
    app.connect({ readable, writable });
  });
}

t.test('validation trees of the SDK become one short sentence without a parameter value', async (t) => {
  const secret = 'SECRET';
  const errors = await sdkErrors([
    ['session/new', {}],
    ['session/new', { cwd: '/', mcpServers: [{ name: secret, command: 'c', args: [secret], env: secret }] }],
    ['session/new', { cwd: '/', mcpServers: [{ name: 'n', command: 5, args: [], env: [{ name: secret, value: 1 }] }] }],
    ['session/new', [secret]],
    ['session/new', secret],
    ['session/prompt', { sessionId: 'a', prompt: [{ type: secret }] }],
    ['session/prompt', { sessionId: 'a', prompt: Array.from({ length: 500 }, () => ({ type: secret, [secret]: secret })) }],
  ]);
  const cleaned = errors.map((error) => cleanError(error).error);
  const details = cleaned.map((error) => (error.data as { details: string }).details);
  t.match(details[0], /^params\.cwd: expected string, received undefined; params\.mcpServers: expected array/);
  t.ok(details[1]?.startsWith('params.mcpServers.0.env: expected array, received string'), 'the field that is there but wrong comes first');
  t.match(details[2], /^params\.mcpServers\.0\.command: expected string, received number/);
  t.equal(details[3], 'params: expected object, received array');
  t.equal(details[4], 'params: expected object, received string');
  t.match(details[5], /params\.prompt\.0\.type: expected "text", "image"/);
  for (const error of cleaned) {
    t.equal(error.code, -32602);
    t.match(error.message, /^Invalid params: params/);
    t.notOk(JSON.stringify(error).includes(secret));
    t.ok(JSON.stringify(error).length < 1200, 'bounded');
  }
});

t.test('an unmapped exception keeps its text from the client; a mapped error keeps its own', async (t) => {
  const leak = cleanError({ code: -32603, message: 'Internal error', data: { details: 'ENOENT /home/me/secret' } });
  t.notOk(JSON.stringify(leak.error).includes('secret'));
  t.match(leak.debug, /secret/);
  const mapped = cleanError({ code: -32603, message: 'The model did not answer.', data: { code: 'MODEL_FAILED', stack: 'x' } });
  t.same(mapped, { error: { code: -32603, message: 'The model did not answer.', data: { code: 'MODEL_FAILED' } } });
  const { stack } = new Error('boom');
  const stacked = cleanError({ code: -31001, message: stack ?? '', data: { why: stack, list: [{ stack }] } });
  t.notMatch(JSON.stringify(stacked.error), /\bat /);
  t.same(stacked.error.data, { why: 'Error: boom', list: [{}] });
  const text = 'Look:\n    at line 3 of the file';
  t.same(cleanError({ code: -32603, message: 'No.', data: { code: 'MODEL_FAILED', text } }).error.data, { code: 'MODEL_FAILED', text });
});

t.test('echoes of the input are dropped or cut', async (t) => {
  t.same(cleanError({ code: -32600, message: 'Invalid request', data: { env: 'SECRET' } }).error, {
    code: -32600,
    message: 'Invalid request',
    data: {
      code: 'INVALID_REQUEST',
      details: 'Invalid request. Send a JSON-RPC 2.0 object with a string method; batches are not part of ACP.',
    },
  });
  const method = 'm'.repeat(100_000);
  const missing = cleanError({ code: -32601, message: `"Method not found": ${method}`, data: { method } }).error;
  t.ok(JSON.stringify(missing).length < 600);
  t.same(cleanError({ code: -32601, message: '"Method not found": a/b', data: { method: 'a/b' } }).error, {
    code: -32601,
    message: 'Method not found: a/b',
    data: {
      code: 'METHOD_NOT_FOUND',
      details: 'Method not found: a/b. Use only methods that initialize advertised.',
      method: 'a/b',
    },
  });
  t.same(cleanError({ code: -32002, message: 'Resource not found', data: { sessionId: 's' } }).error.data, { sessionId: 's' });
  t.same(cleanError({ code: -32000, message: 'Authentication required', data: null }).error, {
    code: -32000,
    message: 'Authentication required',
  });
});
