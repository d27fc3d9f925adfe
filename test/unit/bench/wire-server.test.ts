/** The model server of the comparison: each wire gives every agent the same words, and what an agent asks for itself is told apart. */
import t from 'tap';
import { ownAnswer, WireServer } from '../../../bench/peers/wire/wire-server.ts';
import { orderText } from '../../../bench/peers/wire/wire-request.ts';

const tool = { type: 'function', function: { name: 'read', parameters: {} } };
const words = 'tok0 tok1 tok2 ';

async function post(server: WireServer, path: string, body: object): Promise<string> {
  const response = await fetch(`${server.origin}${path}`, { method: 'POST', body: JSON.stringify(body) });
  return await response.text();
}

/** The JSON of each event. */
function events(stream: string): any[] {
  return [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data!));
}

const chatText = (stream: string): string =>
  events(stream)
    .map(({ choices }) => choices[0]?.delta.content ?? '')
    .join('');
const responsesText = (stream: string): string =>
  events(stream)
    .map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : ''))
    .join('');
const geminiText = (stream: string): string =>
  events(stream)
    .map(({ candidates }) => candidates[0].content.parts[0].text)
    .join('');

/** A request of each wire whose last word of the user is `text`, and how its text is read. */
const wires = {
  chat: {
    path: '/v1/chat/completions',
    body: (text: string) => ({
      stream: true,
      tools: [tool],
      messages: [
        { role: 'system', content: 's' },
        { role: 'user', content: text },
      ],
    }),
    read: chatText,
    last: (stream: string) => stream.endsWith('data: [DONE]\n\n'),
  },
  responses: {
    path: '/v1/responses',
    body: (text: string) => ({
      stream: true,
      tools: [tool],
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }],
    }),
    read: responsesText,
    last: (stream: string) =>
      events(stream).at(-1).type === 'response.completed' && events(stream).at(-1).response.usage.output_tokens === 3,
  },
  gemini: {
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    body: (text: string) => ({ tools: [{ functionDeclarations: [] }], contents: [{ role: 'user', parts: [{ text }] }] }),
    read: geminiText,
    last: (stream: string) => events(stream).at(-1).candidates[0].finishReason === 'STOP',
  },
} as const;

t.test('each wire streams the ordered words, fast or paced, and an end', async (t) => {
  const server = await WireServer.start();
  t.teardown(() => server.close());
  for (const [wire, { path, body, read, last }] of Object.entries(wires)) {
    for (const delayMs of [0, 1]) {
      const stream = await post(server, path, body(`please: ${orderText({ tokens: 3, delayMs })}`));
      t.equal(read(stream), words, `${wire}, ${delayMs} ms`);
      t.ok(last(stream), `${wire} ends as its clients expect`);
      t.notMatch(stream, /^:/m, `${wire} has no comments`);
    }
  }
  t.match(server.stats, { ordered: 6, own: 0, activeStreams: 0, tokensSent: 18 });
});

t.test('a thousand words as fast as they come arrive whole', async (t) => {
  const server = await WireServer.start();
  t.teardown(() => server.close());
  const expected = Array.from({ length: 1000 }, (_, index) => `tok${index} `).join('');
  for (const { path, body, read } of Object.values(wires)) {
    t.equal(read(await post(server, path, body(orderText({ tokens: 1000, delayMs: 0 })))), expected);
  }
});

t.test('words are paced: they cannot all have come before their time', async (t) => {
  const server = await WireServer.start();
  t.teardown(() => server.close());
  const start = performance.now();
  await post(server, wires.gemini.path, wires.gemini.body(orderText({ tokens: 10, delayMs: 5 })));
  t.ok(performance.now() - start >= 45);
});

t.test('what an agent asks for itself is answered ok, and counted apart', async (t) => {
  const server = await WireServer.start();
  t.teardown(() => server.close());
  const order = orderText({ tokens: 3, delayMs: 0 });
  const messages = [
    { role: 'user', content: order },
    { role: 'assistant', content: words },
    { role: 'user', content: 'What is to be remembered?' },
  ];
  const { chat, gemini, responses } = wires;
  t.equal(chat.read(await post(server, chat.path, { stream: true, tools: [tool], messages })), ownAnswer, 'an older order is done');
  const title = [
    { role: 'system', content: 'Give it a title' },
    { role: 'user', content: [{ type: 'text', text: order }] },
  ];
  t.equal(chat.read(await post(server, chat.path, { stream: true, messages: title })), ownAnswer, 'instructions without tools');
  t.equal(JSON.parse(await post(server, chat.path, { messages: title })).choices[0].message.content, ownAnswer, 'not streamed');
  t.equal(responses.read(await post(server, responses.path, { stream: true, input: order })), ownAnswer);
  const routed = JSON.parse(
    await post(server, '/v1beta/models/m:generateContent', { contents: [{ role: 'user', parts: [{ text: 'which?' }] }] }),
  );
  t.equal(routed.candidates[0].content.parts[0].text, ownAnswer);
  t.equal(gemini.read(await post(server, gemini.path, { contents: [{ role: 'user', parts: [{ text: order }] }] })), ownAnswer);
  t.match(server.stats, { ordered: 0, own: 6 });
});

t.test('the floor agent has neither tools nor instructions, and its order counts', async (t) => {
  const server = await WireServer.start();
  t.teardown(() => server.close());
  const body = { stream: true, messages: [{ role: 'user', content: orderText({ tokens: 3, delayMs: 0 }) }] };
  t.equal(chatText(await post(server, wires.chat.path, body)), words);
});

t.test('models are listed, and other paths are refused', async (t) => {
  const server = await WireServer.start();
  t.teardown(() => server.close());
  t.equal(((await (await fetch(`${server.origin}/v1/models`)).json()) as any).data.length, 1);
  t.equal((await fetch(`${server.origin}/elsewhere`)).status, 404);
  t.equal((await fetch(`${server.origin}/v1/responses`, { method: 'POST', body: '{' })).status, 400);
});
