/** A lasting yes about a command holds for the circumstances of which the person was told, and for stricter ones. */
import t from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import type { SandboxState } from '../../../../src/shared/sandbox.ts';
import { SessionPermissions, type SessionPermissionsOptions } from '../../../../src/worker/permission/session-permissions.ts';
import { bashTool } from '../../../../src/worker/tools/bash.ts';
import { type MemoryGrants, memoryGrants } from './memory-grants.ts';

const contained: SandboxState = { kind: 'bubblewrap', network: 'on' };
const offline: SandboxState = { kind: 'bubblewrap', network: 'off' };
const free: SandboxState = { kind: 'none', network: 'on' };
const cut: SandboxState = { kind: 'none', network: 'off' };

interface Wish {
  readonly lasting: MemoryGrants;
  readonly state: SandboxState | 'lost' | 'silent';
  readonly answer?: string;
  readonly options?: Partial<SessionPermissionsOptions>;
}

/** A server started anew over the same lasting answers. */
function server({ lasting, state, answer = 'reject_once', options = {} }: Wish) {
  const events: EventInput[] = [];
  const asked: any[] = [];
  const gate = new SessionPermissions({
    sessionId: 's',
    cwd: '/ws',
    mode: 'ask',
    timeoutMs: 0,
    journal: { append: (event) => ({ ...event, seq: events.push(event) - 1, time: 0 }) },
    ask: async ({ params }) => {
      asked.push(params);
      return { outcome: 'selected', optionId: answer };
    },
    withdraw: () => undefined,
    flush: () => 0,
    toolCall: (call, reason) => ({ toolCallId: call.callId, title: reason ?? '' }),
    sandboxState: async () => {
      if (state === 'lost') throw new Error('no broker');
      return state === 'silent' ? await new Promise<never>(() => undefined) : state;
    },
    lasting,
    ...options,
  });
  const run = async (
    more: { readonly run_in_background?: boolean; readonly network?: boolean } = {},
    signal = new AbortController().signal,
  ) => {
    const access = bashTool.access({ command: 'make', description: '', ...more }, { cwd: '/ws' });
    return await gate.decide(
      { turn: 1, callId: 'c', toolName: 'bash', access, view: { card: 'generic', title: 'T' }, rawInput: {} },
      signal,
    );
  };
  return { gate, asked, events, run };
}

const alwaysName = (params: any): string | undefined => params.options.find((option: any) => option.kind === 'allow_always')?.name;

t.test('a yes for a contained command asks again without a sandbox, and is what the button says', async (t) => {
  const lasting = memoryGrants();
  const first = server({ lasting, state: contained, answer: 'allow_always' });
  t.strictSame(await first.run(), { allowed: true, sandbox: 'required' }, 'should the sandbox be gone by then, nothing runs');
  t.match(first.asked[0].toolCall.title, /Runs contained/);
  t.equal(alwaysName(first.asked[0]), 'Always allow this exact command in this workspace while contained');
  t.strictSame(await first.run(), { allowed: true, sandbox: 'required', unasked: true });
  t.equal(first.asked.length, 1);
  for (const state of [free, cut, 'lost'] as const) {
    const later = server({ lasting, state });
    t.match(await later.run(), { allowed: false }, JSON.stringify(state));
    t.equal(later.asked.length, 1, 'asked again');
  }
  const off = server({ lasting, state: free, options: { commandState: async () => free } });
  t.match(await off.run(), { allowed: false });
});

t.test('each yes covers what is as strict or stricter, and nothing else', async (t) => {
  const circumstances = [
    { state: contained, background: false },
    { state: contained, background: true },
    { state: offline, background: false },
    { state: offline, background: true },
    { state: free, background: false },
    { state: free, background: true },
    { state: cut, background: false },
    { state: cut, background: true },
  ];
  const isCovered = (given: (typeof circumstances)[number], now: (typeof circumstances)[number]): boolean =>
    (given.state.kind === 'none' || now.state.kind === 'bubblewrap') &&
    (given.state.network === 'on' || now.state.network === 'off') &&
    (given.background || !now.background);
  for (const given of circumstances) {
    for (const now of circumstances) {
      const lasting = memoryGrants();
      await server({ lasting, state: given.state, answer: 'allow_always' }).run({ run_in_background: given.background });
      const { run, asked } = server({ lasting, state: now.state });
      const decision = await run({ run_in_background: now.background });
      const expected = isCovered(given, now);
      t.equal(decision.allowed, expected, JSON.stringify([given, now]));
      t.equal(asked.length, expected ? 0 : 1);
    }
  }
});

t.test('where the network is given for the asking, a yes without it is none to a call that asks', async (t) => {
  const lasting = memoryGrants();
  const state = { kind: 'bubblewrap', network: 'ask' } as const;
  const first = server({ lasting, state, answer: 'allow_always' });
  t.strictSame(await first.run(), { allowed: true, sandbox: 'required' });
  t.match(first.asked[0].toolCall.title, /Runs contained: writes only in the workspace, no network\./);
  t.strictSame(await first.run({ network: true }), { allowed: true, sandbox: 'required', network: 'any' });
  t.match(first.asked[1].toolCall.title, /writes only in the workspace, with network\./, 'asked again, for more');
  t.strictSame(await first.run({ network: true }), { allowed: true, sandbox: 'required', network: 'any', unasked: true });
  t.strictSame(await first.run(), { allowed: true, sandbox: 'required', unasked: true }, 'the network is not given along');
  t.equal(first.asked.length, 2);
  const off = server({ lasting: memoryGrants(), state: offline, answer: 'allow_once' });
  t.strictSame(await off.run({ network: true }), { allowed: true, sandbox: 'required' }, 'what the settings keep off nobody can give');
  t.match(off.asked[0].toolCall.title, /no network/);
});

t.test('full access gives a person’s commands the network, and those of a program none', async (t) => {
  for (const [unattended, expected] of [
    [false, { allowed: true, network: 'any', unasked: true }],
    [true, { allowed: true, unasked: true }],
  ] as const) {
    const { gate, run } = server({ lasting: memoryGrants(), state: contained, options: { unattended } });
    gate.setMode('full-access');
    t.strictSame(await run(), expected);
    const background = unattended ? expected : { allowed: true, network: 'any' };
    t.strictSame(await run({ run_in_background: true }), background, 'beside a person’s own work nothing is taken away');
  }
});

t.test('a rule that cuts the network off or asks binds its yes in the same way', async (t) => {
  const lasting = memoryGrants();
  const policies = (network: 'none' | undefined): NonNullable<SessionPermissionsOptions['policies']> => [
    { decide: () => ({ action: 'ask', rule: 'r', network, askTimeoutMs: undefined, why: undefined }) },
  ];
  const options = (network: 'none' | undefined) => ({ policies: policies(network), canCutNetwork: async () => true });
  const first = server({ lasting, state: contained, answer: 'allow_always', options: options('none') });
  t.strictSame(await first.run(), { allowed: true, network: 'none', sandbox: 'required' });
  t.equal(alwaysName(first.asked[0]), 'Always allow this exact command in this workspace while contained and without a network');
  t.strictSame(await first.run(), { allowed: true, network: 'none', sandbox: 'required', unasked: true });
  t.equal(first.asked.length, 1);
  t.match(await server({ lasting, state: contained, options: options(undefined) }).run(), { allowed: false }, 'the network is on now');
  t.match(await server({ lasting, state: free, options: options('none') }).run(), { allowed: false }, 'the sandbox is gone');
});

t.test('a yes of an earlier release counts for a contained command in the foreground; a no for every one', async (t) => {
  const bare = JSON.stringify(['execute', '/ws', 'make']);
  const allowed = memoryGrants();
  allowed.allowed.add(bare);
  t.strictSame(await server({ lasting: allowed, state: contained }).run(), { allowed: true, sandbox: 'required', unasked: true });
  t.match(await server({ lasting: allowed, state: contained }).run({ run_in_background: true }), { allowed: false });
  t.match(await server({ lasting: allowed, state: free }).run(), { allowed: false });

  const rejected = memoryGrants();
  const first = server({ lasting: rejected, state: contained, answer: 'reject_always' });
  t.match(await first.run(), { allowed: false });
  t.same([...rejected.rejected], [bare]);
  for (const state of [contained, free]) {
    const later = server({ lasting: rejected, state, answer: 'allow_once' });
    t.match(await later.run({ run_in_background: true }), { allowed: false, text: /without asking/ });
    t.equal(later.asked.length, 0);
  }
});

t.test('no lasting yes is offered while it cannot be told what a command runs in, and a cancel ends the wait for that', async (t) => {
  const lost = server({ lasting: memoryGrants(), state: 'lost' });
  await lost.run();
  t.equal(alwaysName(lost.asked[0]), undefined);
  t.ok(lost.asked[0].options.some((option: any) => option.kind === 'reject_always'));
  const silent = server({ lasting: memoryGrants(), state: 'silent' });
  const stop = new AbortController();
  const decision = silent.run({}, stop.signal);
  setImmediate(() => stop.abort());
  t.match(await decision, { allowed: false, code: 'PERMISSION_CANCELLED' });
});
