/** Undo in a hosted session: commands and the call of main, over a real log, real files and the scripted model. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { SessionSettings } from '../../../../src/shared/config.ts';
import { logVersion } from '../../../../src/shared/events.ts';
import { forkSession } from '../../../../src/shared/log/fork-session.ts';
import { events, HostRig } from './host-rig.ts';

class UndoSession {
  readonly rig: HostRig;
  readonly #session: ReturnType<HostRig['create']>;
  #hosted: Awaited<ReturnType<HostRig['attach']>> | undefined;
  #requests = 0;

  constructor(t: Test, settings: Partial<SessionSettings> = {}) {
    this.rig = new HostRig(t, settings);
    this.#session = this.rig.create();
  }

  get id(): string {
    return this.#session.id;
  }

  get spillDir(): string {
    return this.#session.paths.spillDir;
  }

  get api() {
    return this.#hosted!.api;
  }

  get events() {
    return events(this.#session.paths);
  }

  async open(): Promise<this> {
    this.#hosted = await this.rig.attach(this.#session);
    return this;
  }

  async leave(): Promise<void> {
    await this.api.dispose().catch(() => undefined);
    await this.#hosted!.hosted;
  }

  async reopen(): Promise<void> {
    await this.leave();
    await this.open();
  }

  /** What the client is shown for a prompt. */
  async prompt(text: string): Promise<string> {
    this.#requests += 1;
    const before = this.rig.frames.length;
    const completion = await this.rig.prompt(this.api, this.#requests, text);
    if (completion.kind !== 'turn' || !completion.outcome.ok) throw new Error(JSON.stringify(completion));
    return said(this.rig.frames.slice(before));
  }

  async replay(): Promise<any[]> {
    this.#requests += 1;
    const before = this.rig.frames.length;
    await this.api.replay(this.#requests);
    await this.rig.completion(this.#requests);
    return this.rig.frames.slice(before);
  }

  read(name: string): string | undefined {
    const path = join(this.rig.cwd, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }
}

const said = (frames: any[]): string =>
  frames.flatMap(({ params }) => (params.update.sessionUpdate === 'agent_message_chunk' ? [params.update.content.text] : [])).join('');
const write = (name: string, text: string): string => `write ${name} <<EOF\n${text}\nEOF`;

t.test('a person undoes, redoes and rewinds by slash commands, also after the session left its thread', async (t) => {
  const session = await new UndoSession(t).open();
  writeFileSync(join(session.rig.cwd, 'a.txt'), 'old\n');
  await session.prompt('say hello');
  await session.prompt(`read a.txt\nedit a.txt /old/new/\n${write('made/b.txt', 'made')}`);
  t.equal(session.read('a.txt'), 'new\n');
  await session.reopen();
  const text = await session.prompt('/undo');
  t.match(text, /Undone: prompt 2[^]*restored: `a\.txt`[^]*removed: `made\/b\.txt`[^]*\/redo/);
  t.equal(session.read('a.txt'), 'old\n');
  t.notOk(existsSync(join(session.rig.cwd, 'made')));
  t.match(await session.prompt('/rewind'), /1\. `say hello`/);
  t.notMatch(await session.prompt('/rewind'), /2\. /);
  await session.reopen();
  t.match(await session.prompt('/redo'), /Brought back prompt 2/);
  t.equal(session.read('made/b.txt'), 'made\n');
  t.match(await session.prompt('/rewind 1'), /Undone: 2 prompts/);
  t.equal(session.read('made/b.txt'), undefined);
  t.match(await session.prompt('/undo'), /nothing to undo/);
  t.match(await session.prompt('/undo --forec'), /--forec.*not understood/);
  t.match(await session.prompt('/rewind 7'), /prompt 7 is not part/);
  await session.leave();
});

t.test('the model is told nothing of what was undone, nor after a load; what was spent stays spent', async (t) => {
  const session = await new UndoSession(t).open();
  await session.prompt('say first');
  await session.prompt('say second');
  const spent = (text: string) => Number(/Session\*\*: ([\d,]+) tokens/.exec(text)?.[1]?.replace(',', ''));
  const before = spent(await session.prompt('/cost'));
  await session.prompt('/undo');
  t.equal(spent(await session.prompt('/cost')), before);
  await session.reopen();
  t.equal(spent(await session.prompt('/cost')), before);
  await session.prompt('say third');
  t.same(
    session.events.flatMap((event) => (event.type === 'turn/start' ? [event.data.turn] : [])),
    [1, 2, 3],
  );
  await session.leave();
});

t.test(
  'main rewinds by a message: the client is shown a note, and a replay shows all of it in the order in which it happened',
  async (t) => {
    const session = await new UndoSession(t).open();
    await session.prompt('say first');
    await session.prompt(`todo x a; b\n${write('a.txt', 'made')}\nrun echo done\nsay second`);
    const { messageId } = session.events.findLast((event) => event.type === 'user/message')!.data as { messageId: string };
    const answered = session.events.findLast((event) => event.type === 'assistant/message')!.data as { messageId: string };
    const before = session.rig.frames.length;
    const made = await session.api.rewind({ messageId: answered.messageId, files: true, force: false });
    t.match(made.outcome, {
      kind: 'rewind',
      turns: [2],
      files: [{ path: join(session.rig.cwd, 'a.txt'), outcome: 'removed' }],
      notUndone: ['echo done'],
    });
    t.ok(made.afterBatch > 0);
    await t.rejects(session.api.rewind({ messageId, files: true, force: false }), { code: 'INVALID_PARAMS' });
    await t.rejects(session.api.rewind({ messageId: 'unknown', files: true, force: false }), { code: 'INVALID_PARAMS' });
    await session.prompt('say third');
    const live = session.rig.frames.slice(before);
    t.match(said(live), /Undone: prompt 2[^]*as they left it: `echo done`/);
    t.match(
      live.filter(({ params }) => params.update.sessionUpdate === 'plan').map(({ params }) => params.update.entries),
      [[]],
      'the plan of the undone prompt is taken away',
    );
    const shown = said(session.rig.frames);
    t.equal(said((await session.replay()).filter(({ params }) => params.update.sessionUpdate !== 'user_message_chunk')), shown);
    t.match(shown, /second[^]*Undone[^]*third/);
    await session.leave();
  },
);

t.test('a rewind is refused while a prompt runs', async (t) => {
  const session = await new UndoSession(t).open();
  await session.prompt('say first');
  const { messageId } = session.events.find((event) => event.type === 'user/message')!.data as { messageId: string };
  await session.api.prompt(77, [{ type: 'text', text: 'wait 60000' }], {});
  await t.rejects(session.api.rewind({ messageId, files: true, force: false }), { code: 'SESSION_BUSY' });
  await session.api.cancel(77);
  await session.rig.completion(77);
  t.match((await session.api.rewind({ messageId, files: true, force: false })).outcome.turns, [1, 2]);
  await session.leave();
});

t.test('in a mode that changes nothing files are not undone, and the conversation only if so asked', async (t) => {
  const session = await new UndoSession(t).open();
  await session.prompt(write('a.txt', 'made'));
  await session.api.setMode('read-only');
  t.match(await session.prompt('/undo'), /in the mode "read-only" no file is changed/);
  t.match(await session.prompt('/rewind'), /1\. /);
  t.match(await session.prompt('/undo --no-files'), /Undone: prompt 1[^]*Files are as they were/);
  t.equal(session.read('a.txt'), 'made\n');
  await session.leave();
});

t.test('with undo off nothing is kept, and the person is told', async (t) => {
  const session = await new UndoSession(t, { undo: 'off' }).open();
  await session.prompt(write('a.txt', 'made'));
  t.notOk(session.events.some((event) => event.type === 'file/snapshot'));
  t.match(await session.prompt('/undo'), /as they left it: `write .*a\.txt`/);
  t.equal(session.read('a.txt'), 'made\n');
  await session.leave();
});

t.test('two sessions in one directory: one does not overwrite what the other wrote', async (t) => {
  const one = await new UndoSession(t).open();
  writeFileSync(join(one.rig.cwd, 'a.txt'), 'old\n');
  await one.prompt('read a.txt\nedit a.txt /old/one/');
  const other = one.rig.create();
  const second = await one.rig.attach(other);
  await one.rig.prompt(second.api, 100, 'read a.txt\nedit a.txt /one/two/');
  t.match(await one.prompt('/undo'), /left as it is\*\*: `a\.txt`: it has changed since/);
  t.equal(one.read('a.txt'), 'two\n');
  await one.rig.prompt(second.api, 101, '/undo');
  t.equal(one.read('a.txt'), 'one\n');
  await one.prompt('/redo');
  t.match(await one.prompt('/undo'), /restored: `a\.txt`/);
  t.equal(one.read('a.txt'), 'old\n');
  await second.api.dispose().catch(() => undefined);
  await second.hosted;
  await one.leave();
});

t.test('a fork has what its source kept, also when the source is gone', async (t) => {
  const session = await new UndoSession(t).open();
  const { rig } = session;
  writeFileSync(join(rig.cwd, 'a.txt'), 'old\n');
  await session.prompt('read a.txt\nedit a.txt /old/new/');
  await session.leave();
  const id = '00000000-0000-7000-8000-00000000f0f0';
  const header = {
    type: 'session',
    version: logVersion,
    id,
    createdAt: new Date().toISOString(),
    cwd: rig.cwd,
    agent: { name: 'test', version: '0' },
  } as const;
  const paths = await forkSession({ stateDir: rig.stateDir, sourceId: session.id, header });
  rmSync(session.spillDir, { recursive: true });
  const fork = await rig.attach({ id, paths });
  await rig.prompt(fork.api, 200, '/undo');
  t.equal(session.read('a.txt'), 'old\n');
  await fork.api.dispose().catch(() => undefined);
  await fork.hosted;
});
