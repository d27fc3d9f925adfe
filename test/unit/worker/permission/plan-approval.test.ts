/** The way out of plan mode: who opens it, and that nothing else does. */
import t from 'tap';
import type { EventInput, PermissionMode } from '../../../../src/shared/events.ts';
import type { PermissionAnswer, PermissionRequest } from '../../../../src/shared/thread-protocol.ts';
import { PlanApproval, type PlanApprovalParts } from '../../../../src/worker/permission/plan-approval.ts';
import { exitPlanModeTool } from '../../../../src/worker/tools/exit-plan-mode.ts';
import type { ToolContext, ToolOutcome } from '../../../../src/worker/tools/tool.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';

const selected = (optionId: string): PermissionAnswer => ({ outcome: 'selected', optionId });

class Rig {
  readonly events: EventInput[] = [];
  readonly requests: PermissionRequest[] = [];
  readonly withdrawn: string[] = [];
  readonly modes: PermissionMode[] = [];
  mode: PermissionMode = 'plan';
  readonly stop = new AbortController();
  readonly #approval: PlanApproval;

  constructor(answer: (rig: Rig) => Promise<PermissionAnswer>, parts: Partial<PlanApprovalParts> = {}) {
    this.#approval = new PlanApproval({
      sessionId: 's',
      timeoutMs: 0,
      mode: () => this.mode,
      setMode: (mode) => {
        this.modes.push(mode);
        this.mode = mode;
      },
      turn: () => 4,
      journal: { append: (event) => ({ ...event, seq: this.events.push(event) - 1, time: 0 }) },
      ask: (request) => {
        this.requests.push(request);
        return answer(this);
      },
      withdraw: async (key) => void this.withdrawn.push(key),
      flush: () => 9,
      toolCall: ({ callId, view }) => ({ toolCallId: callId, title: view.title, kind: 'switch_mode' }),
      ...parts,
    });
  }

  /** A call of the tool, as the model makes it. */
  call(): Promise<ToolOutcome> {
    const context = { callId: 'c1', signal: this.stop.signal, plan: this.#approval } as unknown as ToolContext;
    return exitPlanModeTool.execute({ plan: '1. Do it' }, context);
  }

  get decisions(): object[] {
    return this.events.flatMap((event) => (event.type === 'permission/decided' ? [event.data] : []));
  }
}

t.test('an approval switches the mode to the chosen one, and the result tells the model', async (t) => {
  for (const [optionId, mode] of [
    ['approve_ask', 'ask'],
    ['approve_accept_edits', 'accept-edits'],
  ] as const) {
    const rig = new Rig(async () => selected(optionId));
    t.match(await rig.call(), { isError: false, text: new RegExp(`"${mode}"`), meta: { approvedMode: mode } });
    t.same(rig.modes, [mode]);
    t.match(rig.events, [
      { type: 'permission/asked', data: { turn: 4, callId: 'c1', title: 'Plan for approval' } },
      { type: 'permission/decided', data: { turn: 4, callId: 'c1', outcome: 'allow-once', by: 'client' } },
    ]);
  }
});

t.test('the question shows the plan, stands behind its card, and has one option of each kind', async (t) => {
  const rig = new Rig(async () => selected('keep_planning'));
  await rig.call();
  const [request] = rig.requests;
  t.match(request, { sessionId: 's', afterBatch: 9, params: { sessionId: 's', toolCall: { toolCallId: 'c1', kind: 'switch_mode' } } });
  const params = request?.params as { options: { kind: string }[] };
  t.same(
    params.options.map(({ kind }) => kind),
    ['allow_once', 'allow_always', 'reject_once'],
  );
  t.same(validateAgentFrame({ jsonrpc: '2.0', id: 1, method: 'session/request_permission', params }), []);
  t.match(exitPlanModeTool.presentCall({ plan: 'the plan' }, { cwd: '/' }), { kind: 'switch_mode', content: ['the plan'] });
});

t.test('anything but a clear approval leaves the session in plan mode', async (t) => {
  const cases: [() => Promise<PermissionAnswer>, string, string][] = [
    [async () => selected('keep_planning'), 'PLAN_REJECTED', 'reject'],
    [async () => selected('approve'), 'PERMISSION_UNAVAILABLE', 'unavailable'],
    [async () => ({ outcome: 'unavailable' }), 'PERMISSION_UNAVAILABLE', 'unavailable'],
    [async () => ({ outcome: 'cancelled' }), 'PERMISSION_UNAVAILABLE', 'unavailable'],
    [() => Promise.reject(new Error('lost')), 'PERMISSION_UNAVAILABLE', 'unavailable'],
  ];
  for (const [answer, code, outcome] of cases) {
    const rig = new Rig(answer);
    t.match(await rig.call(), { isError: true, code });
    t.match(rig.decisions, [{ outcome }]);
    t.equal(rig.mode, 'plan');
    t.same(rig.modes, []);
  }
});

t.test('nobody answers in time: the question is taken back', async (t) => {
  const rig = new Rig(() => new Promise(() => undefined), { timeoutMs: 5 });
  t.match(await rig.call(), { isError: true, code: 'PERMISSION_UNAVAILABLE' });
  t.match(rig.decisions, [{ outcome: 'unavailable', by: 'timeout' }]);
  t.same(rig.withdrawn, ['plan:1:c1']);
});

t.test('a cancelled turn takes the question back, and an approval that comes with the cancel counts for nothing', async (t) => {
  const rig = new Rig(async ({ stop }) => {
    stop.abort();
    return selected('approve_ask');
  });
  t.match(await rig.call(), { isError: true, code: 'PERMISSION_CANCELLED' });
  t.match(rig.decisions, [{ outcome: 'cancelled' }]);
  t.same([rig.mode, rig.withdrawn], ['plan', ['plan:1:c1']]);
});

t.test('outside plan mode nobody is asked, and a way out that the person took meanwhile stays the one taken', async (t) => {
  const outside = new Rig(async () => selected('approve_ask'));
  outside.mode = 'ask';
  t.match(await outside.call(), { isError: true, code: 'NOT_PLANNING', text: /"ask"/ });
  t.same(outside.requests, []);
  const meanwhile = new Rig(async (rig) => {
    rig.mode = 'read-only';
    return selected('approve_accept_edits');
  });
  t.match(await meanwhile.call(), { isError: true, code: 'NOT_PLANNING', text: /"read-only"/ });
  t.same(meanwhile.modes, []);
});

t.test('an approval that cannot be put on record is none', async (t) => {
  let appended = 0;
  const refusing: PlanApprovalParts['journal'] = {
    append: (event) => {
      appended += 1;
      if (appended === 2) throw new Error('the disk is full');
      return { ...event, seq: 0, time: 0 };
    },
  };
  const rig = new Rig(async () => selected('approve_accept_edits'), { journal: refusing });
  await t.rejects(rig.call());
  t.same(rig.modes, []);
});

t.test('a session that has nobody to ask says so', async (t) => {
  const context = { callId: 'c1', signal: new AbortController().signal } as unknown as ToolContext;
  t.match(await exitPlanModeTool.execute({ plan: 'x' }, context), { isError: true, code: 'NOT_PLANNING' });
});
