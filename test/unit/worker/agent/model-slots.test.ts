/**
 * Every model call stands behind a place at its provider, and says how it ended when it gives that back.
 */
import t from 'tap';
import type { ModelSlotReport } from '../../../../src/shared/model-slots.ts';
import type { ModelSlotLease, ModelSlots } from '../../../../src/worker/agent/model-slots.ts';
import { ModelFailure } from '../../../../src/worker/model/model-adapter.ts';
import { AgentRig, assertLegal, fail, hang, prompt, type Reply, say, tool, usage } from './agent-rig.ts';

/** Slots that note what is asked of them; with `wait` each request stands until it is granted or withdrawn. */
class NotedSlots implements ModelSlots {
  readonly priorities: number[] = [];
  readonly reports: ModelSlotReport[] = [];
  held = 0;
  wait = false;
  grant: (position?: number) => void = () => undefined;

  acquire(priority: number, signal: AbortSignal): Promise<ModelSlotLease | undefined> {
    this.priorities.push(priority);
    if (!this.wait) return Promise.resolve(this.#lease(0));
    return new Promise((resolve) => {
      this.grant = (position = 2) => resolve(this.#lease(position));
      signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
  }

  #lease(position: number): ModelSlotLease {
    this.held += 1;
    return {
      position,
      waitedMs: position * 10.4,
      release: (report) => {
        this.held -= 1;
        this.reports.push(report);
      },
    };
  }
}

const failing =
  (code: 'RATE_LIMIT' | 'SERVER', options: { status?: number; retryAfterMs?: number }): Reply =>
  () =>
    Promise.reject(new ModelFailure(code, 'no', options));

t.test('each attempt takes a place and reports its end; a summary does, too', async (t) => {
  const slots = new NotedSlots();
  const script = [
    failing('RATE_LIMIT', { status: 429, retryAfterMs: 1500 }),
    failing('SERVER', { status: 503 }),
    failing('SERVER', { status: 500 }),
    fail('TIMEOUT'),
    say('at last'),
  ];
  const rig = new AgentRig(script, { modelSlots: slots, nextDelay: () => 10, instant: () => true });
  await rig.agent.send(prompt('go'), { priority: 7 });
  t.strictSame(slots.reports, [
    { outcome: 'overloaded', retryAfterMs: 1500 },
    { outcome: 'overloaded' },
    { outcome: 'other' },
    { outcome: 'other' },
    { outcome: 'ok' },
  ]);
  t.strictSame(slots.priorities, [7, 7, 7, 7, 7]);
  t.equal(slots.held, 0);
  t.equal(rig.of('llm/wait').length, 0);

  const summing = new NotedSlots();
  const long = [say('a'.repeat(6000)), say('b'.repeat(6000)), say('They talked.'), say('c')];
  const small = new AgentRig(long, { contextWindow: 3600, modelSlots: summing });
  for (const text of ['one', 'two', 'three']) await small.agent.send(prompt(text));
  t.equal(small.of('history/compacted').length, 1);
  t.equal(summing.reports.length, 4);
  t.strictSame(summing.priorities, [0, 0, 0, 0]);
});

t.test('no place is held while tools run', async (t) => {
  const slots = new NotedSlots();
  let held = -1;
  const look = tool('look', async () => {
    held = slots.held;
    return { text: 'seen', isError: false };
  });
  const toolCalls = [{ callId: 'a', name: 'look', arguments: '{}' }];
  const rig = new AgentRig([say('', { reason: 'tool-calls', toolCalls }), say('done')], { tools: [look], modelSlots: slots });
  await rig.agent.send(prompt('go'));
  t.equal(held, 0);
});

t.test('a wait is logged before the model is asked', async (t) => {
  const slots = new NotedSlots();
  slots.wait = true;
  const rig = new AgentRig([say('ok')], { modelSlots: slots });
  const sent = rig.agent.send(prompt('go'));
  await rig.until(() => slots.priorities.length === 1);
  slots.grant(3);
  t.match(await sent, { reason: { kind: 'completed' } });
  t.strictSame(rig.of('llm/wait'), [{ turn: 1, step: 1, position: 3, waitedMs: 31 }]);
  assertLegal(rig);
});

t.test('a turn that ends while it waits ends at once, and asks nothing', async (t) => {
  for (const [stop, kind] of [
    [(rig: AgentRig) => rig.agent.cancel(), 'cancelled'],
    [(rig: AgentRig) => rig.wake(5000), 'max-turn-requests'],
    [(rig: AgentRig) => void rig.agent.dispose(), 'disposed'],
  ] as const) {
    const slots = new NotedSlots();
    slots.wait = true;
    const rig = new AgentRig([say('never')], { modelSlots: slots });
    const sent = rig.agent.send(prompt('go'), { budget: { maxWallMs: 5000 } });
    await rig.until(() => slots.priorities.length === 1);
    stop(rig);
    t.match(await sent, { reason: { kind } });
    t.equal(rig.requests.length, 0);
    t.equal(slots.held, 0);
    assertLegal(rig);
  }
});

t.test('a place that comes with the end of the turn is given back unused', async (t) => {
  const slots = new NotedSlots();
  slots.wait = true;
  const rig = new AgentRig([say('never')], { modelSlots: slots });
  const sent = rig.agent.send(prompt('go'));
  await rig.until(() => slots.priorities.length === 1);
  slots.grant();
  rig.agent.cancel();
  t.match(await sent, { reason: { kind: 'cancelled' } });
  t.equal(rig.requests.length, 0);
  t.strictSame(slots.reports, [{ outcome: 'other' }]);
  assertLegal(rig);
});

t.test('what was spent during the wait counts', async (t) => {
  const slots = new NotedSlots();
  slots.wait = true;
  const rig = new AgentRig([say('never')], { modelSlots: slots });
  const sent = rig.agent.send(prompt('go'), { budget: { maxTokens: 500 } });
  await rig.until(() => slots.priorities.length === 1);
  rig.agent.addSubagentUsage({ ...usage(400, 100) });
  slots.grant();
  t.match(await sent, { reason: { kind: 'max-turn-requests', budget: 'tokens' } });
  t.equal(rig.requests.length, 0);
  t.equal(slots.held, 0);
});

t.test('a place is given back when the wait cannot be logged', async (t) => {
  const slots = new NotedSlots();
  slots.wait = true;
  const rig = new AgentRig([say('never')], { modelSlots: slots });
  rig.refuse = (event) => event.type === 'llm/wait';
  const sent = rig.agent.send(prompt('go'));
  await rig.until(() => slots.priorities.length === 1);
  slots.grant();
  t.match(await sent, { reason: { kind: 'error', code: 'LOG_WRITE_FAILED' } });
  t.equal(slots.held, 0);
});

t.test('slots that fail end the turn, not the session', async (t) => {
  const broken: ModelSlots = { acquire: () => Promise.reject(new Error('gone')) };
  const rig = new AgentRig([say('never')], { modelSlots: broken });
  t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'error', code: 'INTERNAL' } });
  assertLegal(rig);
});

t.test('a model that ignores a cancel does not keep its place', async (t) => {
  const slots = new NotedSlots();
  const rig = new AgentRig([hang('x')], { modelSlots: slots });
  const sent = rig.agent.send(prompt('go'));
  await rig.until(() => rig.hanging === 1);
  rig.agent.cancel();
  await sent;
  t.strictSame(slots.reports, [{ outcome: 'other' }]);
});
