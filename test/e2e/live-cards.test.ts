/**
 * What a client of the assembled server sees while things happen: calls as the model writes them, output while a command runs,
 * and no card that is left open, in whichever way a turn ends.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { AnswerPlan } from '../support/answer-plan.ts';
import { ClientScreen } from '../support/client-screen.ts';
import { ModelServer } from '../support/model-server.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

t.setTimeout(60_000);

const terminals = { _meta: { terminal_output: true } };

/** The screen of a session as its client has it now. */
const screenOf = (server: ServerProcess, sessionId: string): ClientScreen => new ClientScreen().takeAll(server.updates(sessionId));

/** The next update of a session that fits. */
function nextUpdate(server: ServerProcess, sessionId: string, what: string, fits: (update: any) => boolean): Promise<unknown> {
  return server.next((frame) => frame.params?.sessionId === sessionId && fits(frame.params.update ?? {}), what);
}

const isCall = (update: any): boolean => update.sessionUpdate === 'tool_call';
const isRunning = (update: any): boolean => update.status === 'in_progress';
const shows =
  (text: string) =>
  (update: any): boolean =>
    JSON.stringify(update).includes(text);

async function rig(t: Test, args: readonly string[] = [], capabilities: object = terminals) {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const server = await startServer(t, {
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--permission-mode', 'full-access', ...args],
    initialize: capabilities,
  });
  const dir = t.testdir();
  const prompt = (sessionId: string, ...plans: AnswerPlan[]): number => {
    model.enqueue(...plans);
    return server.startPrompt(sessionId, 'go');
  };
  return { model, server, dir, prompt };
}

const slowCall = (name: string, args: object): AnswerPlan => ({
  tools: [{ id: 'call-1', name, arguments: JSON.stringify(args) }],
  toolDelayMs: 20,
});

/** The cards of a loaded session are those that were seen live. */
async function checkReplay(t: Test, server: ServerProcess, sessionId: string, cwd: string): Promise<void> {
  const cards = (screen: ClientScreen): unknown =>
    [...screen.cards.values()].map(({ members: { title, kind, content, locations, rawInput }, ...rest }) => ({
      ...rest,
      members: { title, kind, content, locations, rawInput },
    }));
  const live = cards(screenOf(server, sessionId));
  const before = server.updates(sessionId).length;
  await server.request('session/close', { sessionId });
  t.ok((await server.request('session/load', { sessionId, cwd, mcpServers: [] })).result);
  t.strictSame(cards(new ClientScreen().takeAll(server.updates(sessionId).slice(before))), live);
}

t.test('a call is on the screen while the model still writes it; its output while it runs; a load shows the same', async (t) => {
  const { server, dir, prompt } = await rig(t);
  const session = await server.newSession(dir);
  const command = 'echo begun; while [ ! -e go ]; do sleep 0.02; done; echo ended >&2; exit 3';
  const asked = prompt(session, slowCall('bash', { command, description: 'Wait for a file' }), { tokens: 1 });
  await nextUpdate(server, session, 'the announced call', isCall);
  t.match(screenOf(server, session).card('call-1'), { status: 'pending', terminal: undefined, members: { kind: 'execute' } });
  await nextUpdate(server, session, 'more of the command', shows('echo begun'));
  await nextUpdate(server, session, 'running output', (update) => update._meta?.terminal_output !== undefined);
  const running = screenOf(server, session).card('call-1');
  t.match(running, { status: 'in_progress', terminal: { output: 'begun\n', exits: [] } });
  writeFileSync(join(dir, 'go'), '');
  t.equal((await server.response(asked)).result?.stopReason, 'end_turn');
  t.match(screenOf(server, session).card('call-1'), {
    status: 'completed',
    members: {
      title: /^echo begun; while/,
      content: [{ content: { text: 'Wait for a file' } }, { type: 'terminal' }],
    },
    terminal: { output: 'begun\nended\n', exits: [{ exit_code: 3, signal: null }] },
  });
  await checkReplay(t, server, session, dir);
  await endServer(t, server);
});

t.test('a client without terminals sees the draft, the running output as text, and the whole of it at the end', async (t) => {
  const { server, dir, prompt } = await rig(t, [], {});
  const session = await server.newSession(dir);
  const command = 'echo begun; while [ ! -e go ]; do sleep 0.02; done; echo ended';
  const asked = prompt(session, slowCall('bash', { command, description: 'Wait for a file' }), { tokens: 1 });
  await nextUpdate(server, session, 'running text', (update) => update.content !== undefined && shows('console')(update));
  writeFileSync(join(dir, 'go'), '');
  t.equal((await server.response(asked)).result?.stopReason, 'end_turn');
  const card = screenOf(server, session).card('call-1');
  t.strictSame(card.members['content'], [{ type: 'content', content: { type: 'text', text: '```console\nbegun\nended\n```' } }]);
  t.notOk(server.updates(session).some((update) => update._meta?.terminal_info ?? update._meta?.terminal_output));
  t.equal(server.updates(session).filter(isCall).length, 1);
  await endServer(t, server);
});

t.test('in whichever way a turn ends, each announced call has its end before the answer', async (t) => {
  const { model, server, dir, prompt } = await rig(t, ['--max-retries', '1', '--max-tool-calls', '4']);
  const long = { command: `sleep 30 # ${'x'.repeat(120)}`, description: 'd' };
  const running = { command: 'sleep 30', description: 'd' };
  const quick = (name: string, args: object, id = 'q'): AnswerPlan => ({ tools: [{ id, name, arguments: JSON.stringify(args) }] });
  const cut = (plan: AnswerPlan): AnswerPlan => ({ ...plan, finish: 'length' });
  const broken: AnswerPlan = { ...slowCall('bash', long), fault: { kind: 'cut-tools', after: 10 } };
  const many = Array.from({ length: 6 }, (_, index) => ({ id: `m${index}`, name: 'glob', arguments: '{"pattern":"*"}' }));
  const cases: { name: string; plans: AnswerPlan[]; until?: (update: any) => boolean; act?: 'cancel' | 'close'; end: unknown }[] = [
    { name: 'it completes', plans: [quick('glob', { pattern: '*' }), { tokens: 1 }], end: 'end_turn' },
    { name: 'the answer is cut', plans: [cut(slowCall('bash', long))], end: 'max_tokens' },
    {
      name: 'the model refuses behind a call',
      plans: [{ ...slowCall('read', { file_path: 'x'.repeat(150) }), finish: 'content_filter' }],
      end: 'refusal',
    },
    { name: 'a cancel while the call is written', plans: [slowCall('bash', long)], until: isCall, act: 'cancel', end: 'cancelled' },
    { name: 'a cancel while it runs', plans: [quick('bash', running)], until: isRunning, act: 'cancel', end: 'cancelled' },
    { name: 'a close while the call is written', plans: [slowCall('bash', long)], until: isCall, act: 'close', end: 'cancelled' },
    { name: 'a close while it runs', plans: [quick('bash', running)], until: isRunning, act: 'close', end: 'cancelled' },
    { name: 'the stream breaks twice', plans: [broken, broken], end: -32603 },
    { name: 'the stream breaks once', plans: [broken, quick('glob', { pattern: '*' }, 'call-1'), { tokens: 1 }], end: 'end_turn' },
    { name: 'a budget ends it', plans: [{ tools: many }, { tokens: 1 }], end: 'max_turn_requests' },
    {
      name: 'the call is not understood',
      plans: [{ tools: [{ id: 'n', name: 'nothing', arguments: '{"a' }] }, { tokens: 1 }],
      end: 'end_turn',
    },
  ];
  for (const { name, plans, until, act, end } of cases) {
    const session = await server.newSession(dir);
    model.reset();
    const asked = prompt(session, ...plans);
    if (until !== undefined) await nextUpdate(server, session, name, until);
    if (act === 'cancel') server.notify('session/cancel', { sessionId: session });
    const closed = act === 'close' ? server.request('session/close', { sessionId: session }) : undefined;
    const answer = await server.response(asked);
    t.equal(answer.result?.stopReason ?? answer.error?.code, end, name);
    // Read in the moment of the answer: nothing may come behind it.
    const before = server.frames.indexOf(answer);
    const own = server.frames.slice(0, before).filter((frame) => frame.params?.sessionId === session && frame.params.update !== undefined);
    const screen = new ClientScreen().takeAll(
      own.map((frame) => frame.params.update).filter((update) => update.sessionUpdate.startsWith('tool_')),
    );
    t.ok(screen.cards.size > 0, `${name}: a call was shown`);
    t.strictSame(screen.open, [], `${name}: none is open`);
    await closed;
    const after = server.frames.slice(before).filter((frame) => frame.params?.sessionId === session && shows('toolCallId')(frame));
    t.strictSame(after, [], `${name}: nothing behind the answer`);
  }
  await endServer(t, server);
});
