/** The body of a request, and what the next one takes over from it. */
import t from 'tap';
import { type ChatBody, type ChatConfig, writeChatBody } from '../../../../src/worker/model/chat-request.ts';
import type { ModelMessage, ModelRequest, ToolSchema } from '../../../../src/worker/model/model-adapter.ts';
import { Random } from '../../../simulation/random.ts';
import { testSeed } from '../../../support/test-seed.ts';

const config = { kind: 'openai-compatible', dialect: 'generic', model: 'm', maxOutputTokens: 100 } as unknown as ChatConfig;
const tools: readonly ToolSchema[] = [{ name: 'read', description: 'Reads.', parameters: { type: 'object' } }];

function bytesOf({ pieces }: ChatBody): string {
  return Buffer.concat(pieces).toString('utf8');
}

function user(text: string): ModelMessage {
  return { role: 'user', text };
}

/** An answer with a call, and its result. */
function work(id: string, result: string): ModelMessage[] {
  const toolCalls = [{ callId: id, name: 'read', arguments: '{"file_path":"é.ts"}' }];
  return [
    { role: 'assistant', text: '', reasoning: 'hm', toolCalls },
    { role: 'tool', callId: id, text: result },
  ];
}

/** Results are made anew for each request, as the history does. */
function asHistory(messages: readonly ModelMessage[]): ModelMessage[] {
  return messages.map((message) => (message.role === 'tool' ? { ...message } : message));
}

t.test('what was sent before is taken over, and only the rest is written', async (t) => {
  const messages = [user('first'), ...work('a', 'result ü')];
  const first = writeChatBody(config, { system: 'Be brief.', tools, messages });
  const longer = asHistory([...messages, user('second')]);
  const second = writeChatBody(config, { system: 'Be brief.', tools, messages: longer, maxOutputTokens: 7 }, first);
  t.equal(second.list[0], first.list[0], 'the same bytes');
  t.equal(second.list.length, 2);
  t.equal(JSON.parse(bytesOf(second)).messages.length, 5);
  const again = writeChatBody(config, { system: 'Be brief.', tools, messages: longer }, second);
  t.strictSame(again.list, second.list, 'a retry writes nothing anew');
});

t.test('another system text, dialect or beginning takes nothing over', async (t) => {
  const messages = [user('first'), ...work('a', 'result')];
  const last = writeChatBody(config, { system: 'Be brief.', tools, messages });
  const changes: (readonly [ChatConfig, ModelRequest])[] = [
    [config, { system: 'Be long.', tools, messages }],
    [
      { ...config, dialect: 'deepseek', thinking: 'low' },
      { system: 'Be brief.', tools, messages },
    ],
    [config, { system: 'Be brief.', tools, messages: [user('first'), ...messages.slice(1)] }],
    [config, { system: 'Be brief.', tools, messages: [...messages.slice(0, 2), { role: 'tool', callId: 'a', text: 'pruned' }] }],
    [config, { system: 'Be brief.', tools, messages: messages.slice(0, 1) }],
  ];
  for (const [other, request] of changes) {
    const body = writeChatBody(other, request, last);
    t.not(body.list[0], last.list[0]);
    t.equal(bytesOf(body), bytesOf(writeChatBody(other, request)));
  }
});

t.test('whatever became of the conversation, the bytes are those of one that nobody has sent before', async (t) => {
  const random = new Random(testSeed);
  let messages: ModelMessage[] = [];
  let last: ChatBody | undefined;
  let takenOver = 0;
  for (let step = 0; step < 400; step += 1) {
    const roll = random.next();
    if (roll < 0.5) messages = [...messages, user(`"${step}" \\ 漢`)];
    else if (roll < 0.85) messages = [...messages, ...work(`call-${step}`, random.chance(0.2) ? '' : 'r\n'.repeat(random.int(1, 50)))];
    else if (roll < 0.88) messages = [...messages, { role: 'assistant', text: '', reasoning: '', toolCalls: [] }];
    else if (roll < 0.91) messages = messages.map((one) => (one.role === 'tool' && random.chance(0.3) ? { ...one, text: 'pruned' } : one));
    else if (roll < 0.94) messages = messages.slice(random.int(0, messages.length));
    else if (roll < 0.97) messages = messages.slice(0, random.int(0, messages.length));
    const request: ModelRequest = {
      system: random.chance(0.02) ? '' : 'Be brief.',
      tools: random.chance(0.05) ? [] : tools,
      messages: asHistory(messages),
      ...(random.chance(0.3) ? { maxOutputTokens: random.int(1, 200) } : {}),
    };
    const body = writeChatBody(config, request, last);
    if (last !== undefined && last.list.length > 0 && body.list[0] === last.list[0]) takenOver += 1;
    if (bytesOf(body) !== bytesOf(writeChatBody(config, request))) t.fail(`step ${step} of seed ${testSeed}`);
    if (body.list.length > 16) t.fail(`${body.list.length} pieces`);
    last = body;
  }
  t.ok(takenOver > 200, `${takenOver} bodies had something taken over`);
});
