/** What a prompt may hold, and how errors leave. */
import { RequestError } from '@agentclientprotocol/sdk';
import t from 'tap';
import { promptContent } from '../../../../src/main/acp/prompt-content.ts';
import { answering, toRequestError } from '../../../../src/main/acp/rpc-errors.ts';
import { Diagnostics } from '../../../../src/main/diagnostics.ts';
import { ServerError } from '../../../../src/shared/errors.ts';

t.test('text and links are kept in order, and nothing else of them', async (t) => {
  const link = { type: 'resource_link', uri: 'file:///a', name: 'a', title: 'dropped', size: 3 } as const;
  t.same(promptContent([{ type: 'text', text: ' hi ', annotations: { priority: 1 } }, link]), [
    { type: 'text', text: ' hi ' },
    { type: 'resource_link', uri: 'file:///a', name: 'a' },
  ]);
  t.equal(promptContent([{ type: 'text', text: ' ' }, link]).length, 2, 'a link alone says something');
});

t.test('blank prompts and kinds that were not advertised are refused', async (t) => {
  for (const blank of [[], [{ type: 'text', text: '' }], [{ type: 'text', text: ' \n\t' }]] as const) {
    t.throws(() => promptContent(blank), { code: 'EMPTY_PROMPT' });
  }
  const image = { type: 'image', data: 'aaaa', mimeType: 'image/png' } as const;
  t.throws(() => promptContent([{ type: 'text', text: 'x' }, image]), { code: 'UNSUPPORTED_CONTENT', data: { index: 1 } });
});

t.test('whatever a handler throws leaves as an error of the catalogue, without its own text', async (t) => {
  const lines: string[] = [];
  const diagnostics = new Diagnostics('debug', (line) => lines.push(line));
  const known = toRequestError(new ServerError('SESSION_BUSY', 'Two wait.', { data: { waiting: 2 } }), diagnostics);
  t.match(known, { code: -31001, message: 'Two wait.', data: { code: 'SESSION_BUSY', waiting: 2, details: /^Two wait\. Wait for/ } });
  t.same(lines, []);
  for (const thrown of [new TypeError('secret at /home/me'), 'secret', undefined, { secret: 1 }]) {
    const error = toRequestError(thrown, diagnostics);
    t.equal(error.code, -32603);
    t.notMatch(JSON.stringify([error.message, error.data]), /secret/);
  }
  t.match(lines.join(''), /secret at/, 'stderr has it when it is asked for');
  const own = new RequestError(-32601, 'x');
  t.equal(toRequestError(own, diagnostics), own);
  await t.rejects(answering(diagnostics, () => Promise.reject(new Error('secret')))(undefined), { code: -32603 });
  t.equal(await answering(diagnostics, (n: number) => n + 1)(1), 2);
});
