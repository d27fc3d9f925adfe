/**
 * Permission requests of the assembled server: every answer that a client can give, in any order, or never. Numbers are
 * those of the conformance checklist.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { logPath, readEvents } from '../support/invariants.ts';
import { cliPath, type Frame, type ServerProcess } from '../support/server-process.ts';
import { callIds, endServer, exchange, startServer, statusesOfCall, updatesOfCall } from '../support/started-server.ts';

const isAsking = (frame: Frame): boolean => frame.method === 'session/request_permission';
const nextQuestion = (server: ServerProcess, sessionId?: string): Promise<Frame> =>
  server.next((frame) => isAsking(frame) && (sessionId === undefined || frame.params.sessionId === sessionId), 'a permission request');
const questions = (server: ServerProcess, sessionId: string): Frame[] =>
  server.frames.filter((frame) => isAsking(frame) && frame.params.sessionId === sessionId);
const selected = (optionId: unknown): object => ({ outcome: { outcome: 'selected', optionId } });
const answer = (server: ServerProcess, question: Frame, result: unknown): void => server.send({ jsonrpc: '2.0', id: question.id, result });
const optionOf = (question: Frame, kind: string): string => question.params.options.find((one: any) => one.kind === kind).optionId;
const statusOf = (server: ServerProcess, sessionId: string, callId: string): string =>
  updatesOfCall(server, sessionId, callId)
    .flatMap((update) => (update.status === undefined ? [] : [update.status]))
    .at(-1);

/** A server whose questions are answered by the test. */
const quietServer = (t: Test, args: readonly string[] = []): Promise<ServerProcess> =>
  startServer(t, { args: ['--model', 'scripted', '--pace-ms', '0', ...args], onRequest: () => undefined });

await t.test('answers', async (t) => {
  const server = await quietServer(t);
  const cwd = realpathSync(t.testdir({ 'secret.env': 'x' }));
  const made = (name: string): boolean => existsSync(join(cwd, name));

  await t.test('#85 a request is complete in itself, after its tool_call, and the call waits', async (t) => {
    const sessionId = await server.newSession(cwd);
    const asked = nextQuestion(server);
    const id = server.startPrompt(sessionId, 'run echo hello > once.txt');
    const question = await asked;
    const { toolCall, options } = question.params;
    t.equal(question.params.sessionId, sessionId);
    t.match(toolCall, { toolCallId: String, title: /echo hello/, kind: 'execute', status: 'pending' });
    t.match(JSON.stringify(toolCall.rawInput), /once\.txt/);
    t.same(
      options.map((option: any) => option.kind),
      ['allow_once', 'allow_always', 'reject_once', 'reject_always'],
    );
    t.equal(new Set(options.map((option: any) => option.optionId)).size, options.length);
    const at = server.frames.indexOf(question);
    const shown = server.frames.slice(0, at).filter((frame) => frame.params?.update?.toolCallId === toolCall.toolCallId);
    t.equal(shown[0]?.params.update.sessionUpdate, 'tool_call');
    t.equal(shown.at(-1)?.params.update.status, 'pending', 'its card shows that it waits');
    t.notOk(made('once.txt'));
    answer(server, question, selected(optionOf(question, 'allow_once')));
    t.match(await server.response(id), { result: { stopReason: 'end_turn' } });
    t.equal(readFileSync(join(cwd, 'once.txt'), 'utf8'), 'hello\n');
    t.same(statusesOfCall(server, sessionId, toolCall.toolCallId), ['pending', 'in_progress', 'completed'], '#72');
  });

  await t.test(
    '#86 an answer for good holds for this very command in every session of the workspace, until it is taken back',
    async (t) => {
      const sessionId = await server.newSession(cwd);
      const ask = async (session: string, command: string, kind: string): Promise<number> => {
        const before = questions(server, session);
        const id = server.startPrompt(session, `run ${command}`);
        const isNew = (frame: Frame): boolean => questions(server, session).includes(frame) && !before.includes(frame);
        const first = await server.waitFor((frame) => (frame.id === id && !isAsking(frame)) || isNew(frame), 'a question or the end');
        if (isAsking(first)) answer(server, first, selected(optionOf(first, kind)));
        t.match(await server.response(id), { result: { stopReason: 'end_turn' } });
        return questions(server, session).length - before.length;
      };
      const count = (): number => readFileSync(join(cwd, 'ran'), 'utf8').length;
      t.equal(await ask(sessionId, 'printf a >> ran', 'allow_once'), 1);
      t.equal(await ask(sessionId, 'printf a >> ran', 'allow_always'), 1);
      t.equal(await ask(sessionId, 'printf a >> ran', 'reject_once'), 0, 'allowed for good');
      t.equal(await ask(sessionId, 'printf b >> ran', 'reject_always'), 1, 'another command');
      t.equal(await ask(sessionId, 'printf b >> ran', 'allow_once'), 0, 'rejected for good');
      t.equal(count(), 3);
      const other = await server.newSession(cwd);
      t.equal(await ask(other, 'printf a >> ran', 'reject_once'), 0, 'another session of the workspace');
      t.equal(await ask(other, 'printf b >> ran', 'allow_once'), 0);
      t.equal(count(), 4);
      const elsewhere = await server.newSession(realpathSync(t.testdir({})));
      t.equal(await ask(elsewhere, 'printf a >> ran', 'reject_once'), 1, '#37 another workspace');
      const grants = (...words: string[]): string =>
        execFileSync(process.execPath, [cliPath, 'grants', ...words, '--state-dir', server.stateDir], { encoding: 'utf8' });
      const [, id = ''] = /^ {2}(\w+) .*printf a/m.exec(grants()) ?? [];
      t.match(grants('remove', id), /^Taken back: .*: the command "printf a/);
      t.equal(await ask(other, 'printf a >> ran', 'reject_once'), 1, 'taken back while the session is open');
      await server.request('session/close', { sessionId });
      t.ok((await server.request('session/load', { sessionId, cwd, mcpServers: [] })).result);
      t.equal(await ask(sessionId, 'printf b >> ran', 'allow_once'), 0, 'a load finds what is kept');
      t.match(grants('clear', cwd), /^Taken back: 1/);
      t.equal(await ask(sessionId, 'printf a >> ran', 'reject_once'), 1, 'and what was taken back is not found in its log');
    },
  );

  const refusals: readonly (readonly [string, (question: Frame) => object])[] = [
    ['reject_once', (question) => ({ result: selected(optionOf(question, 'reject_once')) })],
    ['cancelled', () => ({ result: { outcome: { outcome: 'cancelled' } } })],
    ['an unknown option', () => ({ result: selected('allow') })],
    ['an option of another type', () => ({ result: selected(0) })],
    ['no option', () => ({ result: { outcome: { outcome: 'selected' } } })],
    ['an unknown outcome', () => ({ result: { outcome: { outcome: 'allowed', optionId: 'allow_once' } } })],
    ['an outcome that is a string', () => ({ result: { outcome: 'selected', optionId: 'allow_once' } })],
    ['an empty result', () => ({ result: {} })],
    ['null', () => ({ result: null })],
    ['true', () => ({ result: true })],
    ['a list', () => ({ result: [selected('allow_once')] })],
    ['error -32601', () => ({ error: { code: -32601, message: 'Method not found' } })],
    ['error -32603', () => ({ error: { code: -32603, message: 'Internal error' } })],
    ['an error that is none', () => ({ error: 'no' })],
    ['neither result nor error', () => ({})],
    ['result and error', () => ({ result: selected('allow_once'), error: { code: 1, message: 'm' } })],
  ];
  const textOf = (name: string): RegExp => {
    if (name === 'reject_once') return /The user rejected this call/;
    return name === 'cancelled'
      ? /The client gave no answer to this request; nothing was done/
      : /No valid answer to the permission request/;
  };
  await t.test('#85 whatever is not a clear yes does not run the call, and the turn goes on', async (t) => {
    await Promise.all(
      refusals.map(async ([name, make], index) => {
        const sessionId = await server.newSession(cwd);
        const asked = nextQuestion(server, sessionId);
        const id = server.startPrompt(sessionId, `run touch refused-${index}\nsay the turn goes on`);
        const question = await asked;
        server.send({ jsonrpc: '2.0', id: question.id, ...make(question) });
        const response = await server.response(id);
        t.equal(response.result?.stopReason, 'end_turn', `${name}: ${JSON.stringify(response)}`);
        const result = (await readEvents(logPath(server, sessionId))).find((event) => event.type === 'tool/result');
        t.match(result?.data, { text: textOf(name) }, name);
        t.notOk(made(`refused-${index}`), name);
        t.equal(statusOf(server, sessionId, question.params.toolCall.toolCallId), 'failed', name);
        t.match(await server.prompt(sessionId, 'say next'), { result: { stopReason: 'end_turn' } }, name);
      }),
    );
  });

  await t.test('#87 #90 two open requests answered in reverse order reach the right calls, by unique ids', async (t) => {
    const [first, second] = [await server.newSession(cwd), await server.newSession(cwd)];
    const asked = [nextQuestion(server, first), nextQuestion(server, second)];
    const prompts = [server.startPrompt(first, 'run touch from-first'), server.startPrompt(second, 'run touch from-second')];
    const [one, two] = await Promise.all(asked);
    t.not(one!.id, two!.id);
    answer(server, two!, selected(optionOf(two!, 'reject_once')));
    t.match(await server.response(prompts[1]!), { result: { stopReason: 'end_turn' } });
    answer(server, one!, selected(optionOf(one!, 'allow_once')));
    t.match(await server.response(prompts[0]!), { result: { stopReason: 'end_turn' } });
    t.ok(made('from-first'));
    t.notOk(made('from-second'));
  });

  await t.test('#87 two of one step, answered in reverse order', async (t) => {
    const outside = realpathSync(t.testdir({ 'one.txt': 'content one', 'two.txt': 'content two' }));
    const sessionId = await server.newSession(cwd);
    const id = server.startPrompt(sessionId, `read ${join(outside, 'one.txt')}\n& read ${join(outside, 'two.txt')}`);
    await server.waitFor(() => questions(server, sessionId).length === 2, 'both requests');
    const [one, two] = questions(server, sessionId);
    answer(server, two!, selected(optionOf(two!, 'reject_once')));
    answer(server, one!, selected(optionOf(one!, 'allow_once')));
    t.match(await server.response(id), { result: { stopReason: 'end_turn' } });
    t.equal(statusOf(server, sessionId, one!.params.toolCall.toolCallId), 'completed');
    t.equal(statusOf(server, sessionId, two!.params.toolCall.toolCallId), 'failed');
    const shown = JSON.stringify(server.updates(sessionId));
    t.ok(shown.includes('content one') !== shown.includes('content two'), 'only the allowed one was read');
  });

  await t.test('#88 #67 a client that never answers blocks its session only; a cancel withdraws the request', async (t) => {
    const [stuck, free] = [await server.newSession(cwd), await server.newSession(cwd)];
    const asked = nextQuestion(server, stuck);
    const id = server.startPrompt(stuck, 'run touch never');
    const queued = server.startPrompt(stuck, 'say never');
    const question = await asked;
    t.match(await server.prompt(free, 'say free'), { result: { stopReason: 'end_turn' } });
    const withdrawn = server.next((frame) => frame.method === '$/cancel_request', 'the withdrawal');
    const started = performance.now();
    server.notify('session/cancel', { sessionId: stuck });
    t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
    t.ok(performance.now() - started < 10_000);
    t.match(await server.response(queued), { result: { stopReason: 'cancelled' } });
    t.equal((await withdrawn).params.requestId, question.id);
    t.equal(statusOf(server, stuck, question.params.toolCall.toolCallId), 'failed');

    await t.test('#90 late and doubled answers are ignored', async (t) => {
      const late = `${JSON.stringify({ jsonrpc: '2.0', id: question.id, result: selected(optionOf(question, 'allow_once')) })}\n`;
      t.same(await exchange(server, late + late, 0), []);
      t.match(await server.prompt(stuck, 'say usable'), { result: { stopReason: 'end_turn' } });
      t.notOk(made('never'));
    });
  });

  await t.test('#85 the answer cancelled after session/cancel, as clients must give it', async (t) => {
    const sessionId = await server.newSession(cwd);
    const asked = nextQuestion(server, sessionId);
    const id = server.startPrompt(sessionId, 'run touch neither');
    const question = await asked;
    server.notify('session/cancel', { sessionId });
    answer(server, question, { outcome: { outcome: 'cancelled' } });
    t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
    t.notOk(made('neither'));
  });

  await t.test('#57 an answer and a cancel in one write, either way round: one response', async (t) => {
    for (const cancelFirst of [true, false]) {
      const sessionId = await server.newSession(cwd);
      const asked = nextQuestion(server, sessionId);
      const id = server.startPrompt(sessionId, 'run sleep 20');
      const question = await asked;
      const yes = `${JSON.stringify({ jsonrpc: '2.0', id: question.id, result: selected(optionOf(question, 'allow_once')) })}\n`;
      const cancel = `${JSON.stringify({ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId } })}\n`;
      server.sendRaw(cancelFirst ? cancel + yes : yes + cancel);
      t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
      await server.request('session/list', {});
      t.equal(server.frames.filter((frame) => frame.method === undefined && frame.id === id).length, 1);
      t.ok(callIds(server, sessionId).every((callId) => statusOf(server, sessionId, callId) === 'failed'));
    }
  });

  await t.test('what the modes ask about: reads inside do not, files outside and control files do', async (t) => {
    const outside = realpathSync(t.testdir({ 'x.txt': 'outside' }));
    const sessionId = await server.newSession(cwd);
    writeFileSync(join(cwd, 'in.txt'), 'inside');
    await server.prompt(sessionId, 'read in.txt\nglob *.txt\ngrep inside\nwrite inside.txt <<EOF\nx\nEOF');
    t.equal(questions(server, sessionId).length, 0);
    t.ok(made('inside.txt'));
    for (const [count, text] of [
      [1, `read ${join(outside, 'x.txt')}`],
      [2, `write ${join(outside, 'y.txt')} <<EOF\nx\nEOF`],
      [3, 'write .git/hooks/pre-commit <<EOF\nx\nEOF'],
    ] as const) {
      const asked = nextQuestion(server, sessionId);
      const id = server.startPrompt(sessionId, text);
      answer(server, await asked, { outcome: { outcome: 'cancelled' } });
      await server.response(id);
      t.equal(questions(server, sessionId).length, count, text);
    }
    t.notOk(existsSync(join(outside, 'y.txt')));
    t.notOk(made('.git'));
  });

  await endServer(t, server);
});

await t.test('an unanswered request ends by its time limit, and the turn goes on', async (t) => {
  const server = await quietServer(t, ['--permission-timeout-ms', '200']);
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  t.match(await server.prompt(sessionId, 'run touch late\nsay goes on'), { result: { stopReason: 'end_turn' } });
  t.notOk(existsSync(join(cwd, 'late')));
  t.match(server.text(sessionId), /goes on/);
  t.ok(server.frames.some((frame) => frame.method === '$/cancel_request'));
  await endServer(t, server);
});

await t.test('#85 #51 a close and the end of input while requests are open: nothing runs', async (t) => {
  const server = await quietServer(t);
  const cwd = realpathSync(t.testdir({}));
  const [closed, left] = [await server.newSession(cwd), await server.newSession(cwd)];
  const asked = [nextQuestion(server, closed), nextQuestion(server, left)];
  const prompts = [server.startPrompt(closed, 'run touch closed'), server.startPrompt(left, 'run touch left')];
  await Promise.all(asked);
  t.same((await server.request('session/close', { sessionId: closed })).result, {});
  t.match(await server.response(prompts[0]!), { result: { stopReason: 'cancelled' } });
  await endServer(t, server);
  t.match(await server.response(prompts[1]!), { result: { stopReason: 'cancelled' } });
  t.notOk(existsSync(join(cwd, 'closed')) || existsSync(join(cwd, 'left')));
});
