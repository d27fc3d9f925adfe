/** The plan as a client is shown it: true while a turn runs, and true after it. */
import t from 'tap';
import type { EventInput, TodoEntry, TurnEndReason } from '../../../../src/shared/events.ts';
import { Projector } from '../../../../src/worker/projection/projector.ts';

const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, steps: 1, toolCalls: 1, elapsedMs: 1 };
const start: EventInput = { type: 'turn/start', data: { turn: 1 } };
const end = (kind: TurnEndReason['kind'] = 'completed'): EventInput => {
  return { type: 'turn/end', data: { turn: 1, reason: { kind } as TurnEndReason, usage } };
};
const write = (...todos: [content: string, status: TodoEntry['status']][]): EventInput => {
  return { type: 'todo/write', data: { todos: todos.map(([content, status]) => ({ content, status })) } };
};

function projector(options: { replay?: boolean; profile?: 'editor' | 'automation' } = {}): Projector {
  const { replay = false, profile = 'editor' } = options;
  return new Projector({ sessionId: 's', cwd: '/w', profile, client: { terminalOutput: false }, tools: () => undefined, replay });
}

/** What each event shows of the plan: the statuses of its entries, or nothing. */
function shown(view: Projector, ...events: EventInput[]): (string | undefined)[] {
  return events.map((event) => {
    const update = view.project(event).find(({ sessionUpdate }) => sessionUpdate === 'plan');
    return update?.sessionUpdate === 'plan' ? update.entries.map(({ status }) => status).join() : undefined;
  });
}

const log = [start, write(['a', 'completed'], ['b', 'in_progress'], ['c', 'pending']), end(), start, end()];

t.test('at the end of a turn, whatever ended it, nothing is in progress', async (t) => {
  for (const kind of ['completed', 'cancelled', 'disposed', 'interrupted', 'refusal', 'max-tokens'] as const) {
    t.same(shown(projector(), start, write(['a', 'in_progress']), end(kind)), [undefined, 'in_progress', 'pending'], kind);
  }
  t.same(shown(projector(), ...log), [undefined, 'completed,in_progress,pending', 'completed,pending,pending', undefined, undefined]);
});

t.test('a plan that is done stays until the next turn, which begins without it', async (t) => {
  const done = [start, write(['a', 'completed']), end(), start, end(), start];
  t.same(shown(projector(), ...done), [undefined, 'completed', undefined, '', undefined, undefined]);
  t.same(shown(projector(), start, write(), end(), start), [undefined, '', undefined, undefined], 'an empty plan is not cleared again');
});

t.test('a replay shows what the live session showed', async (t) => {
  for (const events of [log, [start, write(['a', 'completed']), end(), start, write(['b', 'in_progress']), end('cancelled')]]) {
    t.same(shown(projector({ replay: true }), ...events), shown(projector(), ...events));
  }
  t.same(shown(projector({ profile: 'automation' }), ...log), [undefined, undefined, undefined, undefined, undefined]);
});

t.test('a session that comes back knows the plan of its log', async (t) => {
  const parked = projector();
  for (const event of [start, write(['a', 'completed']), end()]) parked.learn(event);
  t.same(shown(parked, start), [''], 'the plan was done before it was parked');
  const crashed = projector();
  for (const event of [start, write(['a', 'in_progress']), end('interrupted')]) crashed.learn(event);
  t.same(shown(crashed, start, end(), start), ['pending', undefined, undefined], 'its client was never shown the end of that turn');
  const ended = projector();
  for (const event of [start, write(['a', 'in_progress']), end()]) ended.learn(event);
  t.same(shown(ended, start), [undefined], 'this one was');
});

t.test('a rewind shows the plan of the moment that it goes to, and its own undoing the one before it', async (t) => {
  const view = projector();
  const at = (seq: number, event: EventInput): string | undefined => shown(view, { ...event, seq } as unknown as EventInput)[0];
  const rewind = (base: number): EventInput => ({ type: 'history/rewound', data: { base } }) as unknown as EventInput;
  at(0, start);
  at(1, write(['a', 'in_progress']));
  t.equal(at(2, end()), 'pending');
  at(3, start);
  t.equal(at(4, write(['a', 'completed'], ['b', 'in_progress'])), 'completed,in_progress');
  t.equal(at(5, end()), 'completed,pending');
  t.equal(at(6, rewind(3)), 'pending', 'before the second prompt');
  t.equal(at(7, rewind(6)), 'completed,pending', 'taken back');
  t.equal(at(8, rewind(0)), '', 'before the first one there was none');
  t.equal(at(9, rewind(0)), undefined, 'nothing changes again');
});
