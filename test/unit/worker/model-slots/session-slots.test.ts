/** A session's side of the limiter: nothing that was granted is ever kept by nobody. */
import t from 'tap';
import type { ModelConfig } from '../../../../src/shared/config.ts';
import type { ModelSlot, ModelSlotRequest, SlotRelease } from '../../../../src/shared/model-slots.ts';
import type { DataBatch } from '../../../../src/shared/thread-protocol.ts';
import { openSlots } from '../../../../src/worker/agent/model-slots.ts';
import { SessionSlots, slotsFor } from '../../../../src/worker/model-slots/session-slots.ts';
import { SlotAhead } from '../../../../src/worker/model-slots/slot-ahead.ts';
import { ThreadOutbox } from '../../../../src/worker/outbox/thread-outbox.ts';

class Rig {
  readonly asked: ModelSlotRequest[] = [];
  readonly withdrawn: string[] = [];
  readonly released: SlotRelease[] = [];
  readonly parts = {
    sessionId: 's1',
    main: {
      acquireModelSlot: (request: ModelSlotRequest): Promise<ModelSlot> => {
        this.asked.push(request);
        return new Promise((grant, refuse) => {
          this.grant = grant;
          this.refuse = refuse;
        });
      },
      withdrawModelSlot: async (sessionId: string, requestKey: string) => void this.withdrawn.push(`${sessionId}/${requestKey}`),
    },
    release: (leaseId: number, report: SlotRelease['report']) => void this.released.push({ leaseId, report }),
  };
  readonly slots = new SessionSlots(this.parts);
  grant: (slot: ModelSlot) => void = () => undefined;
  refuse: (error: Error) => void = () => undefined;
}

t.test('a lease says how it was had, and is given back once with how the call ended', async (t) => {
  const rig = new Rig();
  const acquired = rig.slots.acquire(7, new AbortController().signal);
  t.same(rig.asked, [{ sessionId: 's1', requestKey: '1', priority: 7 }]);
  rig.grant({ leaseId: 40, waitedMs: 12, position: 3 });
  const lease = await acquired;
  t.match(lease, { waitedMs: 12, position: 3 });
  lease?.release({ outcome: 'ok' });
  lease?.release({ outcome: 'other' });
  t.same(rig.released, [{ leaseId: 40, report: { outcome: 'ok' } }]);
  t.same(rig.withdrawn, []);
});

t.test('a place that came with the prompt is taken by the first call, and given back where there is none', async (t) => {
  const rig = new Rig();
  const ahead = new SlotAhead(rig.parts.release);
  const slots = new SessionSlots({ ...rig.parts, ahead });
  ahead.offer({ leaseId: 50, waitedMs: 0, position: 0 });
  const lease = await slots.acquire(0, new AbortController().signal);
  ahead.giveBack();
  t.same(rig.released, [], 'who took it has it');
  lease?.release({ outcome: 'ok' });
  void slots.acquire(0, new AbortController().signal);
  t.equal(rig.asked.length, 1, 'the next call asks main');
  ahead.offer({ leaseId: 51, waitedMs: 0, position: 0 });
  ahead.offer({ leaseId: 52, waitedMs: 0, position: 0 });
  t.equal(await slots.acquire(0, AbortSignal.abort()), undefined);
  ahead.giveBack();
  ahead.giveBack();
  t.same(rig.released, [
    { leaseId: 50, report: { outcome: 'ok' } },
    { leaseId: 51, report: { outcome: 'unused' } },
    { leaseId: 52, report: { outcome: 'unused' } },
  ]);
});

t.test('a turn that ends while it waits is told at once, and a grant that was on its way is given back', async (t) => {
  const rig = new Rig();
  const turn = new AbortController();
  const acquired = rig.slots.acquire(0, turn.signal);
  turn.abort();
  t.equal(await acquired, undefined, 'main has not answered yet');
  t.same(rig.withdrawn, ['s1/1']);
  rig.grant({ leaseId: 41, waitedMs: 0, position: 0 });
  await new Promise(setImmediate);
  t.same(rig.released, [{ leaseId: 41, report: { outcome: 'other' } }]);
});

t.test('a withdrawal that main confirms is no error, and one that cannot reach main is none', async (t) => {
  const rig = new Rig();
  rig.parts.main.withdrawModelSlot = () => Promise.reject(new Error('main is gone'));
  const turn = new AbortController();
  const acquired = rig.slots.acquire(0, turn.signal);
  turn.abort();
  rig.refuse(new Error('withdrawn'));
  t.equal(await acquired, undefined);
  await new Promise(setImmediate);
  t.same(rig.released, []);
});

t.test('an ended turn asks for nothing; a refusal is passed on', async (t) => {
  const rig = new Rig();
  t.equal(await rig.slots.acquire(0, AbortSignal.abort()), undefined);
  t.same(rig.asked, []);
  const acquired = rig.slots.acquire(0, new AbortController().signal);
  rig.refuse(new Error('shutting down'));
  await t.rejects(acquired, { message: 'shutting down' });
});

t.test('only a model at a provider asks main', async (t) => {
  const { parts } = new Rig();
  t.equal(slotsFor({ kind: 'scripted', paceMs: 0 }, parts), openSlots);
  t.equal(slotsFor({ kind: 'replay', path: '/x' }, parts), openSlots);
  t.ok(slotsFor({ kind: 'openai-compatible' } as ModelConfig, parts) instanceof SessionSlots);
});

t.test('a release travels with the batch of its turn of the event loop, or makes one of its own', async (t) => {
  const batches: DataBatch[] = [];
  const runs: (() => void)[] = [];
  const outbox = new ThreadOutbox({ postMessage: (batch) => void batches.push(batch) }, { schedule: (run) => void runs.push(run) });
  const release: SlotRelease = { leaseId: 1, report: { outcome: 'ok' } };
  outbox.send('{}\n');
  outbox.release(release);
  for (const run of runs.splice(0)) run();
  outbox.release({ leaseId: 2, report: { outcome: 'overloaded', retryAfterMs: 5 } });
  for (const run of runs.splice(0)) run();
  outbox.send('{}\n');
  for (const run of runs.splice(0)) run();
  t.match(batches, [
    { frames: 1, released: [release] },
    { frames: 0, text: '', released: [{ leaseId: 2 }] },
    { frames: 1, released: undefined },
  ]);
});
