import * as fc from 'fast-check';
import t from 'tap';
import type { Completion, DataBatch } from '../../../../src/shared/thread-protocol.ts';
import { batchBytes, batchFrames } from '../../../../src/shared/thread-protocol.ts';
import { ThreadOutbox } from '../../../../src/worker/outbox/thread-outbox.ts';

/** An outbox whose end-of-turn work runs when the test says so. */
function harness(creditBytes = 1000) {
  const batches: DataBatch[] = [];
  const due: (() => void)[] = [];
  const port = { postMessage: (batch: DataBatch) => void batches.push(batch) };
  const outbox = new ThreadOutbox(port, { creditBytes, schedule: (run) => void due.push(run) });
  const endOfTurn = (): void => {
    for (const run of due.splice(0)) run();
  };
  return { outbox, batches, endOfTurn, due };
}

function turnEnd(sessionId: string, requestId = 1): Completion {
  return { kind: 'turn', sessionId, requestId, outcome: { ok: false, error: { code: 'INTERNAL', message: 'x' } } };
}

const settled = async (promise: Promise<void>): Promise<boolean> => {
  let done = false;
  void promise.then(() => (done = true));
  for (let tick = 0; tick < 5; tick += 1) await Promise.resolve();
  return done;
};

t.test('frames of one event-loop turn leave as one batch', async (t) => {
  const { outbox, batches, endOfTurn } = harness();
  outbox.send('{"a":1}\n');
  outbox.send('{"b":"ä€"}\n');
  t.equal(batches.length, 0);
  endOfTurn();
  const text = '{"a":1}\n{"b":"ä€"}\n';
  t.strictSame(batches, [{ batch: 1, text, bytes: Buffer.byteLength(text), frames: 2, cards: [], completions: [] }]);
  endOfTurn();
  t.equal(batches.length, 1, 'an empty batch is never posted');
});

t.test('a batch leaves early when it has enough frames or bytes', async (t) => {
  const { outbox, batches } = harness(10 * batchBytes);
  for (let frame = 0; frame < batchFrames; frame += 1) outbox.send('x\n');
  t.equal(batches.length, 1);
  t.equal(batches[0]?.frames, batchFrames);
  outbox.send(`${'y'.repeat(batchBytes)}\n`);
  t.equal(batches.length, 2);
});

t.test('a completion stands behind its text and before later text', async (t) => {
  const { outbox, batches, endOfTurn } = harness();
  outbox.send('a\n');
  outbox.complete(turnEnd('s'));
  outbox.send('b\n');
  endOfTurn();
  t.strictSame(
    batches.map(({ text, completions }) => [text, completions.length]),
    [
      ['a\n', 1],
      ['b\n', 0],
    ],
  );
});

t.test('a completion leaves without text and without credit', async (t) => {
  const { outbox, batches, endOfTurn } = harness(1);
  outbox.send('long\n');
  outbox.complete(turnEnd('s'));
  endOfTurn();
  outbox.complete(turnEnd('s', 2));
  endOfTurn();
  t.equal(batches.length, 2);
  t.equal(outbox.credit, -4);
});

t.test('flush posts what waits and names the batch that holds it', async (t) => {
  const { outbox, batches, endOfTurn } = harness();
  t.equal(outbox.flush(), 0, 'nothing was ever sent');
  outbox.send('a\n');
  t.equal(outbox.flush(), 1);
  t.equal(outbox.flush(), 1, 'nothing new: still the last one');
  endOfTurn();
  t.equal(batches.length, 1);
  outbox.send('');
  t.equal(outbox.flush(), 1, 'an empty text is no frame');
});

t.test('writers wait without credit and go on in the order in which they came', async (t) => {
  const { outbox, endOfTurn } = harness(10);
  t.equal(outbox.whenWritable(), undefined);
  outbox.send('0123456789\n');
  const order: number[] = [];
  const waits = [1, 2, 3].map((writer) => outbox.whenWritable()?.then(() => void order.push(writer)));
  t.notOk(waits.includes(undefined));
  outbox.returnCredit(1);
  await Promise.resolve();
  t.strictSame(order, [], 'still nothing left');
  outbox.returnCredit(5);
  t.ok(outbox.whenWritable() instanceof Promise, 'a newcomer does not overtake those who wait');
  await Promise.resolve();
  t.strictSame(order, [1], 'as many as the credit bears');
  endOfTurn();
  await Promise.resolve();
  t.strictSame(order, [1, 2]);
  endOfTurn();
  endOfTurn();
  for (const wait of waits) await wait;
  t.strictSame(order, [1, 2, 3], 'what the first ones left over goes to the next');
  endOfTurn();
  t.equal(outbox.whenWritable(), undefined);
});

t.test('an aborted writer leaves the queue at once', async (t) => {
  const { outbox, endOfTurn } = harness(1);
  outbox.send('full\n');
  const abort = new AbortController();
  const aborted = outbox.whenWritable(abort.signal);
  const other = outbox.whenWritable();
  if (aborted === undefined || other === undefined) throw new Error('both must wait');
  t.equal(await settled(aborted), false);
  abort.abort();
  t.equal(await settled(aborted), true);
  t.equal(await settled(other), false);
  outbox.returnCredit(5);
  t.equal(await settled(other), true);
  outbox.send('full\n');
  t.equal(await settled(outbox.whenWritable(abort.signal) ?? Promise.resolve()), true, 'aborted before it came');
  endOfTurn();
});

t.test('any interleaving keeps each session in order and the bytes exact', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('send' as const), session: fc.nat(3), text: fc.string({ unit: 'binary', maxLength: 3000 }) }),
    fc.record({ do: fc.constant('complete' as const), session: fc.nat(3) }),
    fc.record({ do: fc.constant('turn' as const) }),
    fc.record({ do: fc.constant('flush' as const) }),
    fc.record({ do: fc.constant('return' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const credit = 4000;
      const { outbox, batches, endOfTurn } = harness(credit);
      const sent: string[][] = [[], [], [], []];
      let returned = 0;
      for (const [index, action] of steps.entries()) {
        if (action.do === 'send') {
          const frame = `${JSON.stringify({ session: action.session, index, text: action.text })}\n`;
          sent[action.session]?.push(frame.trimEnd());
          outbox.send(frame);
        } else if (action.do === 'complete') {
          sent[action.session]?.push(`done ${index}`);
          outbox.complete(turnEnd(String(action.session), index));
        } else if (action.do === 'turn') endOfTurn();
        else if (action.do === 'flush') outbox.flush();
        else {
          const posted = batches.reduce((sum, batch) => sum + batch.bytes, 0);
          const bytes = Math.floor((posted - returned) * action.share);
          returned += bytes;
          outbox.returnCredit(bytes);
        }
      }
      outbox.flush();
      const seen: string[][] = [[], [], [], []];
      for (const batch of batches) {
        const lines = batch.text.split('\n').slice(0, -1);
        if (lines.length !== batch.frames || Buffer.byteLength(batch.text) !== batch.bytes) return false;
        for (const line of lines) seen[(JSON.parse(line) as { session: number }).session]?.push(line);
        for (const done of batch.completions) seen[Number(done.sessionId)]?.push(`done ${done.requestId}`);
      }
      const posted = batches.reduce((sum, batch) => sum + batch.bytes, 0);
      const numbered = batches.every(({ batch }, index) => batch === index + 1);
      return numbered && outbox.credit === credit - posted + returned && JSON.stringify(seen) === JSON.stringify(sent);
    }),
    { numRuns: 200 },
  );
});

t.test('a reader that stalls bounds what 200 streaming sessions have on their way', { timeout: 20_000 }, async (t) => {
  const creditBytes = 64 * 1024;
  const waiting = new Set<object>();
  const batches: DataBatch[] = [];
  const outbox = new ThreadOutbox({ postMessage: (batch) => void batches.push(batch) }, { creditBytes });
  const frame = `${'x'.repeat(199)}\n`;
  const perSession = 50;
  const stream = async (): Promise<void> => {
    for (let delta = 0; delta < perSession; delta += 1) {
      const writable = outbox.whenWritable();
      if (writable !== undefined) {
        waiting.add(writable);
        await writable;
        waiting.delete(writable);
      }
      outbox.send(frame);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const streams = Array.from({ length: 200 }, stream);
  while (waiting.size < 200) await new Promise((resolve) => setImmediate(resolve));
  const stalledAt = batches.reduce((sum, batch) => sum + batch.bytes, 0);
  t.ok(stalledAt <= creditBytes + 200 * frame.length, `${stalledAt} bytes are on their way`);

  // The reader comes back, and takes everything in pieces of 16 KB.
  let worst = 0;
  let taken = 0;
  const all = Promise.all(streams).then(() => 'done');
  for (;;) {
    const posted = batches.reduce((sum, batch) => sum + batch.bytes, 0);
    worst = Math.max(worst, posted - taken);
    const piece = Math.min(16 * 1024, posted - taken);
    taken += piece;
    if (piece > 0) outbox.returnCredit(piece);
    const state = await Promise.race([all, new Promise((resolve) => setImmediate(resolve, 'running'))]);
    if (state === 'done') break;
  }
  outbox.flush();
  t.equal(
    batches.reduce((sum, batch) => sum + batch.frames, 0),
    200 * perSession,
    'every frame came through',
  );
  t.ok(worst <= creditBytes + 200 * frame.length, `at most ${worst} bytes were on their way`);
});
