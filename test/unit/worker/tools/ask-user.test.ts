/** Questions to the person: the form that is shown, the answers that are believed, and what the model reads of each end. */
import t from 'tap';
import * as fc from 'fast-check';
import type { ClientAnswer, ClientRequest } from '../../../../src/shared/thread-protocol.ts';
import { askUserTool, type AskUserArgs } from '../../../../src/worker/tools/ask-user.ts';
import { askOutcome } from '../../../../src/worker/tools/ask-user-answer.ts';
import { PersonQuestions } from '../../../../src/worker/tools/ask-user-channel.ts';
import { askForm, type AskedQuestion } from '../../../../src/worker/tools/ask-user-form.ts';
import { createToolRegistry, toolRegistryFor } from '../../../../src/worker/tools/all-tools.ts';
import type { ToolContext } from '../../../../src/worker/tools/tool.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';

const choice: AskedQuestion = {
  question: 'Which database?',
  choices: [{ label: 'Postgres', description: 'What the others use.' }, { label: 'SQLite' }],
};
const several: AskedQuestion = {
  question: 'Which platforms?',
  choices: [{ label: 'Linux' }, { label: 'macOS' }],
  multiple: true,
  free_text: false,
};
const open: AskedQuestion = { question: 'What is the service called?' };

function channel(answer: ClientAnswer | Promise<ClientAnswer>) {
  const asked: ClientRequest[] = [];
  const withdrawn: string[] = [];
  const person = new PersonQuestions({
    sessionId: 's',
    timeoutMs: 7000,
    ask: async (request) => {
      asked.push(request);
      return await answer;
    },
    withdraw: async (key) => void withdrawn.push(key),
    flush: () => 5,
  });
  const context = (signal: AbortSignal): ToolContext => ({ person, callId: 'c1', signal }) as unknown as ToolContext;
  return { asked, withdrawn, person, context };
}
const never = new AbortController().signal;
const accept = (content: unknown): ClientAnswer => ({ kind: 'result', result: { action: 'accept', content } });

t.test('one question with choices is a form of two fields, valid by the schema, about its call', async (t) => {
  const { asked, context } = channel(accept({ q1: 'Postgres' }));
  const outcome = await askUserTool.execute({ questions: [choice] }, context(never));
  t.strictSame(outcome, { text: 'The user answered:\nWhich database?\n  - Postgres', isError: false, meta: { answered: true } });
  t.match(asked, [{ sessionId: 's', method: 'elicitation/create', afterBatch: 5, timeoutMs: 7000 }]);
  t.strictSame(asked[0]?.params, {
    sessionId: 's',
    toolCallId: 'c1',
    mode: 'form',
    message: 'Which database?',
    requestedSchema: {
      type: 'object',
      properties: {
        q1: {
          type: 'string',
          title: 'Answer',
          oneOf: [
            { const: 'Postgres', title: 'Postgres', description: 'What the others use.' },
            { const: 'SQLite', title: 'SQLite' },
          ],
        },
        q1_other: {
          type: 'string',
          title: 'Something else',
          description: 'Your own words, in place of a choice or beside it.',
          maxLength: 4000,
        },
      },
      required: [],
    },
  });
  t.same(validateAgentFrame({ jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: asked[0]?.params }), []);
});

t.test('several questions have their own titles; what must be answered is required', async (t) => {
  const long = `Which of these ${'very '.repeat(60)}long names?`;
  const form = askForm([several, open, { ...choice, question: long }]);
  t.equal(form.message, 'The agent has 3 questions.');
  t.match(form.requestedSchema, {
    properties: {
      q1: { type: 'array', title: 'Which platforms?', items: { anyOf: [{ const: 'Linux', title: 'Linux' }, { const: 'macOS' }] } },
      q2: { type: 'string', title: 'What is the service called?', minLength: 1, maxLength: 4000 },
      q3: { type: 'string', description: long },
      q3_other: { type: 'string', title: /^Something else \(Which of these/ },
    },
    required: ['q1', 'q2'],
  });
  t.notOk(form.requestedSchema.properties?.['q1_other'], 'choices alone');
  const titles = Object.values(form.requestedSchema.properties ?? {}).map((field: any) => field.title.length);
  t.ok(titles.every((length) => length <= 200));
  t.same(
    validateAgentFrame({ jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: { sessionId: 's', mode: 'form', ...form } }),
    [],
  );
});

t.test('every way to answer, in words for the model', async (t) => {
  const three = [choice, several, open];
  const cases: [string, readonly AskedQuestion[], unknown, string][] = [
    ['own words in place of a choice', [choice], { q1: '', q1_other: ' MySQL ' }, 'Which database?\n  - in their own words: MySQL'],
    [
      'own words beside a choice',
      [choice],
      { q1: 'SQLite', q1_other: 'for now' },
      'Which database?\n  - SQLite\n  - in their own words: for now',
    ],
    ['several choices, each once', [several], { q1: ['macOS', 'Linux', 'macOS'].slice(0, 2) }, 'Which platforms?\n  - macOS\n  - Linux'],
    ['none of several', [several], { q1: [] }, 'Which platforms?\n  - (none of the choices)'],
    ['words', [open], { q1: 'ledger\nor books' }, 'What is the service called?\n  - ledger\nor books'],
    [
      'some of several questions',
      three,
      { q1: 'Postgres', q3: 'x', more: 1 },
      '1. Which database?\n  - Postgres\n2. Which platforms?\n  (no answer)\n3. What is the service called?\n  - x',
    ],
  ];
  for (const [what, questions, content, text] of cases) {
    t.strictSame(
      askOutcome(questions, accept(content)),
      { text: `The user answered:\n${text}`, isError: false, meta: { answered: true } },
      what,
    );
  }
  const cut = askOutcome([open], accept({ q1: 'x'.repeat(5000) }));
  t.match(cut.text, /x… \(cut: 5000 characters in all\)$/);
});

t.test('whatever does not fit is no answer', async (t) => {
  const bad: [string, readonly AskedQuestion[], unknown][] = [
    ['no object', [open], 'yes'],
    ['null', [open], null],
    ['a list', [open], ['x']],
    ['a choice that was not offered', [choice], { q1: 'MySQL' }],
    ['a number', [open], { q1: 7 }],
    ['a choice of another type', [choice], { q1: true }],
    ['a choice beside others that was not offered', [several], { q1: ['Linux', 'BSD'] }],
    ['more choices than there are', [several], { q1: ['Linux', 'Linux', 'Linux'] }],
    ['a list where one was asked for', [choice], { q1: ['Postgres', 'SQLite'] }],
    ['an inherited member', [choice], Object.create({ q1: 'MySQL' })],
  ];
  for (const [what, questions, content] of bad) {
    t.match(
      askOutcome(questions, accept(content)),
      { isError: true, code: what === 'an inherited member' ? 'ASK_DISMISSED' : 'ASK_INVALID_ANSWER' },
      what,
    );
  }
  for (const result of [
    undefined,
    null,
    'accept',
    {},
    { action: 'accept' },
    { action: 'allow', content: {} },
    [],
    { action: { accept: 1 } },
  ]) {
    t.match(askOutcome([open], { kind: 'result', result }), { isError: true, code: 'ASK_INVALID_ANSWER' }, JSON.stringify(result));
  }
  t.match(askOutcome([choice, open], accept({ q1: '', q2: '  ' })), { isError: true, code: 'ASK_DISMISSED' });
});

t.test('declined, closed, late, failed and withdrawn are told apart', async (t) => {
  const ends: [ClientAnswer, string | undefined, RegExp][] = [
    [{ kind: 'result', result: { action: 'decline' } }, undefined, /declines to answer/],
    [{ kind: 'result', result: { action: 'cancel' } }, 'ASK_DISMISSED', /closed the question/],
    [{ kind: 'timeout' }, 'ASK_TIMEOUT', /in time/],
    [{ kind: 'error', code: -32602, message: 'no forms' }, 'ASK_UNAVAILABLE', /could not be put.*end your turn/],
    [{ kind: 'unavailable' }, 'ASK_UNAVAILABLE', /could not be put/],
    [{ kind: 'withdrawn' }, 'ABORTED', /cancelled/],
  ];
  for (const [answer, code, text] of ends) {
    const outcome = askOutcome([open], answer);
    t.match(outcome, { isError: code !== undefined, text });
    t.equal(outcome.code, code);
  }
});

t.test('no answer of a client, whatever it is, breaks the tool or is taken for a choice that was not offered', async () => {
  fc.assert(
    fc.property(fc.anything(), (content) => {
      const { text, isError } = askOutcome([choice, several, open], accept(content));
      return isError ? !text.startsWith('The user answered') : text.startsWith('The user answered');
    }),
    { numRuns: 300 },
  );
});

t.test('a cancel takes the question back at once; the tool never asks twice, and never without a way', async (t) => {
  const { asked, withdrawn, context } = channel(new Promise<ClientAnswer>(() => undefined));
  const abort = new AbortController();
  const outcome = askUserTool.execute({ questions: [open] }, context(abort.signal));
  await new Promise((resolve) => setImmediate(resolve));
  abort.abort();
  t.match(await outcome, { isError: true, code: 'ABORTED' });
  t.same(withdrawn, [asked[0]?.requestKey]);
  t.match(await askUserTool.execute({ questions: [open] }, context(abort.signal)), { code: 'ABORTED' });
  t.equal(asked.length, 1);
  const nowhere = { callId: 'c', signal: never } as unknown as ToolContext;
  t.match(await askUserTool.execute({ questions: [open] }, nowhere), { code: 'ASK_UNAVAILABLE' });
  const broken = channel(Promise.reject(new Error('no port')));
  t.match(await askUserTool.execute({ questions: [open] }, broken.context(never)), { code: 'ASK_UNAVAILABLE' });
});

t.test('choices that look the same are not shown', async (t) => {
  const { asked, context } = channel(accept({}));
  const alike = { question: 'Which?', choices: [{ label: 'Yes' }, { label: 'yes\u200b' }] };
  t.match(await askUserTool.execute({ questions: [alike] }, context(never)), { code: 'INVALID_ARGS', text: /look the same/ });
  t.equal(asked.length, 0);
});

t.test('the tool is there where it was asked for, and takes only what it can show', async (t) => {
  t.equal(createToolRegistry().get('ask_user'), undefined);
  const registry = createToolRegistry([], { askUser: true });
  t.ok(registry.get('ask_user'));
  t.not(toolRegistryFor([], { askUser: true }).hash(), toolRegistryFor([]).hash());
  const parse = (args: object) => registry.parseArguments('ask_user', JSON.stringify(args));
  t.match(parse({ questions: [choice, several, open] }), { ok: true });
  for (const args of [
    {},
    { questions: [] },
    { questions: [open, open, open, open, open] },
    { questions: [{ question: '' }] },
    { questions: [{ question: 'x', choices: [{ label: 'one' }] }] },
  ]) {
    t.match(parse(args), { ok: false, code: 'INVALID_ARGS' }, JSON.stringify(args));
  }
});

t.test('the card shows the questions, then the answers', async (t) => {
  const args: AskUserArgs = { questions: [choice, open] };
  t.same(askUserTool.presentCall(args, { cwd: '/' }), {
    card: 'generic',
    title: 'Ask: Which database? (and 1 more)',
    kind: 'other',
    rawInput: {},
    content: ['Which database?\n- Postgres: What the others use.\n- SQLite', 'What is the service called?'],
  });
  const answered = askOutcome(args.questions, accept({ q1: 'SQLite' }));
  t.same(askUserTool.presentResult(args, answered, { cwd: '/' }), { card: 'generic', content: [answered.text] });
  const closed = askOutcome(args.questions, { kind: 'timeout' });
  t.match(askUserTool.presentResult(args, closed, { cwd: '/' }), { content: [/^Which database/, /^What is/, /in time/] });
});
