/**
 * Bytes of a model server's event stream, through decoder, translator and joiner; one input in forty through a real connection.
 *
 * However the bytes are cut, the outcome is the same: an answer, or a failure of a known code.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createParser } from 'eventsource-parser';
import { ChatTranslator } from '../../../src/worker/model/chat-translator.ts';
import { type ModelEvent, ModelFailure, type ModelFinish } from '../../../src/worker/model/model-adapter.ts';
import { OpenAiChatModel } from '../../../src/worker/model/openai-chat.ts';
import { SseDecoder } from '../../../src/worker/model/sse-decoder.ts';
import { expect, type FuzzTarget } from '../fuzz-target.ts';
import { hostileJson, objectText, spoilJson, texts } from '../hostile-values.ts';
import { pieces } from '../mutate.ts';
import type { Random } from '../random.ts';

const limits = { maxStreamBytes: 48 * 1024, maxEventChars: 8 * 1024 };
const known = [
  'AUTH',
  'QUOTA',
  'RATE_LIMIT',
  'INVALID_REQUEST',
  'CONTEXT_WINDOW',
  'SERVER',
  'STREAM_CLOSED',
  'MALFORMED_RESPONSE',
  'EMPTY_RESPONSE',
];
const oneInSoMany = 40;
const mostCalls = 512;

interface Outcome {
  readonly events: readonly ModelEvent[];
  readonly end: ModelFinish | string;
}

let local: Server | undefined;
let body = Buffer.alloc(0);
let model: OpenAiChatModel | undefined;

export const modelStreamTarget: FuzzTarget = {
  name: 'model-stream',
  maxInputBytes: 64 * 1024,
  seeds: [
    Buffer.from(
      'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    ),
    Buffer.from(
      'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\\"f"}}]}}]}\r\n\r\n' +
        'data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"a","function":{"name":"bash","arguments":"{}"}},{"index":0,"function":{"arguments":"\\":1}"}}]}}]}\r\n\r\n' +
        'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}\r\n\r\n',
    ),
  ],
  generate: (random) =>
    Buffer.concat(random.list(12, () => event(random)).concat(random.chance(3) ? [] : [Buffer.from('data: [DONE]\n\n')])),
  async check(input, random) {
    const whole = outcomeOf([input]);
    judge(whole, input);
    const same = isSettled(input) ? sameOutcome : judgeAlone;
    for (const parts of [pieces(random, input), ...(input.length < 3000 ? [pieces(random, input, true)] : [])])
      same(outcomeOf(parts), whole);
    if (random.chance(oneInSoMany)) same(await overHttp(input), whole);
  },
  async close() {
    local?.closeAllConnections();
    local?.close();
    local = undefined;
    model = undefined;
  },
};

function event(random: Random): Buffer {
  const data = chunk(random);
  const end = random.pick(['\n\n', '\n\n', '\r\n\r\n', '\r\r', '\n']);
  switch (random.below(14)) {
    case 0:
      return Buffer.from(`: keep-alive${end}`);
    case 1:
      return Buffer.from(`event: x\nid: 1\nretry: 5\n${data}${end}`);
    case 2:
      return Buffer.from(`data:${data}${end}`);
    case 3:
      return Buffer.from(`data: ${data.replace(',', ',\ndata: ')}${end}`);
    case 4:
      return Buffer.concat([
        Buffer.from('data: {"choices":[{"delta":{"content":"'),
        Buffer.from([0xe2, 0x82, 0xff, 0xc0]),
        Buffer.from(`"}}]}${end}`),
      ]);
    case 5:
      return Buffer.from(`data: {"choices":[{"delta":{"content":"${'x'.repeat(limits.maxEventChars - 50 + random.below(100))}"}}]}${end}`);
    default:
      return Buffer.from(`data: ${data}${end}`);
  }
}

function chunk(random: Random): string {
  const piece = () => ({
    index: random.pick([0, 1, 2, 0, 1, -1, 1.5, 600, 1e20]),
    ...(random.chance(2) ? { id: random.pick(['a', 'b', '', 'c'.repeat(300), '__proto__']) } : {}),
    function: {
      ...(random.chance(2) ? { name: random.pick(['bash', 'read', '', '__proto__']) } : {}),
      arguments: random.pick(['{}', '{"a":', '1}', '', '"', '{"command":"ls"}']),
    },
  });
  const delta = random.pick<() => object>([
    () => ({ content: random.pick(['a', 'word ', 'b\u20ac', '\u{1f600}', '"', '\\']) }),
    () => ({ content: random.pick(texts) }),
    () => ({ reasoning_content: random.pick(texts) }),
    () => ({ reasoning: 'hm', content: null }),
    () => ({ refusal: random.pick(['', 'no']) }),
    () => ({ tool_calls: random.list(3, piece) }),
    () => ({ role: 'assistant', content: '' }),
  ])();
  const finish = random.chance(5)
    ? random.pick(['stop', 'tool_calls', 'length', 'content_filter', 'function_call', 'error', 'odd', ''])
    : null;
  const whole = {
    id: 'x',
    object: 'chat.completion.chunk',
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...(random.chance(5) ? { usage: { prompt_tokens: 3, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 9 } } } : {}),
  };
  switch (random.below(8)) {
    case 0:
      return spoilJson(random, whole);
    case 1:
      return hostileJson(random);
    case 2:
      return random.chance(3)
        ? objectText([['error', hostileJson(random)]])
        : JSON.stringify({ ...whole, choices: random.pick([[], null, [null], [{}]]) });
    default:
      return JSON.stringify(whole);
  }
}

function outcomeOf(parts: readonly Buffer[]): Outcome {
  const events: ModelEvent[] = [];
  try {
    const translator = new ChatTranslator({ usedCallIds: () => new Set(['a']), sink: (one) => events.push(one), apiKey: undefined });
    let isDone = false;
    const decoder = new SseDecoder((data) => {
      if (!isDone) isDone = translator.take(data) === 'done';
    }, limits);
    for (const part of parts) {
      decoder.feed(part);
      if (isDone) break;
    }
    return { events, end: translator.finish() };
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error;
    expect(
      !/[\p{Cc}\u2028]/u.test(error.message) && error.message.length < 500,
      () => `a failure whose message is not one line: ${error.message}`,
    );
    return { events, end: error.code };
  }
}

async function overHttp(input: Buffer): Promise<Outcome> {
  if (local === undefined) {
    local = createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(body));
    }).listen(0, '127.0.0.1');
    await once(local, 'listening');
    const baseUrl = `http://127.0.0.1:${(local.address() as AddressInfo).port}/v1`;
    const settings = {
      kind: 'openai-compatible',
      dialect: 'generic',
      baseUrl,
      model: 'm',
      contextWindow: 1000,
      maxOutputTokens: 100,
      firstByteTimeoutMs: 5000,
      idleTimeoutMs: 5000,
      apiKey: undefined,
    };
    model = new OpenAiChatModel(settings as never, limits);
  }
  body = Buffer.from(input);
  const events: ModelEvent[] = [];
  const messages = [{ role: 'assistant', text: '', reasoning: '', toolCalls: [{ callId: 'a', name: 'x', arguments: '{}' }] }] as const;
  try {
    const end = await model!.stream({ system: '', messages, tools: [] }, (one) => events.push(one), {
      signal: new AbortController().signal,
      whenWritable: () => undefined,
    });
    return { events, end };
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error;
    return { events, end: error.code };
  }
}

/**
 * Whether the stream means one thing however it is cut. A lone CR at the end of a piece may be half of a line end, and a limit is seen
 * at the end of a piece.
 */
function isSettled(input: Buffer): boolean {
  const text = input.toString('latin1');
  return (
    !/\r(?!\n)/.test(text) && input.length <= limits.maxStreamBytes && text.split('\n\n').every((one) => one.length < limits.maxEventChars)
  );
}

function judgeAlone({ end }: Outcome): void {
  expect(typeof end !== 'string' || known.includes(end), () => `a failure of the code ${JSON.stringify(end)}`);
}

function sameOutcome(found: Outcome, wanted: Outcome): void {
  const [got, want] = [JSON.stringify(found), JSON.stringify(wanted)];
  expect(got === want, () => `cut otherwise, the stream gives another outcome: ${got.slice(0, 700)} instead of ${want.slice(0, 700)}`);
}

function judge({ events, end }: Outcome, input: Buffer): void {
  const streamed = events.filter((one) => one.type === 'text' || one.type === 'reasoning').reduce((sum, one) => sum + one.text.length, 0);
  expect(streamed <= input.length, () => `more text (${streamed}) than bytes (${input.length})`);
  if (typeof end === 'string') {
    expect(known.includes(end), () => `a failure of the code ${end}`);
    return;
  }
  const naive = naiveText(input);
  const told = events.filter((one) => one.type === 'text').reduce((sum, one) => sum + one.text, '');
  expect(told === naive, () => `the text is not what the stream says: ${told.slice(0, 300)} instead of ${naive.slice(0, 300)}`);
  const callIds = end.toolCalls.map(({ callId }) => callId);
  expect(
    new Set(callIds).size === callIds.length && callIds.length <= mostCalls && !callIds.includes('a'),
    () => `ids that are not unique: ${callIds.join()}`,
  );
  for (const { callId, name, arguments: args } of end.toolCalls) {
    const shown = events
      .filter((one) => one.type === 'tool-call-delta' && one.callId === callId)
      .map((one) => (one as { text: string }).text);
    expect(name !== '' && shown.join('') === args, () => `call ${callId} was shown with other arguments`);
  }
}

/** What the stream says, event by event. */
function naiveText(input: Buffer): string {
  let text = '';
  let isOver = false;
  const parser = createParser({
    onEvent: ({ data }) => {
      isOver ||= data === '[DONE]';
      if (isOver) return;
      const delta = (JSON.parse(data) as { choices?: any }).choices?.[0]?.delta;
      if (typeof delta?.content === 'string') text += delta.content;
      if (typeof delta?.refusal === 'string') text += delta.refusal;
    },
  });
  parser.feed(input.toString('utf8').replace(/^\ufeff/, ''));
  return text;
}
