import * as fc from 'fast-check';
import t from 'tap';
import { creditReturnBytes, type DataBatch, threadCreditBytes } from '../../../../src/shared/thread-protocol.ts';
import { ChunkPacer } from '../../../../src/worker/outbox/chunk-pacer.ts';
import { type Chunk, ChunkSource } from '../../../../src/worker/outbox/chunk-source.ts';
import { ThreadOutbox } from '../../../../src/worker/outbox/thread-outbox.ts';

/** An outbox whose client reads when the test says so. */
function rig(creditBytes = 1000) {
  const batches: DataBatch[] = [];
  const due: (() => void)[] = [];
  const outbox = new ThreadOutbox(
    { postMessage: (batch) => void batches.push(batch) },
    { creditBytes, schedule: (run) => void due.push(run) },
  );
  const endOfTurn = (): void => {
    while (due.length > 0) for (const run of due.splice(0)) run();
  };
  const source = (session = 's'): ChunkSource =>
    new ChunkSource(({ kind, messageId, text }) => (text === '' ? '' : `${JSON.stringify([session, kind, messageId, text])}\n`));
  const frames = (): [string, string, string, string][] =>
    batches.flatMap(({ text }) => text.split('\n').slice(0, -1)).map((line) => JSON.parse(line));
  return { outbox, batches, endOfTurn, source, frames };
}

const chunk = (text: string, messageId = 'm', kind: Chunk['kind'] = 'text'): Chunk => ({ kind, messageId, text });

t.test('while the client keeps up each delta is a frame of its own', async (t) => {
  const { outbox, endOfTurn, source, frames } = rig();
  const one = source();
  for (const text of ['a', 'b', 'c']) outbox.sendChunk(one, chunk(text));
  endOfTurn();
  t.strictSame(
    frames().map((frame) => frame[3]),
    ['a', 'b', 'c'],
  );
});

t.test('while it is behind, deltas of one message become one frame, and leave when it has read', async (t) => {
  const { outbox, endOfTurn, source, frames } = rig();
  const one = source();
  outbox.send(`${JSON.stringify(['s', 'x', 'x', 'y'.repeat(600)])}\n`);
  endOfTurn();
  t.notOk(outbox.keepsUp);
  for (const text of ['a', 'b', 'c']) outbox.sendChunk(one, chunk(text));
  endOfTurn();
  t.equal(frames().length, 1, 'they wait');
  outbox.returnCredit(600);
  endOfTurn();
  t.strictSame(frames().slice(1), [['s', 'text', 'm', 'abc']]);
  outbox.sendChunk(one, chunk('d'));
  endOfTurn();
  t.equal(frames().length, 3);
});

t.test('text that waits is text that counts: it takes credit, so the model is held back', async (t) => {
  const { outbox, endOfTurn, source } = rig();
  outbox.send('y'.repeat(600));
  endOfTurn();
  outbox.sendChunk(source(), chunk('z'.repeat(500)));
  t.ok(outbox.whenWritable() !== undefined);
});

t.test('another message, another frame, a completion and a flush leave what waits behind them, in order', async (t) => {
  const { outbox, batches, endOfTurn, source, frames } = rig(200);
  const one = source();
  const other = source('t');
  outbox.send(`${JSON.stringify(['s', 'x', 'x', 'y'.repeat(300)])}\n`);
  endOfTurn();
  outbox.sendChunk(one, chunk('think', 'm-thought', 'reasoning'));
  outbox.sendChunk(one, chunk('say'));
  outbox.sendChunk(other, chunk('other'));
  outbox.sendChunk(one, chunk(' more'));
  outbox.send(`${JSON.stringify(['s', 'card', '', ''])}\n`, { sessionId: 's', callId: 'c', open: true });
  outbox.sendChunk(one, chunk(' end'));
  outbox.complete({ kind: 'turn', sessionId: 's', requestId: 1, outcome: { ok: false, error: { code: 'INTERNAL', message: 'x' } } });
  endOfTurn();
  t.strictSame(
    frames().slice(1),
    [
      ['s', 'reasoning', 'm-thought', 'think'],
      ['s', 'text', 'm', 'say more'],
      ['t', 'text', 'm', 'other'],
      ['s', 'card', '', ''],
      ['s', 'text', 'm', ' end'],
    ],
    'each session in its own order',
  );
  t.equal(batches.at(-1)?.completions.length, 1);
  t.equal(batches.find(({ cards }) => cards.length > 0)?.text.includes('card'), true, 'a card is told of with its frame');
  outbox.sendChunk(one, chunk('last'));
  const batch = outbox.flush();
  t.equal(batches.at(-1)?.batch, batch);
  t.match(batches.at(-1)?.text, 'last');
});

t.test('whatever is sent and read, and when: each session has its text, in order, and nothing is left behind', async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ act: fc.constant('say' as const), session: fc.nat({ max: 2 }), message: fc.nat({ max: 1 }) }) },
    { weight: 1, arbitrary: fc.record({ act: fc.constant('card' as const), session: fc.nat({ max: 2 }) }) },
    { weight: 2, arbitrary: fc.record({ act: fc.constantFrom('read' as const, 'turn' as const) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const { outbox, batches, endOfTurn, source, frames } = rig(400);
      const sources = [source('0'), source('1'), source('2')];
      const said = ['', '', ''];
      let read = 0;
      const readAll = (): void => {
        for (; read < batches.length; read += 1) outbox.returnCredit(batches[read]?.bytes ?? 0);
      };
      steps.forEach((one, index) => {
        if (one.act === 'say') {
          const text = `<${index}>`;
          said[one.session] += text;
          outbox.sendChunk(sources[one.session]!, chunk(text, `m${one.message}`));
        } else if (one.act === 'card') {
          said[one.session] += '|';
          outbox.send(`${JSON.stringify([String(one.session), 'card', '', '|'])}\n`);
        } else if (one.act === 'read') readAll();
        else endOfTurn();
      });
      for (let rounds = 0; rounds < 50; rounds += 1) {
        endOfTurn();
        readAll();
      }
      const shown = ['', '', ''];
      for (const [session, , , text] of frames()) shown[Number(session)] += text;
      if (outbox.credit !== 400) throw new Error(`credit is ${outbox.credit}`);
      return JSON.stringify(shown) === JSON.stringify(said);
    }),
    { numRuns: 300 },
  );
});

t.test('nothing waits for ever for credit that main holds back', async (t) => {
  const { outbox, batches, endOfTurn, source, frames } = rig(threadCreditBytes);
  const one = source();
  let said = '';
  let taken = 0;
  let unreturned = 0;
  /** As main does: written at once, returned in large pieces. */
  const readBatch = (): void => {
    const batch = batches[taken];
    if (batch === undefined) return;
    taken += 1;
    unreturned += batch.bytes;
    if (unreturned < creditReturnBytes) return;
    outbox.returnCredit(unreturned);
    unreturned = 0;
  };
  for (let index = 0; index < 20_000; index += 1) {
    if (outbox.whenWritable() !== undefined) readBatch();
    else {
      const text = `${index}${'x'.repeat(index % 300)} `;
      said += text;
      outbox.sendChunk(one, chunk(text));
    }
    if (index % 50 === 0) endOfTurn();
    if (index % 200 === 0) readBatch();
  }
  for (let before = -1; before !== taken; ) {
    before = taken;
    endOfTurn();
    while (taken < batches.length) readBatch();
  }
  t.equal(
    frames()
      .map((frame) => frame[3])
      .join(''),
    said,
  );
  t.ok(frames().length < 10_000, `${frames().length} frames`);
});

t.test('a client that draws slowly gets at most so many frames, with the same text', async (t) => {
  const frames: Chunk[] = [];
  let now = 0;
  let due: { at: number; task: () => void } | undefined;
  const pacer = new ChunkPacer({
    intervalMs: 100,
    emit: (one) => void frames.push(one),
    now: () => now,
    schedule: (task, delayMs) => {
      due = { at: now + delayMs, task };
      return () => (due = undefined);
    },
  });
  const pass = (ms: number): void => {
    now += ms;
    if (due !== undefined && due.at <= now) due.task();
  };
  let said = '';
  for (let index = 0; index < 100; index += 1) {
    said += `${index} `;
    pacer.add(chunk(`${index} `));
    pass(10);
  }
  pass(100);
  t.ok(frames.length <= 11 && frames.length >= 9, `${frames.length} frames in a second`);
  t.equal(frames.map(({ text }) => text).join(''), said);
  t.equal(frames[0]?.text, '0 ', 'the first one at once');
  frames.length = 0;
  pacer.add(chunk('a'));
  pacer.add(chunk('b', 'm-thought', 'reasoning'));
  pacer.flush();
  pacer.flush();
  t.strictSame(
    frames.map(({ text }) => text),
    ['a', 'b'],
    'another message does not wait for the one before, and a flush leaves nothing',
  );
});
