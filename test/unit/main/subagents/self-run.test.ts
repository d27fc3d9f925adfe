import t from 'tap';
import type { PromptResult } from '../../../../src/main/sessions/pending-prompt.ts';
import { resultOfFailure, resultOfTurn } from '../../../../src/main/subagents/self-result.ts';
import type { SelfRunParts } from '../../../../src/main/subagents/self-run.ts';
import { SelfRun } from '../../../../src/main/subagents/self-run.ts';
import { ServerError } from '../../../../src/shared/errors.ts';
import { noUsage, type TurnUsage } from '../../../../src/shared/events.ts';
import type { SubagentActivity, SubagentProvider } from '../../../../src/shared/subagent-protocol.ts';
import { IdleWatch } from '../../../../src/shared/subagents/idle-watch.ts';
import type { PermissionRequest } from '../../../../src/shared/thread-protocol.ts';
import { provider } from '../../worker/subagents/fake-agents.ts';

const usage: TurnUsage = { ...noUsage, inputTokens: 10, outputTokens: 2, steps: 1, toolCalls: 0, elapsedMs: 5 };
const turn = (more: Partial<PromptResult> = {}): PromptResult => ({ ok: true, stopReason: 'end_turn', usage, text: 'Done.', ...more });

/** A session whose turn ends when the test says so. */
class FakeSession {
  readonly identity = { paths: { log: '/state/child.jsonl' } };
  cancelled = false;
  disposed = false;
  prompts: unknown[] = [];
  end: (result: PromptResult) => void = () => undefined;
  fail: (error: Error) => void = () => undefined;

  prompt(content: unknown): Promise<PromptResult> {
    this.prompts.push(content);
    return new Promise((resolve, reject) => {
      this.end = resolve;
      this.fail = reject;
    });
  }

  cancel(): void {
    this.cancelled = true;
    this.end(turn({ stopReason: 'cancelled' }));
  }

  async dispose(): Promise<void> {
    this.disposed = true;
  }
}

function start(more: Partial<SubagentProvider> = {}) {
  const session = new FakeSession();
  const request = { owner: 'parent', runId: 'r', provider: 'self', prompt: 'Count.', cwd: '/work', depth: 1, spillDir: '/spill' };
  const run = new SelfRun({ request, provider: provider('self', more), session: session as unknown as SelfRunParts['session'] });
  return { run, session };
}

const says = (text: string): SubagentActivity => ({ kind: 'text', text });
const tool = (status: 'in_progress' | 'completed'): SubagentActivity => ({
  kind: 'tool',
  childCallId: 'k',
  title: 'T',
  toolKind: 'read',
  status,
});

function question(requestKey = 'q1'): PermissionRequest {
  const options = [
    { optionId: 'a', name: 'Always', kind: 'allow_always' },
    { optionId: 'o', name: 'Once', kind: 'allow_once' },
    { optionId: 'r', name: 'No', kind: 'reject_once' },
  ];
  const content = [{ type: 'content', content: { type: 'text', text: 'why' } }];
  const toolCall = { toolCallId: 'c', title: 'rm x', kind: 'execute', rawInput: { command: 'rm x' }, content };
  return { sessionId: 'child', requestKey, params: { sessionId: 'child', toolCall, options }, afterBatch: 0 };
}

t.test('the prompt goes out, the news are what the session does, the result is its last text', async (t) => {
  const { run, session } = start();
  t.same(session.prompts, [[{ type: 'text', text: 'Count.' }]]);
  run.take([says('Counting.'), tool('completed')]);
  t.match(await run.news.since(0, 0), { activities: [{ text: 'Counting.' }, { status: 'completed' }] });
  session.end(turn());
  await run.over;
  t.ok(session.disposed, 'its thread is free again');
  t.match((await run.news.since(99, 0)).result, {
    stopReason: 'completed',
    output: 'Done.',
    usage: { inputTokens: 10 },
    logPath: '/state/child.jsonl',
  });
  t.notOk(run.isRunning);
});

t.test('a cancel settles at once with what was said, and the turn ends behind it', async (t) => {
  const { run, session } = start();
  run.take([says('Half'), { kind: 'usage', usage: { ...noUsage, outputTokens: 9 } }]);
  session.cancel = () => {
    session.cancelled = true;
  };
  run.cancel();
  t.match((await run.news.since(0, 0)).result, { stopReason: 'aborted', output: 'Half', usage: { outputTokens: 9 } });
  t.ok(session.cancelled);
  t.notOk(session.disposed);
  session.end(turn({ stopReason: 'cancelled' }));
  await run.over;
  t.ok(session.disposed);
});

/** Three times the limit of the run below, by a watch that nothing excuses. */
const silenceOver = (): Promise<void> => new IdleWatch(120, () => false).expired;

t.test('silence ends a run, but not while a tool works or a question waits', async (t) => {
  const { run, session } = start({ idleTimeoutMs: 40, permission: 'ask' });
  run.take([tool('in_progress')]);
  await silenceOver();
  t.ok(run.isRunning, 'a tool works');
  const answer = run.questions.decide(question());
  run.take([tool('completed')]);
  await silenceOver();
  t.ok(run.isRunning, 'a question waits');
  run.questions.answer('q1', true);
  t.same(await answer, { outcome: 'selected', optionId: 'o' });
  await run.over;
  t.ok(session.cancelled);
  t.match((await run.news.since(0, 0)).result, { stopReason: 'error', diagnostic: 'it did nothing for 40 ms' });
});

t.test('the rule of the provider answers by kind, and never with more than once', async (t) => {
  t.same(await start({ permission: 'allow' }).run.questions.decide(question()), { outcome: 'selected', optionId: 'o' });
  t.same(await start({ permission: 'reject' }).run.questions.decide(question()), { outcome: 'selected', optionId: 'r' });
});

t.test('a question waits in the news until it is answered, withdrawn, or its run ends', async (t) => {
  const { run, session } = start({ permission: 'ask' });
  const answers = ['q1', 'q2', 'q3'].map((key) => run.questions.decide(question(key)));
  const { questions, seq } = await run.news.since(0, 0);
  t.match(questions, [{ questionId: 'q1', title: 'rm x', toolKind: 'execute', rawInput: { command: 'rm x' }, content: ['why'] }, {}, {}]);
  run.questions.answer('q1', false);
  run.questions.answer('q1', true);
  t.same(await answers[0], { outcome: 'selected', optionId: 'r' }, 'a second answer changes nothing');
  run.questions.withdraw('q2');
  t.same(await answers[1], { outcome: 'cancelled' });
  t.same(
    (await run.news.since(seq, 0)).questions.map(({ questionId }) => questionId),
    ['q3'],
  );
  session.end(turn());
  await run.over;
  t.same(await answers[2], { outcome: 'cancelled' });
  t.same(await run.questions.decide(question('q4')), { outcome: 'cancelled' });
});

t.test('how a turn ended is how the run ended; what its own subagents used is counted in', async (t) => {
  const stops = (more: Partial<PromptResult>) => resultOfTurn(turn(more), 'said').stopReason;
  t.equal(stops({ stopReason: 'max_tokens' }), 'max-tokens');
  t.equal(stops({ stopReason: 'refusal' }), 'refusal');
  t.equal(stops({ stopReason: 'cancelled' }), 'aborted');
  t.equal(stops({ stopReason: 'max_turn_requests', spent: { budget: 'tokens', scope: 'session' } }), 'max-tokens');
  t.match(resultOfTurn(turn({ stopReason: 'max_turn_requests', spent: { budget: 'steps', scope: 'turn' } }), 'said'), {
    stopReason: 'error',
    output: 'said',
    diagnostic: 'its budget is spent: steps',
  });
  const withOwn = turn({
    usage: { ...usage, costUsd: 0.5, subagents: { ...noUsage, inputTokens: 5, costUsd: 0.2 } },
    structured: { ok: true },
  });
  t.match(resultOfTurn(withOwn, ''), { usage: { inputTokens: 15, outputTokens: 2, costUsd: 0.5 }, structured: { ok: true } });
  const failure = new ServerError('MODEL_FAILED', 'The turn failed: no such model.', { data: { usage: { ...usage } as never } });
  t.match(resultOfFailure(failure, 'said'), {
    stopReason: 'error',
    output: 'said',
    diagnostic: /^MODEL_FAILED: /,
    usage: { inputTokens: 10 },
  });
});
