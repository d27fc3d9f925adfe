/** What a child writes to its stdout, sorted: whatever it writes, and however it is cut into chunks. */
import * as fc from 'fast-check';
import t from 'tap';
import { ByteAllowance } from '../../../../../src/worker/broker/subagents/byte-allowance.ts';
import { ChildInbox } from '../../../../../src/worker/broker/subagents/child-inbox.ts';

function makeInbox(burstBytes?: number) {
  const updates: unknown[] = [];
  const messages: any[] = [];
  const violations: string[] = [];
  const fatal: string[] = [];
  const inbox = new ChildInbox(
    {
      onUpdate: (params) => updates.push(params),
      onMessage: (message) => messages.push(message),
      onViolation: (what) => violations.push(what),
      onFatal: (reason) => fatal.push(reason),
    },
    new ByteAllowance(burstBytes),
  );
  const write = (...lines: unknown[]) =>
    inbox.push(Buffer.from(lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')));
  return { inbox, updates, messages, violations, fatal, write };
}

const call = (more: object) => ({ jsonrpc: '2.0', ...more });

t.test('updates are ours, requests and awaited answers are the SDK’s, the rest is nobody’s', async (t) => {
  const { inbox, updates, messages, violations, write } = makeInbox();
  inbox.noteSent({ jsonrpc: '2.0', id: 0, method: 'initialize' });
  write(
    call({ method: 'session/update', params: { sessionId: 'a' } }),
    call({ id: 0, result: {} }),
    call({ id: 'x', method: 'fs/read_text_file', params: {} }),
    call({ method: '$/cancel_request', params: { requestId: 'x' } }),
    call({ method: '_vendor/news' }),
  );
  t.same(updates, [{ sessionId: 'a' }]);
  t.same(
    messages.map(({ id, method }) => [id, method]),
    [
      [0, undefined],
      ['x', 'fs/read_text_file'],
      [undefined, '$/cancel_request'],
    ],
  );
  t.same(violations, []);
  t.equal(inbox.isQuiet, false);
  inbox.noteSent({ jsonrpc: '2.0', id: 'x', result: null });
  t.equal(inbox.isQuiet, true);
});

t.test('noise is passed over, and its last line remembered', async (t) => {
  const { inbox, messages, violations, write } = makeInbox();
  write('Loading…', '{"level":30}', '[]', 'null', '{"jsonrpc":"1.0","id":1}', '{"broken', 'Error: no model');
  t.same([messages, violations], [[], []]);
  t.equal(inbox.noise, 'Error: no model');
});

t.test('what the SDK must not see is a violation: late answers, ids in use, ids of no type', async (t) => {
  const { inbox, messages, violations, write } = makeInbox();
  inbox.noteSent({ jsonrpc: '2.0', id: 5, method: 'session/new' });
  write(call({ id: 5, result: {} }), call({ id: 5, result: {} }), call({ id: '5', result: {} }), call({ result: 1 }));
  t.equal(messages.length, 1);
  t.equal(violations.length, 3);
  write(call({ id: 1, method: 'a' }), call({ id: 1, method: 'a' }), call({ id: {}, method: 'a' }), call({ id: 2, method: 3 }));
  t.equal(messages.length, 2);
  t.equal(violations.length, 6);
});

t.test('a child whose requests have no answers yet is not read on', async (t) => {
  const { inbox, write } = makeInbox();
  t.equal(write(...Array.from({ length: 63 }, (_, id) => call({ id, method: 'a' }))), undefined);
  const held = write(call({ id: 63, method: 'a' }));
  t.type(held, Promise);
  inbox.noteSent({ jsonrpc: '2.0', id: 7, result: {} });
  await held;
});

t.test('a line beyond the limit, and more than the allowance, end it', async (t) => {
  const long = makeInbox();
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  for (let mb = 0; mb < 40; mb += 1) long.inbox.push(chunk);
  t.match(long.fatal, [/32 MB/]);
  long.write(call({ method: 'session/update' }));
  t.same(long.updates, [], 'nothing is read any more');
  // By bytes, or by the number of lines.
  for (const line of ['x'.repeat(1000), 'x', '{', '{"jsonrpc":"2.0","method":"a"}']) {
    const much = makeInbox(1024 * 1024);
    const lines = Buffer.from(`${line}\n`.repeat(10_000));
    much.inbox.push(lines.subarray(0, 1000));
    t.same(much.fatal, []);
    much.inbox.push(lines);
    much.inbox.push(lines);
    t.same(much.fatal, ['it floods its output'], line.slice(0, 40));
  }
});

t.test('whatever comes, it does not throw, and the cut into chunks means nothing', async () => {
  const messageLike = fc.record(
    {
      jsonrpc: fc.constantFrom('2.0', '1.0'),
      id: fc.oneof(fc.constantFrom(0, 1, 'a', null), fc.jsonValue()),
      method: fc.oneof(fc.constantFrom('session/update', '$/cancel_request', '__proto__'), fc.jsonValue()),
      params: fc.jsonValue(),
      result: fc.jsonValue(),
      error: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  const line = fc.oneof(
    messageLike.map((value) => JSON.stringify(value)),
    fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\n', '')),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), fc.integer({ min: 1, max: 40 }), (lines, size) => {
      const seen = [Number.POSITIVE_INFINITY, size].map((cut) => {
        const { inbox, ...rest } = makeInbox();
        inbox.noteSent({ jsonrpc: '2.0', id: 0, method: 'initialize' });
        const bytes = Buffer.from(lines.map((one) => `${one}\n`).join(''));
        for (let at = 0; at < bytes.length; at += Math.min(cut, bytes.length))
          inbox.push(bytes.subarray(at, at + Math.min(cut, bytes.length)));
        inbox.end();
        return JSON.stringify([rest, inbox.noise]);
      });
      return seen[0] === seen[1];
    }),
    { numRuns: 300 },
  );
});
