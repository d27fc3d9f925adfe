/** The model's history after rewinds: what the log would give if what was left out had never been said. */
import * as fc from 'fast-check';
import t from 'tap';
import type { EventInput, LogEvent } from '../../../../src/shared/events.ts';
import { aliveRanges, isAlive } from '../../../../src/worker/agent/alive-events.ts';
import { prunableCalls } from '../../../../src/worker/agent/history-cuts.ts';
import { History } from '../../../../src/worker/agent/history.ts';
import { rebuiltHistory } from '../../../../src/worker/agent/rebuilt-history.ts';

const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, steps: 0, toolCalls: 0, elapsedMs: 0 };

/** A log and the history that grows with it, as in a running session. */
class Log {
  readonly events: LogEvent[] = [];
  readonly history = new History();
  /** Where a rewind may go: the starts of turns and of undos. */
  readonly bases: number[] = [];
  rebuilt = 0;
  #turn = 0;
  #calls = 0;

  add(input: EventInput): number {
    const event = { ...input, seq: this.events.length, time: 0 } as LogEvent;
    this.events.push(event);
    this.history.apply(event);
    return event.seq;
  }

  turn(text: string, { calls, refused }: { calls: number; refused: boolean }): void {
    this.#turn += 1;
    const turn = this.#turn;
    this.bases.push(this.add({ type: 'turn/start', data: { turn } }));
    this.add({ type: 'user/message', data: { turn, messageId: `u${turn}`, source: 'prompt', content: [{ type: 'text', text }] } });
    const ids = Array.from({ length: calls }, () => `c${(this.#calls += 1)}`);
    const toolCalls = ids.map((callId) => ({ callId, name: 'read', arguments: '{}' }));
    this.add({
      type: 'assistant/message',
      data: { turn, step: 1, messageId: `a${turn}`, text: `on ${text}`, reasoning: '', toolCalls, finish: 'stop' },
    });
    for (const callId of ids) {
      this.add({ type: 'tool/result', data: { turn, step: 1, callId, text: `${text} `.repeat(40), isError: false } });
    }
    this.add({ type: 'turn/end', data: { turn, reason: { kind: refused ? 'refusal' : 'completed' }, usage } });
  }

  /** As compaction cuts results. */
  prune(): void {
    const callIds = prunableCalls(this.history.units, 20, 0);
    this.add({ type: 'history/pruned', data: { callIds, keepChars: 10 } });
  }

  /** As compaction replaces the oldest units. */
  compact(): void {
    const prefix = this.history.prefix(1);
    if (prefix !== undefined)
      this.add({ type: 'history/compacted', data: { throughSeq: prefix.throughSeq, summary: `summary of ${prefix.messages.length}` } });
  }

  async rewind(pick: number): Promise<void> {
    const base = this.bases[pick % Math.max(1, this.bases.length)];
    if (base === undefined) return;
    const inMemory = this.history.rewinds.isInMemory(base);
    const undo = this.add({ type: 'undo/start', data: { kind: 'undo', base, files: true, force: false } });
    this.add({ type: 'history/rewound', data: { kind: 'undo', undo, base, turns: [], restored: 0, removed: 0 } });
    this.bases.push(undo);
    if (this.history.rewinds.isStale === inMemory) throw new Error('stale where it is not, or the other way round');
    if (!inMemory) {
      this.rebuilt += 1;
      this.history.adopt(await rebuiltHistory(this.history.rewinds.list, this.events.length, this.replay));
    }
  }

  readonly replay = async (onEvent: (event: LogEvent) => void): Promise<void> => {
    for (const event of this.events) onEvent(event);
  };
}

/** What the model would be told if the log held the events that count, and no others. */
function withoutTheRest(log: Log): History {
  const ranges = aliveRanges(log.history.rewinds.list, log.events.length);
  const history = new History();
  for (const event of log.events) if (event.type !== 'history/rewound' && isAlive(ranges, event.seq)) history.apply(event);
  return history;
}

const act = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('turn' as const), calls: fc.integer({ min: 0, max: 2 }), refused: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('prune' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('compact' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('rewind' as const), pick: fc.nat(1000) }) },
);

t.test('live, read again, and by its meaning: the history is the same, and so is its size', async (t) => {
  let rebuilt = 0;
  let inMemory = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 25 }), async (acts) => {
      const log = new Log();
      for (const [index, one] of acts.entries()) {
        if (one.do === 'turn') log.turn(`text ${index}`, one);
        else if (one.do === 'prune') log.prune();
        else if (one.do === 'compact') log.compact();
        else await log.rewind(one.pick);
      }
      rebuilt += log.rebuilt;
      inMemory += log.history.rewinds.list.length - log.rebuilt;
      const again = new History();
      for (const event of log.events) again.apply(event);
      if (again.rewinds.isStale) again.adopt(await rebuiltHistory(again.rewinds.list, Infinity, log.replay));
      const meant = withoutTheRest(log);
      for (const history of [log.history, again]) {
        if (JSON.stringify(history.messages()) !== JSON.stringify(meant.messages())) throw new Error('other messages');
        if (history.estimateTokens(0) !== meant.estimateTokens(0)) throw new Error('another size');
        if (history.turn !== log.history.turn) throw new Error('another turn');
      }
    }),
    { numRuns: 300 },
  );
  t.ok(rebuilt > 20 && inMemory > 20, `both ways were gone: ${rebuilt} from the log, ${inMemory} in memory`);
});

t.test('a turn that was left out is no longer told; its number and its call ids stay taken', async (t) => {
  const log = new Log();
  log.turn('first', { calls: 0, refused: false });
  log.turn('second', { calls: 1, refused: false });
  await log.rewind(1);
  t.equal(log.rebuilt, 0);
  t.strictSame(
    log.history.messages().map(({ text }) => text),
    ['first', 'on first'],
  );
  t.equal(log.history.turn, 2);
  t.ok(log.history.hasCall('c1'));
});

t.test('going back to before a summary gives the whole conversation of then', async (t) => {
  const log = new Log();
  for (const text of ['first', 'second', 'third']) log.turn(text, { calls: 1, refused: false });
  const before = log.history.messages();
  log.turn('fourth', { calls: 0, refused: false });
  log.compact();
  t.equal(log.history.messages().length < before.length, true);
  await log.rewind(3);
  t.equal(log.rebuilt, 1);
  t.strictSame(log.history.messages(), before);
  log.prune();
  await log.rewind(1);
  t.strictSame(log.history.messages(), before.slice(0, 3), 'results that were cut are whole again');
});

t.test('ranges of a log that points forward, or to itself, come to an end', async (t) => {
  t.strictSame(aliveRanges([], 5), [{ from: 0, to: 5 }]);
  const rewinds = [
    { seq: 3, base: 9 },
    { seq: 6, base: 6 },
  ];
  t.strictSame(aliveRanges(rewinds, 8), [
    { from: 0, to: 3 },
    { from: 3, to: 6 },
    { from: 6, to: 8 },
  ]);
});
