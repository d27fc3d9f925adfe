import t from 'tap';
import type { EventData } from '../../../../src/shared/events.ts';
import type { SubagentActivity } from '../../../../src/shared/subagent-protocol.ts';
import { ActivityLog, momentMs } from '../../../../src/worker/subagents/activity-log.ts';

class Rig {
  readonly data: EventData['subagent/activity'][] = [];
  time = 0;
  readonly log = new ActivityLog({
    callId: 'c',
    runId: 'r',
    record: (event) => this.data.push(event.data),
    onFault: () => undefined,
    now: () => this.time,
  });

  get activities(): SubagentActivity[] {
    return this.data.map(({ activity }) => activity);
  }
}

const text = (words: string): SubagentActivity => ({ kind: 'text', text: words });
const tool = (childCallId: string, status: 'pending' | 'in_progress' | 'completed'): SubagentActivity => {
  return { kind: 'tool', childCallId, title: `Call ${childCallId}`, toolKind: 'read', status };
};

t.test('the first news is logged at once, what follows within half a second is merged', async (t) => {
  const rig = new Rig();
  rig.log.take([text('a')]);
  t.same(rig.activities, [text('a')]);
  rig.time = 100;
  rig.log.take([text('b'), tool('1', 'pending'), text('c')]);
  rig.log.take([text('d'), tool('1', 'completed'), tool('2', 'in_progress')]);
  t.equal(rig.data.length, 1);
  rig.time = momentMs;
  rig.log.finish();
  t.same(rig.activities.slice(1), [text('b'), tool('1', 'completed'), text('cd'), tool('2', 'in_progress')]);
  t.same(
    rig.data.map(({ more }) => more),
    [undefined, true, true, true, undefined],
    'all but the last of a moment say that more follows',
  );
});

t.test('a moment comes by itself', async (t) => {
  const rig = new Rig();
  rig.log.take([text('a')]);
  rig.time = momentMs - 5;
  rig.log.take([text('b')]);
  while (rig.data.length < 2) await new Promise((resolve) => setTimeout(resolve, 2));
  t.same(rig.activities, [text('a'), text('b')]);
});

t.test('long text is cut into pieces at whole characters', async (t) => {
  const rig = new Rig();
  const long = 'é😀'.repeat(5_000);
  rig.log.take([text(long)]);
  const pieces = rig.activities.map((activity) => (activity.kind === 'text' ? activity.text : ''));
  t.ok(pieces.length > 3);
  t.equal(pieces.join(''), long);
  for (const piece of pieces) t.ok(piece.length <= 4_096 && !/[\ud800-\udbff]$/.test(piece));
});

t.test('a run logs two thousand activities, and counts the others', async (t) => {
  const rig = new Rig();
  for (let i = 0; i < 2_500; i += 1) {
    rig.time += momentMs;
    rig.log.take([tool(String(i), 'completed')]);
  }
  t.equal(rig.data.length, 2_000);
  t.equal(rig.log.unlogged, 500);
  rig.log.lost(3);
  t.equal(rig.log.unlogged, 503);
});

t.test('what comes between two moments is bounded, too', async (t) => {
  const rig = new Rig();
  rig.log.take([text('a')]);
  rig.log.take([text('x'.repeat(300_000)), text('y')]);
  for (let i = 0; i < 300; i += 1) rig.log.take([tool(String(i), 'pending')]);
  rig.time = momentMs;
  rig.log.finish();
  t.ok(rig.data.length < 330);
  t.ok(rig.log.unlogged >= 46, `${rig.log.unlogged}`);
});
