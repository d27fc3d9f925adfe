import type { SessionUpdate } from '@agentclientprotocol/sdk';
import * as fc from 'fast-check';
import t from 'tap';
import type { EventInput, ToolCallRequest } from '../../../../src/shared/events.ts';
import { Projector } from '../../../../src/worker/projection/projector.ts';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';
import { ClientScreen } from '../../../support/client-screen.ts';

const registry = createToolRegistry([]);
const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, steps: 1, toolCalls: 0, elapsedMs: 1 };

function projector(terminalOutput = true, replay = false): Projector {
  return new Projector({
    sessionId: 's',
    cwd: '/ws',
    profile: 'editor',
    client: { terminalOutput },
    tools: (name) => registry.get(name),
    replay,
  });
}

const answer = (...toolCalls: ToolCallRequest[]): EventInput => ({
  type: 'assistant/message',
  data: { turn: 1, step: 1, messageId: 'm', text: '', reasoning: '', toolCalls, finish: 'tool-calls' },
});
const call = (request: ToolCallRequest): EventInput => ({ type: 'tool/call', data: { turn: 1, step: 1, ...request } });
const start = (callId: string): EventInput => ({ type: 'tool/start', data: { turn: 1, step: 1, callId } });
const end: EventInput = { type: 'turn/end', data: { turn: 1, reason: { kind: 'cancelled' }, usage } };
const bash: ToolCallRequest = {
  callId: 'b',
  name: 'bash',
  arguments: JSON.stringify({ command: 'make', description: 'Build', workdir: 'sub' }),
};
const bashResult = (output: string | undefined, notes?: string[]): EventInput => ({
  type: 'tool/result',
  data: {
    turn: 1,
    step: 1,
    callId: 'b',
    text: 'for the model',
    isError: output === undefined,
    ...(output === undefined ? {} : { meta: { output, exitCode: 0, signal: null, ...(notes === undefined ? {} : { notes }) } }),
  },
});

t.test('a call is shown by its name, then by its arguments so far, then whole', async (t) => {
  const live = projector();
  const draft = (members: Record<string, string>, growing?: { name: string; value: string }) =>
    live.draft('r', 'read', { members, ...(growing === undefined ? {} : { growing }) });
  t.strictSame(draft({}), [{ sessionUpdate: 'tool_call', toolCallId: 'r', title: 'Read', name: 'read', kind: 'read', status: 'pending' }]);
  t.strictSame(draft({}), [], 'nothing new, nothing sent');
  t.strictSame(draft({}, { name: 'file_path', value: 'src/a' }), [
    { sessionUpdate: 'tool_call_update', toolCallId: 'r', rawInput: { file_path: 'src/a' } },
  ]);
  t.strictSame(draft({ file_path: 'src/a.ts' }), [
    {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'r',
      title: 'Read src/a.ts',
      locations: [{ path: '/ws/src/a.ts' }],
      rawInput: { file_path: 'src/a.ts' },
    },
  ]);
  const request = { callId: 'r', name: 'read', arguments: '{"file_path":"src/a.ts","offset":5,"limit":4}' };
  t.match(live.project(answer(request)), [
    {
      sessionUpdate: 'tool_call_update',
      title: 'Read src/a.ts (5 - 8)',
      kind: 'read',
      locations: [{ path: '/ws/src/a.ts', line: 5 }],
      rawInput: { file_path: 'src/a.ts', offset: 5, limit: 4 },
    },
  ]);
  t.strictSame(live.project(call(request)), [], 'it is shown once');
  t.strictSame(live.project(start('r')), [{ sessionUpdate: 'tool_call_update', toolCallId: 'r', status: 'in_progress' }]);
});

t.test('a change that is being written says how far it is, and ends as a diff without what the draft had', async (t) => {
  const live = projector();
  const screen = new ClientScreen();
  const name = 'content';
  screen.takeAll(live.draft('w', 'write', { members: {} }));
  screen.takeAll(live.draft('w', 'write', { members: { file_path: 'a.txt' }, growing: { name, value: 'one\n' } }));
  t.match(screen.card('w').members, { title: 'Write a.txt', kind: 'edit', content: [{ content: { text: /^5 characters/ } }] });
  t.equal(screen.card('w').members['rawInput'], undefined);
  const request = { callId: 'w', name: 'write', arguments: '{"file_path":"a.txt","content":"one\\n"}' };
  screen.takeAll(live.project(answer(request)));
  const replayed = new ClientScreen().takeAll(projector(true, true).project(answer(request)));
  t.strictSame(screen.card('w').members, replayed.card('w').members);
  t.match(screen.card('w').members, { content: [{ type: 'diff', path: '/ws/a.txt', oldText: null, newText: 'one\n' }] });
});

t.test('a terminal comes with a second tool_call, which has its directory and its whole title', async (t) => {
  const live = projector();
  t.match(live.draft('b', 'bash', { members: {}, growing: { name: 'command', value: 'ma' } }), [
    { sessionUpdate: 'tool_call', title: 'ma…', kind: 'execute', status: 'pending' },
  ]);
  const [second] = live.project(answer(bash));
  t.match(second, {
    sessionUpdate: 'tool_call',
    title: 'make',
    content: [{ content: { text: 'Build' } }, { type: 'terminal', terminalId: 'b' }],
    _meta: { terminal_info: { terminal_id: 'b', cwd: '/ws/sub' } },
  });
  const plain = projector(false);
  plain.draft('b', 'bash', { members: {} });
  t.match(plain.project(answer(bash)), [{ sessionUpdate: 'tool_call_update', title: 'make', content: [{ content: { text: 'Build' } }] }]);
});

t.test('a draft whose call never comes is ended in words: by a retry, by another answer, by the end of the turn', async (t) => {
  const retry: EventInput = {
    type: 'llm/retry',
    data: { turn: 1, step: 1, attempt: 1, maxAttempts: 3, delayMs: 1, code: 'SERVER', message: 'm' },
  };
  for (const [event, words] of [
    [retry, /asked again/],
    [answer(), /did not finish/],
    [end, /turn ended/],
  ] as const) {
    const live = projector();
    live.draft('d', 'nobody knows', { members: {} });
    const [first] = live.project(event);
    t.match(first, {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'd',
      status: 'failed',
      content: [{ type: 'content', content: { text: words } }],
    });
    t.notMatch(JSON.stringify(live.project(end)), '"d"', 'once');
  }
});

t.test('automation is shown no draft and no output', async (t) => {
  const live = new Projector({
    sessionId: 's',
    cwd: '/ws',
    profile: 'automation',
    client: { terminalOutput: true },
    tools: () => undefined,
  });
  t.strictSame(live.draft('d', 'read', { members: {} }), []);
  t.strictSame(live.output('d', 'x'), []);
  t.notOk(live.showsLive);
});

t.test('output comes piece by piece into the terminal, and its end says only what is missing', async (t) => {
  const live = projector();
  const screen = new ClientScreen().takeAll([answer(bash)].flatMap((event) => live.project(event)));
  t.strictSame(live.output('b', 'early'), [], 'nothing before it runs');
  screen.takeAll(live.project(start('b')));
  for (const piece of ['one\n', 'two']) screen.takeAll(live.output('b', piece));
  screen.takeAll(live.project(bashResult('one\ntwo', ['[timed out after 5 ms]'])));
  const replayed = new ClientScreen();
  const again = projector(true, true);
  for (const event of [answer(bash), start('b'), bashResult('one\ntwo', ['[timed out after 5 ms]'])])
    replayed.takeAll(again.project(event));
  t.strictSame(screen.card('b'), replayed.card('b'));
  t.strictSame(screen.card('b').terminal, {
    cwd: '/ws/sub',
    output: 'one\ntwo\n[timed out after 5 ms]',
    exits: [{ exit_code: 0, signal: null }],
  });
  t.strictSame(live.output('b', 'late'), [], 'nothing after its end');
});

t.test('a command that was given up keeps its output, and says why it has no result', async (t) => {
  const live = projector();
  const screen = new ClientScreen();
  for (const event of [answer(bash), start('b')]) screen.takeAll(live.project(event));
  screen.takeAll(live.output('b', 'half'));
  screen.takeAll(live.project(bashResult(undefined)));
  t.match(screen.card('b'), { status: 'failed', terminal: { output: 'half\nfor the model', exits: [{ exit_code: null, signal: null }] } });
  const cut = projector();
  const cutScreen = new ClientScreen();
  for (const event of [answer(bash), start('b'), end]) cutScreen.takeAll(cut.project(event));
  t.match(cutScreen.card('b'), { status: 'failed', terminal: { exits: [{ exit_code: null, signal: null }] } }, 'also without a result');
});

t.test('a client without terminals sees the end of the output while the command runs, and then all of it', async (t) => {
  const live = projector(false);
  const screen = new ClientScreen();
  for (const event of [answer(bash), start('b')]) screen.takeAll(live.project(event));
  screen.takeAll(live.output('b', 'one\n'));
  screen.takeAll(live.output('b', 'two\n'));
  const texts = (): unknown => (screen.card('b').members['content'] as any[]).map(({ content }) => content.text);
  t.strictSame(texts(), ['Build', '```console\none\ntwo\n```']);
  screen.takeAll(live.output('b', 'x'.repeat(100_000)));
  t.ok(JSON.stringify(screen.card('b').members).length < 6000, 'only its end');
  screen.takeAll(live.project(bashResult('one\ntwo\n')));
  t.strictSame(texts(), ['```console\none\ntwo\n```']);
});

/** A legal turn of a session, with moments at which something was shown that no log holds. */
type Moment = EventInput | { type: 'draft'; callId: string; name: string; text: string } | { type: 'output'; callId: string; text: string };

const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const anyArguments = fc.oneof(
  fc.record({ command: text, description: text, workdir: fc.option(text, { nil: undefined }), run_in_background: fc.boolean() }),
  fc.record({ file_path: text, content: text, old_string: text, new_string: text }),
  fc.record({ pattern: text, path: text }),
  fc.jsonValue({ maxDepth: 2 }),
);
const anyCall = fc.record({
  name: fc.constantFrom('bash', 'read', 'write', 'edit', 'grep', 'todo_write', 'no such tool'),
  args: anyArguments,
  broken: fc.boolean(),
  logged: fc.constantFrom(true, true, true, false),
  runs: fc.boolean(),
  isError: fc.boolean(),
  output: fc.array(fc.string({ unit: 'grapheme', maxLength: 8 }), { maxLength: 4 }),
  isShownLive: fc.boolean(),
});
const anyTurn = fc.record({
  calls: fc.array(anyCall, { maxLength: 4 }),
  said: fc.array(text, { maxLength: 4 }),
  /** Drafts are shown in the order of the calls, and any number of them in time. */
  drafted: fc.nat({ max: 4 }),
  isRetried: fc.boolean(),
  isCut: fc.boolean(),
});

function momentsOf(
  turn: number,
  { calls, said, drafted, isRetried, isCut }: typeof anyTurn extends fc.Arbitrary<infer T> ? T : never,
): Moment[] {
  const requests = calls.map(({ name, args, broken }, index): ToolCallRequest => {
    const json = JSON.stringify(args);
    return { callId: `t${turn}c${index}`, name, arguments: broken ? json.slice(0, -1) : json };
  });
  const drafts = (prefix: string): Moment[] =>
    requests.slice(0, drafted).flatMap(({ callId, name, arguments: json }) => {
      return ['', json.slice(0, json.length / 2), json].map(
        (part) => ({ type: 'draft', callId: prefix + callId, name, text: part }) as const,
      );
    });
  const logged = requests.filter((_, index) => calls[index]!.logged && !isCut);
  return [
    { type: 'turn/start', data: { turn } },
    ...said.map(
      (part): Moment => ({
        type: 'assistant/chunk',
        data: { turn, step: 1, messageId: `m${turn}`, kind: 'text', text: part },
      }),
    ),
    ...(isRetried
      ? [
          ...drafts('lost-'),
          { type: 'llm/retry', data: { turn, step: 1, attempt: 1, maxAttempts: 3, delayMs: 5, code: 'SERVER', message: 'x' } } as const,
        ]
      : []),
    ...drafts(''),
    ...(isCut
      ? []
      : [
          {
            type: 'assistant/message',
            data: { turn, step: 1, messageId: `m${turn}`, text: said.join(''), reasoning: '', toolCalls: logged, finish: 'tool-calls' },
          } as const,
        ]),
    ...logged.flatMap((request): Moment[] => {
      const { runs, isError, output, isShownLive } = calls[requests.indexOf(request)]!;
      const ids = { turn, step: 1, callId: request.callId };
      const whole = output.join('');
      const failed = isError || !runs;
      return [
        { type: 'tool/call', data: { turn, step: 1, ...request } },
        ...(runs ? [{ type: 'tool/start', data: ids } as const] : []),
        ...(runs && isShownLive ? output.map((part) => ({ type: 'output', callId: request.callId, text: part }) as const) : []),
        {
          type: 'tool/result',
          data: { ...ids, text: 'result', isError: failed, ...(runs ? { meta: { output: whole, exitCode: 0, notes: ['[note]'] } } : {}) },
        },
      ];
    }),
    { type: 'turn/end', data: { turn, reason: { kind: 'completed' }, usage } },
  ];
}

t.test('whatever was shown live besides the log, a client ends with the same screen as after a replay', async () => {
  fc.assert(
    fc.property(fc.array(anyTurn, { maxLength: 3 }), fc.boolean(), (turns, terminalOutput) => {
      const moments = turns.flatMap((turn, index) => momentsOf(index + 1, turn));
      const live = projector(terminalOutput);
      const shown = new ClientScreen();
      for (const moment of moments) {
        for (const update of updatesOf(live, moment)) {
          const problems = validateAgentFrame(JSON.parse(live.frame(update)));
          if (problems.length > 0) throw new Error(problems.join('; '));
          shown.take(update);
        }
        if (moment.type === 'turn/end' && shown.open.length > 0) throw new Error(`open behind the turn: ${shown.open.join(', ')}`);
      }
      const again = projector(terminalOutput, true);
      const replayed = new ClientScreen();
      for (const moment of moments) {
        if (moment.type !== 'draft' && moment.type !== 'output') replayed.takeAll(again.project(moment));
      }
      const discarded = [...shown.cards.values()].filter(({ id }) => !replayed.cards.has(id));
      if (discarded.some(({ status, members }) => status !== 'failed' || members['content'] === undefined))
        throw new Error('a discarded draft is not ended in words');
      return JSON.stringify(shown.view((id) => replayed.cards.has(id)).map(sorted)) === JSON.stringify(replayed.view().map(sorted));
    }),
    { numRuns: 80 },
  );
});

function updatesOf(live: Projector, moment: Moment): SessionUpdate[] {
  if (moment.type === 'output') return live.output(moment.callId, moment.text);
  if (moment.type !== 'draft') return live.project(moment);
  const { callId, name, text: json } = moment;
  return live.draft(callId, name, { members: {}, ...(json === '' ? {} : { growing: { name: 'command', value: json } }) });
}

/** How a draft or an answer came first makes the order of a card's members, which means nothing, and the way through its statuses. */
function sorted(entry: any): unknown {
  if (entry.members === undefined) return entry;
  const { members, ...rest } = entry;
  return { ...rest, members: Object.fromEntries(Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1))) };
}
