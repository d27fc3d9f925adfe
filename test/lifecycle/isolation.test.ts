/** Sessions and threads: who shares, who waits, who gives way, and that a session comes back with its history. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { EventData } from '../../src/shared/events.ts';
import { faultTest, type FaultServer, logPath, readEvents } from '../support/invariants.ts';

t.setTimeout(110_000);

const full = ['--model', 'scripted', '--permission-mode', 'full-access', '--park-after-ms', '0'];

async function attachments(server: FaultServer, sessionId: string): Promise<EventData['thread/attached'][]> {
  const events = await readEvents(logPath(server, sessionId));
  return events.flatMap((event) => (event.type === 'thread/attached' ? [event.data] : []));
}

async function openMany(server: FaultServer, cwd: string, count: number): Promise<string[]> {
  return await Promise.all(Array.from({ length: count }, () => server.newSession(cwd)));
}

async function allEnd(server: FaultServer, prompts: readonly number[]): Promise<string[]> {
  return await Promise.all(prompts.map(async (id) => (await server.response(id)).result?.stopReason));
}

void faultTest('dedicated: beyond max_threads running sessions share, and the log, _status and stderr say so', async (t, rig) => {
  const server = await rig.serve({ args: [...full, '--max-threads', '3', '--log-level', 'info'] });
  const ids = await openMany(server, rig.dir, 6);
  const prompts = ids.map((id) => server.startPrompt(id, 'repeat 400 word'));
  await Promise.all(
    ids.map((id) =>
      server.waitFor(
        ({ params }) => params?.sessionId === id && params.update.sessionUpdate === 'agent_message_chunk',
        'text of each session',
      ),
    ),
  );
  t.match((await server.request('_status', {})).result, {
    isolation: 'dedicated',
    sessions: { open: 6, attached: 6, sharing: 6 },
    threads: 3,
    turns: { running: 6, waiting: 0 },
  });
  t.same([...new Set(await allEnd(server, prompts))], ['end_turn']);
  const attached = (await Promise.all(ids.map((id) => attachments(server, id)))).flat();
  t.equal(attached.length, 6);
  t.equal(new Set(attached.map(({ threadId }) => threadId)).size, 3, 'three threads');
  t.same(
    attached.map(({ sharedWith }) => sharedWith).toSorted((a, b) => a - b),
    [0, 0, 0, 1, 1, 1],
  );
  t.equal(server.stderr.match(/shares one with 1 others/g)?.length, 3, 'and stderr says so when it is asked to');
});

void faultTest('strict: nobody shares, also when several newcomers find one free thread', async (t, rig) => {
  const server = await rig.serve({ args: [...full, '--isolation', 'strict', '--max-threads', '2'] });
  const ids = await openMany(server, rig.dir, 7);
  // One idle session holds one of the two threads; then all others come at once.
  t.equal((await server.prompt(String(ids[0]), 'say idle')).result?.stopReason, 'end_turn');
  const start = performance.now();
  const prompts = ids.slice(1).map((id) => server.startPrompt(id, 'repeat 40 word'));
  t.same([...new Set(await allEnd(server, prompts))], ['end_turn']);
  t.comment(`six turns on two threads took ${(performance.now() - start).toFixed(0)} ms`);
  const attached = (await Promise.all(ids.map((id) => attachments(server, id)))).flat();
  t.equal(attached.length, 7);
  t.ok(attached.every(({ sharedWith }) => sharedWith === 0));
});

void faultTest('strict: a waiting turn can be cancelled, and starts when a thread comes free', async (t, rig) => {
  const server = await rig.serve({ args: [...full, '--isolation', 'strict', '--max-threads', '1'] });
  const [a, b, c] = (await openMany(server, rig.dir, 3)) as [string, string, string];
  const running = server.startPrompt(a, 'repeat 200 word');
  await server.nextUpdate(a);
  const [dropped, waiting] = [server.startPrompt(b, 'say b'), server.startPrompt(c, 'say c')];
  server.notify('session/cancel', { sessionId: b });
  t.equal((await server.response(dropped)).result?.stopReason, 'cancelled');
  t.equal(server.responses(running).length, 0);
  t.same(await allEnd(server, [running, waiting]), ['end_turn', 'end_turn']);
});

void faultTest('shared: all sessions run on the few threads there are', async (t, rig) => {
  const server = await rig.serve({ args: [...full, '--isolation', 'shared', '--max-threads', '2'] });
  const ids = await openMany(server, rig.dir, 20);
  const prompts = ids.map((id) => server.startPrompt(id, 'repeat 30 word'));
  t.same([...new Set(await allEnd(server, prompts))], ['end_turn']);
  const threads = (await Promise.all(ids.map((id) => attachments(server, id)))).flat().map(({ threadId }) => threadId);
  const [first, second, ...more] = new Set(threads);
  t.same(more, []);
  t.equal(threads.filter((id) => id === first).length, 10, 'evenly');
  t.equal(threads.filter((id) => id === second).length, 10);
});

void faultTest('an idle session gives its thread to a newcomer and comes back with its history', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: ['--base-url', model.baseUrl, '--model', 'bench', '--max-threads', '1', '--park-after-ms', '0'] });
  const [a, b] = (await openMany(server, rig.dir, 2)) as [string, string];
  t.equal((await server.prompt(a, 'the first of a {"tokens":2}')).result?.stopReason, 'end_turn');
  t.equal((await server.prompt(b, 'the first of b {"tokens":2}')).result?.stopReason, 'end_turn');
  t.equal((await server.prompt(a, 'the second of a {"tokens":2}')).result?.stopReason, 'end_turn');
  const asked = JSON.stringify(model.requests.at(-1)?.body.messages);
  t.match(asked, /the first of a.*tok0 tok1.*the second of a/);
  t.notMatch(asked, /of b/);
  t.same(
    (await attachments(server, a)).map(({ sharedWith, epoch }) => [sharedWith, epoch]),
    [
      [0, 1],
      [0, 2],
    ],
  );
});

void faultTest('a session with a background command keeps its thread; the newcomer shares it', async (t, rig) => {
  const server = await rig.serve({ args: [...full, '--max-threads', '1'] });
  const [a, b] = (await openMany(server, rig.dir, 2)) as [string, string];
  t.equal((await server.prompt(a, 'bg sleep 331')).result?.stopReason, 'end_turn');
  t.equal((await server.prompt(b, 'say b')).result?.stopReason, 'end_turn');
  t.equal((await attachments(server, b))[0]?.sharedWith, 1);
  t.equal((await server.prompt(a, 'output last')).result?.stopReason, 'end_turn');
  t.equal((await attachments(server, a)).length, 1, 'it was never parked');
  t.match(JSON.stringify(server.updates(a)), /running/i, 'its command still runs');
});

void faultTest('an idle session is parked after park_after_ms and frees its lock; closing it meanwhile leaves nothing', async (t, rig) => {
  const args = ['--model', 'scripted', '--park-after-ms', '300'];
  const [server, other] = [await rig.serve({ args }), await rig.serve({ args })];
  const id = await server.newSession(rig.dir);
  t.equal((await server.prompt(id, 'say one')).result?.stopReason, 'end_turn');
  // The lock is free once it is parked: then another server can load it.
  const load = { sessionId: id, cwd: rig.dir, mcpServers: [] };
  let loaded = await other.request('session/load', load);
  for (const end = performance.now() + 8000; loaded.error !== undefined && performance.now() < end; await delay(50)) {
    loaded = await other.request('session/load', load);
  }
  t.ok(loaded.result);
  t.match((await server.prompt(id, 'say two')).error, { data: { code: 'SESSION_LOCKED' } });
  t.same((await other.request('session/close', { sessionId: id })).result, {});
  t.equal((await server.prompt(id, 'say three')).result?.stopReason, 'end_turn');
});

void faultTest('prompts, cancels, closes and parks at any moment leave no session on a thread', async (t, rig) => {
  const server = await rig.serve({ args: [...full, '--max-threads', '2'] });
  for (let round = 0; round < 6; round += 1) {
    const ids = await openMany(server, rig.dir, 6);
    await Promise.all(
      ids.map(async (id, index) => {
        const prompts = [server.startPrompt(id, 'say x')];
        await delay(index * 4);
        prompts.push(server.startPrompt(id, 'repeat 10 word'));
        await delay(index * 3);
        server.notify('session/cancel', { sessionId: id });
        const closed = server.start('session/close', { sessionId: id });
        for (const prompt of prompts) t.ok(['end_turn', 'cancelled'].includes((await server.response(prompt)).result?.stopReason));
        t.same((await server.response(closed)).result, {});
        // A session that came back onto a thread behind its close would keep its lock: the load says so.
      }),
    );
  }
  const other = await rig.serve({ args: full });
  const list = await other.request('session/list', {});
  for (const { sessionId } of list.result.sessions.slice(0, 20)) {
    t.ok((await other.request('session/load', { sessionId, cwd: rig.dir, mcpServers: [] })).result, 'its lock is free');
  }
});
