/** One limiter for all threads, through the whole server: how many calls a provider sees, and who gets the next place. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { LimiterStatus } from '../../src/shared/model-slots.ts';
import type { AnswerPlan } from '../support/answer-plan.ts';
import { type FaultServer, faultTest, logPath, readEvents } from '../support/invariants.ts';
import type { ModelServer } from '../support/model-server.ts';

t.setTimeout(60_000);

function flags(model: ModelServer, ...more: string[]): string[] {
  return ['--base-url', model.baseUrl, '--model', 'bench', ...more];
}

async function limiterOf(server: FaultServer): Promise<LimiterStatus> {
  return (await server.request('_status', {})).result.limiters[0];
}

/** Asks until it is so: nothing tells when a call has begun to wait. */
async function until(server: FaultServer, is: (limiter: LimiterStatus) => boolean): Promise<LimiterStatus> {
  for (const end = performance.now() + 10_000; performance.now() < end; await delay(5)) {
    const limiter = await limiterOf(server);
    if (is(limiter)) return limiter;
  }
  throw new Error(`the limiter never got there: ${JSON.stringify(await limiterOf(server))}`);
}

void faultTest('40 sessions on two threads stay within a limit that their provider never told them', async (t, rig) => {
  const model = await rig.model({ maxStreams: 8, retryAfterSeconds: 0.2 });
  const server = await rig.serve({
    args: flags(model, '--isolation', 'shared', '--max-threads', '2', '--max-concurrency', '12', '--slow-start', '2'),
  });
  const ids = await Promise.all(Array.from({ length: 40 }, () => server.newSession(rig.dir)));
  const prompts = ids.map((id) => server.startPrompt(id, '{"tokens":6,"delayMs":5}'));
  const crowded = await until(server, ({ waiting }) => waiting > 0);
  t.match(crowded, { max: 12 });
  t.ok(crowded.limit >= 1 && crowded.limit <= 12);
  const answers = await Promise.all(prompts.map((id) => server.response(id)));
  t.same([...new Set(answers.map(({ result }) => result?.stopReason))], ['end_turn'], 'everybody gets an answer');
  const { peakStreams, refused, requests } = model.stats;
  t.ok(peakStreams <= 12, `never more than max_concurrency at once: ${peakStreams}`);
  t.ok(refused <= 12, `${refused} of ${requests} calls were refused`);
  const limiter = await until(server, ({ running }) => running === 0);
  t.match(limiter, { waiting: 0, calls: requests, overloads: refused });
  const logs = await Promise.all(ids.map((id) => readEvents(logPath(server, id))));
  const waits = logs.flat().flatMap((event) => (event.type === 'llm/wait' ? [event.data] : []));
  t.ok(waits.length >= 20, `${waits.length} waits are in the logs`);
  t.ok(waits.every(({ position, waitedMs }) => position >= 1 && waitedMs >= 0));
});

void faultTest('a thread that dies gives its places back', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: flags(model, '--max-concurrency', '1') });
  const [victim, bystander] = [await server.newSession(rig.dir), await server.newSession(rig.dir)];
  const lost = server.startPrompt(victim, '[!throw on now] {"tokens":4000,"delayMs":5}');
  await server.nextUpdate(victim);
  const waits = server.startPrompt(bystander, '{"tokens":3}');
  await until(server, ({ waiting }) => waiting === 1);
  writeFileSync(join(rig.dir, 'now'), '');
  t.match((await server.response(lost)).error, { data: { code: 'THREAD_LOST' } });
  t.equal((await server.response(waits)).result?.stopReason, 'end_turn');
  t.equal((await server.prompt(victim, '{"tokens":2}')).result?.stopReason, 'end_turn', 'the revived session gets a place, too');
  t.match(await until(server, ({ running }) => running === 0), { waiting: 0, calls: 3 });
  t.match((await server.request('_status', {})).result.totals, { threadLosses: 1, prompts: { error: 1, end_turn: 2 } });
});

void faultTest('who is cancelled while it waits for a place answers at once, and its place in line is free', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: flags(model, '--isolation', 'shared', '--max-concurrency', '1') });
  const [holder, impatient, patient] = await Promise.all(['a', 'b', 'c'].map(() => server.newSession(rig.dir)));
  const held = server.startPrompt(holder!, '{"tokens":4000,"delayMs":10}');
  await server.nextUpdate(holder!);
  const cancelled = server.startPrompt(impatient!, '{"tokens":3}');
  await until(server, ({ waiting }) => waiting === 1);
  const last = server.startPrompt(patient!, '{"tokens":3}');
  await until(server, ({ waiting }) => waiting === 2);
  server.notify('session/cancel', { sessionId: impatient });
  t.equal((await server.response(cancelled)).result?.stopReason, 'cancelled');
  t.match(await limiterOf(server), { running: 1, waiting: 1 }, 'while the place is still taken');
  server.notify('session/cancel', { sessionId: holder });
  t.equal((await server.response(held)).result?.stopReason, 'cancelled');
  t.equal((await server.response(last)).result?.stopReason, 'end_turn');
  t.equal(model.stats.requests, 2, 'the cancelled call was never made');
});

void faultTest('of the calls that wait, the one of the prompt with the higher priority goes first', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: flags(model, '--isolation', 'shared', '--max-concurrency', '1') });
  const [holder, low, high] = await Promise.all(['a', 'b', 'c'].map(() => server.newSession(rig.dir)));
  const held = server.startPrompt(holder!, '{"tokens":4000,"delayMs":10}');
  await server.nextUpdate(holder!);
  const ended: string[] = [];
  const prompt = async (name: string, sessionId: string, priority: number): Promise<void> => {
    const params = { sessionId, prompt: [{ type: 'text', text: '{"tokens":2}' }], _meta: { 'dsh-acp': { priority } } };
    t.equal((await server.request('session/prompt', params)).result?.stopReason, 'end_turn');
    ended.push(name);
  };
  const first = prompt('low', low!, -3);
  await until(server, ({ waiting }) => waiting === 1);
  const second = prompt('high', high!, 90);
  const { queue } = await until(server, ({ waiting }) => waiting === 2);
  t.match(queue, [
    { sessionId: high, position: 1, waitedMs: Number },
    { sessionId: low, position: 2, waitedMs: Number },
  ]);
  server.notify('session/cancel', { sessionId: holder });
  await Promise.all([first, second, server.response(held)]);
  t.same(ended, ['high', 'low']);
});

void faultTest('a wish to be left alone is met up to max_retry_after_ms, and fails the call beyond', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: flags(model, '--max-retry-after-ms', '400') });
  const busy = (ms: number): AnswerPlan => ({ fault: { kind: 'status', status: 429, headers: { 'retry-after-ms': String(ms) } } });
  model.enqueue(busy(400));
  const sessionId = await server.newSession(rig.dir);
  t.equal((await server.prompt(sessionId, '{"tokens":2}')).result?.stopReason, 'end_turn');
  model.enqueue(busy(401));
  t.match((await server.prompt(sessionId, '{"tokens":2}')).error, { data: { code: 'MODEL_FAILED' } });
  t.equal(model.stats.requests, 3, 'the second one was not tried again');
});
