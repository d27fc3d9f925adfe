/** The gate of a session that has a policy: what is asked, what is logged, and what the model reads. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parsePolicy } from '../../../../src/main/config/policy/parse-policy.ts';
import type { EventInput } from '../../../../src/shared/events.ts';
import type { PermissionAnswer } from '../../../../src/shared/thread-protocol.ts';
import { canonicalPath } from '../../../../src/worker/permission/canonical-path.ts';
import type { PermissionDecision } from '../../../../src/worker/permission/permission-gate.ts';
import { SessionPermissions, type SessionPermissionsOptions } from '../../../../src/worker/permission/session-permissions.ts';
import { sessionPolicies } from '../../../../src/worker/permission/session-policies.ts';
import type { ToolAccess } from '../../../../src/worker/tools/tool.ts';
import { memoryGrants } from './memory-grants.ts';

interface Setting {
  readonly server?: object;
  readonly session?: object;
  readonly cwd?: string;
  readonly answer?: PermissionAnswer | 'never';
  readonly options?: Partial<SessionPermissionsOptions>;
}

const never = new AbortController().signal;
const selected = (optionId: string): PermissionAnswer => ({ outcome: 'selected', optionId });

function makeGate({ server, session, cwd = '/ws', answer = selected('allow_once'), options = {} }: Setting) {
  const events: EventInput[] = [];
  const questions: any[] = [];
  const parsed = (rules: object | undefined) => (rules === undefined ? undefined : parsePolicy(rules, 'test'));
  const gate = new SessionPermissions({
    sessionId: 's',
    cwd,
    mode: 'ask',
    timeoutMs: 0,
    journal: { append: (event) => ({ ...event, seq: events.push(event) - 1, time: 0 }) },
    ask: async (request) => {
      questions.push(request.params);
      return answer === 'never' ? await new Promise<PermissionAnswer>(() => undefined) : answer;
    },
    withdraw: () => undefined,
    flush: () => 0,
    toolCall: (call, reason) => ({ toolCallId: call.callId, title: reason ?? '' }),
    policies: sessionPolicies({ cwd, ownDirectories: [], server: parsed(server), session: parsed(session) }),
    canCutNetwork: async () => true,
    ...options,
  });
  const decide = async (access: ToolAccess, signal: AbortSignal = never): Promise<PermissionDecision> =>
    await gate.decide({ turn: 1, callId: 'c', toolName: 'tool', access, view: { card: 'generic', title: 'T' }, rawInput: {} }, signal);
  const decided = () => events.flatMap((event) => (event.type === 'permission/decided' ? [event.data] : []));
  return { gate, events, questions, decide, decided };
}

const run = (command: string, cwd = '/ws'): ToolAccess => ({ kind: 'execute', command, cwd });

async function workspace(t: Test, files: object): Promise<string> {
  const folder = t.testdir(files as never);
  return (await canonicalPath(folder)) ?? folder;
}

t.test('every decision of a rule is in the log with its name; nothing is asked', async (t) => {
  const rules = [
    { action: 'allow', name: 'tests', commands: [['npm', 'test']] },
    { action: 'deny', name: 'the rest', access: ['execute'] },
  ];
  const { decide, decided, questions } = makeGate({ server: { rules } });
  t.strictSame(await decide(run('npm test')), { allowed: true, unasked: true });
  const denial = await decide(run('npm test; curl x'));
  t.match(denial, { allowed: false, code: 'PERMISSION_DENIED', text: /rule "the rest" of the policy.*Do not try to get around it/ });
  const unruled = await decide({ kind: 'delegate', provider: 'self' });
  t.match(unruled, { allowed: false, text: /No rule of the policy allows this call \(fallback\).*Do not try to get around it/ });
  t.strictSame(decided(), [
    { turn: 1, callId: 'c', outcome: 'allow-once', by: 'policy', rule: 'tests' },
    { turn: 1, callId: 'c', outcome: 'reject', by: 'policy', rule: 'the rest' },
    { turn: 1, callId: 'c', outcome: 'reject', by: 'policy', rule: 'fallback' },
  ]);
  t.equal(questions.length, 0);
});

t.test('a policy holds in every mode, and read-only refuses what it allows', async (t) => {
  const cwd = await workspace(t, { a: 'x' });
  const server = {
    rules: [
      { action: 'allow', paths: ['**'] },
      { action: 'allow', commands: [['ls']] },
      { action: 'allow', providers: ['*'] },
    ],
  };
  for (const mode of ['ask', 'accept-edits', 'full-access'] as const) {
    const { decide, questions } = makeGate({ server, cwd, options: { mode } });
    t.match(await decide({ kind: 'write', paths: [join(cwd, 'b')] }), { allowed: true }, mode);
    t.match(await decide(run('ls', cwd)), { allowed: true }, mode);
    t.match(await decide(run('rm x', cwd)), { allowed: false, code: 'PERMISSION_DENIED' }, mode);
    t.match(await decide({ kind: 'write', paths: ['/elsewhere'] }), { allowed: false }, mode);
    t.match(await decide({ kind: 'delegate', provider: 'x' }), { allowed: true }, mode);
    t.equal(questions.length, 0);
  }
  const { decide, decided } = makeGate({ server, cwd, options: { mode: 'read-only' } });
  t.match(await decide({ kind: 'read', paths: [join(cwd, 'a')] }), { allowed: true });
  t.match(await decide({ kind: 'write', paths: [join(cwd, 'b')] }), { allowed: false, text: /read-only/ });
  t.match(await decide(run('ls', cwd)), { allowed: false, text: /read-only/ });
  t.match(await decide({ kind: 'delegate', provider: 'x' }), { allowed: false, text: /read-only/ });
  t.match(await decide({ kind: 'delegate', provider: 'self' }), { allowed: true });
  t.same(
    decided().map(({ by }) => by),
    ['policy', 'mode', 'mode', 'mode', 'policy'],
  );
});

t.test('a call that touches nothing passes unless a rule is about it, and is on record', async (t) => {
  const { decide, decided } = makeGate({ server: {} });
  t.strictSame(await decide({ kind: 'none' }), { allowed: true });
  t.strictSame(decided(), [{ turn: 1, callId: 'c', outcome: 'allow-once', by: 'policy', rule: 'fallback' }]);
  const denied = makeGate({ server: { rules: [{ action: 'deny', tools: ['tool'] }] } });
  t.match(await denied.decide({ kind: 'none' }), { allowed: false, text: /rule 1/ });
});

t.test('a rule that asks has the client asked, with its reason, and its answer counts', async (t) => {
  const server = { rules: [{ action: 'ask', name: 'look first', access: ['execute'] }] };
  for (const [option, allowed, outcome] of [
    ['allow_once', true, 'allow-once'],
    ['reject_once', false, 'reject'],
    ['nonsense', false, 'unavailable'],
  ] as const) {
    const { decide, decided, questions } = makeGate({ server, answer: selected(option) });
    const decision = await decide(run('make'));
    t.equal(decision.allowed, allowed, option);
    if (!decision.allowed) t.match(decision.text, /rule "look first" of the policy demands the question.*Do not try to get around it/);
    t.match(questions[0].toolCall.title, /rule "look first"/);
    t.match(decided(), [{ outcome, by: 'client', rule: 'look first' }]);
  }
});

t.test('an unanswered question is a no after the time of the policy', async (t) => {
  const server = { rules: [{ action: 'ask', name: 'slow', access: ['execute'] }], ask_timeout_ms: 20 };
  const { decide, decided } = makeGate({ server, answer: 'never', options: { timeoutMs: 60_000 } });
  t.match(await decide(run('make')), { allowed: false, code: 'PERMISSION_UNAVAILABLE', text: /in time.*rule "slow"/ });
  t.match(decided(), [{ outcome: 'unavailable', by: 'timeout', rule: 'slow' }]);
  const unruled = makeGate({ server: { fallback: 'ask' }, answer: 'never', options: { timeoutMs: 20 } });
  t.match(await unruled.decide(run('make')), { allowed: false, text: /fallback/ });
  const controller = new AbortController();
  const cancelled = makeGate({ server, answer: 'never' });
  const decision = cancelled.decide(run('make'), controller.signal);
  controller.abort();
  t.match(await decision, { allowed: false, code: 'PERMISSION_CANCELLED' });
});

t.test('what was allowed for good answers a question of a rule, never a denial', async (t) => {
  const server = { rules: [{ action: 'ask', name: 'look', commands: [['make']] }] };
  const lasting = memoryGrants();
  const { decide, decided, questions } = makeGate({ server, answer: selected('allow_always'), options: { lasting } });
  t.match(await decide(run('make')), { allowed: true });
  t.match(await decide(run('make')), { allowed: true });
  t.equal(questions.length, 1);
  t.match(decided()[1], { by: 'grant', rule: 'look', outcome: 'allow-always' });
  const stricter = makeGate({ server: {}, options: { lasting } });
  t.match(await stricter.decide(run('make')), { allowed: false, text: /fallback/ });
});

t.test('what was rejected for good stays so where a rule, or the mode, would allow it', async (t) => {
  const lasting = memoryGrants();
  const asking = makeGate({ answer: selected('reject_always'), options: { lasting } });
  t.match(await asking.decide(run('git push')), { allowed: false, code: 'PERMISSION_DENIED', text: /for good/ });
  for (const setting of [{ server: { rules: [{ action: 'allow', name: 'all' }] } }, { options: { mode: 'full-access' as const } }]) {
    const { decide, decided, questions } = makeGate({ ...setting, options: { ...setting.options, lasting } });
    t.match(await decide(run('git push')), { allowed: false, code: 'PERMISSION_DENIED', text: /without asking again.*dsh-acp grants/ });
    t.match(decided(), [{ by: 'grant', outcome: 'reject-always', grant: '["execute","/ws","git push"]' }]);
    t.match(await decide(run('git pull')), { allowed: true }, 'and nothing beside it');
    t.equal(questions.length, 0);
  }
});

t.test('of the two policies the stricter word counts and is named', async (t) => {
  const open = { rules: [{ action: 'allow', name: 'open', access: ['execute'] }] };
  const shut = { rules: [{ action: 'deny', name: 'shut' }] };
  const one = makeGate({ server: open, session: shut });
  t.match(await one.decide(run('ls')), { allowed: false, text: /"session:shut"/ });
  const other = makeGate({ server: shut, session: open });
  t.match(await other.decide(run('ls')), { allowed: false, text: /"shut"/ });
  const both = makeGate({ server: open, session: open });
  t.match(await both.decide(run('ls')), { allowed: true });
  t.match([...one.decided(), ...other.decided(), ...both.decided()], [{ rule: 'session:shut' }, { rule: 'shut' }, { rule: 'open' }]);
  const alone = makeGate({ session: {} });
  t.match(await alone.decide(run('ls')), { allowed: false, text: /session:fallback/ });
});

t.test('links and directories are followed before a rule is asked', async (t) => {
  const root = await workspace(t, { ws: { src: { a: 'x' }, secrets: { key: 'x' } }, outside: {} });
  const cwd = join(root, 'ws');
  symlinkSync('../../outside', join(cwd, 'src', 'out'));
  symlinkSync('../secrets', join(cwd, 'src', 'alias'));
  symlinkSync('loop', join(cwd, 'src', 'loop'));
  mkdirSync(join(cwd, 'sub'));
  symlinkSync('.', join(cwd, 'here'));
  const server = {
    rules: [
      { action: 'deny', name: 'secrets', paths: ['secrets/**'] },
      { action: 'allow', name: 'src', paths: ['src/**'] },
      { action: 'allow', name: 'make', commands: [['make']] },
    ],
  };
  const { decide, decided } = makeGate({ server, cwd });
  const cases: [ToolAccess, string][] = [
    [{ kind: 'read', paths: [join(cwd, 'src/a')] }, 'src'],
    [{ kind: 'write', paths: [join(cwd, 'src/new/b')] }, 'src'],
    [{ kind: 'read', paths: [join(cwd, 'src')] }, 'src'],
    [{ kind: 'write', paths: [join(cwd, 'src/out/b')] }, 'fallback'],
    [{ kind: 'write', paths: [join(cwd, 'src/../sub/b')] }, 'fallback'],
    [{ kind: 'read', paths: [join(cwd, 'src/alias/key')] }, 'secrets'],
    [{ kind: 'read', paths: [join(cwd, 'src/loop')] }, 'secrets'],
    [{ kind: 'read', paths: [cwd] }, 'secrets'],
    [run('make', cwd), 'make'],
    [run('make', join(cwd, 'here')), 'make'],
    [run('make', join(cwd, 'sub')), 'fallback'],
    [run('make', join(cwd, 'src/out')), 'fallback'],
  ];
  for (const [access, rule] of cases) {
    await decide(access);
    t.equal(decided().at(-1)?.rule, rule, JSON.stringify(access).replace(root, ''));
  }
});

t.test('a glob from the home means the home of this user', async (t) => {
  const home = (await canonicalPath(homedir())) ?? homedir();
  const { decide } = makeGate({ server: { rules: [{ action: 'allow', paths: ['~/some-notes/**'] }] } });
  t.match(await decide({ kind: 'read', paths: [join(home, 'some-notes/a')] }), { allowed: true });
  t.match(await decide({ kind: 'read', paths: [join(home, 'a')] }), { allowed: false });
});

t.test('a command that gets no network is allowed as such, or not at all', async (t) => {
  const rules = [
    { action: 'allow', name: 'cut', commands: [['npm', 'test']], network: 'none' },
    { action: 'ask', name: 'asked', access: ['execute'], network: 'none' },
  ];
  const { decide } = makeGate({ server: { rules } });
  t.strictSame(await decide(run('npm test')), { allowed: true, network: 'none', unasked: true });
  t.strictSame(await decide(run('make')), { allowed: true, network: 'none' });
  const gate = makeGate({ server: { rules }, options: { canCutNetwork: async () => false } });
  t.match(await gate.decide(run('npm test')), {
    allowed: false,
    code: 'PERMISSION_DENIED',
    text: /rule "cut".*network cut off.*cannot do/,
  });
  t.match(await gate.decide(run('make')), { allowed: false });
  t.match(gate.decided(), [
    { outcome: 'reject', by: 'policy', rule: 'cut' },
    { outcome: 'reject', by: 'policy', rule: 'asked' },
  ]);
  t.equal(gate.questions.length, 0, 'nobody is asked for what cannot be done');
  const lost = makeGate({ server: { rules }, options: { canCutNetwork: () => Promise.reject(new Error('the broker is gone')) } });
  t.match(await lost.decide(run('npm test')), { allowed: false, code: 'PERMISSION_UNAVAILABLE' });
  const stricter = makeGate({ server: { rules: [{ action: 'allow', access: ['execute'] }] }, session: { rules } });
  t.strictSame(await stricter.decide(run('npm test')), { allowed: true, network: 'none', unasked: true });
  const given = makeGate({ server: { rules: [{ action: 'allow', access: ['execute'], network: 'any' }] } });
  t.strictSame(await given.decide(run('npm test')), { allowed: true, network: 'any', unasked: true });
  const doubted = makeGate({
    server: { rules: [{ action: 'allow', access: ['execute'], network: 'any' }] },
    session: { rules: [{ action: 'allow' }] },
  });
  t.strictSame(await doubted.decide(run('npm test')), { allowed: true, unasked: true }, 'both must give it');
});

t.test('a decision that cannot be logged is a no', async (t) => {
  const full = {
    append: () => {
      throw new Error('no space');
    },
  };
  const { decide } = makeGate({ server: { rules: [{ action: 'allow' }] }, options: { journal: full } });
  t.match(await decide(run('ls')), { allowed: false, code: 'PERMISSION_UNAVAILABLE' });
});

t.test('where grants are not offered, an answer that takes one is none', async (t) => {
  for (const server of [undefined, { fallback: 'ask' }]) {
    const setting = { ...(server === undefined ? {} : { server }), answer: selected('allow_always'), options: { offersGrants: false } };
    const { decide, decided, questions } = makeGate(setting);
    t.match(await decide(run('ls')), { allowed: false, code: 'PERMISSION_UNAVAILABLE' });
    t.same(
      questions[0].options.map((option: any) => option.kind),
      ['allow_once', 'reject_once'],
    );
    t.match(decided(), [{ outcome: 'unavailable', by: 'client' }]);
    const once = makeGate({ ...setting, answer: selected('allow_once') });
    t.match(await once.decide(run('ls')), { allowed: true });
  }
});
