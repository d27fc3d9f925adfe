/**
 * A load shows what was shown live: whatever a session did, the client has the same messages, cards, plans and figures on its screen. How
 * a text was cut makes no difference, nor do drafts and running output, which a load does not repeat.
 *
 * First every kind of card by name, then sessions that do what a seed says. `REPLAY_SEED` plays those of one seed again.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import type { AnswerPlan } from '../support/answer-plan.ts';
import { ClientScreen, type ShownCard } from '../support/client-screen.ts';
import { ModelServer } from '../support/model-server.ts';
import { allowOnce, type Frame, projectRoot, type ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

t.setTimeout(60_000);

const choiceKinds = new Set(['current_mode_update', 'config_option_update']);
const servers = [
  { name: 'files', command: process.execPath, args: [join(projectRoot, 'build/test/support/mcp-server-main.js'), 'plain'], env: [] },
];

interface Said {
  readonly messageId: string;
  readonly content: unknown;
}

interface Seen {
  /** Messages, cards, plans, figures and titles, in order. */
  readonly view: unknown[];
  /** Where mode and options stand at the end. */
  readonly choices: Record<string, unknown>;
  /** What the person said: shown live only where it went into a running turn. */
  readonly said: Said[];
  /** Calls that the model did not finish: no load shows them. */
  readonly drafts: number;
}

/** What is on the screen of a client behind these updates. Notices are no history. */
function seen(updates: readonly any[]): Seen {
  const shown = updates.filter(({ sessionUpdate }) => !choiceKinds.has(sessionUpdate) && sessionUpdate !== 'notice');
  const said = shown.filter(({ sessionUpdate }) => sessionUpdate === 'user_message_chunk');
  const screen = new ClientScreen().takeAll(shown);
  const choices = Object.fromEntries(updates.flatMap((one) => (choiceKinds.has(one.sessionUpdate) ? [[one.sessionUpdate, one]] : [])));
  return {
    view: sorted(screen.view((id) => !isDraft(screen.card(id)))) as unknown[],
    choices,
    said: said.map(({ messageId, content }) => ({ messageId, content })),
    drafts: [...screen.cards.values()].filter(isDraft).length,
  };
}

/** A draft that never became a call is in no log: it was pending, ends as failed and says that nothing was run. */
function isDraft({ statuses, members }: ShownCard): boolean {
  const why = /"text":"(Discarded: |Not run: the turn ended while|The model did not finish this call)/;
  return statuses.join() === 'pending,failed' && why.test(JSON.stringify(members['content']));
}

/** With the members of every object in one order: which it is means nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}

/** Loads a closed session. @returns what the load shows before its answer */
async function loaded(server: ServerProcess, sessionId: string, cwd: string, mcpServers: readonly object[] = []): Promise<Seen> {
  const from = server.frames.length;
  const answer = await server.request('session/load', { sessionId, cwd, mcpServers });
  if (answer.error !== undefined) throw new Error(JSON.stringify(answer.error));
  const history = server.frames.slice(from, server.frames.indexOf(answer));
  const known = new Set(['available_commands_update']);
  const updates = history.flatMap(({ params }) => (params?.sessionId === sessionId && params.update !== undefined ? [params.update] : []));
  return seen(updates.filter(({ sessionUpdate }) => !known.has(sessionUpdate)));
}

/** Compares what was seen live with two loads. */
async function checkReplay(t: Test, server: ServerProcess, session: Session, name: string): Promise<void> {
  const { sessionId, prompts, injected } = session;
  const isInjected = ({ messageId }: Said): boolean => injected.includes(messageId);
  const blocks = (said: readonly Said[]): unknown => sorted(said.map(({ content }) => content));
  const live = seen(server.updates(sessionId).slice(session.from));
  const replayed = await again(server, session);
  t.strictSame(replayed.view, live.view, `${name}: messages, cards, plans and figures`);
  t.strictSame(blocks(replayed.said.filter((one) => !isInjected(one))), sorted(prompts), `${name}: every prompt, in order`);
  t.strictSame(replayed.said.filter(isInjected), live.said.filter(isInjected), `${name}: what was said into a turn, with its ids`);
  if (Object.keys(live.choices).length > 0) t.strictSame(replayed.choices, live.choices, `${name}: modes and options`);
  t.strictSame(await again(server, session), replayed, `${name}: a second load shows the same, ids included`);
}

interface Session {
  readonly sessionId: string;
  readonly cwd: string;
  readonly mcpServers: readonly object[];
  /** The blocks of all prompts that a load must show. */
  readonly prompts: unknown[];
  /** The ids of what went into a running turn. */
  readonly injected: string[];
  /** How many updates the client had when it last loaded the session: what it has on its screen begins there. */
  from?: number;
}

async function again(server: ServerProcess, { sessionId, cwd, mcpServers }: Session): Promise<Seen> {
  await server.request('session/close', { sessionId });
  return await loaded(server, sessionId, cwd, mcpServers);
}

const call = (name: string, args: object, id?: string) => ({ name, arguments: JSON.stringify(args), ...(id === undefined ? {} : { id }) });
const bash = (command: string, more: object = {}) => call('bash', { command, description: 'Run it', ...more });
const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(40, 7)]).toString('base64');
const todos = [
  { content: 'look', status: 'in_progress', priority: 'high' },
  { content: 'change', status: 'pending' },
];

/** A person with an editor. */
class Person {
  readonly prompts: unknown[] = [];
  readonly #server: ServerProcess;
  readonly #model: ModelServer;
  readonly sessionId: string;

  constructor(server: ServerProcess, model: ModelServer, sessionId: string) {
    this.#server = server;
    this.#model = model;
    this.sessionId = sessionId;
  }

  /** Sends a prompt that the model answers by these plans. */
  start(prompt: readonly object[], ...plans: AnswerPlan[]): number {
    this.#model.enqueue(...plans);
    this.prompts.push(...prompt);
    return this.#server.start('session/prompt', { sessionId: this.sessionId, prompt });
  }

  async say(text: string, ...plans: AnswerPlan[]): Promise<Frame> {
    return await this.#server.response(this.start([{ type: 'text', text }], ...plans));
  }

  async sees(what: string, fits: (update: any) => boolean): Promise<void> {
    await this.#server.next(({ params }) => params?.sessionId === this.sessionId && fits(params.update ?? {}), what);
  }
}

function answerAll(frame: Frame, server: ServerProcess): unknown {
  const { id, method, params } = frame;
  if (method === 'elicitation/create') return { action: 'accept', content: { q1: 'blue' } };
  if (method === 'fs/read_text_file') {
    if (existsSync(params.path)) return { content: readFileSync(params.path, 'utf8') };
    server.send({ jsonrpc: '2.0', id, error: { code: -32002, message: 'Resource not found' } });
    return undefined;
  }
  if (method === 'fs/write_text_file') {
    mkdirSync(dirname(params.path), { recursive: true });
    writeFileSync(params.path, params.content);
    return {};
  }
  return /refused/.test(JSON.stringify(params.toolCall)) ? { outcome: { outcome: 'selected', optionId: 'reject_once' } } : allowOnce(frame);
}

const everything = { _meta: { terminal_output: true }, elicitation: { form: {} }, fs: { readTextFile: true, writeTextFile: true } };

for (const [client, capabilities] of [
  ['a client with terminals, forms and files', everything],
  ['a client that has nothing', {}],
] as const) {
  await t.test(`every kind of card, for ${client}`, async (t) => {
    const model = await ModelServer.start();
    t.teardown(() => model.close());
    const args = [
      '--base-url',
      model.baseUrl,
      '--model',
      'bench',
      '--model-images',
      'on',
      '--context-window',
      '200000',
      '--max-retries',
      '1',
    ];
    const server: ServerProcess = await startServer(t, { args, initialize: capabilities, onRequest: (frame) => answerAll(frame, server) });
    const cwd = realpathSync(t.testdir({ 'a.txt': 'alpha\nbeta\n', 'b.txt': 'more\n' }));
    const { result } = await server.request('session/new', { cwd, mcpServers: servers });
    const person = new Person(server, model, result.sessionId);
    const ends = async (answer: Promise<Frame>, end: unknown): Promise<void> => {
      const { result, error } = await answer;
      t.equal(result?.stopReason ?? error?.code, end, JSON.stringify(error ?? ''));
    };

    const image = { type: 'image', data: png, mimeType: 'image/png' };
    const link = { type: 'resource_link', name: 'b.txt', uri: `file://${cwd}/b.txt` };
    const looking = person.start(
      [{ type: 'text', text: 'Look at this' }, image, link],
      { reasoning: 5, tokens: 5, tools: [call('todo_write', { todos })] },
      { tools: [call('read', { file_path: 'a.txt' }), call('grep', { pattern: 'alpha' }), call('glob', { pattern: '*.txt' })] },
      { tools: [call('edit', { file_path: 'a.txt', old_string: 'alpha', new_string: 'gamma' })], toolDelayMs: 20 },
      { tools: [call('write', { file_path: 'made/new.txt', content: 'made\n' }), call('read', { file_path: 'nowhere.txt' })] },
      { tools: [bash('echo out; echo err >&2; exit 3'), bash('kill -9 $$')], toolDelayMs: 20 },
      { tools: [call('mcp__files__echo', { text: 'hi' }), call('nothing', {}), { name: 'read', arguments: '{"file_' }] },
      { text: ['Look', 'ed.'] },
    );
    await ends(server.response(looking), 'end_turn');
    const child = JSON.stringify({ plans: [{ reasoning: 2, tools: [bash('echo child')] }, { text: ['The child says hi.'] }] });
    const delegate = call('subagent', { description: 'Ask the child', prompt: child, agent: 'self' });
    await ends(person.say(JSON.stringify({ plans: [{ tools: [delegate] }, { text: ['Delegated.'] }] })), 'end_turn');
    await ends(person.say('refused', { tools: [bash('echo refused')] }, { text: ['Well.'] }), 'end_turn');
    const background = [
      { tools: [bash('echo ready; sleep 30', { run_in_background: true })] },
      { tools: [call('bash_output', { task_id: 'bash-1' })] },
    ];
    await ends(person.say('background', ...background, { tools: [call('bash_kill', { task_id: 'bash-1' })] }, { tokens: 2 }), 'end_turn');
    if (capabilities === everything) {
      const questions = [{ question: 'Which colour?', choices: [{ label: 'red' }, { label: 'blue' }] }];
      await ends(person.say('ask me', { tools: [call('ask_user', { questions })] }, { text: ['Blue.'] }), 'end_turn');
    }

    const running = person.start([{ type: 'text', text: 'cancel a command' }], {
      tokens: 3,
      tools: [bash('echo begun; sleep 30'), bash('echo never')],
    });
    await person.sees('the command', ({ status }) => status === 'in_progress');
    server.notify('session/cancel', { sessionId: person.sessionId });
    await ends(server.response(running), 'cancelled');
    const streaming = person.start([{ type: 'text', text: 'cancel a text' }], { tokens: 100_000, delayMs: 1 });
    await person.sees('text', ({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk');
    server.notify('session/cancel', { sessionId: person.sessionId });
    await ends(server.response(streaming), 'cancelled');

    const writing = person.start([{ type: 'text', text: 'cancel a call' }], { tools: [bash(`echo ${'x'.repeat(200)}`)], toolDelayMs: 20 });
    await person.sees('the call', ({ sessionUpdate }) => sessionUpdate === 'tool_call');
    server.notify('session/cancel', { sessionId: person.sessionId });
    await ends(server.response(writing), 'cancelled');

    const cut: AnswerPlan = { tokens: 9, fault: { kind: 'cut', after: 4 } };
    await ends(person.say('broken once', cut, { tokens: 3 }), 'end_turn');
    await ends(person.say('broken twice', cut, cut), -32603);
    const cutCall: AnswerPlan = {
      tools: [call('bash', { command: `echo ${'x'.repeat(100)}` })],
      toolDelayMs: 20,
      fault: { kind: 'cut-tools', after: 9 },
    };
    await ends(person.say('broken in a call', cutCall, { tokens: 1 }), 'end_turn');
    await ends(person.say('refuse', { fault: { kind: 'status', status: 400 } }), -32603);
    await ends(person.say('cut off', { tokens: 4, finish: 'length' }), 'max_tokens');

    const long = person.start([{ type: 'text', text: 'take your time' }], { tokens: 200, delayMs: 2 }, { text: ['Blue it is.'] });
    await person.sees('text', ({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk');
    const steer = { sessionId: person.sessionId, prompt: [{ type: 'text', text: 'steered: in blue' }], messageId: 'my-1' };
    t.match((await server.request('_session/steer', steer)).result, { outcome: 'injected' });
    await ends(server.response(long), 'end_turn');

    await server.request('session/set_mode', { sessionId: person.sessionId, modeId: 'plan' });
    const plan = call('exit_plan_mode', { plan: '# The plan\n\n1. Change it' });
    const change = call('edit', { file_path: 'b.txt', old_string: 'more', new_string: 'less' });
    await ends(
      person.say(
        'plan it',
        { tools: [change] },
        { tools: [plan] },
        { tools: [call('read', { file_path: 'b.txt' })] },
        { tools: [change] },
        {},
      ),
      'end_turn',
    );
    for (const command of ['/undo', '/redo', '/cost', '/mode accept-edits', '/help']) await ends(person.say(command), 'end_turn');
    await ends(person.say('/compact', { text: ['They talked a lot.'] }), 'end_turn');
    await ends(person.say('and on', { text: ['On.'] }), 'end_turn');

    const session = { sessionId: person.sessionId, cwd, mcpServers: servers, prompts: person.prompts, injected: ['my-1'] };
    const kinds = new Set(server.updates(person.sessionId).map(({ kind }) => kind));
    for (const kind of ['read', 'search', 'edit', 'execute', 'think', 'switch_mode', 'other'])
      t.ok(kinds.has(kind), `a card of kind ${kind}`);
    t.equal(
      seen(server.updates(person.sessionId)).drafts,
      2,
      'what no load shows: the call that was cut off, and the one that was cancelled',
    );
    await checkReplay(t, server, session, 'every kind');
    const first = await again(server, session);
    await endServer(t, server);

    const later = await startServer(t, { args: [...args, '--isolation', 'shared'], stateDir: server.stateDir, initialize: capabilities });
    t.strictSame(await loaded(later, person.sessionId, cwd, []), first, 'a later server shows the same');
    await endServer(t, later);
  });
}

/** Mulberry32: the same numbers for the same seed. */
function generator(seed: number): <T>(choices: readonly T[]) => T {
  let state = seed;
  return (choices) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return choices[((mixed ^ (mixed >>> 14)) >>> 0) % choices.length]!;
  };
}

const commands = [
  'think about it',
  'say some words',
  'repeat 40 word',
  'read a.txt',
  'read a.txt from 2 to 3',
  'read nowhere.txt',
  '& read b.txt',
  '& grep alpha',
  'glob *.txt',
  'run echo out; echo err >&2',
  'run exit 3',
  'run echo refused',
  'bg echo ready; sleep 20',
  'output last',
  'kill last',
  'edit a.txt /alpha/gamma/',
  'edit a.txt /gamma/alpha/',
  'write b.txt <<EOF\nnew\nEOF',
  'write .git/config <<EOF\nx\nEOF',
  'todo *look; change',
  'todo x look; x change',
  'delegate self say hi',
  'delegate self <<EOF\nread a.txt\nrun echo child\nsay done\nEOF',
  'fail TRANSPORT 1',
  'fail INVALID_REQUEST',
  'no command at all',
];
const acts = [
  'prompt',
  'prompt',
  'prompt',
  'prompt',
  'cancel',
  'cancel',
  'steer',
  '/undo',
  '/redo',
  '/cost',
  '/undo 2',
  'mode',
  'load',
] as const;
const modes = ['ask', 'accept-edits', 'full-access', 'plan', 'read-only'];

/** One thing that a person does, and waits for. */
async function act(server: ServerProcess, session: Session, pick: <T>(choices: readonly T[]) => T, did: string[]): Promise<void> {
  const { sessionId, cwd, prompts, injected } = session;
  const what = pick(acts);
  const begin = (text: string): number => {
    did.push(text);
    prompts.push({ type: 'text', text });
    return server.startPrompt(sessionId, text);
  };
  const script = (): string => Array.from({ length: 1 + pick([0, 1, 2, 3, 4]) }, () => pick(commands)).join('\n');
  const ofTurn = (update: any): boolean => update !== undefined && update.sessionUpdate !== 'available_commands_update';
  const isSeen = ({ params }: Frame): boolean => params?.sessionId === sessionId && ofTurn(params.update);
  switch (what) {
    case 'prompt':
      await server.response(begin(script()));
      break;
    case 'cancel': {
      const updated = server.next(isSeen, 'something of the turn');
      const id = begin(`${pick(['say begun', 'think begun', 'read a.txt'])}\n${pick(['wait 20000', 'run sleep 20', 'repeat 20000 word'])}`);
      await updated;
      did.push('cancel');
      server.notify('session/cancel', { sessionId });
      await server.response(id);
      break;
    }
    case 'steer': {
      const updated = server.next(isSeen, 'something of the turn');
      const id = begin('say begun\nrun sleep 0.1\nrepeat 50 word');
      await updated;
      const prompt = [{ type: 'text', text: `steered: ${did.length}` }];
      const { result } = await server.request('_session/steer', { sessionId, prompt, messageId: `steer-${did.length}` });
      did.push(`steer ${result?.outcome}`);
      // Where no turn ran it began one, as a prompt does.
      if (result?.outcome === 'injected') injected.push(result.messageId);
      else prompts.push(...prompt);
      await server.response(id);
      // Where the turn had no step left for it, it is said at the beginning of the next one.
      await server.response(begin('say next'));
      break;
    }
    case 'mode': {
      const modeId = pick(modes);
      did.push(`mode ${modeId}`);
      await server.request('session/set_mode', { sessionId, modeId });
      break;
    }
    case 'load':
      did.push('load');
      await server.request('session/close', { sessionId });
      session.from = server.updates(sessionId).length;
      await server.request('session/load', { sessionId, cwd, mcpServers: [] });
      break;
    case '/undo':
    case '/undo 2':
    case '/redo':
    case '/cost':
      await server.response(begin(what));
      break;
    default:
      what satisfies never;
  }
}

await t.test('whatever a seed makes sessions do', async (t) => {
  const seed = Number(process.env['REPLAY_SEED'] ?? 227617);
  t.comment(`REPLAY_SEED=${seed}`);
  const args = ['--model', 'scripted', '--pace-ms', '0', '--max-retries', '1', '--isolation', 'shared'];
  const server = await startServer(t, {
    args,
    // With notices: to a client without them a warning is said as a message, and no load says it again.
    initialize: { ...(seed % 2 === 0 ? everything : {}), session: { notices: {} } },
    onRequest: (frame) => answerAll(frame, server),
  });
  const files = () => ({ 'a.txt': 'alpha\nbeta\ndelta\n', 'b.txt': 'more\n' });
  const dir = realpathSync(t.testdir({ 0: files(), 1: files(), 2: files(), 3: files() }));
  await Promise.all(
    [0, 1, 2, 3].map(async (index) => {
      const pick = generator(seed + index);
      const cwd = join(dir, String(index));
      const sessionId = await server.newSession(cwd);
      const did: string[] = [];
      const session: Session = { sessionId, cwd, mcpServers: [], prompts: [], injected: [] };
      for (let round = 0; round < 8; round += 1) await act(server, session, pick, did);
      t.comment(JSON.stringify({ index, did }));
      await checkReplay(t, server, session, `seed ${seed}, session ${index}`);
    }),
  );
  await endServer(t, server);
});
