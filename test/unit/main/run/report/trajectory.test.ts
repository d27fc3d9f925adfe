/**
 * What a log makes of a conversation that was not plain. That a plain one is what the model saw is tested with a real server.
 */
import t from 'tap';
import { Trajectory } from '../../../../../src/main/run/report/trajectory.ts';
import { trajectoryLine } from '../../../../../src/main/run/report/trajectory-file.ts';
import type { EventInput, TurnEndReason } from '../../../../../src/shared/events.ts';
import { sampleResult } from '../../../../support/run-samples.ts';
import { samples } from '../../../shared/log/sample-events.ts';

function trajectoryOf(...inputs: EventInput[]): Trajectory {
  const trajectory = new Trajectory();
  for (const [seq, input] of inputs.entries()) trajectory.onEvent({ ...input, seq, time: 0 });
  return trajectory;
}

const start = (turn: number): EventInput => ({ type: 'turn/start', data: { turn } });
const end = (turn: number, reason: TurnEndReason): EventInput => ({ type: 'turn/end', data: { ...samples['turn/end'], turn, reason } });
const user = (turn: number, text: string): EventInput => ({
  type: 'user/message',
  data: { turn, messageId: 'm', source: 'prompt', content: [{ type: 'text', text }] },
});
const answer = (turn: number, text: string, more: object = {}): EventInput => ({
  type: 'assistant/message',
  data: { turn, step: 1, messageId: 'm', text, reasoning: '', toolCalls: [], finish: 'stop', ...more },
});
const calls = (...ids: string[]) => ({ finish: 'tool-calls', toolCalls: ids.map((callId) => ({ callId, name: 'x', arguments: '' })) });
const result = (callId: string, text: string): EventInput => ({
  type: 'tool/result',
  data: { turn: 1, step: 1, callId, text, isError: false },
});
const contents = (trajectory: Trajectory) => trajectory.messages().messages.map(({ content }) => content);

t.test('what was summarized or cut for the model stands there whole, and is counted', async (t) => {
  const trajectory = trajectoryOf(
    start(1),
    user(1, 'one'),
    answer(1, 'two', calls('a')),
    result('a', 'long result'),
    { type: 'history/pruned', data: { callIds: ['a'], keepChars: 2 } },
    { type: 'history/compacted', data: { throughSeq: 3, summary: 'short' } },
    answer(1, 'three'),
  );
  t.same(contents(trajectory), ['one', 'two', 'long result', 'three']);
  t.equal(trajectory.compactions, 2);
});

t.test('what was undone is no part of what the model went on from; what was brought back is', async (t) => {
  const rewound = (kind: 'undo' | 'redo', ...turns: number[]): EventInput => ({
    type: 'history/rewound',
    data: { kind, undo: 1, base: 1, turns, restored: 0, removed: 0 },
  });
  const log = [start(1), user(1, 'one'), answer(1, 'first'), start(2), user(2, 'two'), start(3), user(3, 'three'), rewound('undo', 2, 3)];
  t.same(contents(trajectoryOf(...log)), ['one', 'first']);
  t.same(contents(trajectoryOf(...log, start(4), user(4, 'four'))), ['one', 'first', 'four']);
  t.same(contents(trajectoryOf(...log, rewound('redo', 2, 3))), ['one', 'first', 'two', 'three']);
  t.same(contents(trajectoryOf(...log, rewound('undo', 1), rewound('redo', 1), rewound('redo', 2, 3))), ['one', 'first', 'two', 'three']);
});

t.test('results stand behind their answer in the order of its calls; a missing one is not made up', async (t) => {
  const trajectory = trajectoryOf(
    user(1, 'go'),
    answer(1, '', calls('a', 'b', 'c')),
    result('c', 'C'),
    result('a', ''),
    result('zz', 'orphan'),
  );
  t.match(trajectory.messages(), {
    answered: false,
    messages: [
      { role: 'user' },
      { role: 'assistant', tool_calls: [{ id: 'a', function: { arguments: '{}' } }, { id: 'b' }, { id: 'c' }] },
      { role: 'tool', tool_call_id: 'a', content: '(no output)' },
      { role: 'tool', tool_call_id: 'c', content: 'C' },
    ],
  });
});

t.test('usage that was guessed, or that subagents had, is marked as such', async (t) => {
  const { usage } = sampleResult();
  const subagents = { inputTokens: 7, outputTokens: 2, cacheReadTokens: 3, reasoningTokens: 0 };
  const line = await trajectoryLine(sampleResult({ usage: { ...usage!, guessedTokens: 40, subagents } }), []);
  t.match(line.usage, { prompt_tokens: 1500, guessed_tokens: 40, subagents: { prompt_tokens: 10, completion_tokens: 2 } });
  t.notOk('guessed_tokens' in ((await trajectoryLine(sampleResult(), [])).usage ?? {}));
});

t.test('a refused turn is dropped where it was never sent again, and kept where it was the last', async (t) => {
  const refused = [start(1), user(1, 'no'), answer(1, 'I will not', { finish: 'refusal' }), end(1, { kind: 'refusal' })];
  t.same(contents(trajectoryOf(...refused)), ['no', 'I will not']);
  t.same(contents(trajectoryOf(...refused, start(2), user(2, 'yes'), answer(2, 'fine'))), ['yes', 'fine']);
});

t.test('an answer that broke off keeps its text and loses its calls; thoughts alone are no message', async (t) => {
  const trajectory = trajectoryOf(
    user(1, 'go'),
    answer(1, 'I was', { ...calls('a'), finish: 'interrupted' }),
    answer(1, '', { reasoning: 'hm' }),
  );
  t.same(trajectory.messages().messages, [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: 'I was' },
  ]);
});

t.test('instructions that changed on the way are told by the last ones', async (t) => {
  const header = (system: string): EventInput => ({ type: 'request/header', data: { ...samples['request/header'], system } });
  const trajectory = trajectoryOf(header('old'), user(1, 'go'), header('new'));
  t.same(contents(trajectory), ['new', 'go']);
  t.equal(trajectory.headerChanged, true);
});

t.test('the reward is what the check said, and nothing where nothing was checked', async (t) => {
  const check = { exitCode: 1, signal: null, timedOut: false, output: '' };
  const rewards = [];
  for (const status of ['passed', 'failed', 'completed', 'cancelled', 'error'] as const) {
    rewards.push((await trajectoryLine(sampleResult({ status }), [])).reward);
  }
  t.same(rewards, [1, 0, null, null, null]);
  t.equal((await trajectoryLine(sampleResult({ status: 'budget', check }), [])).reward, 0);
  t.equal((await trajectoryLine(sampleResult({ status: 'budget' }), [])).reward, null);
});
