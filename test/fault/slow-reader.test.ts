/** A client that reads slowly, or not at all, while many sessions have much to say. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { faultTest, type FaultServer, residentMb } from '../support/invariants.ts';

t.setTimeout(110_000);

const sessions = 32;
/** Each stream has 38 MB on its way to us: the system's own buffers of a connection hold some 6 MB of it. */
const endless = 200_000;
const warmUp = 3000;

/** Starts the chatty turns and stops reading once all have begun. */
async function chatter(server: FaultServer, cwd: string): Promise<{ ids: string[]; prompts: number[] }> {
  const ids = await Promise.all(Array.from({ length: sessions }, () => server.newSession(cwd)));
  // Threads, pools and heaps have their size before the measurement begins.
  await Promise.all(ids.map((id) => server.prompt(id, `{"tokens":${warmUp}}`)));
  server.child.stdout!.pause();
  return { ids, prompts: ids.map((id) => server.startPrompt(id, `{"tokens":${endless}}`)) };
}

/** Fulfils once the model server's streams stand still, with how many tokens it could send. */
async function standstill(tokens: () => number): Promise<number> {
  for (let before = -1; ; await delay(700)) {
    if (tokens() === before && before > 0) return before;
    before = tokens();
  }
}

void faultTest(
  'fault 31: a reader that pauses and then reads slowly: memory stays, the model is held back, nothing is lost',
  async (t, rig) => {
    const model = await rig.model();
    const args = ['--base-url', model.baseUrl, '--model', 'bench', '--isolation', 'shared'];
    const server = await rig.serve({ args: [...args, '--stalled-reader-ms', '60000', '--idle-timeout-ms', '60000'] });
    const { ids, prompts } = await chatter(server, rig.dir);
    const before = residentMb(server.pid);
    const held = await standstill(() => model.stats.tokensSent);
    const grown = residentMb(server.pid) - before;
    t.comment(`grew by ${grown.toFixed(1)} MB; the model could send ${held} of ${sessions * endless} tokens`);
    t.ok(grown < 24, `grew by ${grown.toFixed(1)} MB`);
    t.ok(held < sessions * endless, 'the model was held back');
    // Slowly: a chunk of the pipe every few milliseconds, for a while; then the rest at once.
    for (let reads = 0; reads < 60; reads += 1) {
      server.child.stdout!.resume();
      await delay(2);
      server.child.stdout!.pause();
      await delay(10);
    }
    t.ok(residentMb(server.pid) - before < 200, `grew by ${(residentMb(server.pid) - before).toFixed(1)} MB while it was read slowly`);
    // Most of the streams need not be read to their ends to know that they go on in order.
    server.child.stdout!.resume();
    await delay(500);
    for (const id of ids) server.notify('session/cancel', { sessionId: id });
    for (const prompt of prompts) t.ok((await server.response(prompt)).result);
    for (const id of ids) {
      const words = server.text(id).split(' ').slice(warmUp, -1);
      t.ok(words.length > 0 && words.every((word, at) => word === `tok${at}`), 'nothing is missing, doubled or out of order');
    }
  },
);

void faultTest('fault 32: a reader that stops for good is taken as gone', async (t, rig) => {
  const model = await rig.model();
  const args = ['--base-url', model.baseUrl, '--model', 'bench', '--isolation', 'shared'];
  const server = await rig.serve({ args: [...args, '--stalled-reader-ms', '1500'] });
  server.unread = true;
  await chatter(server, rig.dir);
  const start = performance.now();
  t.same(await onExit(server), { code: 0, signal: null });
  t.ok(performance.now() - start < 8000, `gone after ${(performance.now() - start).toFixed(0)} ms`);
  server.child.stdout!.destroy();
});

void faultTest('fault 43: a burst of requests is bounded, and a cancel gets through', async (t, rig) => {
  const server = await rig.serve({ args: ['--model', 'scripted'] });
  const session = await server.newSession(rig.dir);
  const running = server.startPrompt(session, 'repeat 4000 word');
  await server.nextUpdate(session);
  const prompts = Array.from({ length: 2000 }, () => server.startPrompt(session, 'say more'));
  server.notify('session/cancel', { sessionId: session });
  const start = performance.now();
  t.equal((await server.response(running)).result?.stopReason, 'cancelled');
  t.ok(performance.now() - start < 10_000, `cancelled after ${(performance.now() - start).toFixed(0)} ms`);
  const answers = await Promise.all(prompts.map((id) => server.response(id)));
  t.equal(answers.filter(({ result }) => result?.stopReason === 'cancelled').length, 16, 'as many as may wait');
  t.equal(answers.filter(({ error }) => error?.code === -31001).length, 1984, 'the others are told that it is busy');
});

/** `close` waits for the pipes, which nobody reads; the exit itself is meant. */
function onExit(server: FaultServer): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve) => server.child.once('exit', (code, signal) => resolve({ code, signal })));
}
