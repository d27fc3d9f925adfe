/** A session on a thread, without the thread: hosted in this process over real ports, with a real log and the scripted model. */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import t, { type Test } from 'tap';
import type { BrokerApi } from '../../../../src/shared/broker-protocol.ts';
import { expose, portEndpoint, type Remote, wrap } from '../../../../src/shared/comlink.ts';
import type { LogEvent, PromptBlock, SessionHeader } from '../../../../src/shared/events.ts';
import { logVersion } from '../../../../src/shared/events.ts';
import { createSessionFile, type SessionPaths } from '../../../../src/shared/log/session-paths.ts';
import type {
  Completion,
  DataBatch,
  SessionApi,
  SessionStarted,
  SessionTask,
  ThreadPorts,
} from '../../../../src/shared/thread-protocol.ts';
import { hostSession } from '../../../../src/worker/session/host-session.ts';
import { createThreadContext, type ThreadContext } from '../../../../src/worker/session/thread-context.ts';

/** A thread context and what main holds of it. */
class HostRig {
  readonly thread: ThreadContext = createThreadContext(5);
  readonly stateDir: string;
  readonly cwd: string;
  readonly frames: any[] = [];
  readonly completions: Completion[] = [];
  readonly released: string[] = [];
  background = 0;
  ports: ThreadPorts | undefined;
  #sessions = 0;
  #wake: () => void = () => undefined;

  constructor(t: Test) {
    this.stateDir = t.testdir({ work: {} });
    this.cwd = `${this.stateDir}/work`;
    t.teardown(() => {
      for (const port of [this.ports?.data, this.ports?.control, this.ports?.broker]) port?.close();
    });
  }

  create(): { id: string; paths: SessionPaths } {
    this.#sessions += 1;
    const id = `00000000-0000-7000-8000-${String(this.#sessions).padStart(12, '0')}`;
    const header: SessionHeader = {
      type: 'session',
      version: logVersion,
      id,
      createdAt: new Date().toISOString(),
      cwd: this.cwd,
      agent: { name: 'test', version: '0' },
    };
    return { id, paths: createSessionFile(this.stateDir, header) };
  }

  /** Attaches a session; `hosted` fulfils when it has left. */
  async attach({ id, paths }: { id: string; paths: SessionPaths }, nonce = 'server') {
    const { port1, port2 } = new MessageChannel();
    const hosted = hostSession(this.#task(id, paths, { port: port2, nonce }), this.thread);
    const [started] = (await once(port1, 'message')) as [SessionStarted];
    if (started.kind === 'started' && started.ports !== undefined) this.#take(started.ports);
    const api = wrap<SessionApi>(portEndpoint(port1));
    return { started, hosted, api, port: port1 };
  }

  async prompt(api: Remote<SessionApi>, requestId: number, text: string): Promise<Completion> {
    await api.prompt(requestId, [{ type: 'text', text }] satisfies PromptBlock[], {});
    return await this.completion(requestId);
  }

  async completion(requestId: number): Promise<Completion> {
    for (;;) {
      const found = this.completions.find((one) => one.requestId === requestId);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #task(sessionId: string, paths: SessionPaths, { port, nonce }: { port: SessionTask['port']; nonce: string }): SessionTask {
    return {
      sessionId,
      cwd: this.cwd,
      logPath: paths.log,
      lockPath: paths.lock,
      spillDir: paths.spillDir,
      ownDirectories: [this.stateDir],
      isolation: 'dedicated',
      serverNonce: nonce,
      client: { terminalOutput: false },
      options: {},
      port,
      settings: {
        profile: 'editor',
        model: { kind: 'scripted', paceMs: 1 },
        systemPrompt: undefined,
        titles: 'off',
        instructions: 'off',
        userInstructions: undefined,
        clientFiles: 'off',
        mode: 'full-access',
        permissionTimeoutMs: 0,
        budget: { maxSteps: 50, maxToolCalls: 50, maxTokens: 0, maxWallMs: 0, maxCostUsd: 0 },
        maxParallelToolCalls: 4,
        maxUpdatesPerSecond: 0,
        commandTimeoutMs: 5000,
        ripgrepPath: undefined,
        policy: undefined,
        prices: undefined,
        subagents: [],
        trace: false,
      },
    };
  }

  #take(ports: ThreadPorts): void {
    this.ports = ports;
    ports.data.on('message', (batch: DataBatch) => {
      for (const line of batch.text.split('\n').filter((one) => one !== '')) this.frames.push(JSON.parse(line));
      this.completions.push(...batch.completions);
      this.#wake();
    });
    const broker: Pick<BrokerApi, 'countBackground' | 'releaseOwner'> = {
      countBackground: async () => this.background,
      releaseOwner: async (owner) => void this.released.push(owner),
    };
    expose(broker, portEndpoint(ports.broker));
    expose({ log: async () => undefined }, portEndpoint(ports.control));
  }
}

function events(paths: SessionPaths): LogEvent[] {
  const lines = readFileSync(paths.log, 'utf8').trimEnd().split('\n').slice(1);
  return lines.map((line) => JSON.parse(line) as LogEvent);
}

const say = (rig: HostRig): string =>
  rig.frames.flatMap(({ params }) => (params.update.sessionUpdate === 'agent_message_chunk' ? [params.update.content.text] : [])).join('');

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
