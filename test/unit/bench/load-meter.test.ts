import t, { type Test } from 'tap';
import { LoadMeter } from '../../../bench/load/load-meter.ts';
import type { LoadSession } from '../../../bench/load/load-session.ts';

const delayMs = 10;

function asked(at: number): LoadSession {
  return { asked: [at], tokens: 0 } as unknown as LoadSession;
}

function near(t: Test, found: number, expected: number): void {
  t.ok(Math.abs(found - expected) <= expected / 500 + 0.001, `${found} for ${expected}`);
}

t.test('a delta is late by what lies between its sending and its arrival; the model server by what it sent it late', async (t) => {
  const meter = new LoadMeter(delayMs);
  const session = asked(1000);
  // The request was read at 1003, so the first delta is due at 1013.
  meter.text(session, '1013/1014 ', 1016);
  meter.text(session, '1023/1023.5 ', 1024);
  const { first, addedFirst, added, modelLate } = meter.figures();
  near(t, first.max, 16);
  near(t, addedFirst.max, 5);
  near(t, added.max, 2);
  near(t, modelLate.max, 1);
  t.equal(session.tokens, 2);
  t.equal(meter.wrong, 0);
});

t.test('deltas that came as one update are counted each, and what fills them up is none', async (t) => {
  const meter = new LoadMeter(0);
  const session = asked(1000);
  meter.text(session, '1001/1001/////// 1002/1002/////// 1003/1003/////// ', 1004);
  t.equal(session.tokens, 3);
  t.equal(meter.wrong, 0);
});

t.test('words that are no stamps, and turns without all of theirs, are wrong', async (t) => {
  const meter = new LoadMeter(0);
  const session = asked(1000);
  meter.text(session, 'tok0 1001/1001 ', 1002);
  t.equal(meter.wrong, 1);
  meter.answered(session, { askedAt: 1000, at: 1005, reason: 'end_turn', tokens: 2 });
  t.equal(meter.wrong, 2, 'one delta of two');
  session.tokens = 2;
  meter.answered(session, { askedAt: 1000, at: 1005, reason: 'cancelled', tokens: 2 });
  t.equal(meter.wrong, 3, 'another end');
  near(t, meter.figures().turn.max, 5);
});

t.test('text that nobody asked for is wrong', async (t) => {
  const meter = new LoadMeter(0);
  meter.text({ asked: [], tokens: 0 } as unknown as LoadSession, '1001/1001 ', 1002);
  t.equal(meter.wrong, 1);
});
