/** What a supervisor passes on, keeps and answers, with processes that a test plays. */
import t from 'tap';
import { KnownSessions, resumeOf } from '../../../../src/main/supervisor/known-sessions.ts';
import type { OutputScanner } from '../../../../src/main/supervisor/output-scanner.ts';
import { RestartPolicy } from '../../../../src/main/supervisor/restart-policy.ts';
import { ServerRequests } from '../../../../src/main/supervisor/server-requests.ts';
import { SilenceWatch } from '../../../../src/main/supervisor/silence-watch.ts';
import { Supervisor } from '../../../../src/main/supervisor/supervisor.ts';

const killed = { code: null, signal: 'SIGKILL' } as const;

class Rig {
  /** Frames that the client got. */
  readonly client: any[] = [];
  /** Frames that the process of now got. */
  server: any[] = [];
  readonly supervisor: Supervisor;
  #scanner: OutputScanner | undefined;

  constructor() {
    this.supervisor = new Supervisor({
      toClient: (text) => {
        for (const line of String(text).trimEnd().split('\n')) this.client.push(JSON.parse(line));
      },
      onRegulate: () => undefined,
    });
    this.begin();
  }

  begin(): void {
    this.server = [];
    this.#scanner = this.supervisor.begin({ send: (line) => void this.server.push(JSON.parse(line)) });
  }

  /** The process dies, and the next one begins; it has been asked nothing but to initialize, if at all. */
  restart(): void {
    this.supervisor.serverDied(killed);
    this.begin();
  }

  ask(id: unknown, method: string, params: object = {}): void {
    this.supervisor.fromClient(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  }

  /** The process writes. */
  says(frame: object): void {
    this.writes(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
  }

  writes(text: string): void {
    this.#scanner?.push(Buffer.from(text));
  }

  /** The process answers the newest request of a method. */
  answers(method: string, result: object = {}): void {
    this.says({ id: this.server.findLast((frame) => frame.method === method).id, result });
  }

  initialize(): void {
    this.ask(0, 'initialize', { protocolVersion: 1 });
    this.answers('initialize', { protocolVersion: 1 });
  }

  open(id: string): void {
    this.ask(`new ${id}`, 'session/new', { cwd: '/w', mcpServers: [], _meta: { 'dsh-acp': { env: { A: 'secret' } } } });
    this.answers('session/new', { sessionId: id });
  }

  prompt(id: unknown, sessionId: string, text = 'x'): void {
    this.ask(id, 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  }

  methods(): string[] {
    return this.server.map((frame) => frame.method);
  }

  answersTo(id: unknown): any[] {
    return this.client.filter((frame) => frame.method === undefined && frame.id === id);
  }
}

void t.test('a new process is initialized as the old one was, and sessions are opened before what is theirs', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.open('s');
  rig.prompt(1, 's');
  const { key } = rig.server.at(-1).params._meta['dsh-acp'];
  rig.restart();
  t.same(rig.methods(), ['initialize']);
  t.same(rig.server[0].params, { protocolVersion: 1 });
  rig.answers('initialize');
  t.same(rig.methods(), ['initialize', 'session/resume']);
  const { params } = rig.server[1];
  t.same(params, { sessionId: 's', cwd: '/w', mcpServers: [], _meta: { 'dsh-acp': { env: { A: 'secret' } } } });
  rig.answers('session/resume');
  t.match(rig.server[2], { id: 1, method: 'session/prompt', params: { _meta: { 'dsh-acp': { key } } } }, 'under the same key');
  t.equal(rig.answersTo(0).length, 1, 'the client was told once');
  rig.says({ id: 1, error: { code: -31011, message: 'cut', data: { code: 'TURN_INTERRUPTED', stored: true, text: 'part' } } });
  t.match(rig.answersTo(1), [{ error: { code: -31020, data: { code: 'SERVER_RESTARTED', sessionId: 's', text: 'part' } } }]);
});

void t.test('half a line of a dead process reaches nobody, and its answer is asked for again', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.ask(1, 'session/list');
  rig.writes(
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}\n{"jsonrpc":"2.0","id":1,"res',
  );
  rig.restart();
  rig.answers('initialize');
  rig.answers('session/list', { sessions: [] });
  t.equal(rig.client.filter(({ method }) => method === 'session/update').length, 1);
  t.same(rig.answersTo(1), [{ jsonrpc: '2.0', id: 1, result: { sessions: [] } }]);
});

void t.test('an id that is open is refused to a second request, and is free again once answered', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.ask('a', 'session/list');
  rig.ask('a', 'session/list');
  t.match(rig.answersTo('a'), [{ error: { code: -32600, data: { code: 'INVALID_REQUEST' } } }]);
  t.equal(rig.methods().filter((method) => method === 'session/list').length, 1, 'the server hears of one');
  rig.answers('session/list');
  rig.ask('a', 'session/list');
  rig.answers('session/list');
  t.equal(rig.answersTo('a').length, 3);
});

void t.test('a load is asked again only while it has shown nothing', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.ask(1, 'session/load', { sessionId: 'shown', cwd: '/w', mcpServers: [] });
  rig.ask(2, 'session/load', { sessionId: 'unseen', cwd: '/w', mcpServers: [] });
  const update = { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'x' } };
  rig.says({ method: 'session/update', params: { sessionId: 'shown', update } });
  rig.restart();
  t.match(rig.answersTo(1), [{ error: { data: { code: 'SERVER_RESTARTED', sessionId: 'shown' } } }]);
  rig.answers('initialize');
  t.same(
    rig.server.slice(1).map(({ params }) => params.sessionId),
    ['unseen'],
  );
});

void t.test('commands and steering are not asked twice; what no process was given always is', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.open('s');
  rig.prompt(1, 's', '/undo');
  rig.ask(2, '_session/steer', { sessionId: 's' });
  rig.restart();
  for (const id of [1, 2]) t.match(rig.answersTo(id), [{ error: { data: { code: 'SERVER_RESTARTED' } } }]);
  rig.prompt(3, 's', '/undo');
  rig.restart();
  rig.answers('initialize');
  rig.answers('session/resume');
  t.match(rig.server.at(-1), { id: 3, method: 'session/prompt' });
});

void t.test('a request that each process dies of is answered in the end', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.ask(1, 'session/list');
  for (let tries = 1; tries < 3; tries += 1) {
    rig.restart();
    rig.answers('initialize');
    t.same(rig.answersTo(1), []);
  }
  rig.restart();
  t.match(rig.answersTo(1), [{ error: { data: { code: 'SERVER_RESTARTED' } } }]);
});

void t.test('a new session is asked for under one id, however often, and a client cannot give it', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.ask(1, 'session/new', { cwd: '/w', mcpServers: [], _meta: { 'dsh-acp/supervisor': { sessionId: 'mine' }, other: 1 } });
  const first = rig.server.at(-1).params._meta;
  t.match(first, { 'dsh-acp/supervisor': { sessionId: /^[0-9a-f-]{36}$/ }, other: 1 });
  rig.restart();
  rig.answers('initialize');
  t.same(rig.server.at(-1).params._meta, first);
  rig.supervisor.fromClient(JSON.stringify({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 1 } }));
  rig.restart();
  t.match(rig.answersTo(1), [{ error: { code: -32800 } }]);
  rig.answers('initialize');
  const { sessionId } = first['dsh-acp/supervisor'];
  t.match(rig.server.at(-1), { method: 'session/delete', params: { sessionId } }, 'one that nobody is told of does not stay');
});

void t.test('requests of two processes have ids that differ, and what the client answers late goes nowhere', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.says({ id: 0, method: 'session/request_permission', params: {} });
  rig.restart();
  rig.answers('initialize');
  rig.says({ id: 0, method: 'session/request_permission', params: {} });
  const [old, fresh] = rig.client.filter(({ method }) => method === 'session/request_permission');
  t.not(old.id, fresh.id);
  t.same(rig.client.find(({ method }) => method === '$/cancel_request').params, { requestId: old.id });
  const before = rig.server.length;
  for (const { id } of [old, fresh, fresh]) rig.supervisor.fromClient(JSON.stringify({ jsonrpc: '2.0', id, result: { of: id } }));
  t.same(rig.server.slice(before), [{ jsonrpc: '2.0', id: 0, result: { of: fresh.id } }]);
});

void t.test('noise goes to the server as it came, also where it could not be written again', async (t) => {
  const rig = new Rig();
  rig.initialize();
  const seen: string[] = [];
  rig.supervisor.begin({ send: (line) => void seen.push(line) });
  const noise = [
    'not json',
    '[1,2]',
    '7',
    '{}',
    '{"id":1,"method":5}',
    '{"id":{},"method":"x"}',
    `{"id":1,"method":"session/prompt","params":${'['.repeat(100_000)}`,
  ];
  const deep = `{"id":5,"method":"session/prompt","params":{"_meta":${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}}}`;
  rig.supervisor.serverDied(killed);
  const fresh = new Supervisor({ toClient: () => undefined, onRegulate: () => undefined });
  fresh.begin({ send: (line) => void seen.push(line) });
  seen.length = 0;
  for (const line of [...noise, deep]) fresh.fromClient(line);
  t.same(seen, [...noise, deep]);
});

void t.test('a client that leaves while no process can take more is answered all the same', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.open('s');
  rig.prompt(1, 's');
  rig.restart();
  rig.prompt(2, 's');
  rig.ask(3, 'session/list');
  rig.supervisor.clientLeft();
  t.match(rig.answersTo(1), [{ result: { stopReason: 'cancelled' } }]);
  t.match(rig.answersTo(2), [{ result: { stopReason: 'cancelled' } }]);
  t.match(rig.answersTo(3), [{ error: { data: { code: 'SHUTTING_DOWN' } } }]);
  rig.supervisor.serverDied(killed);
  rig.supervisor.giveUp(killed);
  for (const id of [1, 2, 3]) t.equal(rig.answersTo(id).length, 1);
});

void t.test('input waits for a process that is initialized, and what waits for a session is bounded', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.open('s');
  rig.restart();
  t.notOk(rig.supervisor.wantsInput, 'not before it is initialized');
  rig.answers('initialize');
  rig.prompt(1, 's', 'x'.repeat(20 * 1024 * 1024));
  t.ok(rig.supervisor.wantsInput, 'an answer to a question may be what lets the session be opened');
  rig.prompt(2, 's', 'x'.repeat(20 * 1024 * 1024));
  t.match(rig.answersTo(2), [{ error: { data: { code: 'SERVER_RESTARTED' } } }]);
  rig.answers('session/resume');
  t.equal(rig.server.at(-1).id, 1);
});

void t.test('what is cancelled before a process of now has it is answered at once, and never handed on', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.open('s');
  rig.prompt(1, 's', 'began');
  rig.restart();
  rig.answers('initialize');
  rig.prompt(2, 's');
  rig.prompt(3, 's');
  rig.supervisor.fromClient('{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}');
  t.match(rig.answersTo(2), [{ result: { stopReason: 'cancelled' } }], 'the server has never heard of it');
  rig.supervisor.fromClient('{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}');
  for (const id of [1, 3]) t.match(rig.answersTo(id), [{ result: { stopReason: 'cancelled' } }]);
  rig.answers('session/resume');
  t.same(rig.methods(), ['initialize', 'session/resume', 'session/cancel']);
  rig.prompt(4, 's');
  rig.restart();
  rig.answers('initialize');
  rig.answers('session/resume');
  rig.supervisor.fromClient('{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}');
  rig.says({ id: 4, error: { code: -31011, message: 'cut', data: { code: 'TURN_INTERRUPTED' } } });
  t.match(rig.answersTo(4), [{ result: { stopReason: 'cancelled' } }], 'cut, and not wanted any more');
});

void t.test('an id that waits for the next process is not free', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.ask(1, 'session/list');
  rig.restart();
  rig.ask(1, '_status');
  t.match(rig.answersTo(1), [{ error: { data: { code: 'INVALID_REQUEST' } } }]);
  rig.answers('initialize');
  rig.answers('session/list', { sessions: [] });
  t.match(rig.answersTo(1)[1], { result: { sessions: [] } });
});

void t.test('questions that were taken back and never answered are forgotten in the end', async (t) => {
  const requests = new ServerRequests();
  for (let id = 0; id < 1000; id += 1) {
    requests.outgoing({ id, method: 'session/request_permission' });
    t.equal(JSON.parse(requests.withdrawal({ params: { requestId: id } }) ?? '').params.requestId, id + 1);
  }
  t.equal(requests.incoming({ id: 1, result: {} }), undefined, 'the oldest');
  t.match(JSON.parse(requests.incoming({ id: 1000, error: { code: -32800 } }) ?? ''), { id: 999, error: { code: -32800 } });
  t.equal(requests.withdrawal({ params: { requestId: 998 } }), undefined, 'taken back once');
  requests.outgoing({ id: 998, method: 'session/request_permission' });
  t.ok(requests.incoming({ id: 999, result: {} }), 'a late answer to the first question of this id');
  t.same(
    requests.withdrawAll().map((line) => JSON.parse(line).params.requestId),
    [1001],
    'those that are open, once',
  );
});

void t.test('a process that gives no sign of life is told of, and only when it alone is silent', async (t) => {
  let now = 0;
  let told = 0;
  const watch = new SilenceWatch({ limitMs: 60_000, onSilent: () => (told += 1), now: () => now });
  t.teardown(() => watch.stop());
  const look = (afterMs = 15_000): void => {
    now += afterMs;
    watch.look();
  };
  watch.beat();
  for (let i = 0; i < 100; i += 1) {
    look();
    look();
    look();
    watch.beat();
  }
  t.equal(told, 0, 'three looks in a row that find nothing are not enough');
  look();
  for (const _ of [1, 2, 3]) look();
  look(8 * 3600 * 1000);
  for (const _ of [1, 2, 3]) look();
  t.equal(told, 0, 'the machine slept, and the watcher with it');
  look();
  t.equal(told, 1);
  const early = new SilenceWatch({ limitMs: 1000, onSilent: () => (told += 1), now: () => now });
  for (const _ of [1, 2, 3]) early.look();
  early.stop();
  early.beat();
  t.equal(told, 1, 'a start takes longer');
  t.ok(SilenceWatch.beatEveryMs(60_000) * 2 < 15_000);
});

void t.test('a session that cannot be opened again says why, and is tried again', async (t) => {
  const rig = new Rig();
  rig.initialize();
  rig.open('s');
  rig.restart();
  rig.answers('initialize');
  rig.prompt(1, 's');
  rig.says({ id: rig.server.at(-1).id, error: { code: -31006, message: 'locked', data: { code: 'SESSION_LOCKED' } } });
  t.match(rig.answersTo(1), [{ error: { data: { code: 'SESSION_LOCKED' } } }]);
  rig.prompt(2, 's');
  t.equal(rig.server.at(-1).method, 'session/resume');
  rig.answers('session/resume');
  t.match(rig.server.at(-1), { id: 2, method: 'session/prompt' });
});

void t.test('sessions that are kept for opening again take bounded memory; those only looked at are not kept', async (t) => {
  const sessions = new KnownSessions(1000);
  const resume = resumeOf({ cwd: '/w', mcpServers: [] });
  const request = { method: 'session/new', sessionId: undefined, resume } as unknown as Parameters<KnownSessions['learn']>[0];
  for (let i = 0; i < 100; i += 1) sessions.learn(request, { result: { sessionId: `s${i}` } });
  t.equal(sessions.get('s0'), undefined);
  t.ok(sessions.get('s99'));
  t.ok([...sessions.ids()].length < 25);
  t.equal(resumeOf({ cwd: '/w', _meta: { 'dsh-acp': { readOnly: true } } }), undefined);
});

void t.test('a server that has served is started again at once, one that comes to nothing ever later, and not too often', async (t) => {
  const policy = new RestartPolicy(5);
  t.same([policy.next(0, true), policy.next(1, true)], [0, 0]);
  t.same([policy.next(2, false), policy.next(3, false), policy.next(4, true)], [50, 100, 0]);
  t.equal(policy.next(5, true), undefined);
  t.equal(policy.next(60_010, true), 0, 'a minute later');
});
