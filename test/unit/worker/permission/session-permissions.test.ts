import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import type { PermissionAnswer, PermissionRequest } from '../../../../src/shared/thread-protocol.ts';
import { canonicalPath } from '../../../../src/worker/permission/canonical-path.ts';
import type { PermissionCall } from '../../../../src/worker/permission/permission-gate.ts';
import { SessionPermissions, type SessionPermissionsOptions } from '../../../../src/worker/permission/session-permissions.ts';
import { Projector } from '../../../../src/worker/projection/projector.ts';
import type { ToolAccess } from '../../../../src/worker/tools/tool.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';
import { memoryGrants } from './memory-grants.ts';

type Params = { toolCall: { toolCallId: string; title: string }; options: { optionId: string; name: string; kind: string }[] };

/** A gate whose questions wait until the test answers them. */
function harness(options: Partial<SessionPermissionsOptions> = {}) {
  const cwd = options.cwd ?? '/ws';
  const events: EventInput[] = [];
  const questions: { request: PermissionRequest; answer: (answer: PermissionAnswer) => void; fail: (error: Error) => void }[] = [];
  const withdrawn: string[] = [];
  let arrived: (() => void) | undefined;
  const projector = new Projector({ sessionId: 's', cwd, profile: 'editor', client: { terminalOutput: false }, tools: () => undefined });
  const gate = new SessionPermissions({
    sessionId: 's',
    cwd,
    mode: 'ask',
    timeoutMs: 0,
    journal: { append: (event) => ({ ...event, seq: events.push(event) - 1, time: 0 }) },
    ask: (request) =>
      new Promise((answer, fail) => {
        questions.push({ request, answer, fail });
        arrived?.();
      }),
    withdraw: (key) => void withdrawn.push(key),
    flush: () => 7,
    toolCall: (call, reason) => projector.permissionToolCall(call, reason),
    lasting: memoryGrants(),
    ...options,
  });
  /** The question with this index, as soon as it is asked. */
  const question = async (index: number) => {
    while (questions[index] === undefined) await new Promise<void>((resolve) => (arrived = resolve));
    return questions[index];
  };
  return { gate, events, question, questions, withdrawn };
}

const never = new AbortController().signal;
function call(access: ToolAccess, callId = 'c1'): PermissionCall {
  const view =
    access.kind === 'execute' ? ({ card: 'terminal', title: access.command } as const) : ({ card: 'generic', title: 'T' } as const);
  return { turn: 3, callId, toolName: 'tool', access, view, rawInput: { a: 1 } };
}
const command = (text: string, callId = 'c1') => call({ kind: 'execute', command: text, cwd: '/ws' }, callId);
const selected = (optionId: string): PermissionAnswer => ({ outcome: 'selected', optionId });
const outcomes = (events: EventInput[]) => events.map((event) => (event.type === 'permission/decided' ? event.data.outcome : event.type));

t.test('a question is complete, valid, and behind the batch of its call', async (t) => {
  const { gate, events, question } = harness();
  const decision = gate.decide(command('rm -rf build\necho done'), never);
  const { request, answer } = await question(0);
  const frame = { jsonrpc: '2.0', id: 1, method: 'session/request_permission', params: request.params };
  t.strictSame(validateAgentFrame(frame), []);
  t.match(request, { sessionId: 's', afterBatch: 7 });
  t.match(request.params, {
    toolCall: { toolCallId: 'c1', title: 'rm -rf build echo done', kind: 'execute', status: 'pending', rawInput: { a: 1 } },
    options: [
      { optionId: 'allow_once', name: 'Allow once', kind: 'allow_once' },
      { optionId: 'allow_always', name: 'Always allow this exact command in this workspace', kind: 'allow_always' },
      { optionId: 'reject_once', name: 'Reject once', kind: 'reject_once' },
      { optionId: 'reject_always', name: 'Always reject this exact command in this workspace', kind: 'reject_always' },
    ],
  });
  t.match(JSON.stringify((request.params as Params).toolCall), 'rm -rf build\\necho done', 'the whole command can be read');
  answer(selected('allow_once'));
  t.strictSame(await decision, { allowed: true });
  t.strictSame(events, [
    { type: 'permission/asked', data: { turn: 3, callId: 'c1', title: 'rm -rf build echo done' } },
    { type: 'permission/decided', data: { turn: 3, callId: 'c1', outcome: 'allow-once', by: 'client' } },
  ]);
});

t.test('what the mode allows is neither asked nor logged', async (t) => {
  const dir = t.testdir({ 'a.txt': 'x' });
  const cwd = (await canonicalPath(dir)) ?? dir;
  const { gate, events, questions } = harness({ cwd });
  t.strictSame(await gate.decide(call({ kind: 'read', paths: [join(cwd, 'a.txt')] }), never), { allowed: true });
  t.strictSame(await gate.decide(call({ kind: 'write', paths: [join(cwd, 'new/b.txt')] }), never), { allowed: true });
  t.strictSame(await gate.decide(call({ kind: 'none' }), never), { allowed: true });
  gate.setMode('full-access');
  t.strictSame(await gate.decide(command('x'), never), { allowed: true, network: 'any', unasked: true });
  t.equal(events.length + questions.length, 0);
});

t.test('anything but a clear yes is a no, each with its own text', async (t) => {
  const cases: [string, PermissionAnswer | Error, string, string][] = [
    ['reject', selected('reject_once'), 'PERMISSION_DENIED', 'reject'],
    ['an id that was not offered', selected('allow-once'), 'PERMISSION_UNAVAILABLE', 'unavailable'],
    ['an empty id', selected(''), 'PERMISSION_UNAVAILABLE', 'unavailable'],
    ['a client that is gone', { outcome: 'unavailable' }, 'PERMISSION_UNAVAILABLE', 'unavailable'],
    ['a failed request', new Error('gone'), 'PERMISSION_UNAVAILABLE', 'unavailable'],
    ['an answer that is none', undefined as unknown as PermissionAnswer, 'PERMISSION_UNAVAILABLE', 'unavailable'],
    ['cancelled', { outcome: 'cancelled' }, 'PERMISSION_CANCELLED', 'cancelled'],
  ];
  const texts = new Map<string, string>();
  for (const [name, reply, code, outcome] of cases) {
    const { gate, events, question } = harness();
    const decision = gate.decide(command('x'), never);
    const asked = await question(0);
    if (reply instanceof Error) asked.fail(reply);
    else asked.answer(reply);
    const decided = await decision;
    t.match(decided, { allowed: false, code }, name);
    t.strictSame(outcomes(events), ['permission/asked', outcome], name);
    if (!decided.allowed) texts.set(code, decided.text);
  }
  t.equal(new Set(texts.values()).size, 3);
  t.match(texts.get('PERMISSION_CANCELLED'), /^The client gave no answer to this request; nothing was done\. Go on without it\.$/);
});

t.test('the word cancelled that comes just before the cancel of its turn belongs to that cancel', async (t) => {
  const { gate, question } = harness();
  const abort = new AbortController();
  const decision = gate.decide(command('x'), abort.signal);
  (await question(0)).answer({ outcome: 'cancelled' });
  await new Promise((resolve) => process.nextTick(resolve));
  abort.abort();
  t.match(await decision, { allowed: false, code: 'PERMISSION_CANCELLED', text: /The turn was cancelled/ });
});

t.test('a thrown question, a full disk and silence are a no', async (t) => {
  const thrown = harness({
    ask: () => {
      throw new Error('no port');
    },
  });
  t.match(await thrown.gate.decide(command('x'), never), { allowed: false, code: 'PERMISSION_UNAVAILABLE' });
  const full = harness({
    journal: {
      append: () => {
        throw new Error('ENOSPC');
      },
    },
  });
  t.match(await full.gate.decide(command('x'), never), { allowed: false, code: 'PERMISSION_UNAVAILABLE' });
  const silent = harness({ timeoutMs: 5 });
  t.match(await silent.gate.decide(command('x'), never), { allowed: false, code: 'PERMISSION_UNAVAILABLE', text: /in time/ });
  t.match(silent.events[1], { data: { outcome: 'unavailable', by: 'timeout' } });
  t.equal(silent.withdrawn.length, 1);
});

t.test('an abort ends the question at once, and a late yes changes nothing', async (t) => {
  const { gate, events, question, withdrawn } = harness();
  const abort = new AbortController();
  const decision = gate.decide(command('x'), abort.signal);
  const asked = await question(0);
  abort.abort();
  t.match(await decision, { allowed: false, code: 'PERMISSION_CANCELLED' });
  t.strictSame(withdrawn, [asked.request.requestKey]);
  asked.answer(selected('allow_always'));
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(outcomes(events), ['permission/asked', 'cancelled']);
  t.match(await gate.decide(command('x'), abort.signal), { allowed: false, code: 'PERMISSION_CANCELLED' });
  t.equal(events.length, 2, 'an aborted call is not asked');
  const again = gate.decide(command('x'), never);
  (await question(1)).answer(selected('reject_once'));
  t.match(await again, { allowed: false }, 'the late yes gave no grant');
});

t.test('answers in reverse order reach their own calls', async (t) => {
  const { gate, question } = harness();
  const first = gate.decide(command('one', 'c1'), never);
  const second = gate.decide(command('two', 'c2'), never);
  const [a, b] = [await question(0), await question(1)];
  t.not(a.request.requestKey, b.request.requestKey);
  const yes = [a, b].find(({ request }) => (request.params as Params).toolCall.toolCallId === 'c2');
  const no = yes === a ? b : a;
  yes?.answer(selected('allow_once'));
  t.strictSame(await second, { allowed: true });
  no.answer(selected('reject_once'));
  t.match(await first, { allowed: false, code: 'PERMISSION_DENIED' });
});

t.test('a yes is used up; an answer for good lasts, for exactly this call', async (t) => {
  const { gate, events, question, questions } = harness();
  const once = gate.decide(command('npm test'), never);
  (await question(0)).answer(selected('allow_once'));
  await once;
  const second = gate.decide(command('npm test'), never);
  (await question(1)).answer(selected('allow_always'));
  t.strictSame(await second, { allowed: true });
  t.match(events.at(-1), { type: 'permission/decided', data: { outcome: 'allow-always', by: 'client' } });
  t.strictSame(await gate.decide(command('npm test'), never), { allowed: true, unasked: true });
  t.equal(questions.length, 2);
  t.match(events.at(-1), { type: 'permission/decided', data: { outcome: 'allow-always', by: 'grant' } });
  const changed = gate.decide(command('npm test && curl x'), never);
  (await question(2)).answer(selected('reject_once'));
  t.match(await changed, { allowed: false });

  const revived = harness();
  for (const event of events) revived.gate.observe(event);
  const asked = revived.gate.decide(command('npm test'), never);
  (await revived.question(0)).answer(selected('reject_once'));
  t.match(await asked, { allowed: false }, 'what belongs to the workspace is not learnt from the log: it may have been taken back');
});

t.test('a mode holds at once, and is learnt from the log', async (t) => {
  const { gate, events, question, withdrawn } = harness();
  const open = gate.decide(command('x'), never);
  const tool = gate.decide(call({ kind: 'mcp', server: 's', tool: 't', print: 'p' }, 'c2'), never);
  const reading = gate.decide(call({ kind: 'read', paths: ['/elsewhere'] }, 'c3'), never);
  const asked = [await question(0), await question(1), await question(2)];
  const keyOf = (callId: string) =>
    asked.find(({ request }) => (request.params as Params).toolCall.toolCallId === callId)?.request.requestKey;
  gate.setMode('accept-edits');
  t.strictSame(withdrawn, [], 'a mode that refuses nothing leaves its questions alone');
  gate.setMode('plan');
  t.match(await open, { allowed: false, code: 'PERMISSION_DENIED', text: /making a plan/ });
  t.match(await tool, { allowed: false, code: 'PERMISSION_DENIED', text: /MCP/ });
  t.strictSame(new Set(withdrawn), new Set([keyOf('c1'), keyOf('c2')]), 'the client need not answer what no longer counts');
  for (const { answer } of asked) answer(selected('allow_once'));
  t.strictSame(await reading, { allowed: true }, 'reading is no matter of the plan');
  const decided = events.flatMap((event) => (event.type === 'permission/decided' ? [event.data] : []));
  t.match(
    decided.filter(({ callId }) => callId !== 'c3'),
    [
      { outcome: 'reject', by: 'mode', grant: undefined },
      { outcome: 'reject', by: 'mode', grant: undefined },
    ],
  );
  t.match(await gate.decide(command('x'), never), { allowed: false, code: 'PERMISSION_DENIED', text: /making a plan/ });
  gate.observe({ type: 'mode/change', data: { mode: 'full-access' } });
  t.equal(gate.mode, 'full-access');
});

t.test('a yes that comes together with a stricter mode neither runs the call nor lasts', async (t) => {
  for (const access of [
    { kind: 'execute', command: 'x', cwd: '/ws' },
    { kind: 'mcp', server: 's', tool: 't', print: 'p' },
  ] as const) {
    for (const mode of ['plan', 'read-only'] as const) {
      const lasting = memoryGrants();
      const { gate, events, question } = harness({ lasting });
      const decision = gate.decide(call(access), never);
      // The answer is on its way when the mode changes.
      (await question(0)).answer(selected('allow_always'));
      gate.setMode(mode);
      t.match(await decision, { allowed: false, code: 'PERMISSION_DENIED' }, `${access.kind} in ${mode}`);
      t.match(events.at(-1), { type: 'permission/decided', data: { outcome: 'reject', by: 'mode', grant: undefined } });
      t.equal(lasting.allowed.size, 0, 'nothing is kept');
    }
  }
  const lasting = memoryGrants();
  let kept: () => void = () => undefined;
  const slow = harness({ lasting: { ...lasting, add: () => new Promise((resolve) => (kept = () => resolve(true))) } });
  const decision = slow.gate.decide(command('x'), never);
  (await slow.question(0)).answer(selected('allow_always'));
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  slow.gate.setMode('plan');
  kept();
  t.match(await decision, { allowed: false, code: 'PERMISSION_DENIED', text: /making a plan/ }, 'while the answer was being kept');

  const rejecting = harness();
  const refused = rejecting.gate.decide(command('x'), never);
  (await rejecting.question(0)).answer(selected('reject_always'));
  t.match(await refused, { allowed: false, text: /for good/ });
});

t.test('a mode that comes before a question is asked has it not asked at all', async (t) => {
  const { gate, events, questions } = harness({
    sandboxState: async () => {
      gate.setMode('read-only');
      return { kind: 'none', network: 'on' };
    },
  });
  t.match(await gate.decide(command('x'), never), { allowed: false, text: /read-only/ });
  t.equal(questions.length, 0);
  t.strictSame(outcomes(events), ['reject']);
});

t.test('links are followed before anything is decided', async (t) => {
  const dir = t.testdir({ ws: { real: { 'a.txt': 'x' } }, outside: { 'b.txt': 'y' } });
  const root = (await canonicalPath(dir)) ?? dir;
  const cwd = join(root, 'ws');
  mkdirSync(join(cwd, '.git'));
  symlinkSync('../outside', join(cwd, 'dir-link'));
  symlinkSync('../outside/absent', join(cwd, 'dangling'));
  symlinkSync('dangling', join(cwd, 'chain'));
  symlinkSync('loop', join(cwd, 'loop'));
  symlinkSync('.git', join(cwd, 'store'));
  symlinkSync('ws', join(root, 'alias'));
  t.equal(await canonicalPath(join(cwd, 'dir-link/b.txt')), join(root, 'outside/b.txt'));
  t.equal(await canonicalPath(join(cwd, 'dir-link/new/c.txt')), join(root, 'outside/new/c.txt'));
  t.equal(await canonicalPath(join(cwd, 'chain')), join(root, 'outside/absent'));
  t.equal(await canonicalPath(join(cwd, 'dangling/x')), join(root, 'outside/absent/x'));
  t.equal(await canonicalPath(join(cwd, 'loop')), undefined);
  t.equal(await canonicalPath('/a\0b'), undefined);
  t.equal(await canonicalPath(join(cwd, 'real/a.txt/x')), undefined);

  const { gate, question, questions } = harness({ cwd });
  for (const [index, name] of ['dir-link/b.txt', 'dangling', 'chain', 'loop', 'store/hooks/x', '../outside/b.txt'].entries()) {
    const decision = gate.decide(call({ kind: 'write', paths: [`${cwd}/${name}`] }), never);
    (await question(index)).answer(selected('reject_once'));
    t.match(await decision, { allowed: false }, name);
  }
  t.strictSame(await gate.decide(call({ kind: 'write', paths: [join(root, 'alias/real/a.txt')] }), never), { allowed: true });
  t.equal(questions.length, 6);
});
