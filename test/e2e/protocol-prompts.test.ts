/**
 * Prompts of the assembled server: order, overlap, cancel at every moment, stop reasons, failures of the model, secrets and
 * the end of input. Numbers are those of the conformance checklist.
 */
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { AnswerPlan } from '../support/answer-plan.ts';
import { ModelServer } from '../support/model-server.ts';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { callIds, checkOutput, endServer, exchange, startServer, updatesOfCall } from '../support/started-server.ts';
import { testSeed } from '../support/test-seed.ts';

const isEnded = (server: ServerProcess, sessionId: string): boolean =>
  callIds(server, sessionId).every((id) => ['completed', 'failed'].includes(updatesOfCall(server, sessionId, id).at(-1).status));

/** The next update of a session of one kind. */
const nextUpdate = (server: ServerProcess, sessionId: string, kind: string): Promise<Frame> =>
  server.next((frame) => frame.params?.sessionId === sessionId && frame.params.update?.sessionUpdate === kind, `a ${kind}`);

const promptFrame = (id: unknown, sessionId: string, text: string): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method: 'session/prompt', params: { sessionId, prompt: [{ type: 'text', text }] } })}\n`;
const cancelFrame = (sessionId: string): string =>
  `${JSON.stringify({ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId } })}\n`;

async function eventually(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`not within 10 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    // No such process, or none of ours to see.
    return false;
  }
}

/** A command that ignores TERM, as does its child, and leaves both pids in a file. */
const stubborn = "trap '' TERM; (trap '' TERM; sleep 30) & echo $$ $! > pids; wait; sleep 30";
const pidsIn = (cwd: string): number[] => readFileSync(join(cwd, 'pids'), 'utf8').trim().split(' ').map(Number);
const hasPids = (cwd: string): boolean => existsSync(join(cwd, 'pids')) && /\d+ \d+\n/.test(readFileSync(join(cwd, 'pids'), 'utf8'));

/** All that stands in the files below a directory. */
function filesText(dir: string): string {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n');
}

/** How the turns of a session ended, by its log. */
function turnEnds(server: ServerProcess, sessionId: string): string[] {
  const lines = readFileSync(join(server.stateDir, 'sessions', `${sessionId}.jsonl`), 'utf8')
    .trim()
    .split('\n');
  return lines.map((line) => JSON.parse(line)).flatMap((event) => (event.type === 'turn/end' ? [event.data.reason.kind] : []));
}

await t.test('prompts of the scripted model', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--pace-ms', '0', '--max-queued-prompts', '3'] });
  const cwd = realpathSync(t.testdir({ 'a.txt': 'alpha\n' }));

  await t.test('#54 text and resource links are taken, other kinds refused by name', async (t) => {
    const sessionId = await server.newSession(cwd);
    const link = { type: 'resource_link', uri: 'file:///tmp/x.txt', name: 'x.txt' };
    t.ok((await server.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'say hi' }, link] })).result);
    t.ok((await server.request('session/prompt', { sessionId, prompt: [link] })).result);
    const blocks = [
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'file:///x', blob: 'AAAA' } },
    ];
    for (const block of blocks) {
      const answer = await server.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'say x' }, block] });
      t.match(answer.error, { code: -32602, message: new RegExp(block.type) });
      t.notMatch(JSON.stringify(answer), /canary-text|AAAA/);
    }
  });

  await t.test('#55 empty and blank prompts and broken blocks are refused', async (t) => {
    const sessionId = await server.newSession(cwd);
    const bad: unknown[] = [
      [],
      [{ type: 'text', text: '' }],
      [{ type: 'text', text: ' \n\t' }],
      [{}],
      [null],
      [5],
      {},
      null,
      undefined,
      'say x',
    ];
    bad.push([{ type: 'text' }], [{ type: 'text', text: 5 }], [{ type: 'nonsense' }], [{ type: 'resource_link', uri: 5, name: 'x' }]);
    for (const prompt of bad) {
      t.equal((await server.request('session/prompt', { sessionId, prompt })).error?.code, -32602, JSON.stringify(prompt));
    }
    t.equal((await server.request('session/prompt', { prompt: [{ type: 'text', text: 'say x' }] })).error?.code, -32602);
    t.same(server.updates(sessionId), []);
  });

  await t.test('#70 a slash command and prose are answered', async (t) => {
    const sessionId = await server.newSession(cwd);
    t.match(await server.prompt(sessionId, '/nonsense with arguments'), { result: { stopReason: 'end_turn' } });
    t.match(await server.prompt(sessionId, 'Please mend the tests.'), { result: { stopReason: 'end_turn' } });
  });

  await t.test('#56 the response stands behind 10,000 chunks', async (t) => {
    const sessionId = await server.newSession(cwd);
    const id = server.startPrompt(sessionId, 'repeat 10000 w');
    await server.response(id);
    await server.request('session/list', {});
    const at = server.frames.findIndex((frame) => frame.id === id && frame.method === undefined);
    t.notOk(server.frames.slice(at).some((frame) => frame.params?.sessionId === sessionId));
    t.equal((server.text(sessionId).match(/\bw\b/g) ?? []).length, 10_000);
  });

  await t.test('#61 a cancel with no prompt running does nothing to the next', async (t) => {
    const sessionId = await server.newSession(cwd);
    server.notify('session/cancel', { sessionId });
    t.match(await server.prompt(sessionId, 'say one'), { result: { stopReason: 'end_turn' } });
    server.notify('session/cancel', { sessionId });
    server.notify('session/cancel', { sessionId });
    t.match(await server.prompt(sessionId, 'say two'), { result: { stopReason: 'end_turn' } });
    const [answer] = await exchange(server, cancelFrame(sessionId) + promptFrame('behind', sessionId, 'say three'), 1);
    t.ok(answer);
    t.match(await server.response('behind'), { result: { stopReason: 'end_turn' } });
  });

  await t.test('#62 a prompt and its cancel in one write: cancelled', async (t) => {
    for (let round = 0; round < 10; round += 1) {
      const sessionId = await server.newSession(cwd);
      const id = `write-${round}`;
      server.sendRaw(promptFrame(id, sessionId, 'wait 60000') + cancelFrame(sessionId));
      t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
    }
  });

  await t.test('#63 a cancel and the next prompt in one write: the first cancelled, the second runs', async (t) => {
    const sessionId = await server.newSession(cwd);
    server.sendRaw(promptFrame('first', sessionId, 'say begun\nwait 60000'));
    await nextUpdate(server, sessionId, 'agent_message_chunk');
    server.sendRaw(cancelFrame(sessionId) + promptFrame('second', sessionId, 'say the second'));
    t.match(await server.response('first'), { result: { stopReason: 'cancelled' } });
    t.match(await server.response('second'), { result: { stopReason: 'end_turn' } });
    t.match(server.text(sessionId), /the second/);
    const answers = server.frames.filter((frame) => frame.id === 'first' || frame.id === 'second').map((frame) => frame.id);
    t.same(answers, ['first', 'second']);
  });

  await t.test('#64 overlapping prompts run in order, up to the limit', async (t) => {
    const sessionId = await server.newSession(cwd);
    const ids = ['wait 100\nsay p0', 'say p1', 'say p2', 'say p3', 'say p4'].map((text) => server.startPrompt(sessionId, text));
    const answers = await Promise.all(ids.map((id) => server.response(id)));
    t.match(answers[4], { error: { code: -31001, data: { code: 'SESSION_BUSY' } } });
    t.ok(answers.slice(0, 4).every((answer) => answer.result?.stopReason === 'end_turn'));
    t.same(server.text(sessionId).match(/p\d/g), ['p0', 'p1', 'p2', 'p3']);
  });

  await t.test('#58 a cancel answers the running prompt and every queued one, and other sessions go on', async (t) => {
    const [sessionId, other] = [await server.newSession(cwd), await server.newSession(cwd)];
    const ids = ['say begun\nwait 60000', 'say never', 'say never'].map((text) => server.startPrompt(sessionId, text));
    const untouched = server.startPrompt(other, 'wait 300\nsay untouched');
    await nextUpdate(server, sessionId, 'agent_message_chunk');
    server.notify('session/cancel', { sessionId });
    for (const id of ids) t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
    t.match(await server.response(untouched), { result: { stopReason: 'end_turn' } });
    t.notMatch(server.text(sessionId), /never/);
    t.match(await server.prompt(sessionId, 'say goes on'), { result: { stopReason: 'end_turn' } });
  });

  await t.test('#57 exactly one response per prompt, also when cancel races completion', async (t) => {
    const sessionIds = await Promise.all(Array.from({ length: 4 }, () => server.newSession(cwd)));
    const sent = new Map<string, string>();
    for (let round = 0; round < 25; round += 1) {
      const ids = sessionIds.map((sessionId, index) => {
        const id = `race-${round}-${index}`;
        sent.set(id, sessionId);
        server.sendRaw(promptFrame(id, sessionId, `repeat ${1 + round * 4} w`));
        setTimeout(() => server.sendRaw(cancelFrame(sessionId)), round % 5);
        return id;
      });
      const answers = await Promise.all(ids.map((id) => server.response(id)));
      for (const answer of answers) if (!['end_turn', 'cancelled'].includes(answer.result?.stopReason)) t.fail(JSON.stringify(answer));
    }
    await server.request('session/list', {});
    const counts = new Map<unknown, number>();
    for (const frame of server.frames) if (sent.has(String(frame.id))) counts.set(frame.id, (counts.get(frame.id) ?? 0) + 1);
    t.equal(counts.size, sent.size);
    t.ok([...counts.values()].every((count) => count === 1));
    const reasons = server.frames.filter((frame) => sent.has(String(frame.id))).map((frame) => frame.result.stopReason);
    t.comment(`${reasons.filter((reason) => reason === 'cancelled').length} of ${reasons.length} cancelled`);
    for (const sessionId of sessionIds) t.match(await server.prompt(sessionId, 'say alive'), { result: { stopReason: 'end_turn' } });
    // #59: a turn that ended by itself was not answered as cancelled, nor the other way round.
    const completed = sessionIds.flatMap((sessionId) => turnEnds(server, sessionId)).filter((kind) => kind === 'completed');
    t.equal(completed.length, reasons.filter((reason) => reason === 'end_turn').length + sessionIds.length, 'the log says the same');
  });

  await t.test('#66 $/cancel_request ends one prompt, running or queued, as cancelled', async (t) => {
    const sessionId = await server.newSession(cwd);
    const [first, second, third] = ['say begun\nwait 60000', 'say never', 'say third'].map((text) => server.startPrompt(sessionId, text));
    await nextUpdate(server, sessionId, 'agent_message_chunk');
    server.notify('$/cancel_request', { requestId: second! });
    t.match(await server.response(second!), { result: { stopReason: 'cancelled' } });
    server.notify('$/cancel_request', { requestId: String(first) });
    server.notify('$/cancel_request', { requestId: first! });
    t.match(await server.response(first!), { result: { stopReason: 'cancelled' } });
    t.match(await server.response(third!), { result: { stopReason: 'end_turn' } });
    t.notMatch(server.text(sessionId), /never/);
  });

  await endServer(t, server);
});

await t.test('#58 #60 a command and its child that ignore TERM are gone after a cancel', async (t) => {
  // A long grace: on a busy machine the answer would else come before the thread's own end of the turn.
  const server = await startServer(t, { args: ['--model', 'scripted', '--cancel-grace-ms', '10000'] });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  const id = server.startPrompt(sessionId, `run ${stubborn}`);
  await eventually('the command runs', () => hasPids(cwd));
  const pids = pidsIn(cwd);
  const started = performance.now();
  server.notify('session/cancel', { sessionId });
  t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
  const ms = performance.now() - started;
  t.ok(ms < 8000, `${Math.round(ms)} ms`);
  t.ok(isEnded(server, sessionId), 'the call has its end before the response');
  await eventually('the processes are gone', () => !pids.some(isAlive));
  t.match(await server.prompt(sessionId, 'run echo next'), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
});

await t.test('a workspace that vanishes is an error of the tools, not of the server', async (t) => {
  const server = await startServer(t);
  const cwd = join(realpathSync(t.testdir({ gone: { 'a.txt': 'x' } })), 'gone');
  const sessionId = await server.newSession(cwd);
  await server.prompt(sessionId, 'say x');
  rmSync(cwd, { recursive: true });
  t.match(await server.prompt(sessionId, 'run pwd\nread a.txt\nglob *\ngrep x\nsay on'), { result: { stopReason: 'end_turn' } });
  t.ok(isEnded(server, sessionId));
  t.same((await server.request('session/close', { sessionId })).result, {});
  t.match(await server.request('session/load', { sessionId, cwd, mcpServers: [] }), { error: { code: -32602 } });
  await endServer(t, server);
});

await t.test('#64 --overlap reject refuses the second prompt', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--overlap', 'reject'] });
  const sessionId = await server.newSession(t.testdir({}));
  const first = server.startPrompt(sessionId, 'wait 200');
  t.match(await server.prompt(sessionId, 'say x'), { error: { code: -31001 } });
  t.match(await server.response(first), { result: { stopReason: 'end_turn' } });
  t.match(await server.prompt(sessionId, 'say y'), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
});

await t.test('turns that wait for admission can be cancelled', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--max-running-turns', '1'] });
  const cwd = t.testdir({});
  const [running, waiting] = [await server.newSession(cwd), await server.newSession(cwd)];
  const first = server.startPrompt(running, 'say begun\nwait 60000');
  await nextUpdate(server, running, 'agent_message_chunk');
  const second = server.startPrompt(waiting, 'say never');
  const third = server.startPrompt(waiting, 'say never');
  server.notify('session/cancel', { sessionId: waiting });
  t.match(await server.response(second), { result: { stopReason: 'cancelled' } });
  t.match(await server.response(third), { result: { stopReason: 'cancelled' } });
  const fourth = server.startPrompt(waiting, 'say at last');
  server.notify('session/cancel', { sessionId: running });
  t.match(await server.response(first), { result: { stopReason: 'cancelled' } });
  t.match(await server.response(fourth), { result: { stopReason: 'end_turn' } });
  t.notMatch(server.text(waiting), /never/);
  await endServer(t, server);
});

const canary = 'sk-canary-0123456789abcdef0123';
const timeLimits = '--first-byte-timeout-ms 400 --idle-timeout-ms 400';

await t.test('prompts of a model server', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const stateDir = join(realpathSync(t.testdir({ state: {} })), 'state');
  const server = await startServer(t, {
    stateDir,
    env: { MY_KEY: canary, DEEPSEEK_API_KEY: `${canary}-deepseek` },
    args: `--base-url ${models.baseUrl} --model bench --api-key-env MY_KEY --max-steps 3 --max-retries 1 ${timeLimits}`.split(' '),
  });
  const cwd = realpathSync(t.testdir({ 'a.txt': 'alpha\n' }));
  const ask = (sessionId: string, ...plans: AnswerPlan[]): Promise<Frame> => server.prompt(sessionId, JSON.stringify({ plans }));
  const read = { name: 'read', arguments: '{"file_path":"a.txt"}' };

  await t.test('#68 stop reasons', async (t) => {
    const sessionId = await server.newSession(cwd);
    t.match(await ask(sessionId, { tokens: 3 }), { result: { stopReason: 'end_turn' } });
    t.match(await ask(sessionId, { tokens: 3, finish: 'length' }), { result: { stopReason: 'max_tokens' } });
    t.match(await ask(sessionId, { tokens: 3, finish: 'content_filter' }), { result: { stopReason: 'refusal' } });
    // Enqueued, since a plan in the prompt gives way to the notice that the last step begins with.
    models.enqueue(...Array.from({ length: 3 }, () => ({ tools: [read] })));
    t.match(await server.prompt(sessionId, 'read for ever'), { result: { stopReason: 'max_turn_requests' } });
    t.equal(callIds(server, sessionId).length, 3);
    t.ok(isEnded(server, sessionId));
    t.match(await ask(sessionId, { tokens: 1 }), { result: { stopReason: 'end_turn' } });
  });

  await t.test('thoughts and text come as they are, and calls are shown', async (t) => {
    const sessionId = await server.newSession(cwd);
    await ask(sessionId, { reasoning: 3, tokens: 2, tools: [read, read] }, { tokens: 2 });
    const thoughts = server.updates(sessionId).filter((update) => update.sessionUpdate === 'agent_thought_chunk');
    t.equal(thoughts.map((update) => update.content.text).join(''), 'why0 why1 why2 ');
    t.equal(server.text(sessionId), 'tok0 tok1 tok0 tok1 ');
    const ids = callIds(server, sessionId);
    t.equal(new Set(ids).size, 2);
    t.ok(ids.every((id) => updatesOfCall(server, sessionId, id).at(-1).status === 'completed'));
  });

  await t.test('#71 ids of calls that a provider uses again stay unique', async (t) => {
    const sessionId = await server.newSession(cwd);
    for (let turn = 0; turn < 2; turn += 1)
      await ask(sessionId, { tools: [{ ...read, id: 'call_0' }] }, { tools: [{ ...read, id: 'call_0' }] }, {});
    const ids = callIds(server, sessionId);
    t.equal(ids.length, 4);
    t.equal(new Set(ids).size, 4);
    t.ok(isEnded(server, sessionId));
  });

  await t.test('broken, unknown and refused calls end failed, and the turn goes on', async (t) => {
    const sessionId = await server.newSession(cwd);
    const tools = [
      { name: 'read', arguments: '{"file_path":' },
      { name: 'nonsense', arguments: '{}' },
      { name: 'read', arguments: '{"wrong":1}' },
      { name: 'read', arguments: '[]' },
    ];
    t.match(await ask(sessionId, { tools }, { tokens: 1 }), { result: { stopReason: 'end_turn' } });
    const ids = callIds(server, sessionId);
    t.equal(ids.length, 4);
    t.ok(ids.every((id) => updatesOfCall(server, sessionId, id).at(-1).status === 'failed'));
  });

  await t.test('#37 a session sends its own history only', async (t) => {
    const [first, second] = [await server.newSession(cwd), await server.newSession(cwd)];
    await server.prompt(first, 'only the first knows');
    await server.prompt(second, 'only the second knows');
    models.reset();
    await server.prompt(first, 'and now');
    const sent = models.requests.at(-1)?.text ?? '';
    t.match(sent, /only the first knows/);
    t.notMatch(sent, /only the second knows/);
  });

  const faults: readonly (readonly [string, AnswerPlan, object])[] = [
    [
      'HTTP 400',
      { fault: { kind: 'status', status: 400, body: '{"error":{"message":"bad field xyz"}}' } },
      { code: -32603, message: /400.*bad field xyz/ },
    ],
    ['HTTP 401', { fault: { kind: 'status', status: 401, body: '{"error":{"message":"Incorrect API key"}}' } }, { code: -32000 }],
    ['HTTP 404', { fault: { kind: 'status', status: 404, body: 'not here' } }, { code: -32603, message: /404/ }],
    ['HTTP 500 to the end', { fault: { kind: 'status', status: 500 } }, { code: -32603, message: /500/ }],
    ['no answer', { fault: { kind: 'hang' } }, { code: -32603 }],
    ['an answer without a body', { fault: { kind: 'stall-before' } }, { code: -32603 }],
    ['a stream that stops', { tokens: 9, fault: { kind: 'stall-mid', after: 2 } }, { code: -32603 }],
    ['a stream that is cut', { tokens: 9, fault: { kind: 'cut', after: 2 } }, { code: -32603 }],
    ['a page of HTML', { rawBody: '<html>proxy</html>', contentType: 'text/html' }, { code: -32603 }],
    ['broken data', { raw: ['{"choices":[{"del'] }, { code: -32603 }],
    ['an error in the stream', { raw: ['{"error":{"message":"the engine died","code":500}}'] }, { code: -32603, message: /engine died/ }],
  ];
  await t.test('#69 a failure of the model is a readable error, and the session stays usable', async (t) => {
    await Promise.all(
      faults.map(async ([name, plan, expected]) => {
        const sessionId = await server.newSession(cwd);
        const { error } = await ask(sessionId, plan);
        t.match(error, expected, `${name}: ${error?.code} ${error?.message}`);
        t.ok((error?.message ?? '').length > 10);
        t.notMatch(error?.message, /\n|undefined|\[object/);
        t.match(await ask(sessionId, { tokens: 2 }), { result: { stopReason: 'end_turn' } }, `${name}: the next prompt runs`);
      }),
    );
  });

  await t.test('#58 a cancel while the model is waited for, and while it streams', async (t) => {
    const waits: readonly (readonly [string, AnswerPlan, boolean])[] = [
      ['before the head', { fault: { kind: 'hang' } }, false],
      ['before the body', { fault: { kind: 'stall-before' } }, false],
      ['in the text', { tokens: 100_000, delayMs: 2 }, true],
      ['at full speed', { tokens: 200_000 }, true],
    ];
    for (const [name, plan, streams] of waits) {
      const sessionId = await server.newSession(cwd);
      models.reset();
      const id = server.startPrompt(sessionId, JSON.stringify(plan));
      if (streams) await nextUpdate(server, sessionId, 'agent_message_chunk');
      else await eventually('the request is there', () => models.requests.length > 0);
      const started = performance.now();
      server.notify('session/cancel', { sessionId });
      t.match(await server.response(id), { result: { stopReason: 'cancelled' } }, name);
      t.ok(performance.now() - started < 10_000, `${name}: ${Math.round(performance.now() - started)} ms`);
      await eventually('the connection to the model is given up', () => models.activeStreams === 0);
      const shown = server.text(sessionId);
      models.reset();
      await server.prompt(sessionId, 'what did you say?');
      if (streams) t.ok(JSON.stringify(models.requests.at(-1)?.body.messages).includes(shown.slice(0, 20)), '#60 the partial text is kept');
    }
  });

  await t.test('#60 calls that a cancel meets all end before the response', async (t) => {
    const sessionId = await server.newSession(cwd);
    const bash = (command: string) => ({ name: 'bash', arguments: JSON.stringify({ command, description: 'd' }) });
    const id = server.startPrompt(sessionId, JSON.stringify({ tools: [bash('sleep 30'), bash('echo never'), read] }));
    await nextUpdate(server, sessionId, 'tool_call');
    server.notify('session/cancel', { sessionId });
    t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
    t.ok(isEnded(server, sessionId));
    t.equal(callIds(server, sessionId).length, 3);
    models.reset();
    t.match(await server.prompt(sessionId, 'go on'), { result: { stopReason: 'end_turn' } });
    const messages: any[] = models.requests.at(-1)?.body.messages;
    const asked = messages.flatMap((message) => (message.tool_calls ?? []).map((call: any) => call.id));
    const answered = messages.filter((message) => message.role === 'tool').map((message) => message.tool_call_id);
    t.same(new Set(answered), new Set(asked), 'every call in the history has its result');
  });

  await t.test('#77 a huge argument is not repeated in full', async (t) => {
    const sessionId = await server.newSession(cwd);
    const content = 'x'.repeat(3_000_000);
    await ask(sessionId, { tools: [{ name: 'nonsense', arguments: JSON.stringify({ content }) }] }, {});
    const sizes = server.updates(sessionId).map((update) => JSON.stringify(update).length);
    t.ok(Math.max(...sizes) < 600_000, `the longest update has ${Math.max(...sizes)} characters`);
  });

  await t.test('#29 no key in frames, on stderr, in logs or in requests of the model server but their header', async (t) => {
    t.ok(models.requests.length > 0);
    t.ok(
      models.requests.every((request) => request.headers.authorization === `Bearer ${canary}`),
      'the key is in use',
    );
    t.notOk(models.requests.some((request) => request.text.includes('canary-0123')));
    const sessionId = await server.newSession(cwd);
    models.enqueue({ fault: { kind: 'status', status: 401, body: `{"error":{"message":"Incorrect API key: ${canary}"}}` } });
    t.match(await server.prompt(sessionId, 'say your key'), { error: { code: -32000 } });
    models.enqueue({ raw: [`{"error":{"message":"bad key ${canary}","code":400}}`] });
    t.match(await server.prompt(sessionId, 'say it again'), { error: { code: -32603 } });
    const tools = [{ name: 'bash', arguments: JSON.stringify({ command: 'env; cat /proc/self/environ', description: 'look for keys' }) }];
    await ask(sessionId, { tools }, { tokens: 1 });
    t.match(JSON.stringify(server.updates(sessionId)), /PATH=/, 'the command ran');
    await endServer(t, server);
    t.notMatch(server.frames.map((frame) => JSON.stringify(frame)).join('\n'), /canary-0123/);
    t.notMatch(filesText(stateDir), /canary-0123/);
  });
});

await t.test('#29 a key in the file of settings stays there too, at the loudest log level', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const dir = realpathSync(t.testdir({ state: {}, work: {} }));
  const config = join(dir, 'config.toml');
  writeFileSync(config, `[provider]\nbase_url = "${models.baseUrl}"\napi_key = "${canary}"\n`, { mode: 0o600 });
  const stateDir = join(dir, 'state');
  const server = await startServer(t, {
    stateDir,
    args: ['--config', config, '--model', 'bench', '--log-level', 'debug', '--max-retries', '0'],
  });
  const sessionId = await server.newSession(join(dir, 'work'));
  const body = `{"error":{"message":"Incorrect API key provided: ${canary.slice(0, 12)}*******0123"}}`;
  models.enqueue({ fault: { kind: 'status', status: 401, body } });
  t.match(await server.prompt(sessionId, 'hello'), { error: { code: -32000 } });
  t.equal(models.requests[0]?.headers.authorization, `Bearer ${canary}`);
  t.equal((await server.close()).code, 0);
  for (const text of [server.stderr, server.frames.map((frame) => JSON.stringify(frame)).join('\n'), filesText(stateDir)]) {
    t.notMatch(text, /sk-canary/);
  }
  t.same(server.violations, []);
});

await t.test('#26 a model that needs a key and has none: -32000 from session/new and authenticate, nothing else', async (t) => {
  const server = await startServer(t, { args: ['--model', 'deepseek-flash'] });
  t.match(await server.request('session/new', { cwd: t.testdir({}), mcpServers: [] }), { error: { code: -32000 } });
  t.ok((await server.request('session/list', {})).result);
  t.match(await server.request('authenticate', { methodId: 'api-key' }), { error: { code: -32000 } });
  await endServer(t, server);
});

async function endMidTurn(t: Test, end: (server: ServerProcess) => void): Promise<void> {
  const server = await startServer(t);
  const cwd = realpathSync(t.testdir({ one: {}, two: {} }));
  const ids = await Promise.all(['one', 'two', 'one'].map((name) => server.newSession(join(cwd, name))));
  const prompts = [
    server.startPrompt(ids[0]!, `run ${stubborn}`),
    server.startPrompt(ids[1]!, `say begun\nwait 60000`),
    server.startPrompt(ids[1]!, 'say never'),
    server.startPrompt(ids[2]!, 'bg sleep 30\nwait 60000'),
  ];
  await nextUpdate(server, ids[1]!, 'agent_message_chunk');
  await eventually('the command runs', () => hasPids(join(cwd, 'one')));
  const pids = pidsIn(join(cwd, 'one'));
  const started = performance.now();
  end(server);
  const exit = await server.exited;
  const ms = performance.now() - started;
  t.same(exit, { code: 0, signal: null });
  t.ok(ms < 10_000, `the end took ${Math.round(ms)} ms`);
  for (const id of prompts) t.match(await server.response(id), { result: { stopReason: 'cancelled' } });
  t.notOk(pids.some(isAlive), 'no child is left');
  checkOutput(t, server);
  const next = await startServer(t, { stateDir: server.stateDir });
  for (const [index, name] of ['one', 'two', 'one'].entries()) {
    t.ok((await next.request('session/load', { sessionId: ids[index], cwd: join(cwd, name), mcpServers: [] })).result);
    t.ok(isEnded(next, ids[index]!));
  }
  await endServer(t, next);
}

await t.test('#15 the end of input in the middle of turns: cancelled answers, no child, exit 0', (t) =>
  endMidTurn(t, (server) => server.child.stdin!.end()),
);

await t.test('#15 SIGTERM in the middle of turns does the same', (t) => endMidTurn(t, (server) => void server.child.kill('SIGTERM')));

await t.test('#12 a client that stops reading stops the production, and nothing is lost', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--pace-ms', '0'] });
  const [slow, other] = await Promise.all([server.newSession(t.testdir({})), server.newSession('/')]);
  const log = join(server.stateDir, 'sessions', `${slow}.jsonl`);
  const id = server.startPrompt(slow, 'repeat 80000 word');
  await nextUpdate(server, slow, 'agent_message_chunk');
  server.child.stdout!.pause();
  let size = -1;
  let still = 0;
  await eventually('the log stands still', () => {
    const now = statSync(log).size;
    still = now === size ? still + 1 : 0;
    size = now;
    return still > 30;
  });
  t.ok(size < 100_000, `the log holds ${size} bytes`);
  t.notOk(turnEnds(server, slow).length > 0, 'the turn waits');
  server.child.stdout!.resume();
  t.match(await server.response(id), { result: { stopReason: 'end_turn' } });
  t.equal((server.text(slow).match(/word/g) ?? []).length, 80_000);
  t.match(await server.prompt(other, 'say x'), { result: { stopReason: 'end_turn' } });
  await endServer(t, server);
});

await t.test('#15 a closed stdout ends the server', async (t) => {
  const server = await startServer(t);
  const sessionId = await server.newSession(t.testdir({}));
  server.startPrompt(sessionId, 'repeat 1000000 w');
  await nextUpdate(server, sessionId, 'agent_message_chunk');
  server.child.stdout!.destroy();
  const exit = await server.exited;
  t.equal(exit.code, 0);
});

/** A small generator of random numbers in [0, 1) that a seed repeats (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function seedFrame(index: number, sessionId: string, cwd: string, random: () => number): string {
  const id = `f${index}`;
  const frames: object[] = [
    { id, method: 'session/prompt', params: { sessionId, prompt: [{ type: 'text', text: 'say x' }] } },
    { id, method: 'session/new', params: { cwd, mcpServers: [] } },
    { id, method: 'session/list', params: {} },
    { id, method: 'session/load', params: { sessionId, cwd, mcpServers: [] } },
    { id, method: 'session/set_mode', params: { sessionId, modeId: 'ask' } },
    { id, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: { fs: { readTextFile: true } } } },
    { method: 'session/cancel', params: { sessionId } },
    { method: '$/cancel_request', params: { requestId: `f${Math.floor(random() * index)}` } },
    { id, result: { outcome: { outcome: 'selected', optionId: 'allow_once' } } },
    { id, error: { code: -32603, message: 'm' } },
  ];
  return JSON.stringify({ jsonrpc: '2.0', ...frames[Math.floor(random() * frames.length)] });
}

const values = ['null', '[]', '{}', '-1', '1e400', '"\\ud800"', 'true', '""', '{"__proto__":1}', '99999999999999999999'];

/** Changes characters, cuts, doubles, and puts odd values in the place of others; one in five frames stays whole. */
function mutate(frame: string, random: () => number): string {
  if (random() < 0.2) return frame;
  const at = Math.floor(random() * frame.length);
  const kind = Math.floor(random() * 5);
  if (kind === 0) return frame.slice(0, at) + String.fromCharCode(33 + Math.floor(random() * 94)) + frame.slice(at + 1);
  if (kind === 1) return frame.slice(0, at);
  if (kind === 2) return frame.slice(0, at) + frame.slice(at + 1 + Math.floor(random() * 8));
  if (kind === 3) return frame + frame.slice(at);
  const value = values[Math.floor(random() * values.length)]!;
  const places = [...frame.matchAll(/:("[^"]*"|\d+|\{\}|\[\])/g)];
  const place = places[Math.floor(random() * places.length)];
  return place === undefined ? frame : `${frame.slice(0, place.index + 1)}${value}${frame.slice(place.index + place[0].length)}`;
}

/** How many answers each id is due, by the rules of JSON-RPC 2.0; `null` for what has no usable id. */
function expectedAnswers(lines: readonly string[]): Map<string, number> {
  const due = new Map<string, number>();
  for (const line of lines) {
    const id = dueId(line);
    if (id !== undefined) due.set(JSON.stringify(id), (due.get(JSON.stringify(id)) ?? 0) + 1);
  }
  return due;
}

function dueId(line: string): unknown {
  if (line.trim() === '') return undefined;
  let value: any;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const hasId = Object.hasOwn(value, 'id');
  const id =
    value.id === null || typeof value.id === 'string' || (typeof value.id === 'number' && Number.isFinite(value.id)) ? value.id : undefined;
  if (!Object.hasOwn(value, 'method')) return hasId || Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error') ? undefined : null;
  if (value.jsonrpc !== '2.0' || typeof value.method !== 'string') return hasId ? (id ?? null) : null;
  return hasId ? (id ?? null) : undefined;
}

function countAnswers(frames: readonly Frame[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const frame of frames) {
    if (frame.method !== undefined) continue;
    const id = JSON.stringify(frame.id);
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

await t.test('#98 1000 mutated frames: no crash, and every request is answered once', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--pace-ms', '0'] });
  const cwd = realpathSync(t.testdir({}));
  const sessionId = await server.newSession(cwd);
  t.comment(`TEST_SEED=${testSeed}`);
  const random = generator(testSeed);
  const sent: string[] = [];
  for (let index = 0; index < 1000; index += 1) {
    const line = mutate(seedFrame(index, sessionId, cwd, random), random);
    sent.push(line);
    server.sendRaw(`${line}\n`);
    if (index % 50 === 49) await server.request('session/list', {});
  }
  const expected = expectedAnswers(sent);
  await eventually('every request has its answer', () => {
    const answers = countAnswers(server.frames);
    return [...expected].every(([id, count]) => (answers.get(id) ?? 0) >= count);
  });
  await server.request('session/list', {});
  const answers = countAnswers(server.frames);
  for (const [id, count] of expected) if (answers.get(id) !== count) t.fail(`${id}: ${answers.get(id)} answers instead of ${count}`);
  for (const id of answers.keys()) if (id.startsWith('"f') && !expected.has(id)) t.fail(`${id} was never asked`);
  t.ok((await server.request('session/new', { cwd, mcpServers: [] })).result);
  await endServer(t, server);
});
