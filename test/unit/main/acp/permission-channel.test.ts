import type { AgentContext } from '@agentclientprotocol/sdk';
import t from 'tap';
import { PermissionChannel } from '../../../../src/main/acp/permission-channel.ts';
import type { ThreadLane } from '../../../../src/main/threads/thread-lane.ts';
import type { PermissionAnswer, PermissionRequest } from '../../../../src/shared/thread-protocol.ts';

const lane = {
  batchTaken: async () => undefined,
  hasEndedCard: (_id: string, callId: string) => callId === 'ended',
  hasEndedTurn: (_id: string, behindBatch: number) => behindBatch < 1,
} as unknown as ThreadLane;
const option = (optionId: string, kind: string): object => ({ optionId, name: optionId, kind });
const everyOption = [
  option('once', 'allow_once'),
  option('always', 'allow_always'),
  option('no', 'reject_once'),
  option('never', 'reject_always'),
];

/** A channel whose client answers with `answer`, and what the client was asked. */
function rig(profile: 'editor' | 'automation' | undefined, answer: unknown) {
  const asked: any[] = [];
  const client = {
    request: async (_method: string, params: unknown) => {
      asked.push(params);
      if (answer instanceof Error) throw answer;
      return answer;
    },
  } as unknown as AgentContext;
  const channel = new PermissionChannel(
    () => (answer === 'no client' ? undefined : client),
    (id) => (id === 's' && profile !== undefined ? { profile } : undefined),
  );
  const ask = (params: object = {}, sessionId = 's', more: Partial<PermissionRequest> = {}): Promise<PermissionAnswer> =>
    channel.ask(lane, {
      sessionId,
      requestKey: 'r',
      params: { sessionId, toolCall: { toolCallId: 'c1' }, options: everyOption, ...params },
      afterBatch: 1,
      ...more,
    });
  return { asked, ask };
}

const selected = (optionId: unknown): object => ({ outcome: { outcome: 'selected', optionId } });

t.test('an editor may choose whatever was offered; a program only what is for this once', async (t) => {
  for (const optionId of ['once', 'always', 'no', 'never']) {
    t.same(await rig('editor', selected(optionId)).ask(), { outcome: 'selected', optionId });
  }
  const program = rig('automation', selected('once'));
  t.same(await program.ask(), { outcome: 'selected', optionId: 'once' });
  t.same(
    program.asked[0].options.map((one: any) => one.kind),
    ['allow_once', 'reject_once'],
  );
  for (const optionId of ['always', 'never', 'other', 7, undefined]) {
    t.same(await rig('automation', selected(optionId)).ask(), { outcome: 'unavailable' }, String(optionId));
  }
  t.same(await rig('automation', { outcome: { outcome: 'cancelled' } }).ask(), { outcome: 'cancelled' });
});

t.test('a call whose end the client was shown is not asked about any more', async (t) => {
  const late = rig('editor', selected('once'));
  t.same(await late.ask({ toolCall: { toolCallId: 'ended' } }), { outcome: 'cancelled' });
  t.same(late.asked, []);
});

t.test('a question of a turn that has ended is not asked, but for one that outlives its call', async (t) => {
  for (const profile of ['editor', 'automation'] as const) {
    const late = rig(profile, selected('once'));
    t.same(await late.ask({}, 's', { afterBatch: 0 }), { outcome: 'cancelled' });
    t.same(late.asked, []);
    t.same(await late.ask({}, 's', { afterBatch: 0, outlivesCall: true }), { outcome: 'selected', optionId: 'once' });
  }
});

t.test('every failure is unavailable', async (t) => {
  const answers = [
    new Error('x'),
    undefined,
    null,
    {},
    { outcome: 'selected' },
    { outcome: { outcome: 'yes' } },
    selected(['once']),
    'no client',
  ];
  for (const answer of answers) {
    for (const profile of ['editor', 'automation'] as const) t.same(await rig(profile, answer).ask(), { outcome: 'unavailable' });
  }
});

t.test('only a live session of the connection may ask, about a call of its own', async (t) => {
  for (const profile of ['editor', 'automation'] as const) {
    const { ask, asked } = rig(profile, selected('once'));
    t.same(await ask({}, 'other'), { outcome: 'unavailable' }, 'a session that is not open here');
    t.same(await ask({ sessionId: 'other' }), { outcome: 'unavailable' }, 'in the name of another session');
    t.same(await ask({ toolCall: { toolCallId: '' } }), { outcome: 'unavailable' }, 'without a call');
    t.same(await ask({ toolCall: {} }), { outcome: 'unavailable' });
    t.same(await ask({ toolCall: undefined }), { outcome: 'unavailable' });
    t.equal(asked.length, 0, 'the client is not even asked');
  }
  t.same(await rig('automation', selected('always')).ask({ options: [option('always', 'allow_always')] }), { outcome: 'unavailable' });
});
