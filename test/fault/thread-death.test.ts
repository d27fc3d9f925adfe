/** A session thread dies, hangs or prints: what its prompt is answered, and that nobody else notices. */
import { join } from 'node:path';
import t from 'tap';
import { ClientScreen } from '../support/client-screen.ts';
import { fileAppears } from '../support/file-appears.ts';
import { faultTest, logPath, readEvents } from '../support/invariants.ts';

t.setTimeout(100_000);

const deaths = [
  { fault: 1, name: 'heap limit', act: 'heap' },
  { fault: 3, name: 'uncaught exception', act: 'throw' },
  { fault: 4, name: 'unhandled rejection', act: 'reject' },
  { fault: 5, name: 'process.exit(0)', act: 'exit' },
] as const;

for (const { fault, name, act } of deaths) {
  void faultTest(`fault ${fault}: ${name} mid-turn fails that prompt alone, and the next one revives the session`, async (t, rig) => {
    const model = await rig.model();
    const server = await rig.serve({ args: ['--base-url', model.baseUrl, '--model', 'bench'] });
    const [victim, bystander] = [await server.newSession(rig.dir), await server.newSession(rig.dir)];
    t.equal((await server.prompt(victim, 'the first prompt {"tokens":3}')).result.stopReason, 'end_turn');
    const other = server.startPrompt(bystander, '{"tokens":80,"delayMs":20}');
    await server.nextUpdate(bystander);
    const start = performance.now();
    const answer = await server.prompt(victim, `[!${act} 200] {"tokens":4000,"delayMs":5}`);
    t.match(answer.error, { code: -31003, data: { code: 'THREAD_LOST' } });
    const elapsed = performance.now() - start;
    // Filling a heap takes its time; the others die at once.
    t.ok(act === 'heap' || elapsed < 8000, `answered after ${elapsed.toFixed(0)} ms`);
    t.equal((await server.prompt(victim, 'the third prompt {"tokens":2}')).result.stopReason, 'end_turn');
    const asked = JSON.stringify(model.requests.at(-1)?.body.messages);
    t.match(asked, /the first prompt/, 'the model sees the history');
    t.match(asked, /tok0 tok1/, 'also what was shown before the thread died');
    const end = await server.response(other);
    t.equal(end.result?.stopReason, 'end_turn');
    t.equal(server.text(bystander).split(' ').length - 1, 80, 'nothing of the other session is missing');
    await server.close();
    const events = await readEvents(logPath(server, victim));
    t.same(
      events.flatMap((event) => (event.type === 'turn/end' ? [event.data.reason.kind] : [])),
      ['completed', 'interrupted', 'completed'],
    );
  });
}

void faultTest('fault 6: cancel ends a busy loop soon after its grace of 900 ms, and the session goes on', async (t, rig) => {
  const server = await rig.serve({ args: ['--model', 'scripted'] });
  const [victim, bystander] = [await server.newSession(rig.dir), await server.newSession(rig.dir)];
  const other = server.startPrompt(bystander, 'repeat 200 word');
  // Late enough for some words to be in the log: a script that was not begun would be taken up again by the next prompt.
  const prompt = server.startPrompt(victim, '[!spin 600]\nrepeat 4000 word');
  await server.nextUpdate(victim);
  await fileAppears(join(rig.dir, '.sabotaged'));
  const start = performance.now();
  server.notify('session/cancel', { sessionId: victim });
  t.equal((await server.response(prompt)).result?.stopReason, 'cancelled');
  const elapsed = performance.now() - start;
  t.ok(elapsed < 8000, `cancelled after ${elapsed.toFixed(0)} ms`);
  t.match(await server.prompt(victim, 'say again'), { result: { stopReason: 'end_turn' } });
  t.match(server.text(victim), /again/);
  t.equal((await server.response(other)).result?.stopReason, 'end_turn');
});

void faultTest('fault 6: the watchdog ends a stuck thread that nobody cancels', async (t, rig) => {
  const server = await rig.serve({ args: ['--model', 'scripted', '--stuck-thread-ms', '1000'] });
  const session = await server.newSession(rig.dir);
  const start = performance.now();
  const answer = await server.prompt(session, '[!spin 600]\nrepeat 4000 word');
  t.match(answer.error, { code: -31003 });
  t.ok(performance.now() - start < 10_000, `ended after ${(performance.now() - start).toFixed(0)} ms`);
  t.match(await server.prompt(session, 'say alive'), { result: { stopReason: 'end_turn' } });
});

void faultTest('a thread that is only slow is not ended: neither by the watchdog nor by a cancel', async (t, rig) => {
  const server = await rig.serve({ args: ['--model', 'scripted', '--stuck-thread-ms', '2500'] });
  const session = await server.newSession(rig.dir);
  t.match(await server.prompt(session, '[!block 20 900]\nsay slowly'), { result: { stopReason: 'end_turn' } });
  const prompt = server.startPrompt(session, '[!block 50 250]\nrepeat 3000 word');
  await server.nextUpdate(session);
  server.notify('session/cancel', { sessionId: session });
  t.equal((await server.response(prompt)).result?.stopReason, 'cancelled');
  t.match(await server.prompt(session, 'say on'), { result: { stopReason: 'end_turn' } });
  await server.close();
  const events = await readEvents(logPath(server, session));
  t.equal(events.filter((event) => event.type === 'thread/attached').length, 1, 'it stayed on its thread');
});

void faultTest('fault 13: three deaths within a minute fail the session, not the server', async (t, rig) => {
  const server = await rig.serve({ args: ['--model', 'scripted'] });
  server.leavesOpenTurn = true;
  const session = await server.newSession(rig.dir);
  for (let death = 0; death < 3; death += 1) {
    t.match((await server.prompt(session, '[!exit 20]\nrepeat 2000 word')).error, { code: -31003 });
  }
  t.match((await server.prompt(session, 'say no')).error, { code: -31005, data: { code: 'SESSION_FAILED' } });
  t.match(await server.prompt(await server.newSession(rig.dir), 'say yes'), { result: { stopReason: 'end_turn' } });
  t.same((await server.request('session/close', { sessionId: session })).result, {}, 'it can be closed');
  const second = await rig.serve({ args: ['--model', 'scripted'] });
  t.ok((await second.request('session/load', { sessionId: session, cwd: rig.dir, mcpServers: [] })).result, 'another server can load it');
});

void faultTest('fault 44: what a thread prints never reaches the client', async (t, rig) => {
  const server = await rig.serve({ args: ['--model', 'scripted'] });
  const session = await server.newSession(rig.dir);
  t.match(await server.prompt(session, '[!print 0]\nrepeat 60 word'), { result: { stopReason: 'end_turn' } });
  await server.close();
  t.notOk(server.frames.some((frame) => frame.method?.startsWith('stray')));
});

void faultTest('a thread that dies under a running command leaves no process, and the next turn may run one', async (t, rig) => {
  const server = await rig.serve({
    args: ['--model', 'scripted', '--permission-mode', 'full-access'],
    capabilities: { _meta: { terminal_output: true } },
  });
  const session = await server.newSession(rig.dir);
  t.match(await server.prompt(session, 'bg sleep 301'), { result: { stopReason: 'end_turn' } });
  const answer = await server.prompt(session, `[!throw 400]\nrun trap '' TERM; sleep 302; sleep 303`);
  t.match(answer.error, { code: -31003 });
  const own = server.frames.slice(0, server.frames.indexOf(answer)).filter((frame) => frame.params?.sessionId === session);
  const screen = new ClientScreen().takeAll(own.flatMap(({ params }) => params.update ?? []));
  t.strictSame(screen.open, [], 'the card of the lost call is closed before the prompt is answered');
  t.match([...screen.cards.values()].at(-1), { status: 'failed', terminal: { exits: [{ exit_code: null }] } }, 'and its terminal, too');
  // While the old commands are still being ended, which takes 300 ms, the new one must not be taken for one of them.
  t.match(await server.prompt(session, 'run sleep 1; echo revived-$((40+2))'), { result: { stopReason: 'end_turn' } });
  t.match(JSON.stringify(server.updates(session)), /revived-42/);
});

void faultTest('fault 12: an unexpected fault of the main thread answers open prompts and exits 1', async (t, rig) => {
  const server = await rig.serve({
    args: ['--model', 'scripted', '--permission-mode', 'full-access'],
    env: { SABOTAGE: 'main' },
  });
  server.expectedExit = 1;
  const session = await server.newSession(rig.dir);
  const prompt = server.startPrompt(session, 'run sleep 304');
  await server.nextUpdate(session, 'tool_call');
  server.child.kill('SIGUSR2');
  t.match((await server.response(prompt)).error, { code: -32603 });
  t.match(await server.exited, { code: 1 });
});

void faultTest('the broker thread dies: its commands end, sessions lose their thread and are revived with a new broker', async (t, rig) => {
  const server = await rig.serve({
    args: ['--model', 'scripted', '--permission-mode', 'full-access'],
    env: { SABOTAGE: 'broker' },
  });
  const session = await server.newSession(rig.dir);
  const prompt = server.startPrompt(session, 'run touch started; sleep 305\nrepeat 3000 word');
  await fileAppears(join(rig.dir, 'started'));
  server.child.kill('SIGUSR2');
  t.match((await server.response(prompt)).error, { code: -31003 });
  t.match(await server.prompt(session, 'run echo revived-$((40+2))'), { result: { stopReason: 'end_turn' } });
  t.match(JSON.stringify(server.updates(session)), /revived-42/);
});

void faultTest('fault 15: a shared thread dies: its sessions are told so and revived, the other thread goes on', async (t, rig) => {
  const server = await rig.serve({ args: ['--model', 'scripted', '--isolation', 'shared', '--max-threads', '2', '--pace-ms', '10'] });
  const ids = await Promise.all(Array.from({ length: 40 }, () => server.newSession(rig.dir)));
  const prompts = ids.map((id, index) => server.startPrompt(id, `${index === 7 ? '[!throw 1000]\n' : ''}repeat 250 word`));
  const answers = await Promise.all(prompts.map((id) => server.response(id)));
  t.equal(answers.filter(({ error }) => error?.code === -31003).length, 20, 'one half was on that thread');
  t.equal(answers.filter(({ result }) => result?.stopReason === 'end_turn').length, 20, 'the other half was not');
  const again = await Promise.all(ids.map((id) => server.prompt(id, 'say again')));
  t.same([...new Set(again.map(({ result }) => result?.stopReason))], ['end_turn']);
});
