import t from 'tap';
import type { EventInput, PermissionMode } from '../../../../src/shared/events.ts';
import type { SubagentQuestion } from '../../../../src/shared/subagent-protocol.ts';
import type { PermissionAnswer, PermissionRequest } from '../../../../src/shared/thread-protocol.ts';
import { SubagentQuestions, type SubagentQuestionsParts } from '../../../../src/worker/permission/subagent-questions.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';

const asker = { callId: 'call-1', turn: 4, provider: 'other', description: 'Count files' };
const question: SubagentQuestion = {
  questionId: 'q1',
  title: 'rm -rf build\u202e',
  toolKind: 'execute',
  rawInput: { command: 'rm -rf build' },
  content: ['Clears the build.'],
};
const selected = (optionId: string): PermissionAnswer => ({ outcome: 'selected', optionId });

interface Asked {
  readonly provider?: string;
  readonly toolKind?: SubagentQuestion['toolKind'];
}

function rig(answer: PermissionAnswer | 'never' | Error, parts: Partial<SubagentQuestionsParts> = {}, asked: Asked = {}) {
  const events: EventInput[] = [];
  const requests: PermissionRequest[] = [];
  const withdrawn: string[] = [];
  const questions = new SubagentQuestions({
    sessionId: 's',
    timeoutMs: 0,
    mode: () => 'ask',
    journal: { append: (event) => ({ ...event, seq: events.push(event) - 1, time: 0 }) },
    ask: async (request) => {
      requests.push(request);
      if (answer === 'never') return await new Promise(() => undefined);
      if (answer instanceof Error) throw answer;
      return answer;
    },
    withdraw: async (key) => void withdrawn.push(key),
    flush: () => 9,
    ...parts,
  });
  return {
    events,
    requests,
    withdrawn,
    questions,
    ask: (signal = new AbortController().signal) =>
      questions.ask(
        { ...asker, provider: asked.provider ?? asker.provider },
        { ...question, toolKind: asked.toolKind ?? question.toolKind },
        signal,
      ),
  };
}

const decisions = (events: readonly EventInput[]) => events.flatMap((event) => (event.type === 'permission/decided' ? [event.data] : []));

t.test('a question is asked in the name of the call, shows what the child showed, and offers one decision', async (t) => {
  const { ask, requests, events } = rig(selected('allow_once'));
  t.equal(await ask(), true);
  const [request] = requests;
  t.match(request, { sessionId: 's', afterBatch: 9 });
  const params: any = request?.params;
  t.match(params.toolCall, { toolCallId: 'call-1', title: 'rm -rf build', kind: 'execute', rawInput: { command: 'rm -rf build' } });
  t.same(
    params.toolCall.content.map((block: any) => block.content.text),
    ['The subagent other (Count files) asks to do this.', 'Clears the build.'],
  );
  t.same(
    params.options.map(({ kind }: any) => kind),
    ['allow_once', 'reject_once'],
  );
  t.same(validateAgentFrame({ jsonrpc: '2.0', id: 1, method: 'session/request_permission', params }), []);
  t.match(events, [
    { type: 'permission/asked', data: { turn: 4, callId: 'call-1', title: 'rm -rf build' } },
    { type: 'permission/decided', data: { callId: 'call-1', outcome: 'allow-once', by: 'client' } },
  ]);
});

t.test('the kind is never left out, and a program that says it only reads is not believed: clients allow reads by kind', async (t) => {
  for (const [provider, toolKind, kind] of [
    ['other', 'read', 'other'],
    ['other', 'search', 'other'],
    ['other', 'edit', 'edit'],
    ['self', 'read', 'read'],
  ] as const) {
    const { ask, requests } = rig(selected('reject_once'), {}, { provider, toolKind });
    await ask();
    t.match(requests[0]?.params, { toolCall: { kind } }, `${provider}: ${toolKind}`);
  }
});

t.test('anything but a clear yes is a no', async (t) => {
  const cases: [PermissionAnswer | Error, string][] = [
    [selected('reject_once'), 'reject'],
    [selected('allow_always'), 'unavailable'],
    [{ outcome: 'unavailable' }, 'unavailable'],
    [{ outcome: 'cancelled' }, 'cancelled'],
    [new Error('lost'), 'unavailable'],
  ];
  for (const [answer, outcome] of cases) {
    const { ask, events } = rig(answer);
    t.equal(await ask(), false, outcome);
    t.match(decisions(events), [{ outcome }]);
  }
  const refusing = rig(selected('allow_once'), {
    journal: {
      append: () => {
        throw new Error('the disk is full');
      },
    },
  });
  t.equal(await refusing.ask(), false, 'what cannot be put on record is not allowed');
});

t.test('a question that nobody answers in time, or that is taken back, is a no and is withdrawn', async (t) => {
  const late = rig('never', { timeoutMs: 5 });
  t.equal(await late.ask(), false);
  t.match(decisions(late.events), [{ outcome: 'unavailable', by: 'timeout' }]);
  t.equal(late.withdrawn.length, 1);
  const aborted = rig('never');
  const abort = new AbortController();
  const answer = aborted.ask(abort.signal);
  abort.abort();
  t.equal(await answer, false);
  t.match(decisions(aborted.events), [{ outcome: 'cancelled' }]);
  t.equal(aborted.withdrawn.length, 1);
});

t.test('the mode speaks first: full access asks nobody, read-only allows nothing', async (t) => {
  for (const [mode, allowed] of [
    ['full-access', true],
    ['read-only', false],
  ] as [PermissionMode, boolean][]) {
    const { ask, requests, events } = rig(selected(allowed ? 'reject_once' : 'allow_once'), { mode: () => mode });
    t.equal(await ask(), allowed, mode);
    t.same(requests, []);
    t.match(decisions(events), [{ by: 'mode' }]);
  }
});

t.test('a mode that refuses takes open questions back, and a yes that comes with it is a no', async (t) => {
  let mode: PermissionMode = 'ask';
  const open = rig('never', { mode: () => mode });
  const answer = open.ask();
  while (open.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  open.questions.modeChanged();
  t.same(open.withdrawn, [], 'nothing has changed');
  mode = 'plan';
  open.questions.modeChanged();
  t.equal(await answer, false);
  t.same(open.withdrawn, [open.requests[0]?.requestKey]);
  t.match(decisions(open.events), [{ outcome: 'reject', by: 'mode' }]);

  for (const strict of ['plan', 'read-only'] as const) {
    mode = 'ask';
    const late = rig('never', {
      mode: () => mode,
      ask: async () => {
        mode = strict;
        return selected('allow_once');
      },
    });
    t.equal(await late.ask(), false, strict);
    t.match(decisions(late.events), [{ outcome: 'reject', by: 'mode' }]);
  }
});
