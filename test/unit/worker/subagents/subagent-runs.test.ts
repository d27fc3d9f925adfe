import t from 'tap';
import { ServerError } from '../../../../src/shared/errors.ts';
import { type EventInput, type LogEvent, noUsage } from '../../../../src/shared/events.ts';
import { runOutcome } from '../../../../src/worker/subagents/run-outcome.ts';
import type { SubagentRun } from '../../../../src/worker/subagents/subagent-run.ts';
import { capabilities, RunsRig } from './fake-agents.ts';

async function started(rig: RunsRig, more: Parameters<RunsRig['start']>[0] = {}): Promise<SubagentRun> {
  const start = await rig.start(more);
  if (!start.ok) throw new Error(start.message);
  return start.run;
}

const asLog = (events: readonly EventInput[]): LogEvent[] => events.map((event, seq) => ({ ...event, seq, time: seq }));

t.test('a run is logged from its start to its end, charged once, and disposed of', async (t) => {
  const rig = new RunsRig({ depth: 1, mode: () => 'accept-edits' });
  const run = await started(rig);
  const child = rig.agents.child('agent-1');
  t.match(child.request, {
    owner: 'parent',
    runId: /^agent-1:[0-9a-f-]{36}$/,
    cwd: '/work',
    depth: 2,
    mode: 'accept-edits',
    spillDir: '/spill',
  });
  child.says('Look');
  child.ends({ output: 'Looked.', usage: { ...noUsage, outputTokens: 3 }, logPath: '/log' });
  t.match(await run.result, { stopReason: 'completed', output: 'Looked.' });
  await run.gone();
  t.ok(child.disposed);
  t.equal(rig.runs.live, 0);
  t.match(rig.charged, [{ outputTokens: 3 }]);
  t.match(rig.logged('subagent/start'), [
    { turn: 1, callId: 'call-1', runId: child.request.runId, description: 'Look around', background: false },
  ]);
  t.match(rig.logged('subagent/activity'), [{ callId: 'call-1', runId: child.request.runId, activity: { kind: 'text', text: 'Look' } }]);
  t.match(rig.logged('subagent/end'), [
    { runId: child.request.runId, stopReason: 'completed', usage: { outputTokens: 3 }, logPath: '/log' },
  ]);
  t.equal(rig.events.at(-1)?.type, 'subagent/end');
  t.notOk('output' in (rig.logged('subagent/end')[0] ?? {}), "a foreground run's output is its call's result");
});

t.test('a process is given no mode: its own may be a stricter one', async (t) => {
  const rig = new RunsRig({ mode: () => 'full-access' });
  await started(rig, { provider: 'other' });
  t.notOk('mode' in rig.agents.child('agent-1').request);
  await rig.runs.dispose();
});

t.test('an abort settles the run at once with what came, and the child is disposed of behind it', async (t) => {
  const rig = new RunsRig();
  const run = await started(rig);
  const child = rig.agents.child('agent-1');
  child.deaf = true;
  child.says('Half an ans');
  await rig.agents.awaitSubagent('parent', 'agent-1', 0);
  let letGo = (): void => undefined;
  rig.agents.onDispose = () =>
    new Promise((resolve) => {
      letGo = resolve;
    });
  child.says('wer');
  const result = run.result;
  await new Promise((resolve) => setImmediate(resolve));
  rig.abort.abort();
  t.match(await result, { stopReason: 'aborted', output: /wer/ });
  t.ok(child.cancelled);
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(rig.runs.live, 1, 'it is counted until nothing of it is left');
  letGo();
  await run.gone();
  t.equal(rig.runs.live, 0);
});

t.test('a start that fails, that is cancelled, or that was never wanted leaves nothing', async (t) => {
  const rig = new RunsRig();
  rig.agents.onStart = async () => ({ ok: false, code: 'OVERLOADED', message: 'eight of them run already' });
  t.same(await rig.start(), { ok: false, code: 'OVERLOADED', message: 'eight of them run already' });
  rig.agents.onStart = async () => {
    throw new ServerError('THREAD_LOST', 'The thread that was asked ended before it answered.');
  };
  t.match(await rig.start(), { ok: false, code: 'THREAD_LOST' });
  let letStart = (): void => undefined;
  rig.agents.onStart = () =>
    new Promise((resolve) => {
      letStart = () => resolve({ ok: true, capabilities });
    });
  const abort = new AbortController();
  const starting = rig.start({ signal: abort.signal });
  abort.abort();
  t.match(await starting, { ok: false, code: 'ABORTED', message: 'subagent request was aborted before the ACP child started' });
  t.ok(rig.agents.child('agent-3').cancelled);
  t.equal(rig.runs.live, 1, 'the start is still under way');
  letStart();
  await rig.runs.dispose();
  t.ok(rig.agents.child('agent-3').disposed, 'a child that came too late is disposed of');
  t.match(await rig.start({ signal: abort.signal }), { ok: false, code: 'ABORTED' });
  t.same(rig.events, []);
  t.equal(rig.runs.live, 0);
});

t.test('the next start waits until nothing is left of one that was given up, and gives up itself at once', async (t) => {
  const rig = new RunsRig();
  let letFail = (): void => undefined;
  rig.agents.onStart = () =>
    new Promise((resolve) => {
      letFail = () => resolve({ ok: false, code: 'REQUEST_CANCELLED', message: 'reaped' });
    });
  const aborted = new AbortController();
  const first = rig.start({ signal: aborted.signal });
  aborted.abort();
  t.match(await first, { ok: false, code: 'ABORTED' });

  const impatient = new AbortController();
  const second = rig.start({ signal: impatient.signal });
  impatient.abort();
  t.match(await second, { ok: false, code: 'ABORTED' });

  rig.agents.onStart = async () => ({ ok: true, capabilities });
  const third = rig.start();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(rig.agents.children.size, 1, 'nothing is started beside the child that is being ended');
  letFail();
  t.match(await third, { ok: true });
  t.equal(rig.agents.children.size, 2);
  await rig.runs.dispose();
});

t.test('a lost thread and an unknown run end it as failed, with the reason', async (t) => {
  const rig = new RunsRig();
  const run = await started(rig);
  const lost = new RunsRig();
  lost.agents.awaitSubagent = async () => {
    throw new ServerError('THREAD_LOST', 'The thread that was asked ended before it answered.');
  };
  t.match(await (await started(lost)).result, { stopReason: 'error', diagnostic: /ended before it answered/ });
  const forgotten = new RunsRig();
  forgotten.agents.awaitSubagent = async () => ({ ok: false, code: 'NOT_FOUND' }) as never;
  t.match(await (await started(forgotten)).result, { stopReason: 'error', diagnostic: /does not know/ });
  await rig.runs.dispose();
  t.match(await run.result, { stopReason: 'aborted' });
});

t.test('a disk that refuses ends the run, and its child', async (t) => {
  let full = false;
  const rig = new RunsRig({
    record: () => {
      if (full) throw new ServerError('LOG_WRITE_FAILED', 'The disk is full.');
    },
  });
  const run = await started(rig);
  full = true;
  rig.agents.child('agent-1').says('more');
  t.match(await run.result, { stopReason: 'error', diagnostic: 'The disk is full.' });
  await run.gone();
  t.ok(rig.agents.child('agent-1').disposed);
  t.match(await rig.start(), { ok: false, code: 'LOG_WRITE_FAILED' });
  await rig.runs.dispose();
  t.ok(rig.agents.child('agent-2').disposed);
});

t.test('a question is asked once, and its answer goes back to the child that asked', async (t) => {
  const asked: string[] = [];
  const rig = new RunsRig({
    ask: async (asker, question) => {
      asked.push(`${asker.callId} ${question.questionId}`);
      return question.questionId === 'q1';
    },
  });
  await started(rig);
  const child = rig.agents.child('agent-1');
  child.asks({ questionId: 'q1' });
  child.asks({ questionId: 'q2' });
  while (child.answers.size < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  t.same(
    [...child.answers],
    [
      ['q1', true],
      ['q2', false],
    ],
  );
  t.same(asked, ['call-1 q1', 'call-1 q2']);
  await rig.runs.dispose();
});

t.test('a question that is open when its run ends is taken back', async (t) => {
  let takenBack = false;
  const rig = new RunsRig({
    ask: (_asker, _question, signal) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          takenBack = true;
          resolve(false);
        }),
      ),
  });
  const run = await started(rig);
  rig.agents.child('agent-1').asks({ questionId: 'q1' });
  await new Promise((resolve) => setTimeout(resolve, 30));
  rig.abort.abort();
  await run.result;
  t.ok(takenBack);
});

t.test('a background run outlives its turn, says when it ends, and can be read', async (t) => {
  const rig = new RunsRig();
  const run = await started(rig, { background: true, description: 'Count files' });
  t.equal(run.jobId, 'agent-1');
  rig.abort.abort();
  t.equal(rig.runs.job('agent-1')?.state, 'running');
  rig.agents.child('agent-1').ends({ output: 'Seven.' });
  await run.gone();
  t.match(rig.runs.job('agent-1'), { state: 'ended', result: { output: 'Seven.' } });
  t.same(rig.notices, ['[background subagent job agent-1 (Count files) completed; read it with subagent_output]']);
  t.match(rig.logged('subagent/end'), [{ runId: run.runId, output: 'Seven.' }]);
  t.equal(rig.runs.job('agent-9'), undefined);
});

t.test('a background answer reads the same after a reload, its end and what is structured included', async (t) => {
  const rig = new RunsRig();
  const run = await started(rig, { background: true });
  rig.agents.child('agent-1').ends({ output: `first words ${'x'.repeat(200_000)} last words`, structured: { answer: 42 } });
  await run.gone();
  const again = new RunsRig();
  for (const event of asLog(rig.events)) again.runs.observe(event);
  const [live, stored] = [rig, again].map(({ runs }) => {
    const job = runs.job('agent-1');
    return job?.state === 'ended' ? runOutcome(job.result) : undefined;
  });
  t.match(live, { text: /^first words x.*\n\[\.\.\. \d+ bytes left out \.\.\.\]\n.*x last words$/s, meta: { structured: { answer: 42 } } });
  t.same(stored, live);
});

t.test('a job that is killed ends at once and needs no notice; a cancelled turn ends the others', async (t) => {
  const rig = new RunsRig();
  await started(rig, { background: true });
  await started(rig, { background: true });
  rig.agents.child('agent-1').deaf = true;
  t.match(await rig.runs.kill('agent-1'), { state: 'ended', result: { stopReason: 'aborted' } });
  t.same(rig.notices, []);
  rig.runs.cancelAll();
  while (rig.notices.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  t.match(rig.notices, [/agent-2 \(Look around\) was cancelled/]);
  t.match(await rig.runs.kill('agent-2'), { state: 'ended' });
  t.equal(await rig.runs.kill('agent-3'), undefined);
});

t.test('a session runs ten background subagents at most, and remembers the last twenty that ended', async (t) => {
  const rig = new RunsRig();
  for (let i = 1; i <= 10; i += 1) await started(rig, { background: true });
  t.match(await rig.start({ background: true }), { ok: false, code: 'OVERLOADED', message: /already runs 10/ });
  t.match(await rig.start(), { ok: true }, 'a foreground run is not counted');
  for (let i = 1; i <= 10; i += 1) rig.agents.child(`agent-${i}`).ends();
  while (rig.notices.length < 10) await new Promise((resolve) => setTimeout(resolve, 5));
  for (let i = 0; i < 12; i += 1) {
    const run = await started(rig, { background: true });
    rig.agents.child(run.runId).ends();
    await run.gone();
  }
  t.equal(rig.runs.jobIds().length, 20);
  t.equal(rig.runs.job('agent-1'), undefined);
  await rig.runs.dispose();
});

t.test('after a replay ended jobs can be read, lost ones are closed, and untold notices are told', async (t) => {
  const first = new RunsRig();
  const told = await started(first, { background: true, description: 'told' });
  const untold = await started(first, { background: true, description: 'untold' });
  for (const run of [told, untold]) {
    first.agents.child(run.runId).ends({ output: `of ${run.description}` });
    await run.gone();
  }
  await started(first, { background: true, description: 'lost' });
  await started(first);
  const log: EventInput[] = [...first.events];
  log.push({
    type: 'user/message',
    data: { turn: 2, messageId: 'm', source: 'notice', content: [{ type: 'text', text: first.notices[0] ?? '' }] },
  });

  const second = new RunsRig();
  for (const event of asLog(log)) second.runs.observe(event);
  second.runs.resume();
  t.same(
    second.runs.jobIds().map((id) => [id, second.runs.job(id)?.description, second.runs.job(id)?.state]),
    [
      ['agent-1', 'told', 'ended'],
      ['agent-2', 'untold', 'ended'],
      ['agent-3', 'lost', 'ended'],
    ],
  );
  t.match(second.runs.job('agent-2'), { result: { stopReason: 'completed', output: 'of untold' } });
  t.match(second.logged('subagent/end'), [
    { runId: /^agent-3:/, stopReason: 'error', diagnostic: /not recorded/ },
    { runId: /^agent-4:/, stopReason: 'error' },
  ]);
  t.match(second.notices, [/agent-2 \(untold\) completed/, /agent-3 \(lost\) failed/]);
  t.equal((await started(second)).jobId, 'agent-5', 'ids go on where the log ended');

  const third = new RunsRig();
  for (const event of asLog([...log, ...second.events.filter(({ type }) => type === 'subagent/end')])) third.runs.observe(event);
  third.runs.resume();
  t.same(third.events, [], 'what is closed stays closed');
  await Promise.all([first.runs.dispose(), second.runs.dispose()]);
});
