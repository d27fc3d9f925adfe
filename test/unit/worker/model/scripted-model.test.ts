/**
 * The scripted model and the pure pieces behind it: its command language, its place in a script, and what it says about itself.
 */
import t from 'tap';
import { type ModelEvent, ModelFailure, type ModelFinish, type ModelMessage } from '../../../../src/worker/model/model-adapter.ts';
import { parseScript } from '../../../../src/worker/model/script-plan.ts';
import { fittingArgs } from '../../../../src/worker/model/scripted-delegation.ts';
import { parseCommand } from '../../../../src/worker/model/scripted-command.ts';
import { ScriptedModel } from '../../../../src/worker/model/scripted-model.ts';

interface Answer extends ModelFinish {
  readonly text: string;
  readonly reasoning: string;
  readonly events: readonly ModelEvent[];
}

interface AskOptions {
  readonly signal?: AbortSignal;
  readonly whenWritable?: () => Promise<void> | undefined;
  readonly maxOutputTokens?: number;
  readonly onEvent?: () => void;
}

async function ask(model: ScriptedModel, messages: readonly ModelMessage[], options: AskOptions = {}): Promise<Answer> {
  const events: ModelEvent[] = [];
  const finish = await model.stream(
    { system: 'x', messages, tools: [], ...(options.maxOutputTokens === undefined ? {} : { maxOutputTokens: options.maxOutputTokens }) },
    (event) => {
      events.push(event);
      options.onEvent?.();
    },
    { signal: options.signal ?? new AbortController().signal, whenWritable: options.whenWritable ?? (() => undefined) },
  );
  const join = (type: string): string => events.map((event) => (event.type === type && 'text' in event ? event.text : '')).join('');
  return { ...finish, text: join('text'), reasoning: join('reasoning'), events };
}

const user = (text: string): ModelMessage => ({ role: 'user', text });

/** Plays a script to its end, as the agent would, each tool answering `result of NAME`. */
async function play(script: string, before: readonly ModelMessage[] = []): Promise<{ answers: Answer[]; messages: ModelMessage[] }> {
  const model = new ScriptedModel(0);
  const messages: ModelMessage[] = [...before, user(script)];
  const answers: Answer[] = [];
  for (let step = 0; step < 50; step += 1) {
    const answer = await ask(model, messages);
    answers.push(answer);
    messages.push({ role: 'assistant', text: answer.text, reasoning: answer.reasoning, toolCalls: answer.toolCalls });
    for (const call of answer.toolCalls) {
      const text = call.arguments.includes('run_in_background') ? 'Started task bash-7.' : `result of ${call.name}`;
      messages.push({ role: 'tool', callId: call.callId, text });
    }
    if (answer.reason !== 'tool-calls') return { answers, messages };
  }
  throw new Error('the script does not end');
}

const callsOf = (answers: readonly Answer[]): unknown[][] =>
  answers.map((answer) => answer.toolCalls.map((call) => [call.name, JSON.parse(call.arguments)]));

t.test('every command becomes the call that it names', async (t) => {
  const cases: readonly (readonly [string, string, object])[] = [
    ['read a.txt', 'read', { file_path: 'a.txt' }],
    ['read "a b.txt" from 3 to 10', 'read', { file_path: 'a b.txt', offset: 3, limit: 8 }],
    ['read a.txt from 3', 'read', { file_path: 'a.txt', offset: 3 }],
    ['grep foo', 'grep', { pattern: 'foo' }],
    ['grep in in in src', 'grep', { pattern: 'in in', path: 'src' }],
    ['grep "a b" in *.ts', 'grep', { pattern: 'a b', include: '*.ts' }],
    ['glob **/*.ts', 'glob', { pattern: '**/*.ts' }],
    ['glob *.ts in src', 'glob', { pattern: '*.ts', path: 'src' }],
    ['run echo hi && ls', 'bash', { command: 'echo hi && ls', description: 'Run echo hi && ls' }],
    ['bg sleep 9', 'bash', { command: 'sleep 9', description: 'Start sleep 9', run_in_background: true }],
    ['output bash-1', 'bash_output', { task_id: 'bash-1' }],
    ['kill bash-1', 'bash_kill', { task_id: 'bash-1' }],
    ['write a.txt <<EOF\none\n\n  two\nEOF', 'write', { file_path: 'a.txt', content: 'one\n\n  two\n' }],
    ['write a.txt <<END\nEND', 'write', { file_path: 'a.txt', content: '' }],
    ['edit a.txt /old/new/', 'edit', { file_path: 'a.txt', old_string: 'old', new_string: 'new' }],
    ['edit a.txt |a/b|c\\nd\\|e|g', 'edit', { file_path: 'a.txt', old_string: 'a/b', new_string: 'c\nd|e', replace_all: true }],
    ['edit a.txt /gone//', 'edit', { file_path: 'a.txt', old_string: 'gone', new_string: '' }],
    [
      'todo x a; *b; c',
      'todo_write',
      {
        todos: [
          { content: 'a', status: 'completed' },
          { content: 'b', status: 'in_progress' },
          { content: 'c', status: 'pending' },
        ],
      },
    ],
  ];
  for (const [text, name, args] of cases) t.same(parseScript(text), [{ kind: 'tool', name, args, parallel: false }], text);
});

t.test('what only looks like a command is none', async (t) => {
  for (const line of [
    'read the README and tell me about it',
    'Read a.txt',
    'write me a poem',
    'write a.txt <<EOF',
    'edit a.txt',
    'edit a.txt /old/new',
    'edit a.txt //new/',
    'edit a.txt /a/b/c/',
    'read a from 5 to 2',
    'read a from 0',
    'run',
    'todo',
    'todo *',
    'wait long',
    'repeat 99999999 x',
    'output a b',
    'constructor x',
    'fail nothing',
    'What is this?',
  ]) {
    t.equal(parseCommand(line).kind, 'unknown', line);
  }
});

t.test('a script runs step by step, parallel lines in one step, and ends with counts', async (t) => {
  const { answers, messages } = await play('think looking around\nread a.txt\n& grep x in src\nsay now writing\nrun ls\nsay bye');
  t.same(callsOf(answers), [
    [
      ['read', { file_path: 'a.txt' }],
      ['grep', { pattern: 'x', path: 'src' }],
    ],
    [['bash', { command: 'ls', description: 'Run ls' }]],
    [],
  ]);
  t.match(answers[0], { reason: 'tool-calls', reasoning: 'looking around\n' });
  t.equal(answers[1]?.text, 'now writing\n');
  t.match(answers[2]?.text, /^bye\n.*read 1, grep 1, bash 1.*Results: 3, 42 characters/s);
  t.equal(answers[2]?.reason, 'stop');
  const ids = messages.flatMap((message) => (message.role === 'assistant' ? message.toolCalls.map((call) => call.callId) : []));
  t.equal(new Set(ids).size, 3, 'ids are unique');
  t.same(
    answers[0]?.events.filter((event) => event.type === 'tool-call-start').map((event) => event.name),
    ['read', 'grep'],
  );
});

t.test('it says what it is in its first answer only, and when it does not understand', async (t) => {
  const { answers, messages } = await play('Please fix the bug');
  t.match(answers[0]?.text, /^\[scripted demo model.*\]\n/);
  t.match(answers[0]?.text, /DEEPSEEK_API_KEY/);
  t.match(answers[0]?.text, /read FILE/);
  const second = await play('say hi', messages);
  t.equal(second.answers[0]?.text, 'hi\n');
  const mixed = await play('make it nice\nread a.txt', messages);
  t.match(mixed.answers[0]?.text, /do not understand this line: make it nice/);
  t.same(callsOf(mixed.answers)[0], [['read', { file_path: 'a.txt' }]]);
});

t.test('its place comes from the history alone', async (t) => {
  const call = (callId: string): ModelMessage => ({
    role: 'assistant',
    text: '',
    reasoning: '',
    toolCalls: [{ callId, name: 'read', arguments: '{}' }],
  });
  const result = (callId: string, text = 'x'): ModelMessage => ({ role: 'tool', callId, text });
  const started = [user('read a\nread b\nread c'), call('1'), result('1')];
  const next = async (messages: readonly ModelMessage[]): Promise<unknown> => callsOf([await ask(new ScriptedModel(0), messages)])[0];
  t.same(await next(started), [['read', { file_path: 'b' }]], 'a fresh adapter goes on');
  t.same(await next([...started, user('[background command bash-1 ended]')]), [['read', { file_path: 'b' }]], 'a notice changes nothing');
  t.same(await next([...started, user('glob *')]), [['glob', { pattern: '*' }]], 'new commands replace the script');
  t.same(await next([...started, user('please stop')]), [], 'other words end it');
  t.same(await next([...started, { role: 'assistant', text: 'done', reasoning: '', toolCalls: [] }, user('read z')]), [
    ['read', { file_path: 'z' }],
  ]);
  t.same(await next([user('read a\n\n[notes](file:///x)')]), [['read', { file_path: 'a' }]], 'a link is no command');
  const help = (await ask(new ScriptedModel(0), [user('what can you do?')])).text;
  t.equal(parseScript(help).filter((command) => command.kind !== 'unknown').length, 0, 'its own explanation is no script');
  t.same(await next([user(`[Summary]\n\n${help}`), user('read a')]), [['read', { file_path: 'a' }]], 'nor is a summary above the prompt');
});

t.test('delegate, collect and stop call the subagent tools; the newest job is meant where none is named', async (t) => {
  const subagent = (args: object) => ({ kind: 'tool', name: 'subagent', parallel: false, args });
  t.match(parseCommand('delegate self read a.txt'), subagent({ prompt: 'read a.txt', agent: 'self', description: 'Delegate read a.txt' }));
  t.match(parseCommand('delegate & self say hi'), subagent({ prompt: 'say hi', agent: 'self', run_in_background: true }));
  t.match(parseCommand('& delegate self say hi'), { name: 'subagent', parallel: true });
  t.match(parseCommand('delegate self', 'read a\nsay b\n'), subagent({ prompt: 'read a\nsay b' }));
  t.match(parseCommand('collect agent-2 500'), { name: 'subagent_output', args: { job_id: 'agent-2', wait_ms: 500 } });
  t.match(parseCommand('collect'), { kind: 'last-task', name: 'subagent_output', args: { wait_ms: 60_000 } });
  t.match(parseCommand('stop agent-2'), { name: 'subagent_kill', args: { job_id: 'agent-2' } });
  for (const line of ['delegate self', 'delegate', 'delegate Who am I', 'collect the results', 'stop it now']) {
    t.equal(parseCommand(line).kind, 'unknown', line);
  }
  const messages: ModelMessage[] = [user('delegate & self say hi\ncollect 5\nstop')];
  const model = new ScriptedModel(0);
  const calls: unknown[] = [];
  for (let step = 0; step < 3; step += 1) {
    const { toolCalls } = await ask(model, messages);
    messages.push({ role: 'assistant', text: '', reasoning: '', toolCalls });
    for (const call of toolCalls) {
      calls.push([call.name, JSON.parse(call.arguments)]);
      messages.push({ role: 'tool', callId: call.callId, text: step === 0 ? 'started background subagent job agent-7' : 'result' });
    }
  }
  t.match(calls, [
    ['subagent', { run_in_background: true }],
    ['subagent_output', { job_id: 'agent-7', wait_ms: 5 }],
    ['subagent_kill', { job_id: 'agent-7' }],
  ]);
});

t.test('the agent is named only where the tool lets one choose', async (t) => {
  const argsWith = (parameters: object) => {
    return fittingArgs('subagent', { prompt: 'x', agent: 'self' }, [{ name: 'subagent', description: '', parameters }]);
  };
  t.same(argsWith({ properties: { prompt: {} } }), { prompt: 'x' });
  t.same(argsWith({ properties: { prompt: {}, agent: { enum: ['self', 'other'] } } }), { prompt: 'x', agent: 'self' });
});

t.test('`last` is the newest background command, and its absence is said', async (t) => {
  const { answers } = await play('bg sleep 5\noutput last\nkill last');
  t.same(callsOf(answers).slice(1, 3), [[['bash_output', { task_id: 'bash-7' }]], [['bash_kill', { task_id: 'bash-7' }]]]);
  const none = await play('output last');
  t.match(none.answers[0]?.text, /no background command/);
  t.equal(none.answers.length, 1);
});

t.test('repeat sends each word as one delta, and an output cap cuts it', async (t) => {
  const { answers } = await play('repeat 500 a b');
  t.equal(answers[0]?.events.filter((event) => event.type === 'text').length, 501, 'the notice and the words');
  t.equal(answers[0]?.usage?.outputTokens, Math.ceil((answers[0]?.text.length ?? 0) / 4));
  const cut = await ask(new ScriptedModel(0), [user('repeat 500 abc\nread a')], { maxOutputTokens: 40 });
  t.equal(cut.reason, 'length');
  t.same(cut.toolCalls, []);
  t.ok(cut.text.length < 200);
});

t.test('it yields to the event loop and waits for room', async (t) => {
  let turns = 0;
  const immediate = (): void => {
    turns += 1;
    if (turns < 1000) setImmediate(immediate);
  };
  setImmediate(immediate);
  let asked = 0;
  const whenWritable = (): Promise<void> => {
    asked += 1;
    return new Promise((resolve) => setImmediate(resolve));
  };
  await ask(new ScriptedModel(0), [user('repeat 6400 x')], { whenWritable });
  t.ok(asked >= 100, `${asked}`);
  t.ok(turns >= 100, `${turns}`);
});

t.test('abort ends it at once', async (t) => {
  t.equal(await codeOf(ask(new ScriptedModel(0), [user('say x')], { signal: AbortSignal.abort() })), 'ABORTED');
  for (const [script, pace] of [
    ['wait 60000', 0],
    ['say a b c d e', 60_000],
    ['repeat 1000000 x', 0],
  ] as const) {
    const controller = new AbortController();
    const started = performance.now();
    setTimeout(() => controller.abort(), 20);
    t.equal(await codeOf(ask(new ScriptedModel(pace), [user(script)], { signal: controller.signal })), 'ABORTED', script);
    t.ok(performance.now() - started < 10_000);
  }
});

t.test('pace spreads the words', async (t) => {
  const started = performance.now();
  await ask(new ScriptedModel(5), [user('say a b c d e f g h i j')]);
  t.ok(performance.now() - started >= 45);
});

t.test('fail simulates a failure, for ever or so many times', async (t) => {
  for (const code of ['RATE_LIMIT', 'AUTH', 'STREAM_CLOSED'])
    t.equal(await codeOf(ask(new ScriptedModel(0), [user(`fail ${code}`)])), code);
  t.equal(await codeOf(ask(new ScriptedModel(0), [user('fail NONSENSE')])), 'INVALID_REQUEST');
  const model = new ScriptedModel(0);
  const messages = [user('fail SERVER 2\nread a')];
  t.equal(await codeOf(ask(model, messages)), 'SERVER');
  t.equal(await codeOf(ask(model, messages)), 'SERVER');
  t.equal(await codeOf(ask(model, messages)), 'tool-calls');
});

async function codeOf(answer: Promise<Answer>): Promise<string> {
  try {
    return (await answer).reason;
  } catch (error) {
    return error instanceof ModelFailure ? error.code : String(error);
  }
}
