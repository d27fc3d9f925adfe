import t from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import type { SubagentActivity } from '../../../../src/shared/subagent-protocol.ts';
import { ParentScreen } from '../../../../src/worker/session/parent-screen.ts';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';

const registry = createToolRegistry();

function rig() {
  const reports: (readonly SubagentActivity[])[] = [];
  let reported: () => void = () => undefined;
  const screen = new ParentScreen({
    cwd: '/work',
    tools: (name) => registry.get(name),
    prices: { input: 1, output: 2, cacheRead: 0 },
    report: async (activities) => {
      reports.push(activities);
      reported();
    },
  });
  let seq = 0;
  return {
    reports,
    show: (event: EventInput) => screen.show({ ...event, seq: seq++, time: 0 }),
    says: (text: string) => screen.showChunk({ turn: 1, step: 1, messageId: 'm', kind: 'text', text }),
    thinks: (text: string) => screen.showChunk({ turn: 1, step: 1, messageId: 'm', kind: 'reasoning', text }),
    next: () =>
      new Promise<void>((resolve) => {
        reported = resolve;
      }),
  };
}

const call = (name: string, args: object): EventInput => {
  return { type: 'tool/call', data: { turn: 1, step: 1, callId: 'c', name, arguments: JSON.stringify(args) } };
};
const started: EventInput = { type: 'tool/start', data: { turn: 1, step: 1, callId: 'c' } };
const done: EventInput = { type: 'tool/result', data: { turn: 1, step: 1, callId: 'c', text: 'x', isError: false } };
const turnEnd: EventInput = {
  type: 'turn/end',
  data: {
    turn: 1,
    reason: { kind: 'completed' },
    usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, steps: 1, toolCalls: 1, elapsedMs: 1 },
  },
};

t.test('calls are titled as they would be shown, with their newest state; thoughts stay with the child', async (t) => {
  const { reports, show, says, thinks, next } = rig();
  thinks('hm');
  says('Reading ');
  says('now.');
  show(call('bash', { command: 'npm test', description: 'Run tests' }));
  show(started);
  show(done);
  await next();
  t.same(reports, [
    [
      { kind: 'text', text: 'Reading now.' },
      { kind: 'tool', childCallId: 'c', title: 'npm test', toolKind: 'execute', status: 'completed' },
    ],
  ]);
});

t.test('reports come twice a second at most, and at once when the turn ends', async (t) => {
  const { reports, show, says, next } = rig();
  says('a');
  await next();
  const at = performance.now();
  says('b');
  await next();
  t.ok(performance.now() - at > 450, 'the second one waited');
  says('c');
  show(turnEnd);
  t.same(reports.flat(), [
    { kind: 'text', text: 'a' },
    { kind: 'text', text: 'b' },
    { kind: 'text', text: 'c' },
  ]);
});

t.test('plans and what was used are told, money by the prices; unknown tools and broken arguments by their name', async (t) => {
  const { reports, show } = rig();
  show({ type: 'todo/write', data: { todos: [{ content: 'look', status: 'pending' }] } });
  show({ type: 'tool/call', data: { turn: 1, step: 1, callId: 'c', name: 'bash', arguments: '{"command": 5' } });
  const usage = { inputTokens: 1_000_000, outputTokens: 500_000, cacheReadTokens: 0, reasoningTokens: 0 };
  const message = { turn: 1, step: 1, messageId: 'm', text: 'x', reasoning: '', toolCalls: [], finish: 'stop' as const, usage };
  show({ type: 'assistant/message', data: message });
  show({
    type: 'subagent/end',
    data: { callId: 'k', runId: 'r', stopReason: 'completed', durationMs: 1, usage: { ...usage, costUsd: 3 } },
  });
  show(turnEnd);
  t.match(reports.flat(), [
    { kind: 'plan', entries: [{ content: 'look' }] },
    { kind: 'tool', title: 'bash', toolKind: 'other', status: 'pending' },
    { kind: 'usage', usage: { inputTokens: 2_000_000, costUsd: 5 } },
  ]);
});
