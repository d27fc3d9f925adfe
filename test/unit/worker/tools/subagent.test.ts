import t from 'tap';
import { noUsage } from '../../../../src/shared/events.ts';
import type { SubagentResult } from '../../../../src/shared/subagent-protocol.ts';
import { runOutcome } from '../../../../src/worker/subagents/run-outcome.ts';
import { createToolRegistry, toolRegistryFor } from '../../../../src/worker/tools/all-tools.ts';
import { type SubagentArgs, subagentTool } from '../../../../src/worker/tools/subagent.ts';
import { subagentKillTool } from '../../../../src/worker/tools/subagent-kill.ts';
import { subagentOutputTool } from '../../../../src/worker/tools/subagent-output.ts';
import type { BudgetLeft } from '../../../../src/worker/tools/tool.ts';
import { provider, RunsRig } from '../subagents/fake-agents.ts';
import { testContext } from './tool-context.ts';

const one = [provider('self')];
const two = [provider('self'), provider('other', { description: 'Knows the old code.' })];
const args: SubagentArgs = { description: 'Count files', prompt: 'Count the files.' };

function setUp(left: BudgetLeft = {}) {
  const rig = new RunsRig({ providers: two });
  const context = testContext('/work', { subagents: rig.runs, signal: rig.abort.signal, budgetLeft: () => left });
  return { rig, context, tool: subagentTool(two) };
}

const result = (more: Partial<SubagentResult>): SubagentResult => ({ stopReason: 'completed', output: '', durationMs: 7, ...more });

t.test('a session has the tools only with somebody to delegate to, and names agents only where there is a choice', async (t) => {
  const names = (tools: readonly { readonly name: string }[]) =>
    tools.map(({ name }) => name).filter((name) => name.startsWith('subagent'));
  t.same(names(createToolRegistry().schemas()), []);
  t.same(names(createToolRegistry(one).schemas()), ['subagent', 'subagent_kill', 'subagent_output']);
  const agentOf = (providers: typeof one): any => (subagentTool(providers).parameters as any).properties.agent;
  t.equal(agentOf(one), undefined);
  t.same(agentOf(two).enum, ['self', 'other']);
  t.match(agentOf(two).description, /other: Knows the old code\./);
  t.equal(toolRegistryFor(one), toolRegistryFor([provider('self')]), 'sessions with the same agents share one registry');
  t.not(toolRegistryFor(one).hash(), toolRegistryFor(two).hash());
});

t.test('what a call touches is the agent it goes to; calls run side by side', async (t) => {
  const tool = subagentTool(two);
  t.same(tool.access(args, { cwd: '/work' }), { kind: 'delegate', provider: 'self' });
  t.same(tool.access({ ...args, agent: 'other' }, { cwd: '/work' }), { kind: 'delegate', provider: 'other' });
  t.ok(tool.isParallelSafe(args));
  t.match(tool.presentCall({ ...args, agent: 'other' }, { cwd: '/work' }), { title: 'Count files (other)', kind: 'think' });
});

t.test('a foreground call gives the final text alone, and passes on what the parent has left', async (t) => {
  const { rig, context, tool } = setUp({ maxTokens: 100, deadline: 5 });
  const done = tool.execute({ ...args, agent: 'other' }, context);
  const child = rig.agents.child('agent-1');
  t.match(child.request, { provider: 'other', prompt: 'Count the files.', maxTokens: 100, deadline: 5, depth: 1 });
  child.ends({ output: 'Seven files.', usage: { ...noUsage, outputTokens: 4 } });
  t.match(await done, { text: 'Seven files.', isError: false, meta: { stopReason: 'completed', usage: { outputTokens: 4 } } });
});

t.test('each end has its words; a partial answer is an error that keeps what came', async (t) => {
  t.match(runOutcome(result({ stopReason: 'aborted', output: 'Half' })), {
    text: 'subagent run was cancelled\nPartial output before the run ended:\nHalf',
    isError: true,
    code: 'SUBAGENT_CANCELLED',
  });
  t.match(runOutcome(result({ stopReason: 'error', diagnostic: 'it crashed' })), {
    text: 'subagent run failed\nDiagnostic: it crashed',
    isError: true,
  });
  t.equal(runOutcome(result({ stopReason: 'max-tokens' })).text, 'subagent run hit its token limit before finishing');
  t.equal(runOutcome(result({ stopReason: 'refusal' })).text, 'subagent declined the task');
  t.equal(runOutcome(result({})).text, '(the subagent ended without any text)');
  t.equal(runOutcome(result({ structured: { ok: true } })).text, '{"ok":true}');
  const long = runOutcome(result({ stopReason: 'error', diagnostic: 'é'.repeat(5_000) })).text;
  t.equal(Buffer.byteLength(long.split('Diagnostic: ')[1] ?? ''), 4_096);
  t.ok(runOutcome(result({ output: 'x'.repeat(1_000_000) })).text.length < 140_000);
});

t.test('a start that fails passes its message on, and an aborted call starts nothing', async (t) => {
  const { rig, context, tool } = setUp();
  rig.agents.onStart = async () => ({ ok: false, code: 'OVERLOADED', message: 'eight of them run already' });
  t.match(await tool.execute(args, context), { text: 'Error: eight of them run already', isError: true, code: 'OVERLOADED' });
  rig.abort.abort();
  const before = rig.agents.children.size;
  t.match(await tool.execute(args, context), { text: 'Error: subagent request was aborted before the ACP child started', isError: true });
  t.equal(rig.agents.children.size, before);
});

t.test('a background call gives an id, by which the run is followed, read and ended', async (t) => {
  const { rig, context, tool } = setUp();
  t.match(await tool.execute({ ...args, run_in_background: true }, context), {
    text: 'started background subagent job agent-1',
    isError: false,
  });
  const child = rig.agents.child('agent-1');
  child.does({ kind: 'tool', childCallId: 'k', title: 'Read a.ts', toolKind: 'read', status: 'completed' });
  const read = (more: object = {}) => subagentOutputTool.execute({ job_id: 'agent-1', ...more }, context);
  while (!(await read()).text.includes('Read a.ts')) await new Promise((resolve) => setTimeout(resolve, 5));
  const nothingNew = await read();
  t.match(nothingNew.text, /^\[agent-1 \(Count files\) is running, for 0 s so far\]\n\(nothing new\)$/);
  const card = subagentOutputTool.presentResult({ job_id: 'agent-1' }, nothingNew, { cwd: '/work' });
  t.match(card, { content: [/is running/, '- ✓ Read a.ts'] }, 'a person sees the run as it stands');
  const waiting = read({ wait_ms: 60_000 });
  child.ends({ output: 'Seven.' });
  t.match(await waiting, { text: 'Seven.', isError: false });
  t.match(await subagentKillTool.execute({ job_id: 'agent-1' }, context), { text: /had ended already/ });

  await tool.execute({ ...args, run_in_background: true }, context);
  rig.agents.child('agent-2').deaf = true;
  t.match(await subagentKillTool.execute({ job_id: 'agent-2' }, context), { text: 'ended agent-2 (Count files)', isError: false });
  t.match(await subagentOutputTool.execute({ job_id: 'agent-2' }, context), { text: 'subagent run was cancelled', isError: true });
});

t.test('an id that the session did not give is refused, and the ids it knows are named', async (t) => {
  const { rig, context, tool } = setUp();
  const missing = { code: 'JOB_NOT_FOUND', isError: true };
  t.match(await subagentOutputTool.execute({ job_id: 'agent-1' }, context), { ...missing, text: /it has none/ });
  await tool.execute({ ...args, run_in_background: true }, context);
  t.match(await subagentKillTool.execute({ job_id: 'agent-7' }, context), { ...missing, text: /its jobs are agent-1/ });
  const stranger = setUp();
  t.match(await subagentOutputTool.execute({ job_id: 'agent-1' }, stranger.context), missing, "another session's id means nothing here");
  await rig.runs.dispose();
});

t.test('waiting for a job ends with the turn, and leaves the job as it is', async (t) => {
  const { rig, context, tool } = setUp();
  await tool.execute({ ...args, run_in_background: true }, context);
  const waiting = subagentOutputTool.execute({ job_id: 'agent-1', wait_ms: 600_000 }, context);
  rig.abort.abort();
  t.match(await waiting, { isError: true, code: 'ABORTED' });
  t.equal(rig.runs.job('agent-1')?.state, 'running');
  await rig.runs.dispose();
});
