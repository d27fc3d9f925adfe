import t from 'tap';
import type { EventData } from '../../../../src/shared/events.ts';
import { ChunkMerger } from '../../../../src/worker/log/chunk-merger.ts';

type Chunk = EventData['assistant/chunk'];

function chunk(text: string, change: Partial<Chunk> = {}): Chunk {
  return { turn: 1, step: 1, messageId: 'm', kind: 'text', text, ...change };
}

function rig(emit?: (chunk: Chunk) => void) {
  const emitted: Chunk[] = [];
  const timers = new Set<() => void>();
  const delays: number[] = [];
  const merger = new ChunkMerger({
    emit: (chunk) => {
      emit?.(chunk);
      emitted.push(chunk);
    },
    schedule: (task, delayMs) => {
      const run = () => {
        timers.delete(run);
        task();
      };
      timers.add(run);
      delays.push(delayMs);
      return () => timers.delete(run);
    },
  });
  const fire = () => [...timers].forEach((run) => run());
  return { merger, emitted, timers, delays, fire };
}

t.test('deltas of one message wait together and are logged as one', async (t) => {
  const { merger, emitted, delays, timers, fire } = rig();
  ['a', 'b', 'c'].forEach((text) => merger.add(chunk(text)));
  t.same(emitted, []);
  t.same(delays, [100], 'one timer for all, from the first delta on');
  fire();
  t.same(emitted, [chunk('abc')]);
  fire();
  t.equal(emitted.length, 1);
  merger.add(chunk('d'));
  merger.flush();
  t.same(emitted[1], chunk('d'));
  t.equal(timers.size, 0, 'a flush stops the timer');
  merger.flush();
  t.equal(emitted.length, 2, 'nothing waits: nothing is logged');
});

t.test('another kind or message pushes the earlier text out, in order', async (t) => {
  const { merger, emitted, timers } = rig();
  merger.add(chunk('think', { kind: 'reasoning' }));
  merger.add(chunk('say'));
  merger.add(chunk('next', { messageId: 'n' }));
  merger.flush();
  t.same(emitted, [chunk('think', { kind: 'reasoning' }), chunk('say'), chunk('next', { messageId: 'n' })]);
  t.equal(timers.size, 0);
});

t.test('much text does not wait', async (t) => {
  const { merger, emitted } = rig();
  merger.add(chunk('x'.repeat(40_000)));
  merger.add(chunk('x'.repeat(40_000)));
  t.equal(emitted[0]?.text.length, 80_000);
});

t.test('text that could not be logged by the timer is kept, and the next flush reports the fault', async (t) => {
  let isFull = true;
  const { merger, emitted, fire } = rig(() => {
    if (isFull) {
      throw new Error('full');
    }
  });
  merger.add(chunk('a'));
  fire();
  t.throws(() => merger.add(chunk('b')), { message: 'full' }, 'the next delta reports what the timer met');
  t.throws(() => merger.flush(), { message: 'full' });
  isFull = false;
  merger.flush();
  t.same(emitted, [chunk('ab')]);
});

t.test('discard forgets what waits', async (t) => {
  const { merger, emitted, timers } = rig();
  merger.add(chunk('a'));
  merger.discard();
  merger.flush();
  t.same(emitted, []);
  t.equal(timers.size, 0);
});

t.test('the real timer fires by itself', async (t) => {
  const got = await new Promise<Chunk>((resolve) => {
    const merger = new ChunkMerger({ emit: resolve, windowMs: 5 });
    merger.add(chunk('a'));
    merger.add(chunk('b'));
  });
  t.same(got, chunk('ab'));
});
