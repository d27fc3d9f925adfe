/** Deleting a session: what goes with it, what stays, and what a crash in the middle leaves. */
import { appendFileSync, existsSync, mkdirSync, readdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { SessionHeader } from '../../../../src/shared/events.ts';
import { deleteSession } from '../../../../src/shared/log/delete-session.ts';
import { sealLine } from '../../../../src/shared/log/line-seal.ts';
import { listSessions } from '../../../../src/shared/log/list-sessions.ts';
import { SessionLock } from '../../../../src/shared/log/session-lock.ts';
import { createSessionFile, type SessionPaths } from '../../../../src/shared/log/session-paths.ts';
import { sampleHeader } from './sample-events.ts';

const idOf = (number: number): string => `0192f3c4-0000-7abc-8def-${String(number).padStart(12, '0')}`;

class Rig {
  readonly stateDir: string;
  readonly orphaned: string[] = [];

  constructor(t: Test) {
    this.stateDir = t.testdir();
  }

  create(number: number, more: Partial<SessionHeader> = {}): SessionPaths {
    const paths = createSessionFile(this.stateDir, { ...sampleHeader(idOf(number)), ...more });
    mkdirSync(join(paths.spillDir, 'snapshots'), { recursive: true });
    writeFileSync(join(paths.spillDir, 'snapshots', 'a'), 'x');
    return paths;
  }

  /** A child that stands in the log of the session that delegated to it. */
  delegate(parent: SessionPaths, child: number, seq: number): void {
    const { log } = this.create(child, { options: { depth: 1 } });
    this.refer(parent, log, seq);
  }

  refer(parent: SessionPaths, logPath: string, seq: number): void {
    const data = { turn: 1, callId: 'c', runId: 'r', provider: 'self', cwd: '/', background: false, logPath };
    appendFileSync(parent.log, sealLine(JSON.stringify({ type: 'subagent/start', seq, time: 1, data })));
  }

  delete(id: string, serverNonce = 'me'): Promise<void> {
    return deleteSession({ stateDir: this.stateDir, id, serverNonce, onOrphaned: (orphan) => void this.orphaned.push(orphan) });
  }

  get left(): string[] {
    return readdirSync(join(this.stateDir, 'sessions')).sort();
  }
}

t.test('log, directory and lock go; other sessions stay; and it can be done again', async (t) => {
  const rig = new Rig(t);
  rig.create(1);
  rig.create(2);
  await rig.delete(idOf(1));
  t.same(rig.left, [`${idOf(2)}.d`, `${idOf(2)}.jsonl`]);
  await rig.delete(idOf(1));
  await rig.delete(idOf(3));
  t.same(rig.left, [`${idOf(2)}.d`, `${idOf(2)}.jsonl`]);
  t.same(rig.orphaned, []);
  await t.rejects(rig.delete('../../etc'), { code: 'SESSION_NOT_FOUND' });
});

t.test('where there are no sessions at all none is missed, and nothing is made', async (t) => {
  const rig = new Rig(t);
  await rig.delete(idOf(1));
  t.notOk(existsSync(join(rig.stateDir, 'sessions')));
});

t.test('a session that another server has open is refused, and left alone', async (t) => {
  const rig = new Rig(t);
  const { lock } = rig.create(1);
  const held = await SessionLock.acquire({ lockPath: lock, serverNonce: 'other', threadId: 1 });
  const before = rig.left;
  await t.rejects(rig.delete(idOf(1)), { code: 'SESSION_LOCKED' });
  t.same(rig.left, before);
  held.release();
  await rig.delete(idOf(1));
  t.same(rig.left, []);
});

t.test('what a killed server left is told of before it goes', async (t) => {
  const rig = new Rig(t);
  const { lock } = rig.create(1);
  writeFileSync(lock, '');
  await rig.delete(idOf(1));
  t.same(rig.orphaned, [idOf(1)]);
  t.same(rig.left, []);
});

t.test('sessions that it delegated to go with it, and theirs; nobody else does, whatever the log says', async (t) => {
  const rig = new Rig(t);
  const parent = rig.create(1);
  rig.delegate(parent, 2, 0);
  rig.delegate({ ...parent, log: join(rig.stateDir, 'sessions', `${idOf(2)}.jsonl`) }, 3, 0);
  const own = rig.create(4);
  rig.refer(parent, own.log, 1);
  rig.refer(parent, '/elsewhere/x.jsonl', 2);
  rig.refer(parent, parent.log, 3);
  const words = JSON.stringify(`"logPath":"${own.log}" of "subagent/start"`);
  appendFileSync(parent.log, sealLine(`{"type":"user/message","seq":4,"time":1,"data":{"text":${words}}}`));
  await rig.delete(idOf(1));
  t.same(rig.left, [`${idOf(4)}.d`, `${idOf(4)}.jsonl`]);
});

t.test('the children of the session that it was forked from stay', async (t) => {
  const rig = new Rig(t);
  const fork = rig.create(1, { forkedFrom: { sessionId: idOf(9), seq: 5 } });
  rig.delegate(fork, 2, 5);
  rig.delegate(fork, 3, 6);
  await rig.delete(idOf(1));
  t.same(rig.left, [`${idOf(2)}.d`, `${idOf(2)}.jsonl`]);
});

t.test('a deletion that was cut short is out of sight, and the next one ends it', async (t) => {
  const rig = new Rig(t);
  const cut = rig.create(1);
  rig.delegate(cut, 2, 0);
  rig.create(3);
  renameSync(cut.log, cut.log.replace('.jsonl', '.deleted'));
  t.same(
    (await listSessions(rig.stateDir)).sessions.map(({ id }) => id),
    [idOf(3)],
  );
  await rig.delete(idOf(3));
  t.same(rig.left, [], 'that one, its child, and the one that was asked for');
  const again = rig.create(1);
  renameSync(again.log, again.log.replace('.jsonl', '.deleted'));
  await rig.delete(idOf(1));
  t.same(rig.left, [], 'and so does the same one');
});

t.test('a copy that was never finished goes with the next deletion once nobody can still be writing it', async (t) => {
  const rig = new Rig(t);
  const [old, young] = [rig.create(1), rig.create(2)];
  for (const { log } of [old, young]) renameSync(log, log.replace('.jsonl', '.part'));
  utimesSync(old.log.replace('.jsonl', '.part'), 1, 1);
  await rig.delete(idOf(5));
  t.same(rig.left, [`${idOf(2)}.d`, `${idOf(2)}.part`]);
});
