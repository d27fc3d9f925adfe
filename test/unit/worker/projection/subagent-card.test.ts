import t from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import type { SubagentActivity } from '../../../../src/shared/subagent-protocol.ts';
import { Projector } from '../../../../src/worker/projection/projector.ts';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';
import { provider } from '../subagents/fake-agents.ts';

const tools = createToolRegistry([provider('self'), provider('other')]);

function projector(profile: 'editor' | 'automation' = 'editor', replay = false): Projector {
  return new Projector({
    sessionId: 's',
    cwd: '/work',
    profile,
    client: { terminalOutput: false },
    tools: (name) => tools.get(name),
    replay,
  });
}

const call = (callId: string, background = false): EventInput[] => [
  {
    type: 'tool/call',
    data: {
      turn: 1,
      step: 1,
      callId,
      name: 'subagent',
      arguments: JSON.stringify({ description: 'Count files', prompt: 'Count.', agent: 'other', run_in_background: background }),
    },
  },
  { type: 'tool/start', data: { turn: 1, step: 1, callId } },
  { type: 'subagent/start', data: { turn: 1, callId, runId: `r-${callId}`, provider: 'other', cwd: '/work', background } },
];
const did = (callId: string, activity: SubagentActivity, more?: true): EventInput => {
  return { type: 'subagent/activity', data: { callId, runId: `r-${callId}`, activity, ...(more === undefined ? {} : { more }) } };
};
const ended = (callId: string, text: string): EventInput[] => [
  { type: 'subagent/end', data: { callId, runId: `r-${callId}`, stopReason: 'completed', durationMs: 5 } },
  { type: 'tool/result', data: { turn: 1, step: 1, callId, text, isError: false } },
];
const tool = (childCallId: string, status: 'in_progress' | 'completed' | 'failed', title = `Read ${childCallId}`): SubagentActivity => {
  return { kind: 'tool', childCallId, title, toolKind: 'read', status };
};
const text = (words: string): SubagentActivity => ({ kind: 'text', text: words });
const contentOf = (update: any): string | undefined => update?.content?.[0]?.content?.text;

t.test('a delegating call is a thought, titled by its task and agent; its progress is replaced, its result comes last', async (t) => {
  const view = projector();
  const [first, running, ...none] = call('c').flatMap((event) => view.project(event));
  t.match(first, { sessionUpdate: 'tool_call', kind: 'think', title: 'Count files (other)', status: 'pending' });
  t.match(running, { status: 'in_progress' });
  t.same(none, []);
  const plan: SubagentActivity = {
    kind: 'plan',
    entries: [
      { content: 'look', status: 'completed' },
      { content: 'tell', status: 'in_progress' },
    ],
  };
  t.same(view.project(did('c', plan, true)), [], 'more of the same moment follows');
  const [progress] = view.project(did('c', tool('a.ts', 'completed')));
  t.equal(contentOf(progress), 'Plan: 1 of 2 done\n- [x] look\n- [~] tell\n\n- ✓ Read a.ts');
  t.same(Object.keys(progress ?? {}).sort(), ['content', 'sessionUpdate', 'toolCallId']);
  view.project(did('c', tool('b.ts', 'in_progress'), true));
  t.equal(
    contentOf(view.project(did('c', text('Two so far.')))[0]),
    'Plan: 1 of 2 done\n- [x] look\n- [~] tell\n\n- ✓ Read a.ts\n- ▸ Read b.ts\n\nTwo so far.',
  );
  const [last] = ended('c', 'Seven files.').flatMap((event) => view.project(event));
  t.match(last, { status: 'completed' });
  t.equal(contentOf(last), 'Seven files.');
  t.same(view.project(did('c', text('late'))), [], 'nothing is shown behind the end');
});

t.test('usage alone shows nothing, holds back nothing, and is told with what comes next and in the end', async (t) => {
  const view = projector();
  call('c').forEach((event) => view.project(event));
  const used = { inputTokens: 1_000, outputTokens: 7, cacheReadTokens: 234, reasoningTokens: 0 };
  const usage: SubagentActivity = { kind: 'usage', usage: used };
  t.same(view.project(did('c', usage)), []);
  t.same(view.project(did('c', text('Hi'), true)), []);
  t.equal(contentOf(view.project(did('c', usage))[0]), 'Hi\n\nUsed 1,234 tokens in, 7 out');
  for (const isError of [false, true]) {
    const other = projector();
    call('c').forEach((event) => other.project(event));
    const meta = { usage: { ...used, costUsd: 0.01234 } };
    const [last]: any = other.project({ type: 'tool/result', data: { turn: 1, step: 1, callId: 'c', text: 'Seven.', isError, meta } });
    t.same(
      last.content.map((block: any) => block.content.text),
      ['Seven.', 'Used 1,234 tokens in, 7 out, $0.0123'],
    );
  }
});

t.test('what is shown stays short and on clean lines, whatever the child does', async (t) => {
  const view = projector();
  call('c').forEach((event) => view.project(event));
  let last: string | undefined;
  for (let i = 0; i < 200; i += 1)
    last = contentOf(
      view.project(did('c', tool(String(i), i % 2 === 0 ? 'completed' : 'in_progress', `${'x\n'.repeat(500)}\u202e${i}`)))[0],
    );
  last = contentOf(view.project(did('c', text('word '.repeat(20_000))))[0]);
  t.ok((last ?? '').length < 4_000, `${last?.length}`);
  t.match(last, /… 192 more before/);
  t.notMatch(last, '\u202e');
  t.match(last, /\n\n… word/);
  const image: SubagentActivity = { kind: 'image', mimeType: 'image/png', bytes: 12, path: '/spill/one.png' };
  t.match(contentOf(view.project(did('c', image))[0]), '- image: /spill/one.png (image/png, 12 bytes)');
});

t.test('runs side by side show each in its own card; a background run shows nothing behind its result', async (t) => {
  const view = projector();
  for (const event of [...call('a'), ...call('b'), ...call('bg', true)]) view.project(event);
  t.match(view.project(did('a', text('from a'))), [{ toolCallId: 'a' }]);
  t.match(view.project(did('b', text('from b'))), [{ toolCallId: 'b' }]);
  t.same(view.project(did('bg', text('from bg'))), []);
});

t.test('after a question in the name of the call its card is what it was', async (t) => {
  const view = projector();
  call('c').forEach((event) => view.project(event));
  view.project(did('c', text('Working.')));
  const asked: EventInput = { type: 'permission/asked', data: { turn: 1, callId: 'c', title: 'rm -rf x' } };
  const decided: EventInput = { type: 'permission/decided', data: { turn: 1, callId: 'c', outcome: 'reject', by: 'client' } };
  t.same(view.project(asked), []);
  const [restored] = view.project(decided);
  t.match(restored, { title: 'Count files (other)', rawInput: { prompt: 'Count.' } });
  t.equal(contentOf(restored), 'Working.');
});

t.test('a replayed log shows the same updates, and the automation profile none of them', async (t) => {
  const log: EventInput[] = [
    ...call('c'),
    did('c', tool('a', 'completed'), true),
    did('c', text('Some text')),
    did('c', text(', and more')),
    ...ended('c', 'Done.'),
  ];
  const live = projector();
  const again = projector('editor', true);
  t.same(
    log.flatMap((event) => again.project(event)),
    log.flatMap((event) => live.project(event)),
  );
  const automation = projector('automation');
  t.same(
    log.flatMap((event) => automation.project(event)),
    [],
  );
});
