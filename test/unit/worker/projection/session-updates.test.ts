/** What a client is told of the session as a whole, event by event. */
import t from 'tap';
import type { EventInput, LogEvent } from '../../../../src/shared/events.ts';
import { Projector } from '../../../../src/worker/projection/projector.ts';

function shown(event: EventInput, profile: 'editor' | 'automation' = 'editor'): unknown[] {
  const projector = new Projector({ sessionId: 's', cwd: '/w', profile, client: { terminalOutput: false }, tools: () => undefined });
  return projector.project({ ...event, seq: 3, time: 1_764_500_000_000 } as LogEvent);
}

const context = { used: 1200, size: 128_000, costUsd: 0.012 };
const step: EventInput = { type: 'step/end', data: { turn: 1, step: 1, context } };
const usage = { sessionUpdate: 'usage_update', used: 1200, size: 128_000 };

t.test('a step and a summary tell of window and cost, as far as their event does', async (t) => {
  t.same(shown(step), [{ ...usage, cost: { amount: 0.012, currency: 'USD' } }]);
  const { costUsd: _, ...unpriced } = context;
  t.same(shown({ type: 'history/compacted', data: { throughSeq: 1, summary: 'So far…', context: unpriced } }), [usage]);
  t.same(shown({ type: 'step/end', data: { turn: 1, step: 1 } }), [], 'an older log says nothing of it');
});

t.test('a title comes with the time at which it was given', async (t) => {
  const title: EventInput = { type: 'session/title', data: { title: 'Mending', source: 'model' } };
  t.same(shown(title), [{ sessionUpdate: 'session_info_update', title: 'Mending', updatedAt: '2025-11-30T10:53:20.000Z' }]);
  t.same([shown(step, 'automation'), shown(title, 'automation')], [[], []], 'a program is told nothing of it');
});
