/** The harness of the fault tests itself: each thing that it must see is shown to it once. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { LogEvent, SessionHeader, TurnEndReason } from '../../src/shared/events.ts';
import { canaries, CanaryWatch, filesWithCanary, holdsCanary } from '../support/canaries.ts';
import { ChildWatch, footprint } from '../support/footprint.ts';
import { type ClientView, differences } from '../support/log-against-client.ts';

const header: SessionHeader = {
  type: 'session',
  version: 1,
  id: '0192f3c4-1111-7abc-8def-0123456789ab',
  createdAt: '2026-01-01T00:00:00.000Z',
  cwd: '/w',
  agent: { name: 'test', version: '0' },
};

const usage = { inputTokens: 1, cacheReadTokens: 0, outputTokens: 1, reasoningTokens: 0, steps: 1, toolCalls: 0, wallMs: 1 };

/** One turn: a message, a command that printed `x`, and an end. */
function turn(number: number, reason: TurnEndReason): object[] {
  const [step, id] = [1, `t${number}`];
  const call = { callId: `c${number}`, name: 'bash', arguments: '{"command":"echo x","description":"Say x"}' };
  return [
    { type: 'turn/start', data: { turn: number } },
    { type: 'step/start', data: { turn: number, step } },
    { type: 'assistant/chunk', data: { turn: number, step, messageId: id, kind: 'text', text: 'one two' } },
    {
      type: 'assistant/message',
      data: { turn: number, step, messageId: id, text: 'one two', reasoning: '', toolCalls: [call], finish: 'tool-calls' },
    },
    { type: 'tool/call', data: { turn: number, step, ...call } },
    { type: 'tool/start', data: { turn: number, step, callId: call.callId } },
    {
      type: 'tool/result',
      data: { turn: number, step, callId: call.callId, text: 'x', isError: false, meta: { output: 'x\n', exitCode: 0 } },
    },
    { type: 'turn/end', data: { turn: number, reason, usage } },
  ];
}

const logOf = (...events: object[]): { header: SessionHeader; events: LogEvent[] } => ({
  header,
  events: events.map((event, seq) => ({ ...event, seq, time: seq }) as LogEvent),
});

const text = (messageId: string, said: string) => ({
  sessionUpdate: 'agent_message_chunk',
  messageId,
  content: { type: 'text', text: said },
});
const card = (id: string) => ({
  sessionUpdate: 'tool_call',
  toolCallId: id,
  title: 'echo x',
  name: 'bash',
  kind: 'execute',
  content: [{ type: 'content', content: { type: 'text', text: 'Say x' } }],
  rawInput: { command: 'echo x', description: 'Say x' },
  status: 'pending',
});

const view = (updates: readonly unknown[], mayLack = false): ClientView => ({
  updates,
  traits: { terminalOutput: false },
  profile: 'editor',
  mayLack,
});

const whole = logOf(...turn(1, { kind: 'completed' }), ...turn(2, { kind: 'completed' }));

/** What a client sees of these turns, as the projection gives it: its own words would be tested against themselves. */
async function shownBy(log: { events: LogEvent[] }): Promise<any[]> {
  const { Projector } = await import('../../src/worker/projection/projector.ts');
  const { createToolRegistry } = await import('../../src/worker/tools/all-tools.ts');
  const registry = createToolRegistry([]);
  const options = { sessionId: header.id, cwd: '/w', profile: 'editor', client: { terminalOutput: false } } as const;
  const projector = new Projector({ ...options, tools: (name) => registry.get(name) });
  return log.events.flatMap((event) => projector.project(event));
}

t.test('log and client agree however a text was cut, and whatever was shown beside the log', async (t) => {
  const shown = await shownBy(whole);
  t.same(differences(whole, view(shown)), []);
  t.match(shown, [text('t1', 'one two'), card('c1')], 'it is what it is taken for');
  const cut = shown.flatMap((update) => (update.messageId === 't2' ? [text('t2', 'on'), text('t2', 'e two')] : [update]));
  const running = {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c1',
    content: [{ type: 'content', content: { type: 'text', text: 'x' } }],
  };
  cut.splice(3, 0, running);
  const notice = { sessionUpdate: 'notice', severity: 'warning', title: 'n', description: 'd' };
  t.same(differences(whole, view([notice, ...cut])), []);
});

t.test('what the client has otherwise than the log is found', async (t) => {
  const shown = await shownBy(whole);
  const without = (drop: (update: any) => boolean): unknown[] => shown.filter((update) => !drop(update));
  const complains = (updates: readonly unknown[], pattern: RegExp, mayLack = false): void => {
    t.match(differences(whole, view(updates, mayLack)).join('; '), pattern);
  };
  complains(
    shown.map((update) => (update.messageId === 't1' ? text('t1', 'one') : update)),
    /t1 differs at 3/,
  );
  complains(
    without(({ messageId }) => messageId === 't1'),
    /the client never saw t1/,
  );
  complains(
    without(({ messageId }) => messageId === 't1'),
    /the client never saw t1/,
    true,
  );
  complains([text('other', 'no'), ...shown], /other is in no log/);
  complains([...shown, text('other', 'no')], /other is in no log/);
  complains([...without(({ messageId }) => messageId === 't1'), text('t1', 'one two')], /another order/);
  complains(
    without(({ status }) => status === 'completed'),
    /c1 differs/,
  );
  complains([card('c1'), ...shown], /stumbles/);
});

t.test('a turn that was cut off may end otherwise on either side, and no other turn may', async (t) => {
  const cut = logOf(...turn(1, { kind: 'interrupted' }), ...turn(2, { kind: 'completed' }));
  const shown = await shownBy(cut);
  const saw = (change: (update: any) => unknown[]): string[] => differences(cut, view(shown.flatMap(change)));
  const longer = (id: string) => (update: any) => (update.messageId === id ? [text(id, 'one two three')] : [update]);
  const further = (id: string) => (update: any) =>
    update.toolCallId === id && update.status === 'completed' ? [update, text(`${id}-next`, 'four')] : [update];
  t.same([...saw(longer('t1')), ...saw(further('c1'))], [], 'the client saw more than could be logged');
  t.match([...saw(longer('t2')), ...saw(further('c2'))], [/t2 differs/, 'c2-next is in no log']);
  t.same(
    saw((update) => (update.messageId === 't1' ? [text('t1', 'on')] : [update])),
    [],
    'or less than was',
  );
  t.same(saw((update) => (update.messageId === 't1' ? [text('t1', 'else')] : [update])).length, 1, 'but nothing else');
  const open = logOf(...turn(1, { kind: 'completed' }), ...turn(2, { kind: 'completed' }).slice(0, 3));
  t.same(differences(open, view(await shownBy(logOf(...turn(1, { kind: 'completed' }))), true)), [], 'the last turn was never seen');
});

t.test('a secret is seen in a stream, also where it is cut, in files and in children', async (t) => {
  const { FAULT_API_KEY: key } = canaries;
  t.equal(holdsCanary(`x ${key}`), true);
  t.equal(holdsCanary('cnry-0'), false);
  for (const cut of [5, 12, 20]) {
    const watch = new CanaryWatch();
    for (const piece of ['some text ', key.slice(0, cut), key.slice(cut), ' more']) watch.take(Buffer.from(piece));
    t.equal(watch.found, true, `cut at ${cut}`);
  }
  const dir = mkdtempSync(join(t.testdir(), 'd-'));
  writeFileSync(join(dir, 'clean'), 'nothing');
  writeFileSync(join(dir, 'log'), `line\n{"text":"${key}"}`);
  t.same(filesWithCanary(dir), [join(dir, 'log')]);

  const child = spawn('/bin/sh', ['-c', 'echo on; read x'], { env: { SOME_TOKEN: key }, stdio: ['pipe', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  const children = new ChildWatch(process.pid);
  children.look();
  t.ok([...children.environments.values()].some(holdsCanary));
  child.kill();
  await once(child, 'close');
});

t.test('an open file, a watch and a pipe are counted', async (t) => {
  const dir = t.testdir({ file: '' });
  const before = footprint(process.pid)!;
  const fd = openSync(join(dir, 'file'), 'r');
  const watcher = watch(dir);
  const child = spawn('/bin/cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  const now = footprint(process.pid)!;
  t.ok(now.files.includes(join(dir, 'file')));
  t.equal(now.watches, before.watches + 1);
  t.ok(now.pipes + now.sockets > before.pipes + before.sockets);
  closeSync(fd);
  watcher.close();
  child.stdin.end();
  await once(child, 'close');
  const after = footprint(process.pid)!;
  t.same([after.watches, after.files.includes(join(dir, 'file'))], [before.watches, false]);
  t.equal(footprint(2 ** 22), undefined, 'a process that is gone has none');
});
