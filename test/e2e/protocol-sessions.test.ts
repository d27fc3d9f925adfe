/**
 * Sessions of the assembled server: new, load, list, close and modes, also over a restart and a kill. Numbers are those of
 * the conformance checklist.
 */
import { chmodSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { mergedUpdates, withoutPrompts } from '../support/merged-updates.ts';
import { type Frame, isCommandList, type ServerProcess } from '../support/server-process.ts';
import { callIds, checkOutput, endServer, startServer, statusesOfCall, updatesOfCall } from '../support/started-server.ts';

const everyTool = `think about the order of things
say I begin.
todo *look; change
read a.txt
& grep alpha
run echo out; echo err >&2; exit 3
edit a.txt /alpha/beta/
write new.txt <<EOF
fresh
EOF
read missing.txt
todo x look; x change
say I am done.`;

const load = (server: ServerProcess, sessionId: string, cwd: string): Promise<Frame> =>
  server.request('session/load', { sessionId, cwd, mcpServers: [] });

const isEnded = (server: ServerProcess, sessionId: string): boolean =>
  callIds(server, sessionId).every((id) => ['completed', 'failed'].includes(updatesOfCall(server, sessionId, id).at(-1).status));

/** What a load shows of a session; the history must be whole before the response. */
async function replayed(server: ServerProcess, sessionId: string, cwd: string): Promise<any[]> {
  const from = server.updates(sessionId).length;
  const mark = server.frames.length;
  const { error } = await load(server, sessionId, cwd);
  if (error !== undefined) throw new Error(`session/load: ${JSON.stringify(error)}`);
  // Whatever came behind the response is there once a later request has been answered.
  await server.request('session/list', {});
  const frames = server.frames.slice(mark);
  const response = frames.findIndex((frame) => frame.method === undefined);
  const last = frames.findLastIndex((frame) => frame.params?.sessionId === sessionId && !isCommandList(frame));
  if (last > response) throw new Error('an update of the history came behind the response');
  return mergedUpdates(server.updates(sessionId).slice(from));
}

async function everyToolSession(t: Test, server: ServerProcess): Promise<{ sessionId: string; cwd: string; live: any[] }> {
  const cwd = realpathSync(t.testdir({ 'a.txt': 'alpha\nbeta\n' }));
  const sessionId = await server.newSession(cwd);
  t.match(await server.prompt(sessionId, everyTool), { result: { stopReason: 'end_turn' } });
  t.match(await server.prompt(sessionId, 'say a second turn'), { result: { stopReason: 'end_turn' } });
  return { sessionId, cwd, live: mergedUpdates(server.updates(sessionId)) };
}

await t.test('session/new', async (t) => {
  const server = await startServer(t);
  const dir = realpathSync(t.testdir({ file: 'x', locked: {}, real: {} }));
  symlinkSync(join(dir, 'real'), join(dir, 'link'));

  await t.test('#30 cwd must be an absolute, enterable directory', async (t) => {
    const bad: unknown[] = [
      '.',
      'relative/path',
      '',
      '~',
      undefined,
      null,
      5,
      {},
      join(dir, 'nowhere'),
      join(dir, 'file'),
      join(dir, 'file', 'x'),
    ];
    bad.push('/tmp\0/x', `/${'x'.repeat(5000)}`, 'file:///tmp');
    if (process.getuid?.() !== 0) {
      chmodSync(join(dir, 'locked'), 0o600);
      bad.push(join(dir, 'locked'));
    }
    for (const cwd of bad) {
      const { error } = await server.request('session/new', { cwd, mcpServers: [] });
      t.equal(error?.code, -32602, JSON.stringify(cwd)?.slice(0, 80));
      t.match(error?.message, /cwd/);
    }
  });

  await t.test('#31 mcpServers: [] and null are taken, none is not, and what is no server is refused by its place', async (t) => {
    t.ok((await server.request('session/new', { cwd: dir, mcpServers: [] })).result);
    t.ok((await server.request('session/new', { cwd: dir, mcpServers: null })).result);
    t.equal((await server.request('session/new', { cwd: dir })).error?.code, -32602);
    const stdio = { name: 'n', command: '/bin/true', args: [], env: [{ name: 'TOKEN', value: 'canary-1' }] };
    const http = { type: 'http', name: 'n', url: 'http://127.0.0.1:1/', headers: [{ name: 'Authorization', value: 'canary-2' }] };
    for (const one of [
      { ...stdio, command: 'bin/canary-3' },
      { ...http, url: 'file:///canary-4' },
      { ...http, type: 'canary-5' },
    ]) {
      const answer = await server.request('session/new', { cwd: dir, mcpServers: [stdio, one] });
      t.match(answer.error, { code: -32602, message: /mcpServers/ });
      t.notMatch(JSON.stringify(answer), /canary/);
    }
    t.match((await server.request('session/new', { cwd: dir, mcpServers: [stdio, http] })).error, {
      data: { field: 'mcpServers[1].name' },
    });
    const answer = await server.request('session/new', { cwd: dir, mcpServers: [stdio, { ...http, name: 'h' }] });
    t.ok(answer.result, '#52 one that cannot be reached does not cost the session');
  });

  await t.test('#36 additionalDirectories: absolute ones, or none', async (t) => {
    t.ok((await server.request('session/new', { cwd: dir, mcpServers: [], additionalDirectories: [] })).result);
    t.ok((await server.request('session/new', { cwd: dir, mcpServers: [], additionalDirectories: ['/tmp'] })).result);
    const { error } = await server.request('session/new', { cwd: dir, mcpServers: [], additionalDirectories: ['/tmp', 'relative'] });
    t.match(error, { code: -32602, message: /additionalDirectories\[1\]/ });
  });

  await t.test('#32 #33 ids are distinct, and each response stands before any update of its session', async (t) => {
    const ids = await Promise.all(Array.from({ length: 50 }, () => server.newSession(dir)));
    t.equal(new Set(ids).size, 50);
    const firstOf = (id: string): Frame | undefined => server.frames.find((frame) => JSON.stringify(frame).includes(id));
    t.ok(ids.every((id) => firstOf(id)?.result?.sessionId === id));
  });

  await t.test('the canonical path of a linked cwd is kept', async (t) => {
    const sessionId = await server.newSession(join(dir, 'link'));
    const { result } = await server.request('session/list', { cwd: join(dir, 'real') });
    t.match(result.sessions, [{ sessionId, cwd: join(dir, 'real') }]);
    t.match(await load(server, sessionId, dir), { error: { code: -32602 } });
  });

  await t.test('#35 two sessions work in their own directories at once', async (t) => {
    const dirs = realpathSync(t.testdir({ one: { 'who.txt': 'I am one' }, two: { 'who.txt': 'I am two' } }));
    const names = ['one', 'two'];
    const ids = await Promise.all(names.map((name) => server.newSession(join(dirs, name))));
    await Promise.all(ids.map((id) => server.prompt(id, 'read who.txt\nrun pwd\nglob *.txt')));
    for (const [index, name] of names.entries()) {
      const shown = JSON.stringify(server.updates(ids[index]!));
      t.ok(shown.includes(`I am ${name}`));
      t.ok(shown.includes(join(dirs, name)));
      t.notOk(shown.includes(`I am ${names[1 - index]}`));
      t.notOk(shown.includes(join(dirs, names[1 - index]!)));
    }
  });

  await t.test('#13 #38 #65 eight sessions stream at once, each into its own', async (t) => {
    const ids = await Promise.all(Array.from({ length: 8 }, () => server.newSession(dir)));
    const mark = server.frames.length;
    const script = (index: number): string => `repeat 150 mine${index}x\nread file\nrepeat 50 mine${index}x`;
    const answers = await Promise.all(ids.map((id, index) => server.prompt(id, script(index))));
    t.ok(answers.every((answer) => answer.result?.stopReason === 'end_turn'));
    for (const [index, id] of ids.entries()) {
      const words = server.text(id).match(/mine\d+x/g) ?? [];
      t.equal(words.length, 200);
      t.ok(words.every((word) => word === `mine${index}x`));
    }
    const order = server.frames
      .slice(mark)
      .flatMap((frame) => (frame.method === 'session/update' ? [frame.params.sessionId as string] : []));
    const turns = order.filter((id, index) => index > 0 && id !== order[index - 1]).length;
    t.ok(turns > 16, `the sessions alternated ${turns} times`);
  });

  await endServer(t, server);
});

await t.test('session/load', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--pace-ms', '0'] });
  const { sessionId, cwd, live } = await everyToolSession(t, server);

  await t.test('#71 #72 #73 #74 #75 the live session shows whole tool calls', async (t) => {
    const updates = server.updates(sessionId);
    const ids = callIds(server, sessionId);
    t.equal(new Set(ids).size, ids.length, 'ids are unique');
    for (const id of ids) {
      const own = updatesOfCall(server, sessionId, id);
      t.equal(own[0].sessionUpdate, 'tool_call');
      t.match(statusesOfCall(server, sessionId, id).join(' → '), /^(pending → )?(in_progress → )?(completed|failed)$/);
      t.equal(own.filter((update) => ['completed', 'failed'].includes(update.status)).length, 1, 'one end');
      t.ok(own[0].kind, 'it has a kind');
      t.notMatch(own[0].title, /\n/);
      for (const { path, line } of own[0].locations ?? []) t.ok(path.startsWith('/') && (line === undefined || line >= 1), path);
    }
    const kinds = updates.filter((update) => update.sessionUpdate === 'tool_call').map((update) => update.kind);
    t.ok(
      ['edit', 'execute', 'read', 'search'].every((kind) => kinds.includes(kind)),
      kinds.join(),
    );
    const diffs = updates
      .filter((update) => Array.isArray(update.content))
      .flatMap((update) => update.content.filter((one: any) => one.type === 'diff'));
    t.ok(diffs.some((diff: any) => diff.path === join(cwd, 'a.txt')));
    t.ok(diffs.some((diff: any) => diff.path === join(cwd, 'new.txt') && (diff.oldText ?? null) === null));
    const plans = updates.filter((update) => update.sessionUpdate === 'plan');
    t.same(plans.at(-1).entries, [], 'a plan that is done goes with the next turn');
    t.match(plans.findLast(({ entries }) => entries.length > 0).entries, [
      { content: 'look', status: 'completed' },
      { content: 'change', status: 'completed' },
    ]);
  });

  await t.test('#78 every chunk has a message id, and each message its own', async (t) => {
    const chunks = live.filter((update) => update.sessionUpdate.endsWith('_chunk'));
    t.ok(chunks.every((update) => typeof update.messageId === 'string'));
    t.ok(new Set(chunks.map((update) => update.messageId)).size >= 2);
  });

  await t.test('an id that is open is refused, in the middle of a turn as well', async (t) => {
    t.match(await load(server, sessionId, cwd), { error: { code: -32602, data: { sessionId } } });
    const running = server.startPrompt(sessionId, 'wait 100');
    t.match(await load(server, sessionId, cwd), { error: { code: -32602 } }, '#47');
    t.match(await server.response(running), { result: { stopReason: 'end_turn' } });
  });

  await t.test('#41 #42 #43 the whole history comes before the response and looks as it did live', async (t) => {
    const whole = mergedUpdates(server.updates(sessionId));
    await server.request('session/close', { sessionId });
    const shown = await replayed(server, sessionId, cwd);
    t.same(withoutPrompts(shown), whole);
    t.same(
      shown.filter((update) => update.sessionUpdate === 'user_message_chunk').map((update) => update.content.text),
      [everyTool, 'say a second turn', 'wait 100'],
    );
    t.equal(shown[0].sessionUpdate, 'user_message_chunk');
    t.match(await server.prompt(sessionId, 'say still usable'), { result: { stopReason: 'end_turn' } });
  });

  await t.test('the same id twice at once: one loads, one is refused; two ids load side by side', async (t) => {
    const other = await server.newSession(cwd);
    await server.prompt(other, 'say I am the other');
    for (const id of [sessionId, other]) await server.request('session/close', { sessionId: id });
    const answers = await Promise.all([load(server, sessionId, cwd), load(server, sessionId, cwd), load(server, other, cwd)]);
    t.equal(answers.slice(0, 2).filter((answer) => answer.error?.code === -32602).length, 1);
    t.equal(answers.slice(0, 2).filter((answer) => answer.result !== undefined).length, 1);
    t.ok(answers[2].result);
    t.match(await server.prompt(sessionId, 'say one'), { result: { stopReason: 'end_turn' } });
    t.match(await server.prompt(other, 'say two'), { result: { stopReason: 'end_turn' } });
  });

  await t.test('another cwd, or none that is a directory, is refused and leaves the session closed', async (t) => {
    await server.request('session/close', { sessionId });
    for (const wrong of ['/', 'relative', join(cwd, 'a.txt'), join(cwd, 'nowhere')]) {
      t.match(await load(server, sessionId, wrong), { error: { code: -32602 } }, wrong);
      t.match(await server.prompt(sessionId, 'say x'), { error: { code: -32002 } });
    }
    const servers = [{ name: 'n', command: './c', args: [], env: [] }];
    t.match(await server.request('session/load', { sessionId, cwd, mcpServers: servers }), { error: { code: -32602 } });
    t.match(await server.request('session/load', { sessionId, cwd, mcpServers: [], additionalDirectories: ['tmp'] }), {
      error: { code: -32602 },
    });
    t.ok((await load(server, sessionId, cwd)).result);
  });

  await t.test('a session that another server has open is refused there, and free after its end', async (t) => {
    const second = await startServer(t, { stateDir: server.stateDir });
    t.match(await server.prompt(sessionId, 'say mine'), { result: { stopReason: 'end_turn' } });
    t.match(await load(second, sessionId, cwd), { error: { data: { code: 'SESSION_LOCKED' } } });
    t.match(await server.prompt(sessionId, 'say still mine'), { result: { stopReason: 'end_turn' } });
    await endServer(t, server);
    const shown = await replayed(second, sessionId, cwd);
    t.same(withoutPrompts(shown).slice(0, live.length - 1), live.slice(0, -1), '#44 after a restart it looks the same');
    await endServer(t, second);
  });

  await t.test('#44 a damaged log is an error with a line number, and other sessions load', async (t) => {
    const third = await startServer(t, { stateDir: server.stateDir });
    const path = join(server.stateDir, 'sessions', `${sessionId}.jsonl`);
    const lines = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, lines.with(3, lines[3]!.replace('"', '~')).join('\n'));
    t.match(await load(third, sessionId, cwd), { error: { code: -32603, message: /line 4/ } });
    const { sessions } = (await third.request('session/list', { cwd })).result;
    const other = sessions.find((one: any) => one.sessionId !== sessionId);
    t.ok((await load(third, other.sessionId, cwd)).result);
    await endServer(t, third);
  });
});

await t.test('#99 a server that is killed in the middle of a turn leaves sessions that load', async (t) => {
  const server = await startServer(t);
  const cwd = realpathSync(t.testdir({ 'a.txt': 'alpha\n' }));
  const streaming = await server.newSession(cwd);
  const running = await server.newSession(cwd);
  server.startPrompt(streaming, 'read a.txt\nrepeat 100000 word');
  server.startPrompt(running, 'run sleep 20');
  const isCommand = (frame: Frame): boolean => frame.params?.sessionId === running && frame.params.update?.sessionUpdate === 'tool_call';
  await server.waitFor(isCommand, 'the command');
  await server.waitFor(() => server.text(streaming).length > 2000, 'some text');
  server.child.kill('SIGKILL');
  await server.exited;
  checkOutput(t, server);

  const next = await startServer(t, { stateDir: server.stateDir });
  const shown = await replayed(next, streaming, cwd);
  const text = shown.filter((update) => update.sessionUpdate === 'agent_message_chunk').map((update) => update.content.text);
  t.ok(server.text(streaming).startsWith(text.join('')), 'what is left is a beginning of what was shown');
  t.ok(text.join('').length > 0);
  await replayed(next, running, cwd);
  t.ok(isEnded(next, running), 'the interrupted command has an end');
  t.equal(updatesOfCall(next, running, callIds(next, running)[0]!).at(-1).status, 'failed');
  for (const id of [streaming, running]) t.match(await next.prompt(id, 'say again'), { result: { stopReason: 'end_turn' } });
  await endServer(t, next);
});

await t.test('session/list', async (t) => {
  const server = await startServer(t);
  const dirs = realpathSync(t.testdir({ one: {}, two: {} }));
  const [one, two] = [join(dirs, 'one'), join(dirs, 'two')];

  await t.test('#48 nothing at first', async (t) => {
    t.same((await server.request('session/list', {})).result, { sessions: [] });
  });

  await t.test('#48 absolute cwd, time, title; exact filter', async (t) => {
    const sessionId = await server.newSession(one);
    await server.newSession(two);
    await server.prompt(sessionId, 'say something to remember');
    const { result } = await server.request('session/list', { cwd: one });
    t.match(result, { sessions: [{ sessionId, cwd: one, updatedAt: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/, title: /say something/ }] });
    t.equal(result.sessions.length, 1);
    t.equal((await server.request('session/list', {})).result.sessions.length, 2);
    t.equal((await server.request('session/list', { cwd: null, cursor: null })).result.sessions.length, 2);
    t.same((await server.request('session/list', { cwd: dirs })).result.sessions, [], 'a parent directory is another one');
    t.same((await server.request('session/list', { cwd: join(dirs, 'nowhere') })).result, { sessions: [] });
  });

  await t.test('#49 pages give every session exactly once', async (t) => {
    const made = await Promise.all(Array.from({ length: 130 }, () => server.newSession(two)));
    const seen: string[] = [];
    const pages: number[] = [];
    for (let cursor: string | undefined; pages.length < 50; ) {
      const { result } = await server.request('session/list', { cwd: two, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...result.sessions.map((session: any) => session.sessionId));
      pages.push(result.sessions.length);
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    t.ok(pages.length > 1 && pages.at(-1)! > 0, `pages of ${pages.join(', ')}`);
    t.equal(seen.length, new Set(seen).size);
    t.equal(seen.length, 131);
    t.ok(made.every((id) => seen.includes(id)));
    for (const cursor of ['nonsense', '', 'AAAA', Buffer.from('1/x').toString('base64url')]) {
      t.equal((await server.request('session/list', { cursor })).error?.code, -32602, JSON.stringify(cursor));
    }
  });

  await t.test('a relative cwd is refused', async (t) => {
    t.equal((await server.request('session/list', { cwd: 'relative' })).error?.code, -32602);
  });

  await endServer(t, server);
  t.equal(readdirSync(join(server.stateDir, 'sessions')).filter((name) => name.endsWith('.jsonl')).length, 132);
});

await t.test('session/close', async (t) => {
  const server = await startServer(t);
  const cwd = realpathSync(t.testdir({}));

  await t.test('#51 the running and the queued prompt answer cancelled, then the close, then nothing', async (t) => {
    const sessionId = await server.newSession(cwd);
    const prompts = [server.startPrompt(sessionId, 'run sleep 60'), server.startPrompt(sessionId, 'say never')];
    await server.waitFor((frame) => frame.params?.sessionId === sessionId, 'an update');
    const mark = server.frames.length;
    const closing = server.start('session/close', { sessionId });
    t.same((await server.response(closing)).result, {});
    const order = server.frames.slice(mark).filter((frame) => frame.method === undefined);
    t.equal(order.at(-1)?.id, closing);
    t.same(new Set(order.slice(0, 2).map((frame) => frame.id)), new Set(prompts));
    t.ok(order.slice(0, 2).every((frame) => frame.result?.stopReason === 'cancelled'));
    t.ok(isEnded(server, sessionId));
    t.match(await server.prompt(sessionId, 'say x'), { error: { code: -32002, data: { sessionId } } });
    t.match(await server.request('session/close', { sessionId }), { error: { code: -32002 } });
    const { result } = await server.request('session/list', { cwd });
    t.ok(
      result.sessions.some((one: any) => one.sessionId === sessionId),
      'the list still shows it',
    );
    t.ok((await load(server, sessionId, cwd)).result);
    t.match(await server.prompt(sessionId, 'say back'), { result: { stopReason: 'end_turn' } });
  });

  await t.test('a session that never ran, two closes at once, and a close right behind its prompt', async (t) => {
    const unused = await server.newSession(cwd);
    t.same((await server.request('session/close', { sessionId: unused })).result, {});
    const twice = await server.newSession(cwd);
    await server.prompt(twice, 'say x');
    const close = (): Promise<Frame> => server.request('session/close', { sessionId: twice });
    const answers = await Promise.all([close(), close()]);
    t.ok(answers.some((answer) => answer.result !== undefined));
    t.ok(answers.every((answer) => answer.result !== undefined || answer.error?.code === -32002));
    const quick = await server.newSession(cwd);
    const prompt = server.startPrompt(quick, 'wait 60000');
    const closing = server.start('session/close', { sessionId: quick });
    t.match(await server.response(prompt), { result: { stopReason: 'cancelled' } });
    t.same((await server.response(closing)).result, {});
  });

  await endServer(t, server);
});

await t.test('modes', async (t) => {
  const server = await startServer(t, { onRequest: () => ({ outcome: { outcome: 'cancelled' } }) });
  const cwd = realpathSync(t.testdir({}));

  await t.test('#91 an unknown mode is refused, a known one holds from the next call on', async (t) => {
    const { result } = await server.request('session/new', { cwd, mcpServers: [] });
    const { sessionId, modes } = result;
    t.equal(modes.currentModeId, 'ask');
    t.ok(modes.availableModes.some((mode: any) => mode.id === 'full-access'));
    t.equal((await server.request('session/set_mode', { sessionId, modeId: 'nonsense' })).error?.code, -32602);
    t.same((await server.request('session/set_mode', { sessionId, modeId: 'full-access' })).result, {});
    await server.prompt(sessionId, 'run echo unasked > made.txt');
    t.equal(readFileSync(join(cwd, 'made.txt'), 'utf8'), 'unasked\n');
    t.notOk(server.frames.some((frame) => frame.method === 'session/request_permission'));
    t.same((await server.request('session/set_mode', { sessionId, modeId: 'read-only' })).result, {});
    await server.prompt(sessionId, 'run echo no > refused.txt\nwrite refused.txt <<EOF\nno\nEOF');
    t.notOk(readdirSync(cwd).includes('refused.txt'));
  });

  await t.test('#37 #46 a mode belongs to its session, and a load gives it back', async (t) => {
    const [first, second] = [await server.newSession(cwd), await server.newSession(cwd)];
    await server.request('session/set_mode', { sessionId: first, modeId: 'accept-edits' });
    await server.request('session/close', { sessionId: first });
    t.equal((await load(server, first, cwd)).result.modes.currentModeId, 'accept-edits');
    await server.request('session/close', { sessionId: second });
    t.equal((await load(server, second, cwd)).result.modes.currentModeId, 'ask');
  });

  await endServer(t, server);
});

await t.test('#38 more sessions than threads, in every isolation', async (t) => {
  for (const isolation of ['dedicated', 'strict', 'shared']) {
    const server = await startServer(t, { args: `--model scripted --pace-ms 0 --max-threads 2 --isolation ${isolation}`.split(' ') });
    const cwd = realpathSync(t.testdir({ 'a.txt': 'alpha\n' }));
    const ids = await Promise.all(Array.from({ length: 8 }, () => server.newSession(cwd)));
    for (let turn = 0; turn < 2; turn += 1) {
      const script = (index: number): string => `repeat 30 mine${index}x\nread a.txt\nrun echo ran${index}x`;
      const answers = await Promise.all(ids.map((id, index) => server.prompt(id, script(index))));
      t.ok(
        answers.every((answer) => answer.result?.stopReason === 'end_turn'),
        `${isolation}: all turns end`,
      );
    }
    for (const [index, id] of ids.entries()) {
      t.same(new Set(JSON.stringify(server.updates(id)).match(/mine\d+x|ran\d+x/g)), new Set([`mine${index}x`, `ran${index}x`]));
    }
    await Promise.all(ids.map((sessionId) => server.request('session/close', { sessionId })));
    const loads = await Promise.all(ids.map((id) => load(server, id, cwd)));
    t.ok(
      loads.every((answer) => answer.result !== undefined),
      `${isolation}: all load again, at once`,
    );
    await endServer(t, server);
  }
});

await t.test('#82 a client that shows terminals gets one terminal and one exit for each command, live and loaded', async (t) => {
  const server = await startServer(t, { initialize: { _meta: { terminal_output: true } } });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  await server.prompt(sessionId, 'run echo visible; exit 3\nrun kill -9 $$');
  const live = mergedUpdates(server.updates(sessionId));
  for (const id of callIds(server, sessionId)) {
    const own = updatesOfCall(server, sessionId, id);
    t.match(own[0], { content: [{}], _meta: { terminal_info: { terminal_id: id, cwd } } });
    t.ok(own[0].content.some((one: any) => one.type === 'terminal' && one.terminalId === id));
    t.equal(own.filter((update) => update._meta?.terminal_exit !== undefined).length, 1);
    t.ok(
      own.slice(1).every((update) => update.content === undefined),
      '#76 nothing takes the terminal away',
    );
  }
  t.match(JSON.stringify(live), /"terminal_output":\{[^}]*visible/);
  await server.request('session/close', { sessionId });
  t.same(withoutPrompts(await replayed(server, sessionId, cwd)), live);
  await endServer(t, server);
});

await t.test('a load waits for a thread as long as turns hold all of them', async (t) => {
  const server = await startServer(t, { args: '--model scripted --max-threads 1 --isolation strict --attach-timeout-ms 1500'.split(' ') });
  const cwd = realpathSync(t.testdir({}));
  const [busy, loaded] = [await server.newSession(cwd), await server.newSession(cwd)];
  t.match(await server.prompt(loaded, 'say x'), { result: { stopReason: 'end_turn' } });
  await server.request('session/close', { sessionId: loaded });
  const running = server.startPrompt(busy, 'say begun\nwait 3000');
  await server.next((frame) => frame.params?.sessionId === busy, 'its begin');
  const [load1, mode] = await Promise.all([
    load(server, loaded, cwd),
    server.request('session/set_mode', { sessionId: busy, modeId: 'full-access' }),
  ]);
  t.ok(load1.result);
  t.same(mode.result, {}, 'a running session takes a mode at once');
  t.match(await server.response(running), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
});

await t.test('requests that meet the end of input are answered or fail, and the server exits', async (t) => {
  const first = await startServer(t, { args: ['--model', 'scripted', '--pace-ms', '0'] });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await first.newSession(cwd);
  await first.prompt(sessionId, 'read a.txt\n'.repeat(500));
  await endServer(t, first);
  for (const isInReplay of [false, true]) {
    const server = await startServer(t, { stateDir: first.stateDir });
    const ids = [
      server.start('session/load', { sessionId, cwd, mcpServers: [] }),
      server.start('session/new', { cwd, mcpServers: [] }),
      server.start('session/list', {}),
    ];
    if (isInReplay) await server.waitFor((frame) => frame.params?.sessionId === sessionId, 'an update of the history');
    const started = performance.now();
    await endServer(t, server);
    t.ok(performance.now() - started < 10_000, `the end took ${Math.round(performance.now() - started)} ms`);
    for (const id of ids) t.equal(server.frames.filter((frame) => frame.id === id).length, 1);
  }
  const next = await startServer(t, { stateDir: first.stateDir });
  t.ok((await load(next, sessionId, cwd)).result, 'no lock is left');
  await endServer(t, next);
});

await t.test('#66 $/cancel_request of a load or a list: one answer, and the session is whole', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--pace-ms', '0'] });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  await server.prompt(sessionId, 'repeat 20000 w');
  await server.request('session/close', { sessionId });
  for (const [method, params] of [
    ['session/load', { sessionId, cwd, mcpServers: [] }],
    ['session/list', {}],
    ['session/new', { cwd, mcpServers: [] }],
  ] as const) {
    const id = server.start(method, params);
    server.notify('$/cancel_request', { requestId: id });
    const answer = await server.response(id);
    t.ok(answer.result !== undefined || answer.error?.code === -32800, `${method}: ${JSON.stringify(answer).slice(0, 200)}`);
    await server.request('session/list', {});
    t.equal(server.frames.filter((frame) => frame.id === id).length, 1);
  }
  await server.request('session/close', { sessionId });
  t.ok((await load(server, sessionId, cwd)).result);
  t.match(await server.prompt(sessionId, 'say x'), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
});
