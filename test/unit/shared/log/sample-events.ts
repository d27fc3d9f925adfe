/** One payload of every event type, and a log as a session writes it. */
import type { EventData, EventInput, EventType, SessionHeader } from '../../../../src/shared/events.ts';
import type { PolicyRule } from '../../../../src/shared/policy-rules.ts';
import type { StoredSessionOptions } from '../../../../src/shared/session-options.ts';

export const sampleId = '0192f3c4-1111-7abc-8def-0123456789ab';

export function sampleHeader(id = sampleId, cwd = '/srv/project'): SessionHeader {
  return { type: 'session', version: 1, id, createdAt: '2026-01-02T03:04:05.678Z', cwd, agent: { name: 'dsh-acp', version: '0.1.0' } };
}

/** Every member of a rule, though no rule could have them all: what is written must be read. */
const sampleRule: Required<PolicyRule> = {
  name: 'build',
  action: 'allow',
  tools: ['bash'],
  access: ['execute'],
  paths: ['src/**'],
  commands: [['npm', 'run', '...']],
  providers: ['self'],
  network: 'none',
  sandbox: 'required',
};

/** Every stored option. */
export const sampleOptions: Required<StoredSessionOptions> = {
  sampling: { temperature: 0.7, topP: 0.95, seed: 7 },
  budget: { deadline: 1_767_323_045_678, maxWallMs: 60_000, maxSteps: 20, maxToolCalls: 50, maxTokens: 200_000, maxCostUsd: 1.5 },
  policy: {
    rules: [sampleRule],
    fallback: 'deny',
    askTimeoutMs: 1000,
  },
  persona: 'You review, and change nothing.',
  tools: ['read', 'grep'],
  outputSchema: { type: 'object', required: ['verdict'] },
  depth: 1,
  maxDepth: 3,
  mode: 'ask',
};

const usage = { inputTokens: 120, outputTokens: 30, cacheReadTokens: 60, reasoningTokens: 5 };

export const samples: { readonly [T in EventType]: EventData[T] } = {
  'thread/attached': { epoch: 1, threadId: 3, isolation: 'dedicated', pid: 4711, sharedWith: 0 },
  'turn/start': {
    turn: 1,
    key: 'job-17',
    payload: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    budget: { maxSteps: 5 },
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  },
  'instructions/read': { turn: 1, given: 'system', files: [{ path: '/w/AGENTS.md', digest: '0123abcd', bytes: 40000, clipped: true }] },
  'llm/wait': { turn: 1, step: 1, position: 3, waitedMs: 120 },
  'subagent/start': { turn: 1, callId: 'c1', runId: 'r1', provider: 'self', description: 'Read a', cwd: '/srv/project', background: false },
  'subagent/activity': {
    callId: 'c1',
    runId: 'r1',
    activity: { kind: 'tool', childCallId: 'k1', title: 'Read a.ts', toolKind: 'read', status: 'completed' },
    more: true,
  },
  'subagent/end': {
    callId: 'c1',
    runId: 'r1',
    stopReason: 'completed',
    durationMs: 812,
    usage: { ...usage, costUsd: 0.01 },
    diagnostic: 'None.',
    output: 'Done.',
    structured: { answer: 42 },
    unlogged: 3,
    logPath: '/srv/state/x.jsonl',
  },
  'turn/end': {
    turn: 1,
    reason: { kind: 'completed' },
    usage: {
      ...usage,
      steps: 1,
      toolCalls: 1,
      elapsedMs: 12.5,
      guessedTokens: 40,
      costUsd: 0.002,
      firstTokenMs: 3.5,
      subagents: { ...usage, costUsd: 0.01 },
    },
    structured: { verdict: 'good' },
  },
  'user/message': {
    turn: 1,
    messageId: 'm1',
    source: 'prompt',
    content: [
      { type: 'text', text: 'Naïve "quotes", a tab\t, a line\nand 🚀' },
      { type: 'resource_link', uri: 'file:///srv/project/a.ts#L3-9', name: 'a.ts', path: 'a.ts', lines: '3-9' },
      { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=', uri: 'file:///srv/project/a.png' },
      { type: 'resource', uri: 'file:///srv/project/b.md', text: '# B', mimeType: 'text/markdown' },
    ],
    shown: [{ type: 'text', text: '/explain a.ts' }],
  },
  'command/run': {
    messageId: 'm3',
    name: 'cost',
    content: [{ type: 'text', text: '/cost' }],
    output: { messageId: 'm4', text: '- **Session**: 210 tokens' },
    isError: false,
  },
  'step/start': { turn: 1, step: 1 },
  'step/end': { turn: 1, step: 1, context: { used: 1200, size: 128_000, costUsd: 0.012 } },
  'request/header': {
    provider: 'scripted',
    model: 'scripted',
    system: 'You are…',
    tools: ['read'],
    toolsHash: 'abc',
    sampling: { temperature: 0.7, topP: 1, seed: 7 },
  },
  'assistant/chunk': { turn: 1, step: 1, messageId: 'm2', kind: 'text', text: 'I will read' },
  'assistant/message': {
    turn: 1,
    step: 1,
    messageId: 'm2',
    text: 'I will read the file.',
    reasoning: 'Short.',
    toolCalls: [{ callId: 'c1', name: 'read', arguments: '{"file_path":"a.ts"}' }],
    finish: 'tool-calls',
    usage,
    model: 'scripted',
  },
  'tool/call': { turn: 1, step: 1, callId: 'c1', name: 'read', arguments: '{"file_path":"a.ts"}' },
  'tool/start': { turn: 1, step: 1, callId: 'c1' },
  'tool/result': {
    turn: 1,
    step: 1,
    callId: 'c1',
    text: '1\tlet a;',
    isError: false,
    code: 'OK',
    meta: { lines: 1, nested: { a: [null] } },
  },
  'permission/asked': { turn: 1, callId: 'c1', title: 'Run ls' },
  'permission/decided': { turn: 1, callId: 'c1', outcome: 'allow-session', by: 'client', rule: 'commands ask', grant: 'ls' },
  'mcp/status': {
    name: 'files',
    state: 'connected',
    tools: [{ name: 'mcp__files__find', tool: 'find', kind: 'read' }],
    leftOut: [{ tool: 'bad', why: 'its schema is not an object' }],
    error: 'it exited with code 1',
  },
  'mode/change': { mode: 'accept-edits' },
  'options/change': { model: 'deepseek-v4-pro' },
  'session/title': { title: 'Read a.ts', source: 'model', usage: { ...usage, costUsd: 0.0001 } },
  'todo/write': { todos: [{ content: 'Read', status: 'in_progress', priority: 'high' }] },
  'llm/retry': { turn: 1, step: 1, attempt: 1, maxAttempts: 3, delayMs: 250.5, code: 'MODEL_FAILED', message: 'HTTP 503' },
  'history/pruned': { callIds: ['c1'], keepChars: 200, messageIds: ['m1'] },
  'history/compacted': { throughSeq: 4, summary: 'So far…', usage },
  'file/snapshot': {
    turn: 1,
    callId: 'c1',
    undo: 7,
    path: '/srv/project/new/a.ts',
    before: { hash: 'a'.repeat(64), bytes: 3, mode: 0o644 },
    after: null,
    directories: ['/srv/project/new'],
    observed: true,
    notKept: 'file-too-large',
  },
  'workspace/observed': { turn: 1, callId: 'c1', changed: 2, why: '5 more files were changed by it' },
  'undo/start': { kind: 'undo', base: 1, files: true, force: false },
  'history/rewound': {
    kind: 'undo',
    undo: 7,
    base: 1,
    turns: [1],
    restored: 1,
    removed: 0,
    left: [{ path: '/srv/project/b.ts', why: 'it has changed since' }],
    note: 'Undone.',
  },
};

export function sample(type: EventType): EventInput {
  return { type, data: samples[type] } as EventInput;
}

/** Without what may be left out: some tests go over a log byte by byte. */
const short: Partial<Record<EventType, EventInput>> = {
  'turn/start': { type: 'turn/start', data: { turn: 1 } },
  'turn/end': {
    type: 'turn/end',
    data: { turn: 1, reason: { kind: 'completed' }, usage: { ...usage, steps: 1, toolCalls: 1, elapsedMs: 12.5 } },
  },
};

/** A whole turn with a tool call. */
export const wholeTurn: readonly EventInput[] = (
  [
    'thread/attached',
    'turn/start',
    'user/message',
    'request/header',
    'step/start',
    'assistant/chunk',
    'assistant/message',
    'tool/call',
    'permission/asked',
    'permission/decided',
    'tool/start',
    'tool/result',
    'step/end',
    'turn/end',
  ] as const
).map((type) => short[type] ?? sample(type));
