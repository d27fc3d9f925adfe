import t from 'tap';
import type { EventData, EventInput } from '../../../../src/shared/events.ts';
import { OpenTurnTracker } from '../../../../src/worker/log/open-turn-tracker.ts';
import { closingEvents } from '../../../../src/worker/log/repair.ts';
import { sample, samples, wholeTurn } from '../../shared/log/sample-events.ts';

/** The closers of a log that ends after these events; one event every 10 ms. */
function close(events: readonly EventInput[]): EventInput[] {
  const tracker = new OpenTurnTracker();
  events.forEach((event, seq) => tracker.feed({ ...event, seq, time: 1000 + seq * 10 }));
  const open = tracker.openTurn();
  return open === undefined ? [] : closingEvents(open);
}

function shape(events: readonly EventInput[]): unknown[] {
  return events.map((event) => (event.type === 'tool/result' ? [event.data.callId, event.data.code] : event.type));
}

function message(callIds: readonly string[], step = 1): EventInput {
  const toolCalls = callIds.map((callId) => ({ callId, name: 'bash', arguments: '{}' }));
  return { type: 'assistant/message', data: { ...samples['assistant/message'], step, toolCalls } };
}

function call(callId: string): EventInput {
  return { type: 'tool/call', data: { ...samples['tool/call'], callId } };
}

function start(callId: string): EventInput {
  return { type: 'tool/start', data: { ...samples['tool/start'], callId } };
}

function result(callId: string): EventInput {
  return { type: 'tool/result', data: { ...samples['tool/result'], callId } };
}

function chunk(change: Partial<EventData['assistant/chunk']>): EventInput {
  return { type: 'assistant/chunk', data: { ...samples['assistant/chunk'], ...change } };
}

const begin = [sample('turn/start'), sample('user/message'), sample('step/start')];

t.test('a whole turn needs no repair, nor does a log without turns', async (t) => {
  t.same(close(wholeTurn), []);
  t.same(close([]), []);
  t.same(close([sample('thread/attached'), sample('mode/change')]), []);
  t.same(close([...wholeTurn, ...wholeTurn]), []);
});

t.test('an interrupted turn is closed with what it used', async (t) => {
  t.same(shape(close([sample('turn/start')])), ['turn/end']);
  t.same(shape(close(begin)), ['step/end', 'turn/end']);
  const [end] = close([...wholeTurn.slice(0, -1), sample('step/start'), message([], 2), sample('step/end')]);
  t.same(end, {
    type: 'turn/end',
    data: {
      turn: 1,
      reason: { kind: 'interrupted' },
      usage: { inputTokens: 240, outputTokens: 60, cacheReadTokens: 120, reasoningTokens: 10, steps: 2, toolCalls: 1, elapsedMs: 140 },
    },
  });
  const [second] = close([...wholeTurn, { type: 'turn/start', data: { turn: 2 } }]);
  t.match(second, { data: { turn: 2, usage: { inputTokens: 0, steps: 0, toolCalls: 0 } } }, 'the turn before does not count');
});

t.test('every call without a result gets one that says whether it may have run, in call order', async (t) => {
  const events = [...begin, message(['a', 'b', 'c', 'd']), call('a'), start('a'), call('c'), call('d'), start('c'), result('a')];
  const closers = close(events);
  t.same(shape(closers), [
    'tool/call',
    ['b', 'TOOL_NOT_STARTED'],
    ['c', 'TOOL_OUTCOME_UNKNOWN'],
    ['d', 'TOOL_NOT_STARTED'],
    'step/end',
    'turn/end',
  ]);
  const texts = closers.flatMap((event) => (event.type === 'tool/result' ? [event.data.text] : []));
  t.match(texts[0], /not started.*Nothing was changed/s);
  t.match(texts[1], /unknown.*Check the present state first/s);
  t.ok(closers.every((event) => event.type !== 'tool/result' || event.data.isError));
});

t.test('a call whose permission was still asked for, or that was allowed only, has not started', async (t) => {
  const asked = [...begin, message(['c1']), call('c1'), sample('permission/asked')];
  for (const events of [asked, [...asked, sample('permission/decided')]]) {
    t.same(shape(close(events)), [['c1', 'TOOL_NOT_STARTED'], 'step/end', 'turn/end']);
  }
  t.same(shape(close([...asked, sample('permission/decided'), start('c1')])), [['c1', 'TOOL_OUTCOME_UNKNOWN'], 'step/end', 'turn/end']);
});

t.test('streamed text without its message is kept as an interrupted message', async (t) => {
  const closers = close([...begin, chunk({ kind: 'reasoning', text: 'hm' }), chunk({ text: 'I ' }), chunk({ text: 'will' })]);
  t.same(closers[0], {
    type: 'assistant/message',
    data: { turn: 1, step: 1, messageId: 'm2', text: 'I will', reasoning: 'hm', toolCalls: [], finish: 'interrupted' },
  });
  t.same(shape(closers), ['assistant/message', 'step/end', 'turn/end']);
});

t.test('text is not repeated once its message is there, and that of a given up attempt is dropped', async (t) => {
  t.same(shape(close([...begin, chunk({ text: 'x' }), message([])])), ['step/end', 'turn/end']);
  t.same(shape(close([...begin, chunk({ text: 'x' }), sample('llm/retry')])), ['step/end', 'turn/end']);
  t.same(shape(close([...begin, chunk({ text: '' })])), ['step/end', 'turn/end']);
  const closers = close([...begin, chunk({ text: 'old' }), sample('llm/retry'), chunk({ text: 'new', messageId: 'm3' })]);
  t.match(closers[0], { data: { messageId: 'm3', text: 'new' } });
});

t.test('wherever a log ends, its repair leaves nothing open', async (t) => {
  for (let length = 0; length <= wholeTurn.length; length += 1) {
    const events = wholeTurn.slice(0, length);
    t.same(close([...events, ...close(events)]), [], `after ${length} events`);
  }
});
