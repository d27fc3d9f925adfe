import * as fc from 'fast-check';
import t from 'tap';
import { fencedText } from '../../../../src/worker/display/fenced-text.ts';
import { ContentBudget, capJson } from '../../../../src/worker/projection/size-caps.ts';
import { maxTitleLength, titleLine } from '../../../../src/worker/display/title-line.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';

t.test('a title is one visible line', async (t) => {
  const cases: [string, string][] = [
    ['ls -la', 'ls -la'],
    ['a\nb\r\n\tc\u2028d', 'a b c d'],
    ['\u001b[31mred\u001b[0m', 'red'],
    ['\u001b]8;;http://x\u0007link\u001b]8;;\u0007', 'link'],
    ['\u001b]0;title\u001b\\x', 'x'],
    ['a\u202egnp.exe', 'agnp.exe'],
    ['a\u2066b\u2069\u200b\ufeff', 'ab'],
    ['hidden\u{e0041}\u{e0042}', 'hidden'],
    ['bell\u0007\u0000\u009b1m', 'bell'],
    ['👩‍💻 é', '👩‍💻 é'],
    ['\u0000\n ', 'fallback'],
    ['', 'fallback'],
  ];
  for (const [text, expected] of cases) t.equal(titleLine(text, 'fallback'), expected);
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (text) => {
      const line = titleLine(text, 'fallback');
      return line.length <= maxTitleLength && line !== '' && !/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(line);
    }),
  );
  const long = titleLine(`${'x'.repeat(maxTitleLength - 2)}😀😀`, 'f');
  t.ok(long.length <= maxTitleLength && long.endsWith('x…'), 'a character is not cut in half');
});

t.test('a fence is longer than any in its text', async () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('`', 'a', '\n'), maxLength: 60 }), (text) => {
      const lines = fencedText(text, 'console').split('\n');
      const fence = /^`+/.exec(lines[0] ?? '')?.[0] ?? '';
      return lines.at(-1) === fence && fence.length >= 3 && !lines.slice(1, -1).join('\n').includes(fence);
    }),
  );
});

t.test('cut text says how long it was, and stays within its bytes', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 800 }), fc.integer({ min: 100, max: 900 }), (text, bytes) => {
      const taken = new ContentBudget(bytes).take(text);
      const whole = Buffer.byteLength(JSON.stringify(text)) <= bytes;
      return whole ? taken === text : Buffer.byteLength(JSON.stringify(taken)) <= bytes && taken.includes(`${text.length} characters`);
    }),
  );
});

t.test('raw JSON is bounded in size and depth, and untouched when it is small', async (t) => {
  const depthOf = (value: unknown): number => {
    return typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
  };
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 60 }), (value) => {
      const capped = capJson(value as never, 400);
      const small = Buffer.byteLength(JSON.stringify(value)) <= 400 && depthOf(value) <= 32;
      return small ? capped === value : Buffer.byteLength(JSON.stringify(capped)) <= 400 && depthOf(capped) <= 33;
    }),
  );
  t.strictSame(capJson({ a: 1 }), { a: 1 });
});

t.test('the check of frames refuses what a strict client would', async (t) => {
  const update = (body: object, params: object = {}) => {
    return validateAgentFrame({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update: body, ...params } });
  };
  const text = { type: 'text', text: 'x' };
  t.strictSame(update({ sessionUpdate: 'agent_message_chunk', content: text, _meta: { any: 1 } }), []);
  t.match(update({ sessionUpdate: 'agent_message_chunk', content: text, custom: 1 }), [/custom/]);
  t.match(update({ sessionUpdate: 'agent_message_chunk', content: { ...text, custom: 1 } }), [/custom/]);
  t.match(update({ sessionUpdate: 'plan', entries: [] }, { custom: 1 }), [/custom/]);
  t.match(update({ sessionUpdate: 'tool_call', title: 't' }), [/toolCallId/]);
  t.match(update({ sessionUpdate: 'tool_call', title: 't', toolCallId: 'c', kind: 'zap' }), [/kind/]);
  t.match(update({ sessionUpdate: 'made_up' }), [/sessionUpdate/]);
  const answer = (result: unknown, method?: string) =>
    validateAgentFrame({ jsonrpc: '2.0', id: 1, result }, method === undefined ? {} : { method });
  t.strictSame(answer({ stopReason: 'end_turn' }, 'session/prompt'), []);
  t.match(answer({ stopReason: 'done' }, 'session/prompt'), [/stopReason/]);
  t.match(answer({ stopReason: 'end_turn', tokens: 1 }, 'session/prompt'), [/tokens/]);
  t.match(answer({}, 'session/new'), [/sessionId/]);
  t.match(answer({}, 'no/such'), [/no such response/]);
  t.strictSame(answer({ anything: 1 }, '_custom'), []);
  t.strictSame(validateAgentFrame({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'x' } }), []);
  t.match(validateAgentFrame({ jsonrpc: '2.0', id: 1, error: { code: 1.5, message: '', stack: 'x' } }), [/stack/, /code/, /message/]);
  t.match(validateAgentFrame({ jsonrpc: '2.0', id: 1 }), [/exactly one/]);
  t.match(validateAgentFrame({ jsonrpc: '1.0', method: 'session/prompt', params: {}, id: 1 }), [/2\.0/, /client does/]);
  t.match(validateAgentFrame([]), [/not an object/]);
});
