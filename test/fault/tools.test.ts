/** The model and its tools misbehave: broken calls, floods of calls and of output, commands that will not end, cancels at any moment. */
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { boolean as booleans, constantFrom, integer as integers, record, sample } from 'fast-check';
import t from 'tap';
import type { PlannedToolCall } from '../support/answer-plan.ts';
import { faultTest, logPath, processesIn, readEvents, residentMb } from '../support/invariants.ts';
import { testSeed } from '../support/test-seed.ts';

t.setTimeout(110_000);

const scripted = ['--model', 'scripted', '--permission-mode', 'full-access'];

void faultTest('fault 58: broken tool calls are answered as errors to the model, and nothing of them is run', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: ['--base-url', model.baseUrl, '--model', 'bench', '--permission-mode', 'full-access'] });
  const session = await server.newSession(rig.dir);
  const canary = `touch ${rig.dir}/ran`;
  const tools: PlannedToolCall[] = [
    { id: 'cut', name: 'bash', arguments: `{"command":"${canary}` },
    { id: 'type', name: 'bash', arguments: '{"command":["touch","ran"],"description":"x"}' },
    { id: 'array', name: 'bash', arguments: '["touch ran"]' },
    { id: 'unknown', name: 'rm_rf', arguments: '{}' },
    { id: 'proto', name: '__proto__', arguments: '{}' },
    { id: 'empty', name: 'read', arguments: '' },
    { id: 'twice', name: 'glob', arguments: '{"pattern":"*"}' },
    { id: 'twice', name: 'glob', arguments: '{"pattern":"*.none"}' },
    { name: 'todo_write', arguments: '{"todos":"none"}' },
  ];
  model.enqueue({ tools }, { tokens: 3 });
  t.equal((await server.prompt(session, 'go')).result?.stopReason, 'end_turn');
  await server.close();
  const events = await readEvents(logPath(server, session));
  const results = events.flatMap((event) => (event.type === 'tool/result' ? [event.data] : []));
  t.equal(results.length, tools.length, 'each call has its result');
  t.equal(results.filter((result) => !result.isError).length, 2, 'only the two searches worked');
  t.notOk(existsSync(`${rig.dir}/ran`));
});

void faultTest('fault 58: five hundred calls in one answer each get a result', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: ['--base-url', model.baseUrl, '--model', 'bench'] });
  const session = await server.newSession(rig.dir);
  const tools = Array.from({ length: 500 }, (_, index) => ({ id: `c${index}`, name: 'glob', arguments: `{"pattern":"none-${index}"}` }));
  model.enqueue({ tools }, { tokens: 3 });
  t.equal((await server.prompt(session, 'go')).result?.stopReason, 'end_turn');
  const shown = server.updates(session).filter((update) => update.sessionUpdate === 'tool_call_update');
  const ended = new Set(shown.filter(({ status }) => status === 'completed' || status === 'failed').map(({ toolCallId }) => toolCallId));
  t.equal(ended.size, 500, 'each card ends');
});

void faultTest('fault 62: a gigabyte of output leaves memory flat', async (t, rig) => {
  const server = await rig.serve({ args: scripted });
  const session = await server.newSession(rig.dir);
  await server.prompt(session, 'run echo warm');
  const before = residentMb(server.pid);
  const prompt = server.startPrompt(session, 'run head -c 1000000000 /dev/zero');
  let peak = 0;
  const watch = setInterval(() => (peak = Math.max(peak, residentMb(server.pid))), 50);
  const answer = await server.response(prompt);
  clearInterval(watch);
  t.equal(answer.result?.stopReason, 'end_turn');
  t.ok(peak - before < 120, `grew by ${(peak - before).toFixed(0)} MB`);
});

void faultTest('fault 65: a command that ignores TERM ends within a second of its cancel', async (t, rig) => {
  const server = await rig.serve({ args: scripted });
  const session = await server.newSession(rig.dir);
  const prompt = server.startPrompt(session, `run trap '' TERM INT HUP; sleep 321 & sleep 322; sleep 323`);
  await server.nextUpdate(session, 'tool_call');
  while (processesIn(rig.dir).length < 3) await delay(20);
  const start = performance.now();
  server.notify('session/cancel', { sessionId: session });
  t.equal((await server.response(prompt)).result?.stopReason, 'cancelled');
  t.ok(performance.now() - start < 5000, `cancelled after ${(performance.now() - start).toFixed(0)} ms`);
  // Only the server itself is left.
  for (const end = performance.now() + 1000; processesIn(rig.dir).length > 1 && performance.now() < end; ) await delay(20);
  t.equal(processesIn(rig.dir).length, 1);
  t.equal((await server.prompt(session, 'say on')).result?.stopReason, 'end_turn');
});

void faultTest(
  'fault 65, 66: a call ends with its command though a child holds the pipe open, and its input is at its end',
  async (t, rig) => {
    const server = await rig.serve({ args: scripted });
    const session = await server.newSession(rig.dir);
    const start = performance.now();
    t.equal((await server.prompt(session, 'run sleep 331 & setsid sleep 332 & echo parent-done; wc -c')).result?.stopReason, 'end_turn');
    const shown = JSON.stringify(server.updates(session).filter((update) => update.sessionUpdate === 'tool_call_update'));
    t.ok(performance.now() - start < 5000, `ended after ${(performance.now() - start).toFixed(0)} ms`);
    t.match(shown, /parent-done\\n0\b/, 'all that it printed, and not one byte to read');
  },
);

void faultTest('fault 48: 300 cancels at any moment: one answer each, and the log says what the wire says', async (t, rig) => {
  const server = await rig.serve({ args: [...scripted, '--pace-ms', '1', '--isolation', 'shared'] });
  const scripts = ['say a', 'repeat 8 word', 'run true', 'todo x a; b', 'glob *.none\nsay b', 'run sleep 0.02\nrepeat 4 word'];
  t.comment(`TEST_SEED=${testSeed}`);
  const runs = sample(record({ script: constantFrom(...scripts), wait: integers({ min: -2, max: 45 }), queued: booleans() }), {
    numRuns: 300,
    seed: testSeed,
  });
  const lanes = await Promise.all(Array.from({ length: 6 }, () => server.newSession(rig.dir)));
  const told = new Map<string, (string | undefined)[]>(lanes.map((id) => [id, []]));
  const one = async (id: string, lane: number): Promise<void> => {
    for (const run of runs.filter((_, index) => index % lanes.length === lane)) {
      const prompts = [server.startPrompt(id, run.script)];
      if (run.queued) prompts.push(server.startPrompt(id, 'say queued'));
      if (run.wait >= 0) await delay(run.wait);
      server.notify('session/cancel', { sessionId: id });
      for (const prompt of prompts) told.get(id)?.push((await server.response(prompt)).result?.stopReason);
    }
  };
  await Promise.all(lanes.map(one));
  await server.close();
  const reasons = [...told.values()].flat();
  t.same(
    [...new Set(reasons)].toSorted((a, b) => String(a).localeCompare(String(b))),
    ['cancelled', 'end_turn'],
    'both ends have come about',
  );
  t.comment(`${reasons.filter((reason) => reason === 'cancelled').length} of ${reasons.length} were cancelled`);
  for (const id of lanes) {
    const events = await readEvents(logPath(server, id));
    const logged = events.flatMap((event) => (event.type === 'turn/end' ? [event.data.reason.kind] : []));
    const completed = told.get(id)?.filter((reason) => reason === 'end_turn').length;
    t.equal(logged.filter((kind) => kind === 'completed').length, completed, 'as many turns are logged as completed as were told so');
    t.same(
      [...new Set(logged)].filter((kind) => kind !== 'completed' && kind !== 'cancelled'),
      [],
    );
  }
});
