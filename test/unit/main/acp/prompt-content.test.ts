/** What a prompt may hold, and how errors leave. */
import { RequestError } from '@agentclientprotocol/sdk';
import t from 'tap';
import { promptOptions } from '../../../../src/main/acp/meta/prompt-options.ts';
import { mostResourceChars, promptContent, promptKinds, sessionPromptKinds } from '../../../../src/main/acp/prompt-content.ts';
import { answering, toRequestError } from '../../../../src/main/acp/rpc-errors.ts';
import { Diagnostics } from '../../../../src/main/diagnostics.ts';
import type { ModelConfig } from '../../../../src/shared/config.ts';
import { ServerError } from '../../../../src/shared/errors.ts';
import type { ChatConfig } from '../../../../src/worker/model/chat-request.ts';

const kinds = { images: true, resources: true };
const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(24)]);
const image = (bytes: Buffer, mimeType = 'image/png') => ({ type: 'image', mimeType, data: bytes.toString('base64') }) as const;

t.test('text and links are kept in order, and nothing else of them', async (t) => {
  const link = { type: 'resource_link', uri: 'file:///a', name: 'a', title: 'dropped', size: 3 } as const;
  t.same(promptContent([{ type: 'text', text: ' hi ', annotations: { priority: 1 } }, link], kinds), [
    { type: 'text', text: ' hi ' },
    { type: 'resource_link', uri: 'file:///a', name: 'a' },
  ]);
  t.equal(promptContent([{ type: 'text', text: ' ' }, link], kinds).length, 2, 'a link alone says something');
});

t.test('blank prompts and kinds that were not advertised are refused, with the place and what is taken', async (t) => {
  for (const blank of [[], [{ type: 'text', text: '' }], [{ type: 'text', text: ' \n\t' }]] as const) {
    t.throws(() => promptContent(blank, kinds), { code: 'EMPTY_PROMPT' });
  }
  const text = { type: 'text', text: 'x' } as const;
  t.throws(() => promptContent([text, image(png)], { images: false, resources: true }), {
    code: 'UNSUPPORTED_CONTENT',
    data: { index: 1, expected: ['text', 'resource_link', 'resource with text'] },
  });
  const attached = { type: 'resource', resource: { uri: 'file:///a', text: 'a' } } as const;
  t.throws(() => promptContent([attached], { images: false, resources: false }), {
    code: 'UNSUPPORTED_CONTENT',
    data: { index: 0, expected: ['text', 'resource_link'] },
  });
  t.throws(() => promptContent([{ type: 'audio', data: 'aaaa', mimeType: 'audio/wav' }], kinds), {
    code: 'UNSUPPORTED_CONTENT',
    data: { index: 0, expected: ['text', 'resource_link', 'resource with text', 'image'] },
  });
  const blob = { type: 'resource', resource: { uri: 'file:///a', blob: 'aaaa' } } as const;
  t.throws(() => promptContent([text, blob], kinds), { code: 'UNSUPPORTED_CONTENT', message: /blob/, data: { index: 1 } });
});

t.test('an image is kept under the type that its bytes have', async (t) => {
  const jpeg = Buffer.from('ffd8ffe000104a464946', 'hex');
  const gif = Buffer.from('GIF89a\x01\x00', 'latin1');
  const webp = Buffer.from('RIFF\x10\x00\x00\x00WEBPVP8 ', 'latin1');
  const taken = promptContent([image(png), image(jpeg), image(gif, 'image/gif'), image(webp, 'image/WebP')], kinds);
  t.same(
    taken.map((block) => (block.type === 'image' ? block.mimeType : block.type)),
    ['image/png', 'image/jpeg', 'image/gif', 'image/webp'],
  );
  t.match(promptContent([{ ...image(png), uri: 'file:///a.png' }], kinds), [{ uri: 'file:///a.png', data: png.toString('base64') }]);
});

t.test('an image that no provider would take is refused before it is in a log', async (t) => {
  t.throws(() => promptContent([image(png, 'image/svg+xml')], kinds), { code: 'UNSUPPORTED_CONTENT', data: { index: 0 } });
  const refused = (data: string, message: RegExp) =>
    t.throws(
      () =>
        promptContent(
          [
            { type: 'text', text: 'x' },
            { type: 'image', mimeType: 'image/png', data },
          ],
          kinds,
        ),
      {
        code: 'INVALID_PARAMS',
        message,
        data: { field: 'prompt[1]' },
      },
    );
  const good = png.toString('base64');
  for (const bad of ['', '!!!!', `data:image/png;base64,${good}`, `${good.slice(0, -2)} =`, good.replace(/=+$/, '')])
    refused(bad, /not base64/);
  refused(Buffer.from('<html>an error page</html>').toString('base64'), /no image/);
  refused(Buffer.concat([png, Buffer.alloc(8 * 1024 * 1024)]).toString('base64'), /larger than 8 MiB/);
});

t.test('the images of a prompt are bounded together', async (t) => {
  const large = image(Buffer.concat([png, Buffer.alloc(7 * 1024 * 1024)]));
  t.equal(promptContent([large, large], kinds).length, 2);
  t.throws(() => promptContent([large, large, large], kinds), {
    code: 'INVALID_PARAMS',
    message: /^prompt\[2\].* 16 MiB/,
    data: { limit: 2 ** 24 },
  });
  t.equal(promptContent(Array(32).fill(image(png)), kinds).length, 32);
  t.throws(() => promptContent(Array(33).fill(image(png)), kinds), { code: 'INVALID_PARAMS', message: /at most 32/ });
});

t.test('attached text is kept as far as its bound, and says where it was cut', async (t) => {
  const resource = (text: string) => ({ type: 'resource', resource: { uri: 'file:///a.md', text, mimeType: 'text/markdown' } }) as const;
  t.same(promptContent([resource('# A')], kinds), [{ type: 'resource', uri: 'file:///a.md', text: '# A', mimeType: 'text/markdown' }]);
  const [cut] = promptContent([resource(`${'a'.repeat(mostResourceChars - 1)}🚀 and more`)], kinds);
  const text = cut?.type === 'resource' ? cut.text : '';
  t.match(text, /a\n… \(cut here: 131082 characters in all\)$/, 'no half of a character is left');
  const many = promptContent(Array(6).fill(resource('b'.repeat(mostResourceChars))), kinds);
  const kept = many.reduce((sum, block) => sum + (block.type === 'resource' ? block.text.replace(/[^b]/g, '').length : 0), 0);
  t.equal(kept, 4 * mostResourceChars);
});

t.test('a key stands for every block of its prompt', async (t) => {
  const payload = (blocks: Parameters<typeof promptContent>[0]) =>
    promptOptions({ _meta: { 'dsh-acp': { key: 'k' } } }, promptContent(blocks, kinds), undefined).key?.payload;
  const text = { type: 'text', text: 'x' } as const;
  const other = Buffer.concat([png, Buffer.from([1])]);
  const attached = (words: string) => ({ type: 'resource', resource: { uri: 'file:///a', text: words } }) as const;
  const payloads = [[text], [text, image(png)], [text, image(other)], [image(png), text], [text, attached('a')], [text, attached('b')]].map(
    payload,
  );
  t.equal(new Set(payloads).size, payloads.length);
  t.equal(payload([text, image(png)]), payload([text, image(png)]));
});

t.test('images are offered where a model of the session takes them', async (t) => {
  const model = (name: string, images?: 'on' | 'off') => {
    return { kind: 'openai-compatible', model: name, thinking: 'off', ...(images === undefined ? {} : { images }) } as ChatConfig;
  };
  const offered = (config: ModelConfig, models: string[] = []) =>
    promptKinds({ model: config, models: models.map((name) => ({ name })) }, 'editor').images;
  for (const name of ['gpt-4o', 'openai/gpt-5-mini', 'claude-opus-5', 'deepseek-v4-flash-vision-exp', 'qwen2.5-vl-7b', 'llava:13b']) {
    t.equal(offered(model(name)), true, name);
  }
  for (const name of ['deepseek-flash', 'gpt-4o-audio-preview', 'qwen3-coder', 'local']) t.equal(offered(model(name)), false, name);
  t.equal(offered(model('local', 'on')), true);
  t.equal(offered(model('gpt-4o', 'off')), false);
  t.equal(offered(model('deepseek-flash'), ['gpt-4o']), true, 'one that can be chosen is enough');
  t.equal(offered({ kind: 'scripted', paceMs: 0 }), false);
  t.same(promptKinds({ model: model('gpt-4o') }, 'automation'), { images: true, resources: false });
});

t.test('an image for a chosen model that takes none is refused with its name and the way to another one', async (t) => {
  const model = { kind: 'openai-compatible', model: 'gpt-4o', thinking: 'off' } as ChatConfig;
  const settings = { model, models: [{ name: 'deepseek-flash' }] };
  const kindsFor = (choices: object) =>
    sessionPromptKinds({ settings, identity: { profile: 'editor' }, chosen: { mode: 'ask', choices, revision: 0 } } as never);
  const blocks = [{ type: 'text', text: 'What is this?' } as const, image(png)];
  t.equal(promptContent(blocks, kindsFor({})).length, 2);
  t.throws(() => promptContent(blocks, kindsFor({ model: 'deepseek-flash' })), {
    code: 'UNSUPPORTED_CONTENT',
    message: /model deepseek-flash takes none.*\/model/,
    data: { index: 1, model: 'deepseek-flash' },
  });
  t.equal(promptContent([blocks[0] ?? image(png)], kindsFor({ model: 'deepseek-flash' })).length, 1, 'text goes on');
  const blind = { ...settings, models: [], model: { ...model, model: 'deepseek-flash' } };
  const never = sessionPromptKinds({
    settings: blind,
    identity: { profile: 'editor' },
    chosen: { mode: 'ask', choices: {}, revision: 0 },
  } as never);
  t.throws(
    () => promptContent(blocks, never),
    { code: 'UNSUPPORTED_CONTENT', data: { expected: Array } },
    'as before, where no model would take it',
  );
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
