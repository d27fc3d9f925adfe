/**
 * Delegating, through the assembled server and the scripted model: to sessions of this server, and to a process that speaks
 * ACP (this very program).
 */
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { LogEvent } from '../../src/shared/events.ts';
import { fileAppears } from '../support/file-appears.ts';
import { cliPath, type Frame, type ServerProcess } from '../support/server-process.ts';
import { callIds, endServer, startServer, statusesOfCall, updatesOfCall } from '../support/started-server.ts';

t.setTimeout(120_000);

const scripted = ['--model', 'scripted', '--pace-ms', '0'];

/** The lines of a child's script, one call's worth. */
const delegate = (
  agent: string,
  lines: readonly string[],
  how: { readonly beside?: true; readonly background?: true; readonly word?: string } = {},
) => {
  const word = how.word ?? 'END';
  return [`${how.beside === true ? '& ' : ''}delegate ${how.background === true ? '& ' : ''}${agent} <<${word}`, ...lines, word].join('\n');
};

function start(
  t: Test,
  more: { readonly args?: readonly string[]; readonly onRequest?: (frame: Frame) => unknown } = {},
): Promise<ServerProcess> {
  return startServer(t, { ...more, args: [...scripted, ...(more.args ?? [])] });
}

/** What the card of a call says at last. */
function resultOf(server: ServerProcess, sessionId: string, callId: string | undefined): string {
  return updatesOfCall(server, sessionId, callId ?? '').at(-1)?.content?.[0]?.content?.text ?? '';
}

interface Log {
  readonly id: string;
  readonly header: any;
  readonly events: LogEvent[];
}

function logs(server: ServerProcess): Log[] {
  const dir = join(server.stateDir, 'sessions');
  return readdirSync(dir)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => {
      const [header, ...events] = readFileSync(join(dir, name), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      return { id: header.id, header, events };
    });
}

const childLogs = (server: ServerProcess): Log[] => logs(server).filter(({ header }) => (header.options?.depth ?? 0) > 0);
const noLocks = (server: ServerProcess): boolean => !readdirSync(join(server.stateDir, 'sessions')).some((name) => name.endsWith('.lock'));
/** Command lines of this machine's processes that contain the text; the test's own is not among them. */
function processesWith(text: string): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  return pids.map(commandLine).filter((line) => line.includes(text));
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return ''; // It ended meanwhile.
  }
}

const isDone = (update: any): boolean => update.status === 'completed' || update.status === 'failed';

t.test(
  'a delegated task is worked on by a session of its own, shown in the card of the call, and answered with its last words',
  async (t) => {
    const server = await start(t);
    const cwd = realpathSync(t.testdir({ 'a.txt': 'one' }));
    const sessionId = await server.newSession(cwd);
    // The child goes on when its progress has been seen: one that ended at once would show only its end.
    const untilSeen = `run timeout 30 sh -c 'until test -e seen; do sleep 0.02; done'`;
    const script = delegate('self', ['todo *look; tell', 'read a.txt', untilSeen, 'say The file says one.']);
    const shown = server.next((frame) => JSON.stringify(frame.params?.update ?? {}).includes('✓ Read a.txt'), 'the progress of the child');
    const prompt = server.startPrompt(sessionId, script);
    await shown;
    writeFileSync(join(cwd, 'seen'), '');
    t.match(await server.response(prompt), {
      result: { stopReason: 'end_turn', _meta: { 'dsh-acp': { usage: { subagents: { inputTokens: Number } } } } },
    });
    const [callId] = callIds(server, sessionId);
    const updates = updatesOfCall(server, sessionId, callId ?? '');
    t.match(updates[0], { kind: 'think', title: /^Delegate todo/, name: 'subagent' });
    t.same(statusesOfCall(server, sessionId, callId ?? ''), ['pending', 'in_progress', 'completed']);
    t.match(resultOf(server, sessionId, callId), /^The file says one\.\nThe script is done\. Tool calls: todo_write 1, read 1, bash 1\./);
    const progress = updates.filter((update) => update.content !== undefined && !isDone(update));
    t.match(JSON.stringify(progress), /✓ Read a\.txt/);
    t.same(
      new Set(server.frames.map((frame) => frame.params?.sessionId).filter((id) => id !== undefined)),
      new Set([sessionId]),
      'nothing of the child reached the client',
    );

    const [child, ...others] = childLogs(server);
    t.same(others, []);
    t.match(child?.header, { cwd, options: { depth: 1, maxDepth: 3 } });
    const parentLog = logs(server).find(({ id }) => id === sessionId);
    const end = parentLog?.events.find(({ type }) => type === 'subagent/end');
    t.match(end?.data, { stopReason: 'completed', logPath: new RegExp(`${child?.id}\\.jsonl$`), usage: { outputTokens: Number } });
    t.match(await server.request('session/list', {}), { result: { sessions: [{ sessionId }] } });
    t.match(await server.request('session/prompt', { sessionId: child?.id, prompt: [{ type: 'text', text: 'say x' }] }), {
      error: { data: { code: 'SESSION_NOT_FOUND' } },
    });

    const before = server.updates(sessionId).filter(({ toolCallId }) => toolCallId === callId);
    await server.request('session/close', { sessionId });
    const from = server.frames.length;
    t.match(await server.request('session/load', { sessionId, cwd, mcpServers: [] }), { result: {} });
    const again = server.frames.slice(from).flatMap((frame) => (frame.params?.update?.toolCallId === callId ? [frame.params.update] : []));
    t.same(again, before, 'a loaded session shows the same card, step by step');
    await endServer(t, server);
  },
);

t.test('three tasks of one answer are worked on side by side', async (t) => {
  const server = await start(t);
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  // Each waits for what another one makes: one after the other none of them would end.
  const wait = (other: string) => `run timeout 15 sh -c 'until test -e ${other}; do sleep 0.02; done'`;
  const tasks = ['a', 'b', 'c'].map((name, at) => [`run touch ${name}`, wait('abc'[(at + 1) % 3] ?? ''), `say ${name} is done`]);
  const script = tasks.map((lines, at) => delegate('self', lines, at === 0 ? {} : { beside: true })).join('\n');
  t.match(await server.prompt(sessionId, script), { result: { stopReason: 'end_turn' } });
  const ids = callIds(server, sessionId);
  t.equal(ids.length, 3);
  for (const [at, id] of ids.entries()) t.match(resultOf(server, sessionId, id), new RegExp(`^${'abc'[at]} is done`));
  t.equal(childLogs(server).length, 3);
  await endServer(t, server);
  t.ok(noLocks(server));
});

t.test('a background task says when it has ended, and is collected; another is stopped', async (t) => {
  const server = await start(t);
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  const first = delegate('self', ['say Seven files.'], { background: true });
  const slow = delegate('self', ['run touch begun; exec sleep 60'], { background: true });
  t.match(await server.prompt(sessionId, `${first}\nwait 200\nrun true\ncollect agent-1\n${slow}\nwait 200\nstop`), {
    result: { stopReason: 'end_turn' },
  });
  const [background, , collect, , stop] = callIds(server, sessionId);
  t.equal(resultOf(server, sessionId, background), 'started background subagent job agent-1');
  t.match(resultOf(server, sessionId, collect), /Seven files\./);
  t.match(resultOf(server, sessionId, stop), /^ended agent-2 /);
  const notices = logs(server)
    .find(({ id }) => id === sessionId)
    ?.events.flatMap((event) => (event.type === 'user/message' && event.data.source === 'notice' ? event.data.content : []));
  t.match(notices, [
    { text: /^\[background subagent job agent-1 \(Delegate say Seven files\.\) completed; read it with subagent_output\]$/ },
  ]);
  await endServer(t, server);
  t.ok(noLocks(server));
});

t.test('a cancelled turn ends its subagents at once, with what they had said', async (t) => {
  const server = await start(t);
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  const id = server.startPrompt(sessionId, delegate('self', ['say I begin.', 'run touch begun; exec sleep 61']));
  await fileAppears(join(cwd, 'begun'));
  server.notify('session/cancel', { sessionId });
  t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
  const [callId] = callIds(server, sessionId);
  t.match(resultOf(server, sessionId, callId), /^subagent run was cancelled\nPartial output before the run ended:\n[\s\S]*I begin\./);
  t.match(await server.prompt(sessionId, 'say still here'), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
  t.ok(noLocks(server));
  t.same(processesWith('sleep 61'), [], 'its command is gone');
  t.match(childLogs(server)[0]?.events.at(-1), { type: 'turn/end', data: { reason: { kind: 'cancelled' } } });
});

t.test('agents are nested as deep as max_depth, and below that there is nobody to delegate to', async (t) => {
  const folder = t.testdir({ work: {} });
  const file = join(folder, 'config.toml');
  writeFileSync(file, '[[subagents]]\nname = "self"\nmax_depth = 2\n');
  const server = await start(t, { args: ['--config', file] });
  const sessionId = await server.newSession(realpathSync(join(folder, 'work')));
  const deepest = delegate('self', ['say too deep'], { word: 'THREE' });
  const script = delegate('self', [delegate('self', [deepest], { word: 'TWO' })], { word: 'ONE' });
  t.match(await server.prompt(sessionId, script), { result: { stopReason: 'end_turn' } });
  const depths = childLogs(server).map(({ header }) => header.options.depth);
  t.same(
    depths.sort((a, b) => a - b),
    [1, 2],
  );
  const second = childLogs(server).find(({ header }) => header.options.depth === 2);
  t.match(second?.events.find(({ type }) => type === 'tool/result')?.data, { isError: true, code: 'UNKNOWN_TOOL' });
  await endServer(t, server);
});

t.test('a question of a subagent is asked in the name of the call; the rule of its table answers for a client', async (t) => {
  const asked: Frame[] = [];
  const server = await start(t, {
    onRequest: (frame) => {
      asked.push(frame);
      return { outcome: { outcome: 'selected', optionId: 'allow_once' } };
    },
  });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  await server.prompt(sessionId, delegate('self', [delegate('self', ['run touch made'], { word: 'IN' })]));
  t.equal(asked.length, 1, 'passed up through both levels, asked once');
  t.match(asked[0]?.params, { sessionId, toolCall: { toolCallId: callIds(server, sessionId)[0], title: 'touch made' } });
  t.ok(existsSync(join(cwd, 'made')));
  await endServer(t, server);

  const folder = t.testdir({ work: {} });
  const file = join(folder, 'config.toml');
  writeFileSync(file, '[[subagents]]\nname = "self"\npermission = "reject"\n');
  const strict = await start(t, { args: ['--config', file], onRequest: () => t.fail('nobody is asked') });
  const other = await strict.newSession(realpathSync(join(folder, 'work')));
  t.match(await strict.prompt(other, delegate('self', ['run touch made'])), { result: { stopReason: 'end_turn' } });
  t.notOk(existsSync(join(folder, 'work', 'made')));
  await endServer(t, strict);
});

t.test('one thread and one slot are enough for a family, also where threads are never shared', async (t) => {
  const server = await start(t, { args: ['--isolation', 'strict', '--max-threads', '1', '--max-running-turns', '1'] });
  const sessionId = await server.newSession(realpathSync(t.testdir({})));
  const script = [
    delegate('self', [delegate('self', ['say inner'], { word: 'IN' })]),
    delegate('self', ['say beside'], { beside: true }),
  ].join('\n');
  t.match(await server.prompt(sessionId, script), { result: { stopReason: 'end_turn' } });
  t.equal(childLogs(server).length, 3);
  t.match(await server.request('_status', {}), { result: { sessions: { open: 1 }, threads: 1 } });
  await endServer(t, server);
});

t.test('sessions at work for another are counted apart, and stand in the trace of its caller', async (t) => {
  const server = await start(t, { args: ['--permission-mode', 'full-access'] });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const script = delegate('self', [delegate('self', ['run touch begun; until test -e go; do sleep 0.02; done'], { word: 'IN' })]);
  const prompt = server.request('session/prompt', {
    sessionId,
    prompt: [{ type: 'text', text: script }],
    _meta: { 'dsh-acp': { traceparent } },
  });
  await fileAppears(join(cwd, 'begun'));
  t.match(await server.request('_status', {}), { result: { sessions: { open: 1, attached: 1, sharing: 0, delegated: 2 } } });
  writeFileSync(join(cwd, 'go'), '');
  t.match(await prompt, { result: { stopReason: 'end_turn' } });
  // They leave their thread behind the answer; no event tells.
  while ((await server.request('_status', {})).result.sessions.delegated > 0);
  const starts = logs(server).flatMap(({ events }) => events.flatMap((event) => (event.type === 'turn/start' ? [event.data] : [])));
  t.same(
    starts.map((data) => data.traceparent),
    [traceparent, traceparent, traceparent],
  );
  await endServer(t, server);
});

t.test('a client that leaves in the middle leaves nothing: no lock, no process, every log closed', async (t) => {
  const server = await start(t);
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  server.startPrompt(
    sessionId,
    [
      delegate('self', [delegate('self', ['run touch inner; exec sleep 62'], { word: 'IN' })]),
      delegate('self', ['run touch beside; exec sleep 62'], { beside: true }),
    ].join('\n'),
  );
  await Promise.all([fileAppears(join(cwd, 'inner')), fileAppears(join(cwd, 'beside'))]);
  await endServer(t, server);
  t.ok(noLocks(server));
  t.same(processesWith('sleep 62'), []);
  for (const { events } of logs(server)) t.match(events.at(-1), { type: 'turn/end' });
});

t.test('a process that speaks ACP works as an agent: chosen by name, asked about first, put away at the end', async (t) => {
  const folder = t.testdir({ work: {}, state: {} });
  const file = join(folder, 'config.toml');
  const child = [cliPath, '--state-dir', join(folder, 'state'), ...scripted];
  writeFileSync(
    file,
    `[[subagents]]\nname = "helper"\ndescription = "Works in a process of its own."\ncommand = "${process.execPath}"\nargs = ${JSON.stringify(child)}\npermission = "allow"\n`,
  );
  const asked: Frame[] = [];
  const server = await start(t, {
    args: ['--config', file],
    onRequest: (frame) => {
      asked.push(frame);
      return { outcome: { outcome: 'selected', optionId: 'allow_once' } };
    },
  });
  const cwd = realpathSync(join(folder, 'work'));
  const sessionId = await server.newSession(cwd);
  t.match(await server.prompt(sessionId, delegate('helper', ['run echo hi > made', 'say made it'])), {
    result: { stopReason: 'end_turn' },
  });
  const [callId] = callIds(server, sessionId);
  t.match(resultOf(server, sessionId, callId), /made it/);
  t.match(JSON.stringify(updatesOfCall(server, sessionId, callId ?? '')), /✓ echo hi > made/);
  t.equal(readFileSync(join(cwd, 'made'), 'utf8'), 'hi\n');
  t.match(asked, [{ params: { toolCall: { toolCallId: callId, kind: 'think' } } }], 'another program needs a permission');

  const running = server.startPrompt(sessionId, delegate('helper', ['run touch begun; exec sleep 63']));
  // What the agent says of its cost comes before it.
  await Promise.all([
    fileAppears(join(cwd, 'begun')),
    server.waitFor((frame) => JSON.stringify(frame.params?.update ?? {}).includes('▸ touch begun'), 'the work of the agent'),
  ]);
  server.notify('session/cancel', { sessionId });
  t.match(await server.response(running), { result: { stopReason: 'cancelled' } });
  await endServer(t, server);
  t.same(processesWith('sleep 63'), []);
  t.same(processesWith(join(folder, 'state')), [], 'and so is the agent itself');
  const ends = logs(server).flatMap(({ events }) => events.filter(({ type }) => type === 'subagent/end'));
  t.match(ends.at(-1)?.data, { stopReason: 'aborted', usage: { inputTokens: Number, outputTokens: Number } }, 'what it cost is known');
});
