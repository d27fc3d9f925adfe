import t from 'tap';
import type { EventData, LogEvent, TurnEndReason } from '../../../../src/shared/events.ts';
import { KeyedTurns } from '../../../../src/worker/session/keyed-turns.ts';
import { storedTurn } from '../../../../src/worker/session/stored-turn.ts';
import { samples } from '../../shared/log/sample-events.ts';

const { usage } = samples['turn/end'];
const at = (type: string, data: object): LogEvent => ({ type, seq: 0, time: 0, data }) as unknown as LogEvent;
const begin = (turn: number, key?: string, payload?: string): LogEvent =>
  at('turn/start', { turn, ...(key === undefined ? {} : { key, payload }) });
const end = (turn: number, reason: TurnEndReason, more: Partial<EventData['turn/end']> = {}): LogEvent =>
  at('turn/end', { turn, reason, usage, ...more });
const message = (turn: number, text: string): LogEvent => at('assistant/message', { ...samples['assistant/message'], turn, text });

const log: LogEvent[] = [
  begin(1, 'done', 'p1'),
  message(1, 'First.'),
  message(1, 'Last.'),
  message(1, ''),
  end(1, { kind: 'completed' }, { structured: { verdict: 'good' } }),
  begin(2),
  message(2, 'Of no key.'),
  end(2, { kind: 'completed' }),
  begin(3, 'crashed', 'p3'),
  message(3, 'Half.'),
  end(3, { kind: 'interrupted' }),
  begin(4, 'spent', 'p4'),
  end(4, { kind: 'max-turn-requests', budget: 'tokens', scope: 'session' }),
  begin(5, 'failed', 'p5'),
  end(5, { kind: 'error', code: 'TIMEOUT', message: 'too slow' }),
  begin(6, 'open', 'p6'),
  message(6, 'Begun.'),
];

const known = new KeyedTurns();
for (const event of log) known.observe(event);
const answer = (id: string, payload: string, answersWithText = true) =>
  storedTurn({ id, payload }, { keyedTurns: known, replay: async (onEvent) => log.forEach(onEvent), answersWithText });

t.test('a key is known from the start of its turn on', async (t) => {
  t.equal(answer('new', 'p'), undefined);
  t.equal(known.stateOf({ id: 'done', payload: 'p1' }), 'ended');
  t.equal(known.stateOf({ id: 'done', payload: 'other' }), 'conflict');
  t.equal(known.stateOf({ id: 'crashed', payload: 'p3' }), 'cut');
  t.equal(known.stateOf({ id: 'open', payload: 'p6' }), 'cut', 'its end is not on record');
  for (const odd of ['__proto__', 'constructor', 'toString']) t.equal(known.stateOf({ id: odd, payload: 'p' }), 'unknown');
});

t.test('an answer from the log is that of the turn, as it ended', async (t) => {
  t.same(await answer('done', 'p1'), {
    ok: true,
    stopReason: 'end_turn',
    usage,
    text: 'Last.',
    structured: { verdict: 'good' },
    stored: true,
  });
  t.notOk('text' in ((await answer('done', 'p1', false)) ?? {}), 'no text for a client that was shown it');
  t.match(await answer('spent', 'p4'), { stopReason: 'max_turn_requests', spent: { budget: 'tokens', scope: 'session' }, stored: true });
  t.match(await answer('failed', 'p5'), { ok: false, error: { code: 'MODEL_FAILED', data: { reason: 'TIMEOUT' } }, usage, stored: true });
  t.match(await answer('done', 'p2'), { ok: false, error: { code: 'KEY_CONFLICT' } });
});

t.test('a turn that was cut short is an error with what there is of it', async (t) => {
  t.match(await answer('crashed', 'p3'), { ok: false, error: { code: 'TURN_INTERRUPTED' }, usage, text: 'Half.', stored: true });
  const open = (await answer('open', 'p6')) as object;
  t.match(open, { ok: false, error: { code: 'TURN_INTERRUPTED' } });
  t.notOk('usage' in open, 'nobody counted');
});

t.test('a log that cannot be read answers with its error', async (t) => {
  const replay = async (): Promise<void> => Promise.reject(new Error('no'));
  t.match(await storedTurn({ id: 'done', payload: 'p1' }, { keyedTurns: known, replay, answersWithText: true }), {
    ok: false,
    error: { code: 'INTERNAL' },
  });
});
