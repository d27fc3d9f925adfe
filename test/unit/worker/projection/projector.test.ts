import type { SessionUpdate } from '@agentclientprotocol/sdk';
import * as fc from 'fast-check';
import t, { type Test } from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import type { ToolCallView, ToolResultView } from '../../../../src/shared/render-intents.ts';
import { Projector, type ProjectorOptions } from '../../../../src/worker/projection/projector.ts';
import type { ToolPresenter } from '../../../../src/worker/projection/tool-cards.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';

const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, steps: 1, toolCalls: 0, elapsedMs: 1 };

/** A presenter that shows what a test says. */
function presenter(call: ToolCallView, result: ToolResultView): ToolPresenter {
  return { presentCall: () => call, presentResult: () => result };
}

const presenters = new Map<string, ToolPresenter>([
  ['bash', presenter({ card: 'terminal', title: 'ls -la', description: 'List' }, { card: 'terminal', output: 'a\nb\n\n', exitCode: 2 })],
  ['killed', presenter({ card: 'terminal', title: 'sleep 9', cwd: 'sub' }, { card: 'terminal', output: '', signal: 'SIGTERM' })],
  [
    'edit',
    presenter(
      { card: 'diff', title: 'Edit a.ts', diffs: [{ path: '/ws/a.ts', oldText: 'a', newText: 'b' }] },
      { card: 'diff', title: 'Edited a.ts', diffs: [{ path: '/ws/a.ts', oldText: null, newText: 'c' }] },
    ),
  ],
  [
    'read',
    presenter(
      {
        card: 'generic',
        title: 'Read a.ts',
        kind: 'read',
        rawInput: { path: 'a.ts' },
        content: ['x'],
        locations: [{ path: '/ws/a.ts', line: 3 }],
      },
      { card: 'generic' },
    ),
  ],
  ['mixed', presenter({ card: 'generic', title: 'G' }, { card: 'terminal', output: 'no terminal here' })],
  [
    'broken',
    {
      presentCall: () => ({ card: 'nonsense' }) as unknown as ToolCallView,
      presentResult: () => ({ card: 'generic' }),
    },
  ],
  [
    'throws',
    {
      presentCall: () => ({ card: 'generic', title: 'Fine' }),
      presentResult: () => {
        throw new Error('presenter');
      },
    },
  ],
]);

function projector(options: Partial<ProjectorOptions> = {}): Projector {
  return new Projector({
    sessionId: 's1',
    cwd: '/ws',
    profile: 'editor',
    client: { terminalOutput: true },
    tools: (name) => presenters.get(name),
    ...options,
  });
}

const call = (name: string, args = '{}', callId = 'c1'): EventInput => ({
  type: 'tool/call',
  data: { turn: 1, step: 1, callId, name, arguments: args },
});
const start = (callId = 'c1'): EventInput => ({ type: 'tool/start', data: { turn: 1, step: 1, callId } });
const result = (text: string, isError = false, callId = 'c1'): EventInput => ({
  type: 'tool/result',
  data: { turn: 1, step: 1, callId, text, isError },
});
const projectAll = (events: EventInput[], options: Partial<ProjectorOptions> = {}): SessionUpdate[] => {
  const one = projector(options);
  return events.flatMap((event) => one.project(event));
};

/** Projects, and insists that every frame is valid. */
function checked(t: Test, events: EventInput[], options: Partial<ProjectorOptions> = {}): SessionUpdate[] {
  const one = projector(options);
  return events.flatMap((event) => {
    const updates = one.project(event);
    for (const update of updates) {
      const frame = one.frame(update);
      t.ok(frame.endsWith('}\n') && frame.indexOf('\n') === frame.length - 1, 'one line');
      t.strictSame(validateAgentFrame(JSON.parse(frame)), []);
    }
    return updates;
  });
}

t.test('text and reasoning become chunks with their message id', async (t) => {
  const chunk = (kind: 'text' | 'reasoning', text: string): EventInput => ({
    type: 'assistant/chunk',
    data: { turn: 1, step: 1, messageId: 'm1', kind, text },
  });
  const updates = checked(t, [chunk('reasoning', 'hm'), chunk('text', 'Hi'), chunk('text', '')]);
  t.strictSame(updates, [
    { sessionUpdate: 'agent_thought_chunk', messageId: 'm1', content: { type: 'text', text: 'hm' } },
    { sessionUpdate: 'agent_message_chunk', messageId: 'm1', content: { type: 'text', text: 'Hi' } },
  ]);
});

t.test('the hot path gives the frame that the projection gives', async (t) => {
  const one = projector({ sessionId: 'a"b' });
  fc.assert(
    fc.property(
      fc.constantFrom('text' as const, 'reasoning' as const),
      fc.string({ unit: 'binary' }),
      fc.string(),
      (kind, text, messageId) => {
        const quick = one.chunkFrame(kind, messageId, text);
        const [slow] = one.projectFrames({ type: 'assistant/chunk', data: { turn: 1, step: 1, messageId, kind, text } });
        if (slow === undefined) return quick === '';
        t.strictSame(JSON.parse(quick), JSON.parse(slow));
        return quick.endsWith('}\n') && quick.indexOf('\n') === quick.length - 1;
      },
    ),
  );
  t.strictSame(validateAgentFrame(JSON.parse(one.chunkFrame('text', 'm', 'x'))), []);
});

t.test('half a character never reaches the wire as a lone escape', async (t) => {
  const one = projector();
  t.match(JSON.parse(one.chunkFrame('text', 'm', 'a\ud83d')), { params: { update: { content: { text: 'a\ufffd' } } } });
  t.notMatch(one.chunkFrame('text', 'm', 'a\ud83d'), /\\ud8/);
  t.match(JSON.parse(one.chunkFrame('text', 'm', '\\ud83d \ude00 \u{1f600}')), {
    params: { update: { content: { text: '\\ud83d \ufffd \u{1f600}' } } },
  });
});

t.test('prompts show in a replay only, messages into a turn always, notices never', async (t) => {
  const message = (source: 'prompt' | 'steer' | 'notice'): EventInput => ({
    type: 'user/message',
    data: {
      turn: 1,
      messageId: source,
      source,
      content: [
        { type: 'text', text: 'look' },
        { type: 'resource_link', uri: 'file:///a', name: 'a' },
      ],
    },
  });
  const events = [message('prompt'), message('steer'), message('notice')];
  const live = checked(t, events);
  t.strictSame(
    live.map((update: any) => [update.messageId, update.content.type]),
    [
      ['steer', 'text'],
      ['steer', 'resource_link'],
    ],
  );
  const replayed = checked(t, events, { replay: true });
  t.strictSame(replayed.slice(0, 2), [
    { sessionUpdate: 'user_message_chunk', messageId: 'prompt', content: { type: 'text', text: 'look' } },
    { sessionUpdate: 'user_message_chunk', messageId: 'prompt', content: { type: 'resource_link', uri: 'file:///a', name: 'a' } },
  ]);
  t.strictSame(replayed.slice(2), live);
});

t.test('a text of many megabytes becomes chunks below 1 MiB under one id', async (t) => {
  const text = '\u0001\u{1f600}'.repeat(400_000);
  const one = projector();
  const frames = one.projectFrames({ type: 'assistant/chunk', data: { turn: 1, step: 1, messageId: 'm', kind: 'text', text } });
  t.ok(frames.every((frame) => Buffer.byteLength(frame) <= 1024 * 1024));
  t.equal(frames.map((frame) => JSON.parse(frame).params.update.content.text).join(''), text);
});

t.test('a terminal for a client that draws terminals', async (t) => {
  const updates = checked(t, [call('bash', '{"command":"ls -la"}'), result('model text')]);
  t.strictSame(updates, [
    {
      sessionUpdate: 'tool_call',
      toolCallId: 'c1',
      title: 'ls -la',
      name: 'bash',
      kind: 'execute',
      content: [
        { type: 'content', content: { type: 'text', text: 'List' } },
        { type: 'terminal', terminalId: 'c1' },
      ],
      _meta: { terminal_info: { terminal_id: 'c1', cwd: '/ws' } },
      rawInput: { command: 'ls -la' },
      status: 'pending',
    },
    {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'c1',
      status: 'completed',
      rawOutput: { exitCode: 2, signal: null },
      _meta: {
        terminal_output: { terminal_id: 'c1', data: 'a\nb\n\n' },
        terminal_exit: { terminal_id: 'c1', exit_code: 2, signal: null },
      },
    },
  ]);
  t.match(checked(t, [call('killed'), result('x', true)]), [
    { _meta: { terminal_info: { cwd: '/ws/sub' } } },
    { status: 'failed', _meta: { terminal_exit: { exit_code: null, signal: 'SIGTERM' } } },
  ]);
});

t.test('a terminal for a client that draws none is text', async (t) => {
  const updates = checked(t, [call('bash'), result('x')], { client: { terminalOutput: false } });
  t.strictSame((updates[0] as { content: unknown }).content, [{ type: 'content', content: { type: 'text', text: 'List' } }]);
  t.strictSame(updates[1], {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c1',
    status: 'completed',
    rawOutput: { exitCode: 2, signal: null },
    content: [
      { type: 'content', content: { type: 'text', text: '```console\na\nb\n```' } },
      { type: 'content', content: { type: 'text', text: 'Exit code 2' } },
    ],
  });
  t.notMatch(JSON.stringify(updates), /_meta|"terminal"/);
  const shown = (result: Omit<Extract<ToolResultView, { card: 'terminal' }>, 'card'>, text: string) => {
    const silent = presenter({ card: 'terminal', title: 'x' }, { card: 'terminal', ...result });
    const [, update] = projectAll([call('t'), resultOf(text)], { client: { terminalOutput: false }, tools: () => silent });
    return (update as { content: { content: { text: string } }[] }).content.map(({ content }) => content.text);
  };
  const resultOf = (text: string) => result(text, true);
  t.strictSame(shown({ output: '', exitCode: 0 }, ''), ['(no output)']);
  t.strictSame(shown({ output: '\n', signal: 'SIGKILL' }, ''), ['(no output)', 'Killed by signal SIGKILL']);
  t.strictSame(shown({}, 'The user rejected this call.'), ['The user rejected this call.'], 'what never ran is no console');
  const fenced = presenter({ card: 'terminal', title: 'cat x.md' }, { card: 'terminal', output: '````js\n```\n````' });
  const [, second] = projectAll([call('t'), result('')], { client: { terminalOutput: false }, tools: () => fenced });
  t.match(second, { content: [{ content: { text: '`````console\n````js\n```\n````\n`````' } }] });
});

t.test('a command that is no title is shown whole', async (t) => {
  const long = presenter({ card: 'terminal', title: `echo 1\n${'x'.repeat(300)}; rm -rf /` }, { card: 'terminal' });
  const [first] = checked(t, [call('t')], { tools: () => long });
  if (first?.sessionUpdate !== 'tool_call') throw new Error('a tool call is needed');
  t.ok(first.title.length <= 200 && !first.title.includes('\n'));
  t.match(JSON.stringify(first.content?.[0]), '; rm -rf /');
});

t.test('diffs and plain cards', async (t) => {
  const updates = checked(t, [
    call('edit', '{"file_path":"a.ts"}'),
    result('done'),
    call('read', '{}', 'c2'),
    result('the text', false, 'c2'),
  ]);
  t.strictSame(updates[0], {
    sessionUpdate: 'tool_call',
    toolCallId: 'c1',
    title: 'Edit a.ts',
    name: 'edit',
    kind: 'edit',
    content: [{ type: 'diff', path: '/ws/a.ts', oldText: 'a', newText: 'b' }],
    locations: [{ path: '/ws/a.ts' }],
    status: 'pending',
  });
  t.match(updates[1], { title: 'Edited a.ts', status: 'completed', content: [{ type: 'diff', oldText: null, newText: 'c' }] });
  t.match(updates[2], { kind: 'read', rawInput: { path: 'a.ts' }, locations: [{ path: '/ws/a.ts', line: 3 }] });
  t.strictSame((updates[3] as { content: unknown }).content, [{ type: 'content', content: { type: 'text', text: 'the text' } }]);
});

t.test('a tool that is unknown, throws or shows nonsense is shown plainly', async (t) => {
  t.match(checked(t, [call('nope\u001b[31m\n', '{"a":1}'), result('r')]), [
    { title: 'nope', kind: 'other', rawInput: { a: 1 }, status: 'pending' },
    { status: 'completed', content: [{ content: { text: 'r' } }] },
  ]);
  t.match(checked(t, [call('nope', '{"a":')]), [{ rawInput: '{"a":' }]);
  t.match(checked(t, [call('nope', '')]), [{ rawInput: {} }]);
  t.match(checked(t, [call('broken'), result('r', true)]), [
    { title: 'broken' },
    { status: 'failed', content: [{ content: { text: 'r' } }] },
  ]);
  t.match(checked(t, [call('throws'), result('r')]), [{ title: 'Fine' }, { content: [{ content: { text: 'r' } }] }]);
  t.match(
    checked(t, [call('mixed'), result('r')]),
    [{ title: 'G' }, { content: [{ content: { text: 'r' } }] }],
    'no terminal to write into',
  );
});

t.test('a call is pending until it starts, whatever is asked about it, and a refused one never runs', async (t) => {
  const asked: EventInput = { type: 'permission/asked', data: { turn: 1, callId: 'c1', title: 'x' } };
  const decided = (outcome: 'allow-once' | 'allow-session' | 'reject', by: 'client' | 'grant' = 'client'): EventInput => ({
    type: 'permission/decided',
    data: { turn: 1, callId: 'c1', outcome, by },
  });
  const statuses = (events: EventInput[]) => checked(t, events).map((update) => ('status' in update ? update.status : undefined));
  t.strictSame(statuses([call('read'), start(), result('')]), ['pending', 'in_progress', 'completed']);
  t.strictSame(statuses([call('read'), start(), result('', true)]), ['pending', 'in_progress', 'failed']);
  t.strictSame(statuses([call('read'), asked, decided('allow-once')]), ['pending'], 'allowed, not yet started');
  t.strictSame(statuses([call('read'), asked, decided('allow-once'), start(), result('')]), ['pending', 'in_progress', 'completed']);
  t.strictSame(statuses([call('read'), decided('allow-session', 'grant'), start(), result('')]), ['pending', 'in_progress', 'completed']);
  t.strictSame(statuses([call('read'), asked, decided('reject'), result('', true)]), ['pending', 'failed']);
  t.strictSame(statuses([call('read'), result('', true)]), ['pending', 'failed'], 'refused without a question');
  t.strictSame(statuses([call('read'), start(), start(), result(''), start()]), ['pending', 'in_progress', 'completed'], 'each only once');
  t.strictSame(statuses([start(), asked, decided('allow-once')]), [], 'no update before its call');
  t.strictSame(checked(t, [call('bash'), start()])[1], { sessionUpdate: 'tool_call_update', toolCallId: 'c1', status: 'in_progress' });
});

t.test('a turn leaves no card open, and a result counts once', async (t) => {
  const end: EventInput = { type: 'turn/end', data: { turn: 1, reason: { kind: 'interrupted' }, usage } };
  t.match(checked(t, [call('read'), call('bash', '{}', 'c2'), result('r', false, 'c2'), end, result('late'), result('r', false, 'c2')]), [
    { toolCallId: 'c1', sessionUpdate: 'tool_call' },
    { toolCallId: 'c2', sessionUpdate: 'tool_call' },
    { toolCallId: 'c2', status: 'completed' },
    { toolCallId: 'c1', status: 'failed' },
  ]);
  t.equal(projectAll([call('read'), end, result('late')]).length, 2);
});

t.test('a card that ended before its log could say so is not made again when the log says it', async (t) => {
  const start: EventInput = { type: 'turn/start', data: { turn: 2 } };
  const one = projector();
  const named = { callId: 'c1', name: 'read', arguments: '{}' };
  const answer: EventInput = {
    type: 'assistant/message',
    data: { turn: 1, step: 1, messageId: 'm', text: '', reasoning: '', toolCalls: [named], finish: 'tool-calls' },
  };
  t.match(one.project(answer), [{ sessionUpdate: 'tool_call', toolCallId: 'c1' }]);
  t.match(one.endCards(), [{ toolCallId: 'c1', status: 'failed' }], 'the disk was full');
  t.same(
    [call('read'), result('Error: not run', true), start].flatMap((event) => one.project(event)),
    [],
  );
  t.match(one.project(call('read')), [{ sessionUpdate: 'tool_call' }], 'nothing is remembered beyond the turn');
});

t.test('plans, modes and retries', async (t) => {
  const updates = checked(t, [
    {
      type: 'todo/write',
      data: {
        todos: [
          { content: 'a', status: 'completed' },
          { content: 'b', status: 'in_progress' },
        ],
      },
    },
    { type: 'todo/write', data: { todos: [] } },
    { type: 'mode/change', data: { mode: 'read-only' } },
    {
      type: 'llm/retry',
      data: { turn: 2, step: 3, attempt: 1, maxAttempts: 5, delayMs: 1500, code: 'RATE_LIMITED', message: 'too\nmany' },
    },
  ]);
  t.strictSame(updates.slice(0, 3), [
    {
      sessionUpdate: 'plan',
      entries: [
        { content: 'a', priority: 'medium', status: 'completed' },
        { content: 'b', priority: 'medium', status: 'in_progress' },
      ],
    },
    { sessionUpdate: 'plan', entries: [] },
    { sessionUpdate: 'current_mode_update', currentModeId: 'read-only' },
  ]);
  t.match(updates[3], { sessionUpdate: 'agent_thought_chunk', messageId: 'retry-2-3-1', content: { text: /too many.*2 of 5.*1\.5 s/ } });
});

t.test('automation shows committed text and nothing else', async (t) => {
  const message = (text: string): EventInput => ({
    type: 'assistant/message',
    data: { turn: 1, step: 1, messageId: 'm', text, reasoning: 'r', toolCalls: [], finish: 'stop' },
  });
  const events = [...sampleTurn, message(''), message('All done.'), call('bash'), result('r')];
  const updates = checked(t, events, { profile: 'automation' });
  t.strictSame(updates, [{ sessionUpdate: 'agent_message_chunk', messageId: 'm', content: { type: 'text', text: 'All done.' } }]);
  t.equal(projector({ profile: 'automation' }).chunkFrame('text', 'm', 'x'), '');
  const toolCall = projector({ profile: 'automation' }).permissionToolCall({
    turn: 1,
    callId: 'c',
    toolName: 'bash',
    access: { kind: 'execute', command: 'ls', cwd: '/ws' },
    view: { card: 'terminal', title: 'ls' },
    rawInput: {},
  });
  t.strictSame(toolCall.content, [{ type: 'content', content: { type: 'text', text: '```sh\nls\n```' } }], 'no terminal was announced');
});

const sampleTurn: EventInput[] = [
  { type: 'thread/attached', data: { epoch: 1, threadId: 1, isolation: 'shared', pid: 1, sharedWith: 0 } },
  { type: 'turn/start', data: { turn: 1 } },
  { type: 'step/start', data: { turn: 1, step: 1 } },
  { type: 'request/header', data: { provider: 'p', model: 'm', system: 's', tools: [], toolsHash: 'h' } },
  { type: 'assistant/chunk', data: { turn: 1, step: 1, messageId: 'm', kind: 'text', text: 'x' } },
  { type: 'history/pruned', data: { callIds: [], keepChars: 1 } },
  { type: 'file/snapshot', data: { turn: 1, callId: 'c', path: '/a', before: null, after: null } },
  { type: 'workspace/observed', data: { turn: 1, callId: 'c', changed: 0 } },
  { type: 'undo/start', data: { kind: 'undo', base: 1, files: true, force: false } },
  { type: 'history/rewound', data: { kind: 'undo', undo: 1, base: 1, turns: [], restored: 0, removed: 0 } },
  { type: 'history/compacted', data: { throughSeq: 1, summary: 's' } },
  { type: 'step/end', data: { turn: 1, step: 1 } },
  { type: 'turn/end', data: { turn: 1, reason: { kind: 'error', code: 'MODEL_FAILED', message: 'x' }, usage } },
];

t.test('bookkeeping and the end of a turn show nothing', async (t) => {
  t.equal(checked(t, sampleTurn).length, 1);
  t.strictSame(projector().project({ type: 'future/event', data: {} } as unknown as EventInput), []);
});

t.test('no frame grows beyond 1 MiB, however large its parts are', async (t) => {
  const huge = '\u0002é'.repeat(2_000_000);
  const deep = `${'['.repeat(2000)}${']'.repeat(2000)}`;
  const wide = JSON.stringify({ a: 'x'.repeat(100_000), list: Array.from({ length: 5000 }, (_, index) => index), b: 'kept' });
  const diffs = [{ path: '/ws/a', oldText: 'a', newText: huge }];
  const locations = Array.from({ length: 500 }, (_, index) => ({ path: `/ws/${index}` }));
  const cases: [ToolCallView, ToolResultView][] = [
    [
      { card: 'generic', title: huge, content: [huge, huge], rawInput: huge, locations },
      { card: 'generic', title: huge, content: [huge, 'after'] },
    ],
    [
      { card: 'terminal', title: huge, description: huge },
      { card: 'terminal', output: huge },
    ],
    [
      { card: 'diff', title: 'd', diffs, locations },
      { card: 'diff', diffs },
    ],
  ];
  for (const terminalOutput of [true, false]) {
    for (const [view, shown] of cases) {
      for (const args of [wide, deep, huge]) {
        const one = projector({ client: { terminalOutput }, tools: () => presenter(view, shown) });
        const frames = [call('t', args), result(huge)].flatMap((event) => one.projectFrames(event));
        t.ok(frames.length === 2 && frames.every((frame) => Buffer.byteLength(frame) <= 1024 * 1024), view.card);
        for (const frame of frames) t.strictSame(validateAgentFrame(JSON.parse(frame)), []);
      }
    }
  }
  const [plain] = projectAll([call('nope', wide)]);
  t.match(plain, { rawInput: { b: 'kept' } }, 'short members of long input are kept');
  t.match(projectAll([call('edit2')], { tools: () => presenter({ card: 'diff', title: 'd', diffs }, { card: 'generic' }) })[0], {
    content: [{ type: 'content', content: { text: /too large to show/ } }],
  });
});

/** Any log of one session, legal or not: the projection has to be right for both. */
const anyEvent: fc.Arbitrary<EventInput> = (() => {
  const callId = fc.constantFrom('c1', 'c2', 'c3');
  const turn = fc.constantFrom(1, 2);
  const text = fc.string({ unit: 'binary', maxLength: 40 });
  const common = { turn, step: fc.constant(1) };
  const name = fc.constantFrom('bash', 'killed', 'edit', 'read', 'mixed', 'broken', 'throws', 'unknown');
  const event = <T extends EventInput['type']>(type: T, data: fc.Arbitrary<Extract<EventInput, { type: T }>['data']>) =>
    data.map((value) => ({ type, data: value }) as EventInput);
  return fc.oneof(
    {
      weight: 4,
      arbitrary: event(
        'assistant/chunk',
        fc.record({ ...common, messageId: fc.constantFrom('m1', 'm2'), kind: fc.constantFrom('text', 'reasoning'), text }),
      ),
    },
    { weight: 4, arbitrary: event('tool/call', fc.record({ ...common, callId, name, arguments: fc.oneof(fc.json(), text) })) },
    { weight: 4, arbitrary: event('tool/result', fc.record({ ...common, callId, text, isError: fc.boolean() })) },
    { weight: 4, arbitrary: event('tool/start', fc.record({ ...common, callId })) },
    event('permission/asked', fc.record({ turn, callId, title: text })),
    event(
      'permission/decided',
      fc.record({ turn, callId, outcome: fc.constantFrom('allow-once', 'reject', 'cancelled'), by: fc.constant('client') }),
    ),
    event(
      'todo/write',
      fc.record({ todos: fc.array(fc.record({ content: text, status: fc.constantFrom('pending', 'completed') }), { maxLength: 3 }) }),
    ),
    event(
      'history/rewound',
      fc.record({
        kind: fc.constant('undo' as const),
        undo: fc.nat(9),
        base: fc.constant(0),
        turns: fc.constant([1]),
        restored: fc.constant(0),
        removed: fc.constant(0),
        note: text,
      }),
    ),
    event('mode/change', fc.record({ mode: fc.constantFrom('ask', 'full-access') })),
    event('turn/end', fc.record({ turn, reason: fc.constant({ kind: 'completed' } as const), usage: fc.constant(usage) })),
    event(
      'user/message',
      fc.record({
        turn,
        messageId: fc.constant('u'),
        source: fc.constantFrom('prompt', 'notice'),
        content: fc.array(fc.record({ type: fc.constant('text' as const), text }), { maxLength: 2 }),
      }),
    ),
  );
})();

/** What the client holds after the updates: adjacent chunks of a message are one text. */
function merged(updates: SessionUpdate[]): unknown[] {
  const out: unknown[] = [];
  let open: { kind: string; id: unknown; text: string } | undefined;
  for (const update of updates) {
    if (update.sessionUpdate === 'agent_message_chunk' || update.sessionUpdate === 'agent_thought_chunk') {
      const text = update.content.type === 'text' ? update.content.text : '';
      if (open !== undefined && open.kind === update.sessionUpdate && open.id === update.messageId) open.text += text;
      else out.push((open = { kind: update.sessionUpdate, id: update.messageId, text }));
    } else if (update.sessionUpdate !== 'user_message_chunk') {
      open = undefined;
      out.push(update);
    }
  }
  return out;
}

t.test('any log gives legal updates, and the replay of it looks like the live session', async () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 60 }), fc.boolean(), (events, terminalOutput) => {
      const live = projector({ client: { terminalOutput } });
      const open = new Map<string, 'pending' | 'in_progress'>();
      const shown: SessionUpdate[] = [];
      for (const event of events) {
        for (const update of live.project(event)) {
          const problems = validateAgentFrame(JSON.parse(live.frame(update)));
          if (problems.length > 0) throw new Error(problems.join('; '));
          if (update.sessionUpdate === 'user_message_chunk') throw new Error('a live prompt was echoed');
          if (update.sessionUpdate === 'tool_call') {
            if (open.has(update.toolCallId) || update.status !== 'pending') throw new Error('a call begins once, as pending');
            open.set(update.toolCallId, 'pending');
          }
          if (update.sessionUpdate === 'tool_call_update') {
            const before = open.get(update.toolCallId);
            if (before === undefined) throw new Error('an update of a call that is not open');
            if (update.status === 'completed' || update.status === 'failed') open.delete(update.toolCallId);
            else if (update.status === 'in_progress' && before === 'pending') open.set(update.toolCallId, 'in_progress');
            // Without a status it shows what a running call's child does, or takes a question back.
            else if (update.status !== undefined || before !== 'in_progress') throw new Error(`${before} became ${update.status}`);
          }
          shown.push(update);
        }
      }
      // The log holds merged chunks where the live session sent single deltas.
      const logged = events.reduce<EventInput[]>((log, event) => {
        const last = log.at(-1);
        if (event.type !== 'assistant/chunk' || last?.type !== 'assistant/chunk') return [...log, event];
        if (last.data.messageId !== event.data.messageId || last.data.kind !== event.data.kind) return [...log, event];
        return [...log.slice(0, -1), { ...last, data: { ...last.data, text: last.data.text + event.data.text } }];
      }, []);
      const replayed = projectAll(logged, { client: { terminalOutput }, replay: true });
      return JSON.stringify(merged(shown)) === JSON.stringify(merged(replayed));
    }),
    { numRuns: 300 },
  );
});
