import t from 'tap';
import type { CallDraft, LiveView } from '../../../../src/worker/agent/live-view.ts';
import { ReactLoopAgent } from '../../../../src/worker/agent/react-loop-agent.ts';
import { ModelFailure, type ModelFinish } from '../../../../src/worker/model/model-adapter.ts';
import { AgentRig, assertLegal, prompt, type Reply, type RigOptions, say, tool } from './agent-rig.ts';

const echo = tool('echo', async () => ({ text: 'done', isError: false }));

/** Streams its calls as a model does: each named, then its arguments in pieces. */
function stream(calls: [callId: string, name: string, args: string][], finish: Partial<ModelFinish> | ModelFailure = {}): Reply {
  return async ({ sink }) => {
    for (const [callId, name] of calls) sink({ type: 'tool-call-start', callId, name });
    for (const [callId, , args] of calls) for (const text of args) sink({ type: 'tool-call-delta', callId, text });
    if (finish instanceof ModelFailure) throw finish;
    const toolCalls = calls.map(([callId, name, args]) => ({ callId, name, arguments: args }));
    return { reason: 'tool-calls', toolCalls, ...finish };
  };
}

/** An agent whose drafts are kept. */
function watched(script: Reply[], options: RigOptions = {}, lostCallIds?: string[]) {
  const rig = new AgentRig(script, { tools: [echo], ...options });
  const drafts: CallDraft[] = [];
  const live: LiveView = { draft: (draft) => void drafts.push(draft), outputPaceMs: 10, output: () => undefined };
  const agent = new ReactLoopAgent({ ...rig.dependencies(), live, ...(lostCallIds === undefined ? {} : { lostCallIds }) });
  const named = (): string[] => drafts.flatMap((draft) => (draft.kind === 'named' ? [draft.callId] : []));
  return { rig, agent, drafts, named };
}

t.test('calls are told of as they are written, under the ids that they are logged under', async (t) => {
  const { rig, agent, drafts, named } = watched([
    stream([
      ['a', 'echo', '{"x":1}'],
      ['b', 'echo', '{}'],
    ]),
    say('done'),
  ]);
  await agent.send(prompt('go'));
  t.strictSame(named(), ['a', 'b']);
  t.strictSame(drafts.flatMap((draft) => (draft.kind === 'arguments' && draft.callId === 'a' ? [draft.text] : [])).join(''), '{"x":1}');
  t.strictSame(
    rig.of('tool/call').map(({ callId }) => callId),
    ['a', 'b'],
  );
  assertLegal(rig);
});

t.test('a call that was discarded with its attempt keeps its id to itself', async (t) => {
  const lost = new ModelFailure('STREAM_CLOSED', 'cut');
  const { rig, agent, named } = watched([stream([['a', 'echo', '{"x"']], lost), stream([['a', 'echo', '{}']]), say('done')], {
    nextDelay: (attempt) => (attempt < 3 ? 1 : undefined),
    instant: () => true,
  });
  await agent.send(prompt('go'));
  const [first, second] = named();
  t.equal(first, 'a');
  t.not(second, 'a');
  t.strictSame(
    rig.of('assistant/message').flatMap(({ toolCalls }) => toolCalls.map(({ callId }) => callId)),
    [second],
  );
  t.strictSame(
    rig.of('tool/result').map(({ callId }) => callId),
    [second],
  );
  assertLegal(rig);
});

t.test('ids that are used, empty, doubled, or lost with a thread are replaced where they are shown first', async (t) => {
  const { rig, agent, named } = watched(
    [
      stream([['a', 'echo', '{}']]),
      stream([
        ['a', 'echo', '{}'],
        ['', 'echo', '{}'],
        ['z', 'echo', '{}'],
      ]),
      say('done'),
    ],
    {},
    ['z'],
  );
  await agent.send(prompt('go'));
  const shown = named();
  t.equal(new Set(shown).size, 4, shown.join());
  t.notOk(shown.includes('z') || shown.includes(''));
  t.strictSame(
    rig.of('tool/call').map(({ callId }) => callId),
    shown,
  );
  const doubled = watched([
    stream([
      ['a', 'echo', '{}'],
      ['a', 'echo', '{}'],
    ]),
    say('done'),
  ]);
  await doubled.agent.send(prompt('go'));
  t.strictSame(doubled.named(), ['a'], 'the second one is shown when it is logged');
  t.equal(new Set(doubled.rig.of('tool/call').map(({ callId }) => callId)).size, 2);
  assertLegal(rig);
  assertLegal(doubled.rig);
});

t.test('what is not shown takes no id: where nobody looks, and in a summary', async (t) => {
  const rig = new AgentRig([stream([['a', 'echo', '{}']]), say('done')], { tools: [echo] });
  await rig.agent.send(prompt('go'));
  t.strictSame(
    rig.of('tool/call').map(({ callId }) => callId),
    ['a'],
  );
});
