/** This server as a subagent of itself: a real child that speaks the whole protocol, with commands of its own. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { sessionsDir } from '../../src/shared/log/session-paths.ts';
import { signalGroup } from '../../src/shared/process-table.ts';
import type { SubagentProvider } from '../../src/shared/subagent-protocol.ts';
import { fileAppears } from '../support/file-appears.ts';
import { projectRoot } from '../support/server-process.ts';
import { badProvider, follow, newsWhere, SubagentRig, toldText } from '../support/subagent-rig.ts';

t.setTimeout(60_000);

function selfRig(t: Test, more: Partial<SubagentProvider> = {}, flags: readonly string[] = []) {
  const stateDir = t.testdir();
  const args = [join(projectRoot, 'dist/main/cli.js'), '--model', 'scripted', '--state-dir', stateDir, ...flags];
  return { rig: new SubagentRig(t, [badProvider('', { args, disposeEofGraceMs: 6000, ...more })]), stateDir };
}

const logNames = (stateDir: string): string[] => readdirSync(sessionsDir(stateDir)).filter((one) => one.endsWith('.jsonl'));

/** The one log there is. */
function events(stateDir: string): string {
  return readFileSync(join(sessionsDir(stateDir), logNames(stateDir)[0] ?? ''), 'utf8');
}

/** Its first line. */
function header(stateDir: string): Record<string, unknown> {
  return JSON.parse(events(stateDir).split('\n')[0] ?? '') as Record<string, unknown>;
}

t.test('it works, tells what it does, and serves another session', async (t) => {
  const { rig, stateDir } = selfRig(t, { persona: 'Be brief.', tools: ['bash'], poolSize: 1 }, ['--permission-mode', 'full-access']);
  const request = rig.request({ prompt: 'run echo from-the-child\nsay done', depth: 2, deadline: Date.now() + 600_000 });
  t.match(await rig.broker.startSubagent(request), {
    ok: true,
    capabilities: { persona: true, tools: true, depth: true, outputSchema: true },
  });
  const { result, activities } = await follow(rig.broker, request);
  t.match(result, { stopReason: 'completed', output: /done/, usage: { inputTokens: Number, outputTokens: Number } });
  const calls = activities.filter((activity) => activity.kind === 'tool');
  t.match(calls[0], { toolKind: 'execute', title: 'echo from-the-child' });
  t.match(calls.at(-1), { status: 'completed' });
  await rig.broker.disposeSubagent('s1', request.runId);
  t.match(header(stateDir), { cwd: rig.dir, options: { persona: 'Be brief.', tools: ['bash'], depth: 2, budget: { deadline: Number } } });
  t.match((await rig.run({ owner: 's2', prompt: 'say two' })).result, { stopReason: 'completed', output: /two/ });
  t.equal(rig.started.length, 1, 'by the same process');
});

t.test('it answers with its last words alone, and where it is cut short with all of them', async (t) => {
  const { rig } = selfRig(t, {}, ['--permission-mode', 'full-access']);
  const { result, activities } = await rig.run({ prompt: 'say first words\nrun true\nsay last words' });
  t.match(result, { stopReason: 'completed', output: /^last words/ });
  t.notMatch(result.output, /first words/);
  t.match(toldText({ activities, result, dropped: 0 }), /first words/, 'which were told on the way');
  const cut = await rig.run({ prompt: 'say first words\nrun true\nsay last words\nrun true', maxSteps: 2 });
  t.match(cut.result, { stopReason: 'error', output: /first words[^]*last words/ });
});

t.test('it delegates no deeper than its table and the session above it allow, whatever its own configuration says', async (t) => {
  for (const [maxDepth, ofParent] of [
    [1, undefined],
    [3, 1],
  ] as const) {
    const { rig, stateDir } = selfRig(t, { maxDepth });
    const prompt = 'delegate self say too deep';
    await rig.run({ prompt, ...(ofParent === undefined ? {} : { maxDepth: ofParent }) });
    t.match(header(stateDir), { options: { depth: 1, maxDepth: 1 } });
    t.match(events(stateDir), /"code":"UNKNOWN_TOOL"/, 'it has no such tool');
    t.notMatch(events(stateDir), /"subagent\/start"/);
  }
  const { rig, stateDir } = selfRig(t, { maxDepth: 2 });
  await rig.run({ prompt: 'delegate self say one deeper' });
  t.equal(logNames(stateDir).length, 2, 'a level that is left can be used');
});

t.test('its questions are passed up, and an answer lets exactly that call run', async (t) => {
  const { rig } = selfRig(t, { permission: 'ask' });
  const file = join(rig.dir, 'made');
  const request = await rig.start({ prompt: `run touch ${file}` });
  const question = await rig.question(request);
  t.match(question, { toolKind: 'execute', title: /touch/ });
  t.notOk(existsSync(file), 'not before the answer');
  await rig.broker.answerSubagent('s1', request.runId, question.questionId, true);
  t.match((await follow(rig.broker, request)).result, { stopReason: 'completed' });
  t.ok(existsSync(file));
});

t.test('a cancel ends its commands; a kill of it leaves none either', async (t) => {
  const { rig } = selfRig(t, { disposeEofGraceMs: 300 }, ['--permission-mode', 'full-access']);
  for (const end of ['cancel', 'kill'] as const) {
    const file = join(rig.dir, end);
    const request = await rig.start({ prompt: `run touch ${file}; sleep 300` });
    await fileAppears(file);
    if (end === 'cancel') await rig.broker.cancelSubagent('s1', request.runId);
    else signalGroup(rig.started.at(-1) ?? 0, 'SIGKILL');
    const { result } = await newsWhere(rig.broker, request, (news) => news.result !== undefined);
    t.equal(result?.stopReason, end === 'cancel' ? 'aborted' : 'error');
    await rig.broker.disposeSubagent('s1', request.runId);
    t.same(rig.left(), [], 'no command is left');
  }
});
