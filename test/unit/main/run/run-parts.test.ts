/** The small parts of a run that decide something: verdicts, permissions, faults, costs, texts, the agent's stream. */
import { PassThrough } from 'node:stream';
import { RequestError, type RequestPermissionRequest } from '@agentclientprotocol/sdk';
import t from 'tap';
import { addUsage, readTurnAnswer } from '../../../../src/main/run/agent/agent-answer.ts';
import { toAgentFault } from '../../../../src/main/run/agent/agent-fault.ts';
import { agentStream, type RawUpdate } from '../../../../src/main/run/agent/agent-stream.ts';
import { answerPermission } from '../../../../src/main/run/agent/permission-answer.ts';
import { TurnText } from '../../../../src/main/run/agent/turn-text.ts';
import { AgentFault } from '../../../../src/main/run/agent/agent-fault.ts';
import { judge } from '../../../../src/main/run/attempt/verdict.ts';
import type { CommandOutcome } from '../../../../src/main/run/command.ts';
import { CostMeter } from '../../../../src/main/run/cost-meter.ts';
import { parsePolicy } from '../../../../src/main/config/policy/parse-policy.ts';

const checked = (exitCode: number | null, more: Partial<CommandOutcome> = {}): CommandOutcome => {
  return { exitCode, signal: null, timedOut: false, output: '', durationMs: 1, end: async () => undefined, ...more };
};

t.test('a status says what the turn and the check came to', (t) => {
  const base = { fault: undefined, stopReason: 'end_turn', limited: false, check: undefined };
  const fault = new AgentFault('lost', 'gone', { retryable: true });
  const rows: [Partial<Parameters<typeof judge>[0]>, object][] = [
    [{}, { status: 'completed' }],
    [{ check: checked(0) }, { status: 'passed' }],
    [{ check: checked(1) }, { status: 'failed' }],
    [{ check: checked(null, { signal: 'SIGKILL' }) }, { status: 'failed' }],
    [{ check: checked(0, { timedOut: true }) }, { status: 'failed' }],
    [{ check: checked(null, { spawnError: 'no' }) }, { status: 'error', errorClass: 'check', retryable: false }],
    [{ stopReason: 'max_turn_requests' }, { status: 'budget' }],
    [{ stopReason: 'max_turn_requests', check: checked(1) }, { status: 'budget' }],
    [{ stopReason: 'max_turn_requests', check: checked(0) }, { status: 'passed' }],
    [{ stopReason: 'max_tokens' }, { status: 'budget' }],
    [{ stopReason: 'cancelled', limited: true }, { status: 'budget' }],
    [{ fault, limited: true, check: checked(0) }, { status: 'passed' }],
    [{ stopReason: 'cancelled' }, { status: 'cancelled' }],
    [{ stopReason: 'refusal' }, { status: 'error', errorClass: 'model', retryable: false }],
    [{ stopReason: 'refusal', check: checked(1) }, { status: 'failed' }],
    [{ fault }, { status: 'error', errorClass: 'lost', error: 'gone', retryable: true }],
  ];
  for (const [evidence, expected] of rows) t.match(judge({ ...base, ...evidence }), expected, JSON.stringify(evidence));
  t.end();
});

t.test('errors of agents have a class, and only those that may pass are tried again', (t) => {
  const rows: [unknown, object][] = [
    [new RequestError(-32603, 'x', { code: 'MODEL_FAILED', reason: 'RATE_LIMIT' }), { errorClass: 'busy', retryable: true }],
    [
      new RequestError(-32603, 'x', { code: 'MODEL_FAILED', reason: 'SERVER' }),
      { errorClass: 'model', retryable: true, needsPerson: false },
    ],
    [
      new RequestError(-32603, 'x', { code: 'MODEL_FAILED', reason: 'QUOTA' }),
      { errorClass: 'model', retryable: false, needsPerson: true },
    ],
    [new RequestError(-32000, 'x', { code: 'AUTH_REQUIRED' }), { errorClass: 'model', retryable: false, needsPerson: true }],
    [new RequestError(-31003, 'x', { code: 'THREAD_LOST' }), { errorClass: 'lost', retryable: true }],
    [new RequestError(-31002, 'x', { code: 'OVERLOADED' }), { errorClass: 'busy', retryable: true }],
    [new RequestError(-32602, 'x', { code: 'CWD_INVALID' }), { errorClass: 'request', retryable: false }],
    [new RequestError(-32603, 'x', { details: 'more' }), { errorClass: 'agent', retryable: true, message: 'x more' }],
    [new RequestError(-32000, 'log in'), { errorClass: 'agent', retryable: false, needsPerson: true }],
    [new Error('ACP connection closed'), { errorClass: 'lost', retryable: true, message: 'it died' }],
  ];
  for (const [error, expected] of rows)
    t.match(
      toAgentFault(error, () => 'it died'),
      expected,
    );
  t.end();
});

t.test('what an agent asks is granted only where policies, or else the mode, allow it for certain', (t) => {
  const options = (['allow_always', 'reject_once', 'allow_once'] as const).map((kind) => ({ optionId: kind, name: kind, kind }));
  const granted = (toolCall: object, rules: object): boolean => {
    const request = { sessionId: 's', toolCall: { toolCallId: 'c', ...toolCall }, options } as RequestPermissionRequest;
    const { outcome } = answerPermission(request, { policies: [], mode: 'ask', cwd: '/w', ...rules });
    const id = outcome.outcome === 'selected' ? outcome.optionId : undefined;
    t.ok(id === 'allow_once' || id === 'reject_once', 'never more than once');
    return id === 'allow_once';
  };
  const modes = (kind: string | undefined) =>
    (['ask', 'read-only', 'accept-edits', 'full-access'] as const).map((mode) => granted({ kind }, { mode }));
  t.same(modes('read'), [true, true, true, true]);
  t.same(modes('edit'), [false, false, true, true]);
  t.same(modes('execute'), [false, false, false, true]);
  t.same(modes(undefined), [false, false, false, true]);
  const policy = (rules: object[], fallback = 'deny') => ({ policies: [parsePolicy({ rules, fallback }, 'test')], mode: 'full-access' });
  const src = [{ action: 'allow', access: ['write'], paths: ['src/**'] }];
  t.ok(granted({ kind: 'edit', locations: [{ path: '/w/src/a.js' }] }, policy(src)));
  t.notOk(granted({ kind: 'edit', locations: [{ path: '/w/src/a.js' }, { path: '/w/b.js' }] }, policy(src)));
  t.notOk(granted({ kind: 'edit', locations: [{ path: '/w/src/../../x' }] }, policy(src)));
  t.notOk(granted({ kind: 'edit' }, policy(src)), 'which path is not known');
  const tests = [{ action: 'allow', commands: [['npm', 'test', '...']] }];
  t.ok(granted({ kind: 'execute', rawInput: { command: 'npm test -- a' } }, policy(tests)));
  t.notOk(granted({ kind: 'execute', rawInput: { command: 'npm test; rm -rf /' } }, policy(tests)));
  t.notOk(granted({ kind: 'execute', rawInput: { command: 'npm test' } }, policy([{ ...tests[0], network: 'none' }])));
  const noGit = [{ action: 'deny', commands: [['git', '...']] }];
  t.ok(granted({ kind: 'read', locations: [{ path: '/w/a.js' }] }, policy(noGit, 'allow')));
  t.ok(granted({ kind: 'execute', rawInput: { command: 'ls' } }, policy(noGit, 'allow')));
  t.notOk(granted({ kind: 'execute', rawInput: { command: 'git push' } }, policy(noGit, 'allow')));
  t.notOk(granted({ kind: 'execute', rawInput: { command: 'x=git; $x push' } }, policy(noGit, 'allow')), 'it may be what is denied');
  t.notOk(granted({ kind: 'execute' }, policy([{ action: 'ask', access: ['execute'] }], 'allow')), 'nobody is there to be asked');
  const both = { policies: [...policy(src).policies, ...policy(noGit, 'allow').policies] };
  t.notOk(granted({ kind: 'read' }, both), 'each policy must allow');
  const noOnce = { sessionId: 's', toolCall: { toolCallId: 'c' }, options: options.slice(0, 1) } as RequestPermissionRequest;
  t.same(answerPermission(noOnce, { policies: [], mode: 'full-access', cwd: '/' }).outcome, { outcome: 'cancelled' });
  t.end();
});

t.test('what was guessed and what subagents used is summed beside the rest', (t) => {
  const tokens = { inputTokens: 10, outputTokens: 2, cacheReadTokens: 1, reasoningTokens: 1 };
  const of = (more: object) => readTurnAnswer({ _meta: { 'dsh-acp': { usage: { ...tokens, steps: 1, toolCalls: 0, ...more } } } }).usage;
  const plain = of({});
  t.same(Object.keys(plain ?? {}).length, 6, 'nothing is said of what there is not');
  const both = of({ guessedTokens: 5, subagents: { ...tokens, costUsd: 1 } });
  t.match(addUsage(plain, both), { inputTokens: 20, steps: 2, guessedTokens: 5, subagents: tokens });
  t.match(addUsage(both, both), { guessedTokens: 10, subagents: { inputTokens: 20, outputTokens: 4, cacheReadTokens: 2 } });
  t.end();
});

t.test('nothing starts beyond the cost, also not what is on its way to it', async (t) => {
  const reached: string[] = [];
  const meter = new CostMeter(1, (why) => void reached.push(why));
  await meter.begin();
  await meter.begin();
  meter.add(0.3);
  meter.end(0.3);
  await meter.begin();
  // 0.3 spent and two running that will take 0.3 each: a third would end at 1.2.
  meter.add(0.3);
  meter.end(0.3);
  await meter.begin();
  let started = false;
  const third = meter.begin().then(() => {
    started = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  t.notOk(started);
  t.same(reached, []);
  meter.add(0.5);
  t.match(reached, [/limit of 1 US dollar/]);
  meter.release();
  await third;
  t.end();
});

t.test('the final text is what stands behind the last tool call, unless nothing does', (t) => {
  const text = new TurnText();
  text.push('I will look. ');
  text.toolCall();
  text.push('Done');
  text.push('.');
  t.equal(text.text(), 'Done.');
  text.toolCall();
  text.push(' \n');
  t.equal(text.text(), 'Done.');
  text.clear();
  t.equal(text.text(), '');
  for (let i = 0; i < 300; i += 1) text.push('x'.repeat(4_000));
  t.ok(text.text().length < 260 * 1024 && text.text().startsWith('[…]x'));
  t.end();
});

t.test('the stream skips noise, keeps updates in their place before answers, and reads no faster than it is asked', async (t) => {
  const stdout = new PassThrough({ highWaterMark: 1024 });
  const seen: string[] = [];
  const onUpdate = ({ update }: RawUpdate) => void seen.push(String(update['n']));
  const { readable } = agentStream(stdout, new PassThrough(), { onUpdate });
  const reader = readable.getReader();
  const update = (n: number) => ({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update: { n } } });
  const lines = [
    'npm notice',
    '{"half":',
    update(1),
    { jsonrpc: '2.0', id: 1, result: {} },
    update(2),
    { jsonrpc: '2.0', id: 2, result: {} },
  ];
  const more = [{ jsonrpc: '2.0', method: '_news', params: {} }, '["jsonrpc"]', { jsonrpc: '2.0', id: 'a', method: 'x' }, update(3)];
  for (const line of [...lines, ...more]) stdout.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`);
  t.match((await reader.read()).value, { id: 1 });
  t.same(seen, ['1'], 'an update behind an answer is not seen with it');
  t.match((await reader.read()).value, { id: 2 });
  t.match((await reader.read()).value, { id: 'a', method: 'x' });
  for (let i = 0; i < 100; i += 1) stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: i, result: {} })}\n`);
  await new Promise((resolve) => setImmediate(resolve));
  t.ok(stdout.writableNeedDrain, 'what nobody reads stays where it is');
  stdout.end();
  let rest = 0;
  while (!(await reader.read()).done) rest += 1;
  t.equal(rest, 100);
  t.same(seen, ['1', '2', '3']);
});
