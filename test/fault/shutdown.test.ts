/** The client goes, a signal comes, the process is killed: what is answered, what is left, and how long it takes. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { fileAppears } from '../support/file-appears.ts';
import { faultTest, type FaultServer, logPath, processesIn, readEvents } from '../support/invariants.ts';
import { callIds, updatesOfCall } from '../support/started-server.ts';

t.setTimeout(100_000);

const scripted = ['--model', 'scripted', '--permission-mode', 'full-access'];

/** Two sessions whose commands ignore TERM, one that streams, one that waits in the queue behind it. */
async function busySessions(server: FaultServer, cwd: string): Promise<number[]> {
  const sessions = await Promise.all([server.newSession(cwd), server.newSession(cwd), server.newSession(cwd)]);
  const prompts = [
    server.startPrompt(sessions[0], `run trap '' TERM; sleep 311; sleep 312`),
    server.startPrompt(sessions[1], `bg trap '' TERM; sleep 313; sleep 314\nrun trap '' TERM HUP INT; while :; do sleep 0.1; done`),
    server.startPrompt(sessions[2], 'repeat 5000 word'),
    server.startPrompt(sessions[2], 'say later'),
  ];
  await Promise.all([
    server.nextUpdate(sessions[0], 'tool_call'),
    server.nextUpdate(sessions[1], 'tool_call'),
    server.nextUpdate(sessions[2]),
  ]);
  await untilCommandsRun(cwd, 3);
  return prompts;
}

async function untilCommandsRun(dir: string, count: number): Promise<void> {
  // The server itself carries the directory in its environment, too.
  for (const end = performance.now() + 8000; processesIn(dir).length < 1 + count; await delay(20)) {
    if (performance.now() > end) throw new Error('the commands did not start');
  }
}

void faultTest('fault 28: end of input while idle', async (t, rig) => {
  const server = await rig.serve({ args: scripted });
  await server.newSession(rig.dir);
  t.equal((await server.close()).code, 0);
});

void faultTest('fault 50: new sessions and loads that lose the race with the end of input', async (t, rig) => {
  const first = await rig.serve({ args: scripted });
  const stored = await first.newSession(rig.dir);
  await first.prompt(stored, 'repeat 200 word');
  await first.close();
  for (let round = 0; round < 3; round += 1) {
    const server = await rig.serve({ args: scripted });
    for (let at = 0; at < 10; at += 1) server.start('session/new', { cwd: rig.dir, mcpServers: [] });
    server.start('session/load', { sessionId: stored, cwd: rig.dir, mcpServers: [] });
    await delay(round * 5);
    t.equal((await server.close()).code, 0);
  }
});

void faultTest('fault 29: end of input in the midst of turns, a frame and a load', async (t, rig) => {
  const server = await rig.serve({ args: scripted });
  const prompts = await busySessions(server, rig.dir);
  server.sendRaw('{"jsonrpc":"2.0","id":9999,"method":"session/pr');
  const start = performance.now();
  t.same(await server.close(), { code: 0, signal: null });
  t.ok(performance.now() - start < 10_000, `gone after ${(performance.now() - start).toFixed(0)} ms`);
  for (const prompt of prompts) t.equal(server.responses(prompt)[0]?.result?.stopReason, 'cancelled');
  t.equal(server.responses(9999).length, 0);
});

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  void faultTest(`fault 11: ${signal} in the midst of turns`, async (t, rig) => {
    const server = await rig.serve({ args: scripted });
    const prompts = await busySessions(server, rig.dir);
    const start = performance.now();
    server.child.kill(signal);
    t.same(await server.exited, { code: 0, signal: null });
    t.ok(performance.now() - start < 10_000, `gone after ${(performance.now() - start).toFixed(0)} ms`);
    for (const prompt of prompts) t.equal(server.responses(prompt)[0]?.result?.stopReason, 'cancelled');
  });
}

void faultTest('fault 11: a second signal ends at once, with no command left', async (t, rig) => {
  const server = await rig.serve({ args: [...scripted, '--shutdown-grace-ms', '60000', '--log-level', 'info'] });
  server.killed = true;
  const session = await server.newSession(rig.dir);
  // The busy loop keeps the orderly way from coming to its end.
  server.startPrompt(session, `[!spin on go]\nrun trap '' TERM; sleep 315; sleep 316`);
  await untilCommandsRun(rig.dir, 1);
  writeFileSync(join(rig.dir, 'go'), '');
  await fileAppears(join(rig.dir, '.sabotaged'));
  server.child.kill('SIGTERM');
  // Two of a kind that the process has not looked at yet are one.
  while (!server.stderr.includes('stopping: signal')) await once(server.child.stderr!, 'data');
  const start = performance.now();
  server.child.kill('SIGTERM');
  t.same(await server.exited, { code: 1, signal: null });
  t.ok(performance.now() - start < 10_000, `gone after ${(performance.now() - start).toFixed(0)} ms`);
});

void faultTest('fault 11: a second signal in the midst of commands that are just being started leaves none of them', async (t, rig) => {
  for (const afterMs of [0, 10, 20, 40]) {
    const server = await rig.serve({ args: [...scripted, '--shutdown-grace-ms', '60000', '--log-level', 'info'] });
    server.killed = true;
    const sessions = await Promise.all(Array.from({ length: 20 }, () => server.newSession(rig.dir)));
    const begun = server.next((frame) => frame.params?.update?.sessionUpdate === 'tool_call', 'the first command');
    for (const session of sessions) server.startPrompt(session, 'run exec sleep 317');
    await begun;
    await delay(afterMs);
    server.child.kill('SIGTERM');
    while (!server.stderr.includes('stopping: signal')) await once(server.child.stderr!, 'data');
    server.child.kill('SIGTERM');
    t.same(await server.exited, { code: 1, signal: null });
    // Looked at from here, before the harness does it for all: which one it was is known then.
    for (const end = performance.now() + 2000; processesIn(rig.dir).length > 0 && performance.now() < end; ) await delay(20);
    t.same(processesIn(rig.dir), [], `${afterMs} ms behind the first command`);
  }
});

void faultTest('a thread that spins does not hold up the end beyond its grace', async (t, rig) => {
  const server = await rig.serve({ args: [...scripted, '--shutdown-grace-ms', '500'] });
  server.leavesOpenTurn = true;
  const session = await server.newSession(rig.dir);
  const prompt = server.startPrompt(session, '[!spin on go]\nrepeat 4000 word');
  await server.nextUpdate(session);
  writeFileSync(join(rig.dir, 'go'), '');
  await fileAppears(join(rig.dir, '.sabotaged'));
  const start = performance.now();
  t.equal((await server.close()).code, 0);
  t.ok(performance.now() - start < 8000, `gone after ${(performance.now() - start).toFixed(0)} ms`);
  t.equal(server.responses(prompt)[0]?.result?.stopReason, 'cancelled');
});

void faultTest('fault 30: the client closes its reading end in the midst of turns', async (t, rig) => {
  const server = await rig.serve({ args: scripted });
  await busySessions(server, rig.dir);
  server.unread = true;
  server.child.stdout!.destroy();
  const start = performance.now();
  t.same(await server.exited, { code: 0, signal: null });
  t.ok(performance.now() - start < 10_000, `gone after ${(performance.now() - start).toFixed(0)} ms`);
});

void faultTest('fault 10, 26: SIGKILL in the midst of turns; the next server loads every session', async (t, rig) => {
  const first = await rig.serve({ args: scripted });
  await busySessions(first, rig.dir);
  const mutating = await first.newSession(rig.dir);
  const mutated = join(rig.dir, 'mutated');
  first.startPrompt(mutating, `run echo once >> ${mutated}; touch ${rig.dir}/written; sleep 317`);
  await fileAppears(join(rig.dir, 'written'));
  const ids = [...new Set(first.frames.flatMap(({ params }) => (params?.sessionId === undefined ? [] : [String(params.sessionId)])))];
  const inCall = ids.filter((id) => first.updates(id).some(({ sessionUpdate }) => sessionUpdate === 'tool_call'));
  t.same([ids.length, inCall.length, inCall.includes(mutating)], [4, 3, true], 'three were killed in a call');
  await delay(100);
  await first.crash();
  const second = await rig.serve({ args: scripted });
  for (const sessionId of ids) {
    const loaded = await second.request('session/load', { sessionId, cwd: rig.dir, mcpServers: [] });
    t.ok(loaded.result, JSON.stringify(loaded.error));
    if (!inCall.includes(sessionId)) {
      const shown = first.text(sessionId).slice(0, 100);
      t.ok(shown.length > 0 && second.text(sessionId).includes(shown), 'what was shown is shown again');
      continue;
    }
    const id = callIds(first, sessionId).at(-1) ?? '';
    const again = updatesOfCall(second, sessionId, id);
    t.equal(again.findLast(({ status }) => status !== undefined)?.status, 'failed', 'the call that was running is shown as failed');
    t.match(JSON.stringify(again), /outcome of this tool is unknown: the server stopped while it was running/, 'and as interrupted');
  }
  for (const sessionId of ids) t.equal((await second.prompt(sessionId, 'say on')).result?.stopReason, 'end_turn');
  await second.close();
  t.equal(readFileSync(mutated, 'utf8'), 'once\n', 'what the call had done was not done again');
  for (const sessionId of ids) {
    const events = await readEvents(logPath(second, sessionId));
    const ends = events.flatMap((event) => (event.type === 'turn/end' ? [event.data.reason.kind] : []));
    t.same(ends, ['interrupted', 'completed']);
  }
});

void faultTest('60 sessions on shared threads in the midst of their streams', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: ['--base-url', model.baseUrl, '--model', 'bench', '--isolation', 'shared'] });
  const ids = await Promise.all(Array.from({ length: 60 }, () => server.newSession(rig.dir)));
  const prompts = ids.map((id) => server.startPrompt(id, '{"tokens":5000,"delayMs":50}'));
  await Promise.all(ids.map((id) => server.waitFor(({ params }) => params?.sessionId === id, id)));
  const start = performance.now();
  t.equal((await server.close()).code, 0);
  t.comment(`60 sessions were taken down in ${(performance.now() - start).toFixed(0)} ms`);
  t.ok(performance.now() - start < 5000);
  for (const prompt of prompts) t.equal(server.responses(prompt)[0]?.result?.stopReason, 'cancelled');
});
