/** From the events of a turn to its spans. */
import t from 'tap';
import type { EventInput, TurnEndReason } from '../../../../src/shared/events.ts';
import type { TurnTrace } from '../../../../src/shared/turn-trace.ts';
import { mostSpans } from '../../../../src/worker/telemetry/span-list.ts';
import { TurnTracer } from '../../../../src/worker/telemetry/turn-tracer.ts';

const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 900, reasoningTokens: 5 };
const secret = 'nobody may read this';

class Rig {
  readonly traces: TurnTrace[] = [];
  readonly tracer = new TurnTracer({ sessionId: 's1', report: (trace) => void this.traces.push(trace) });
  #seq = 0;
  #time = 1000;

  /** Each event is 10 ms after the one before. */
  log(input: EventInput): void {
    this.#time += 10;
    this.tracer.take({ ...input, seq: this.#seq++, time: this.#time });
  }

  start(traceparent?: string): void {
    this.log({ type: 'turn/start', data: { turn: 3, ...(traceparent === undefined ? {} : { traceparent }) } });
    this.log({ type: 'user/message', data: { turn: 3, messageId: 'm', source: 'prompt', content: [{ type: 'text', text: secret }] } });
  }

  header(model = 'flash'): EventInput {
    return { type: 'request/header', data: { provider: 'deepseek', model, system: secret, tools: [], toolsHash: '' } };
  }

  step(step: number): void {
    this.log({ type: 'step/start', data: { turn: 3, step } });
  }

  answer(step: number, more: Partial<Extract<EventInput, { type: 'assistant/message' }>['data']> = {}): void {
    const data = { turn: 3, step, messageId: 'm', text: secret, reasoning: secret, toolCalls: [], finish: 'stop', usage, ...more } as const;
    this.log({ type: 'assistant/message', data });
  }

  call(step: number, callId: string, name = 'bash'): void {
    this.log({ type: 'tool/call', data: { turn: 3, step, callId, name, arguments: `{"command":"${secret}"}` } });
  }

  result(step: number, callId: string, code?: string): void {
    const failure = code === undefined ? { isError: false } : { isError: true, code };
    this.log({ type: 'tool/result', data: { turn: 3, step, callId, text: secret, ...failure } });
  }

  end(reason: TurnEndReason = { kind: 'completed' }): TurnTrace {
    const total = { ...usage, steps: 2, toolCalls: 1, elapsedMs: 90, firstTokenMs: 12, costUsd: 0.5 };
    this.log({ type: 'turn/end', data: { turn: 3, reason, usage: total } });
    return this.traces.at(-1)!;
  }
}

t.test('a turn, its model calls and its tool calls are spans, the turn above the others', async (t) => {
  const rig = new Rig();
  rig.start('00-11111111111111111111111111111111-2222222222222222-01');
  rig.log(rig.header());
  rig.step(1);
  rig.answer(1, { finish: 'tool-calls', model: 'flash-0815' });
  rig.call(1, 'c1');
  rig.log({ type: 'tool/start', data: { turn: 3, step: 1, callId: 'c1' } });
  rig.result(1, 'c1');
  rig.step(2);
  rig.answer(2);
  const { sessionId, traceparent, spans } = rig.end();
  t.equal(sessionId, 's1');
  t.equal(traceparent, '00-11111111111111111111111111111111-2222222222222222-01');
  t.same(
    spans.map(({ name, operation, parent, startMs, endMs, error }) => [name, operation, parent, startMs, endMs, error]),
    [
      ['invoke_agent', 'invoke_agent', undefined, 1010, 1110, undefined],
      ['chat flash', 'chat', 0, 1040, 1050, undefined],
      ['execute_tool bash', 'execute_tool', 0, 1060, 1080, undefined],
      ['chat flash', 'chat', 0, 1090, 1100, undefined],
    ],
  );
  const about = { 'gen_ai.provider.name': 'deepseek', 'gen_ai.request.model': 'flash', 'gen_ai.conversation.id': 's1' };
  const tokens = {
    'gen_ai.usage.input_tokens': 1000,
    'gen_ai.usage.cache_read.input_tokens': 900,
    'gen_ai.usage.output_tokens': 20,
    'gen_ai.usage.reasoning.output_tokens': 5,
  };
  t.same(spans[0]?.attributes, {
    'gen_ai.operation.name': 'invoke_agent',
    ...about,
    ...tokens,
    'dsh_acp.turn': 3,
    'dsh_acp.steps': 2,
    'dsh_acp.tool_calls': 1,
    'dsh_acp.stop_reason': 'completed',
    'dsh_acp.cost_usd': 0.5,
    'dsh_acp.first_token_ms': 12,
  });
  t.same(spans[1]?.attributes, {
    'gen_ai.operation.name': 'chat',
    ...about,
    ...tokens,
    'gen_ai.response.model': 'flash-0815',
    'gen_ai.response.finish_reasons': ['tool-calls'],
    'dsh_acp.step': 1,
  });
  t.same(spans[2]?.attributes, {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.conversation.id': 's1',
    'gen_ai.tool.name': 'bash',
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.call.id': 'c1',
    'dsh_acp.step': 1,
    'dsh_acp.tool_wait_ms': 10,
  });
  t.notMatch(JSON.stringify(rig.traces), secret, 'no text of a prompt, an answer, an argument or a result');
});

t.test('each attempt at an answer is a span of its own; the waits are none', async (t) => {
  const rig = new Rig();
  rig.tracer.learn({ ...rig.header(), seq: 0, time: 0 });
  rig.start();
  rig.step(1);
  rig.log({ type: 'llm/wait', data: { turn: 3, step: 1, position: 4, waitedMs: 7 } });
  const retry = { turn: 3, step: 1, attempt: 1, maxAttempts: 6, delayMs: 5, code: 'RATE_LIMIT', message: secret };
  rig.log({ type: 'llm/retry', data: retry });
  rig.answer(1);
  const { spans } = rig.end();
  t.same(
    spans.slice(1).map(({ name, startMs, endMs, error }) => [name, startMs, endMs, error]),
    [
      ['chat flash', 1040, 1050, 'RATE_LIMIT'],
      ['chat flash', 1055, 1060, undefined],
    ],
    'the model is known from the stored log',
  );
  t.match(spans[1]?.attributes, { 'dsh_acp.slot_wait_ms': 7, 'error.type': 'RATE_LIMIT' });
  t.match(spans[2]?.attributes, { 'dsh_acp.attempt': 2 });
  t.notMatch(JSON.stringify(rig.traces), secret);
});

t.test('what a turn leaves open ends with it, for its reason; what never began is no span', async (t) => {
  const rig = new Rig();
  rig.start();
  rig.step(1);
  rig.answer(1, { finish: 'tool-calls' });
  rig.call(1, 'c1');
  rig.call(1, 'c2', 'read');
  rig.result(1, 'c2', 'NOT_FOUND');
  rig.step(2);
  const ended = rig.end({ kind: 'cancelled' });
  t.same(
    ended.spans.map(({ name, error }) => [name, error]),
    [
      ['invoke_agent', undefined],
      ['chat', undefined],
      ['execute_tool read', 'NOT_FOUND'],
      ['chat', 'cancelled'],
      ['execute_tool bash', 'cancelled'],
    ],
    'a cancel is no failure of the turn',
  );
  rig.start();
  rig.step(1);
  const retry = { turn: 3, step: 1, attempt: 1, maxAttempts: 6, delayMs: 9000, code: 'SERVER', message: '' };
  rig.log({ type: 'llm/retry', data: retry });
  const failed = rig.end({ kind: 'error', code: 'SERVER', message: secret });
  t.same(
    failed.spans.map(({ name, error }) => [name, error]),
    [
      ['invoke_agent', 'SERVER'],
      ['chat', 'SERVER'],
    ],
    'the second attempt never came',
  );
  t.notMatch(JSON.stringify(rig.traces), secret);
});

t.test('an end without a start, as repair writes it, is no trace; and each turn is told once', async (t) => {
  const rig = new Rig();
  rig.end({ kind: 'interrupted' });
  t.same(rig.traces, []);
  rig.start();
  rig.end();
  rig.log({ type: 'todo/write', data: { todos: [] } });
  rig.end();
  t.equal(rig.traces.length, 1);
});

t.test('of a very long turn the oldest spans go, and it says how many', async (t) => {
  const rig = new Rig();
  rig.start();
  for (let call = 0; call < mostSpans + 250; call += 1) {
    rig.call(1, `c${call}`, `tool${call}`);
    rig.result(1, `c${call}`);
  }
  const { spans } = rig.end();
  t.ok(spans.length <= mostSpans + 1);
  t.equal(spans[0]?.attributes['dsh_acp.dropped_spans'], mostSpans + 250 + 1 - spans.length);
  t.equal(spans.at(-1)?.name, `execute_tool tool${mostSpans + 249}`);
});

t.test('a name that a model made up is cut', async (t) => {
  const rig = new Rig();
  rig.start();
  rig.call(1, 'c', 'x'.repeat(5000));
  rig.result(1, 'c', 'UNKNOWN_TOOL');
  t.ok(rig.end().spans[1]!.name.length < 120);
});
