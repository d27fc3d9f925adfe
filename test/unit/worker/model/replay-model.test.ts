/**
 * Replayed streams, the choice of an adapter, and the retry policy.
 */
import * as fc from 'fast-check';
import t from 'tap';
import type { ModelConfig } from '../../../../src/shared/config.ts';
import { createModel } from '../../../../src/worker/model/create-model.ts';
import {
  type ModelEvent,
  ModelFailure,
  type ModelFailureCode,
  type ModelFinish,
  type ModelMessage,
  type ModelRequest,
} from '../../../../src/worker/model/model-adapter.ts';
import { requestHash } from '../../../../src/worker/model/recorded-turns.ts';
import { ReplayModel } from '../../../../src/worker/model/replay-model.ts';
import { nextDelay } from '../../../../src/worker/model/retry-policy.ts';
import { chunkJson, usageJson } from '../../../support/answer-frames.ts';

const request: ModelRequest = { system: 's', messages: [{ role: 'user', text: 'hello there' }], tools: [] };
const chunk = (text: string, finish: string | null = null): unknown => JSON.parse(chunkJson({ content: text }, finish));

let files = 0;
const dir = t.testdir();
async function fileWith(turns: unknown): Promise<string> {
  const { writeFile } = await import('node:fs/promises');
  const path = `${dir}/recording-${(files += 1)}.json`;
  await writeFile(path, typeof turns === 'string' ? turns : JSON.stringify({ turns }));
  return path;
}

interface Played {
  readonly text: string;
  readonly finish: ModelFinish | undefined;
  readonly failure: ModelFailure | undefined;
}

async function call(
  model: ReplayModel,
  asked: ModelRequest = request,
  signal: AbortSignal = new AbortController().signal,
): Promise<Played> {
  const events: ModelEvent[] = [];
  const text = (): string => events.map((event) => ('text' in event ? event.text : '')).join('');
  try {
    const finish = await model.stream(asked, (event) => events.push(event), { signal, whenWritable: () => undefined });
    return { text: text(), finish, failure: undefined };
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error;
    return { text: text(), finish: undefined, failure: error };
  }
}

t.test('replay', async (t) => {
  t.test('turns are played in order, through the live translation', async (t) => {
    const usage: unknown = JSON.parse(usageJson({ prompt_tokens: 3, completion_tokens: 2 }));
    const model = ReplayModel.open(
      await fileWith([
        { chunks: [chunk('one '), chunk('two', 'stop'), usage] },
        { sse: `: hi\r\ndata: ${chunkJson({ content: 'raw' }, 'stop')}\r\n\r\ndata: [DONE]\r\n\r\n` },
      ]),
    );
    t.match(await call(model), { text: 'one two', finish: { reason: 'stop', usage: { inputTokens: 3, outputTokens: 2 } } });
    t.match(await call(model), { text: 'raw', finish: { reason: 'stop' } });
    const over = await call(model);
    t.match(over.failure, { code: 'SCRIPT_MISMATCH', message: /has 2 model calls, but call 3/ });
  });

  t.test('expectations are checked', async (t) => {
    const chunks = [chunk('x', 'stop')];
    const right = ReplayModel.open(await fileWith([{ expect: { lastUser: '^hello', requestHash: requestHash(request) }, chunks }]));
    t.equal((await call(right)).finish?.reason, 'stop');
    const wrongUser = ReplayModel.open(await fileWith([{ expect: { lastUser: '^bye' }, chunks }]));
    t.match((await call(wrongUser)).failure, { code: 'SCRIPT_MISMATCH', message: /hello there/ });
    const wrongHash = ReplayModel.open(await fileWith([{ expect: { requestHash: requestHash({ ...request, system: 'other' }) }, chunks }]));
    t.match((await call(wrongHash)).failure, { code: 'SCRIPT_MISMATCH', message: /request hash/ });
  });

  t.test('failures, cuts, broken chunks and hangs', async (t) => {
    const model = ReplayModel.open(
      await fileWith([
        { chunks: [chunk('part ')], failure: { code: 'RATE_LIMIT', message: 'slow', status: 429, retryAfterMs: 5 } },
        { chunks: [chunk('part ')], cut: true },
        { sse: 'data: {"choices\n\n' },
        { chunks: [chunk('part ')], hang: true },
        { chunks: [chunk('x'), chunk('y', 'stop')], delayMs: 60_000 },
      ]),
    );
    t.match(await call(model), { text: 'part ', failure: { code: 'RATE_LIMIT', status: 429, retryAfterMs: 5 } });
    t.match(await call(model), { text: 'part ', failure: { code: 'STREAM_CLOSED' } });
    t.match(await call(model), { failure: { code: 'MALFORMED_RESPONSE' } });
    for (const text of ['part ', '']) {
      const controller = new AbortController();
      const pending = call(model, request, controller.signal);
      setTimeout(() => controller.abort(), 20);
      t.match(await pending, { text, failure: { code: 'ABORTED' } });
    }
  });

  t.test('a revived session goes on behind the answers of its history', async (t) => {
    const path = await fileWith([{ failure: { code: 'SERVER' } }, { chunks: [chunk('one', 'stop')] }, { chunks: [chunk('two', 'stop')] }]);
    const answer: ModelMessage = { role: 'assistant', text: 'one', reasoning: '', toolCalls: [] };
    const history: ModelRequest = { ...request, messages: [...request.messages, answer, { role: 'user', text: 'more' }] };
    t.equal((await call(ReplayModel.open(path), history)).text, 'two');
  });

  t.test('a file that says something wrong is refused, with the place', async (t) => {
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      ['not json', /cannot be used/],
      ['[]', /must be an object/],
      [{}, /turns must be an array/],
      [[{ chunks: 5 }], /turns\[0\]\.chunks/],
      [[{ chunks: ['x'] }], /turns\[0\]\.chunks\[0\]/],
      [[{ chunk: [] }], /turns\[0\]\.chunk is not known/],
      [[{ delayMs: 'x' }], /delayMs must be a number/],
      [[{ failure: { code: 'NO' } }], /failure\.code/],
      [[{ expect: { lastUser: '(' } }], /regular expression/i],
    ];
    for (const [turns, message] of wrong) {
      const path = await fileWith(turns);
      t.throws(() => ReplayModel.open(path), { code: 'CONFIG_INVALID', message }, String(message));
    }
    t.throws(() => ReplayModel.open(`${dir}/none.json`), { code: 'CONFIG_INVALID' });
    t.throws(() => ReplayModel.open(dir), { code: 'CONFIG_INVALID', message: /regular file/ });
  });
});

const chat: ModelConfig = {
  kind: 'openai-compatible',
  dialect: 'deepseek',
  baseUrl: 'http://127.0.0.1:1/v1',
  model: 'm',
  apiKey: undefined,
  contextWindow: 77,
  maxOutputTokens: 1,
  thinking: 'off',
  firstByteTimeoutMs: 1,
  idleTimeoutMs: 1,
  maxRetries: 2,
  maxRetryAfterMs: 60_000,
};

const only = (model: ModelConfig) => ({ model, prices: undefined });

t.test('the configuration chooses the adapter', async (t) => {
  t.match(createModel(only({ kind: 'scripted', paceMs: 0 })), { provider: 'scripted', model: 'scripted' });
  t.match(createModel(only({ kind: 'replay', path: await fileWith([]) })), { provider: 'replay' });
  t.match(createModel(only(chat)), { provider: 'deepseek', model: 'm', contextWindow: 77 });
  t.equal(createModel(only({ ...chat, dialect: 'generic' })).provider, 'openai-compatible');
  t.throws(() => createModel(only({ ...chat, baseUrl: 'file:///x' })), { code: 'CONFIG_INVALID' });
});

t.test('retry policy', async (t) => {
  const minute = 60_000;
  const failure = (code: ModelFailureCode, retryAfterMs?: number): ModelFailure =>
    new ModelFailure(code, 'x', retryAfterMs === undefined ? {} : { retryAfterMs });
  const high = (): number => 0.999_999;
  for (const code of ['RATE_LIMIT', 'SERVER', 'TIMEOUT', 'TRANSPORT', 'STREAM_CLOSED', 'MALFORMED_RESPONSE', 'EMPTY_RESPONSE'] as const) {
    t.equal(typeof nextDelay(1, failure(code), high, minute), 'number', code);
  }
  for (const code of ['ABORTED', 'AUTH', 'QUOTA', 'INVALID_REQUEST', 'CONTEXT_WINDOW', 'SCRIPT_MISMATCH'] as const) {
    t.equal(nextDelay(1, failure(code, 1), high, minute), undefined, code);
  }
  t.same(
    [1, 2, 3, 4, 5, 6, 9].map((attempt) => nextDelay(attempt, failure('SERVER'), high, minute)),
    [499, 999, 1999, 3999, 7999, 9999, 9999],
  );
  t.equal(
    nextDelay(3, failure('SERVER'), () => 0, minute),
    0,
    'full jitter',
  );
  t.equal(
    nextDelay(1, failure('RATE_LIMIT', 60_000), () => 0, minute),
    60_000,
  );
  t.equal(
    nextDelay(1, failure('RATE_LIMIT', 60_001), () => 0, minute),
    undefined,
    'too long a wait gives up',
  );
  t.equal(
    nextDelay(1, failure('RATE_LIMIT', 900_000), () => 0, 15 * minute),
    900_000,
    'unless more is allowed',
  );
  t.equal(
    nextDelay(1, failure('RATE_LIMIT', 900_001), () => 0, 15 * minute),
    undefined,
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.option(fc.nat(100_000), { nil: undefined }),
      fc.double({ min: 0, max: 0.999_999, noNaN: true }),
      (attempt, wish, random) => {
        const delay = nextDelay(attempt, failure('RATE_LIMIT', wish), () => random, minute);
        if (delay === undefined) return wish !== undefined && wish > 60_000;
        return Number.isInteger(delay) && delay >= (wish ?? 0) && delay <= (wish ?? 9_500) + 500;
      },
    ),
  );
});
