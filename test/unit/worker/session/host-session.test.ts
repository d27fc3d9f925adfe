/** A session on a thread, without the thread: hosted in this process over real ports, with a real log and the scripted model. */
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { events, HostRig, say } from './host-rig.ts';

t.test('attach, prompt, leave: the thread is told once of its ports, the log once of the attach', async (t) => {
  const rig = new HostRig(t);
  const [one, two] = [rig.create(), rig.create()];
  const first = await rig.attach(one);
  t.match(first.started, { kind: 'started', threadId: 5, eventCount: 1 });
  t.ok(rig.ports);
  const second = await rig.attach(two);
  t.notOk('ports' in second.started, 'only the first brings them');
  t.same([...rig.thread.sessionIds], [one.id, two.id]);
  const end = await rig.prompt(first.api, 1, 'say hello');
  t.match(end, { kind: 'turn', sessionId: one.id, outcome: { ok: true, stopReason: 'end_turn' } });
  t.match(say(rig), /hello/, 'the updates came before the end');
  for (const { api, hosted } of [first, second]) {
    await api.dispose().catch(() => undefined);
    await hosted;
  }
  t.same([...rig.thread.sessionIds], []);
  t.same(rig.released, [one.id, two.id]);
  t.notOk(existsSync(one.paths.lock));
  t.match(
    events(two.paths).map((event) => event.data),
    [{ sharedWith: 1, threadId: 5, isolation: 'dedicated' }],
  );
});

t.test('a session comes back with its history and its mode, and a replay shows all of it before its end', async (t) => {
  const rig = new HostRig(t);
  const one = rig.create();
  const first = await rig.attach(one);
  await rig.prompt(first.api, 1, 'todo x a; b\nsay hello');
  await first.api.setMode('read-only');
  t.equal(await first.api.park(), true);
  await first.hosted;
  const live = rig.frames.filter(({ params }) => params.update.sessionUpdate === 'plan').length;
  t.ok(live > 0);
  rig.frames.length = 0;
  const again = await rig.attach(one);
  t.match(again.started, { kind: 'started', eventCount: events(one.paths).length });
  await again.api.replay(2);
  t.match(await rig.completion(2), { kind: 'loaded', outcome: { ok: true, chosen: { mode: 'read-only' } } });
  t.equal(rig.frames.filter(({ params }) => params.update.sessionUpdate === 'plan').length, live);
  t.match(say(rig), /hello/);
  await again.api.dispose().catch(() => undefined);
  await again.hosted;
});

t.test('who chooses a mode without commands is told, with the answer, that background commands go on; the log is not', async (t) => {
  const rig = new HostRig(t);
  const one = rig.create();
  const { api, hosted } = await rig.attach(one);
  rig.background = 2;
  const { afterBatch } = await api.setMode('plan');
  while (say(rig) === '') await new Promise((resolve) => setImmediate(resolve));
  t.match(say(rig), /^2 background commands go on in the mode "Plan".*bash_kill/);
  t.ok(afterBatch >= 1, 'the answer stands behind it');
  t.notMatch(JSON.stringify(events(one.paths)), 'background commands');
  t.equal(rig.background, 2, 'nothing is ended unasked');
  await api.dispose().catch(() => undefined);
  await hosted;
});

t.test('a session with background work, or with a turn, is not parked', async (t) => {
  const rig = new HostRig(t);
  const { api, hosted } = await rig.attach(rig.create());
  rig.background = 1;
  t.equal(await api.park(), false);
  rig.background = 0;
  await api.prompt(1, [{ type: 'text', text: 'repeat 5000 word' }], {});
  t.equal(await api.park(), false);
  await api.cancel(99);
  t.same(rig.completions, [], 'a cancel of another turn does nothing');
  await api.cancel(1);
  t.match(await rig.completion(1), { outcome: { ok: true, stopReason: 'cancelled' } });
  t.equal(await api.park(), true);
  await hosted;
});

t.test('dispose ends a running turn, and a prompt behind it is refused', async (t) => {
  const rig = new HostRig(t);
  const one = rig.create();
  const { api, hosted, port } = await rig.attach(one);
  await api.prompt(1, [{ type: 'text', text: 'repeat 5000 word' }], {});
  const left = api.dispose().catch(() => undefined);
  const refused = api.prompt(2, [{ type: 'text', text: 'say no' }], {});
  await t.rejects(refused, { code: /SHUTTING_DOWN|THREAD_LOST/ });
  await Promise.all([left, hosted]);
  t.match(await rig.completion(1), { outcome: { ok: true, stopReason: 'cancelled' } });
  t.match(events(one.paths).at(-1), { type: 'turn/end', data: { reason: { kind: 'disposed' } } });
  port.close();
});

t.test('main closes the port: the session leaves by itself', async (t) => {
  const rig = new HostRig(t);
  const one = rig.create();
  const { hosted, port, api } = await rig.attach(one);
  await api.prompt(1, [{ type: 'text', text: 'repeat 5000 word' }], {});
  port.close();
  await hosted;
  t.notOk(existsSync(one.paths.lock));
  t.match(events(one.paths).at(-1), { type: 'turn/end' });
});

t.test('a log that is locked, damaged or gone is refused with its reason, and the thread keeps its ports', async (t) => {
  const rig = new HostRig(t);
  const [locked, damaged, fine] = [rig.create(), rig.create(), rig.create()];
  const owner = await rig.attach(locked, 'other server');
  const refused = await rig.attach(locked, 'this server');
  t.match(refused.started, { kind: 'refused', error: { code: 'SESSION_LOCKED' } });
  await refused.hosted;
  appendFileSync(damaged.paths.log, '{"type":"nonsense"}\n{"type":"more"}\n');
  const broken = await rig.attach(damaged);
  t.match(broken.started, { kind: 'refused', error: { code: 'LOG_CORRUPT' } });
  t.notOk(existsSync(damaged.paths.lock));
  const missing = rig.create();
  writeFileSync(missing.paths.log, '');
  t.match((await rig.attach(missing)).started, { kind: 'refused' });
  const next = await rig.attach(fine);
  t.match(next.started, { kind: 'started' });
  for (const { api, hosted } of [owner, next]) {
    await api.dispose().catch(() => undefined);
    await hosted;
  }
  t.same([...rig.thread.sessionIds], []);
});

t.test('the first session that is refused leaves the ports to the next one', async (t) => {
  const rig = new HostRig(t);
  const [damaged, fine] = [rig.create(), rig.create()];
  writeFileSync(damaged.paths.log, 'x\n');
  t.match((await rig.attach(damaged)).started, { kind: 'refused' });
  t.equal(rig.ports, undefined);
  const { started, api, hosted } = await rig.attach(fine);
  t.ok('ports' in started);
  await api.dispose().catch(() => undefined);
  await hosted;
});

t.test('the heartbeat beats while turns run, and only then', async (t) => {
  const rig = new HostRig(t);
  const { api, hosted } = await rig.attach(rig.create());
  const beat = new Int32Array(rig.ports!.heartbeat);
  const before = Atomics.load(beat, 0);
  await rig.prompt(api, 1, 'wait 500');
  const after = Atomics.load(beat, 0);
  t.ok(after > before + 1, `from ${before} to ${after}`);
  await new Promise((resolve) => setTimeout(resolve, 450));
  t.equal(Atomics.load(beat, 0), after);
  await api.dispose().catch(() => undefined);
  await hosted;
});
