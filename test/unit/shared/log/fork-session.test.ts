/** A session that begins with the history of another one: which part of it, and what becomes of what it refers to. */
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  appendFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { EventInput, LogEvent, SessionHeader } from '../../../../src/shared/events.ts';
import { forkSession } from '../../../../src/shared/log/fork-session.ts';
import { sealLine } from '../../../../src/shared/log/line-seal.ts';
import { readSessionHeader } from '../../../../src/shared/log/read-header.ts';
import { createSessionFile, type SessionPaths } from '../../../../src/shared/log/session-paths.ts';
import { openLog } from '../../worker/log/open-log.ts';
import { sampleHeader, sampleId, sampleOptions, samples } from './sample-events.ts';

const forkId = '0192f3c4-2222-7abc-8def-0123456789ab';
const forkHeader: SessionHeader = sampleHeader(forkId);
const one = (type: EventInput['type'], data: object = {}): EventInput =>
  ({ type, data: { ...samples[type], ...data } }) as unknown as EventInput;
const turn = (number: number, text = 'hello'): EventInput[] => [
  one('turn/start', { turn: number }),
  one('user/message', { turn: number, content: [{ type: 'text', text }] }),
  one('assistant/message', { turn: number, text, toolCalls: [] }),
  one('turn/end', { turn: number, reason: { kind: 'completed' } }),
];

interface Rig {
  readonly stateDir: string;
  readonly source: SessionPaths;
  readonly fork: () => Promise<SessionPaths>;
}

function rig(t: Test, events: readonly EventInput[]): Rig {
  const stateDir = t.testdir();
  const source = createSessionFile(stateDir, { ...sampleHeader(), options: sampleOptions });
  appendFileSync(source.log, lines(events));
  return { stateDir, source, fork: () => forkSession({ stateDir, sourceId: sampleId, header: { ...forkHeader, options: sampleOptions } }) };
}

function lines(events: readonly EventInput[], from = 0): Buffer {
  return Buffer.concat(
    events.map((event, index) => sealLine(JSON.stringify({ type: event.type, seq: from + index, time: 1, data: event.data }))),
  );
}

/** The events of a log as its writer would read them. */
async function read(paths: SessionPaths): Promise<LogEvent[]> {
  const { log, events } = await openLog(paths);
  await log.close();
  return events;
}

t.test('the copy holds every event up to the last finished turn, under a header of its own', async (t) => {
  const past = [
    one('thread/attached'),
    one('mode/change'),
    ...turn(1),
    one('options/change'),
    ...turn(2),
    one('mode/change', { mode: 'plan' }),
  ];
  const { stateDir, source, fork } = rig(t, past);
  const before = readFileSync(source.log);
  const paths = await fork();
  t.same(readSessionHeader(stateDir, forkId), {
    ...forkHeader,
    options: sampleOptions,
    forkedFrom: { sessionId: sampleId, seq: past.length - 1 },
  });
  const events = await read(paths);
  t.same(
    events.map(({ type, data }) => ({ type, data })),
    past,
  );
  t.same(
    events.map(({ seq }) => seq),
    past.map((_, index) => index),
  );
  t.same(readFileSync(source.log), before, 'the source is as it was');
  t.equal(statSync(paths.log).mode & 0o777, 0o600);
  t.same(readdirSync(join(stateDir, 'sessions')).sort(), [`${sampleId}.jsonl`, `${forkId}.jsonl`].sort());
});

t.test('a turn without an end is left out, whole, and so is a line that is being written', async (t) => {
  const finished = [one('thread/attached'), ...turn(1)];
  const running = [...turn(2).slice(0, 3), one('mode/change', { mode: 'full-access' })];
  const { source, stateDir, fork } = rig(t, [...finished, ...running]);
  appendFileSync(source.log, '{"type":"assistant/chunk","se');
  const events = await read(await fork());
  t.same(
    events.map(({ type }) => type),
    finished.map(({ type }) => type),
  );
  t.equal(readSessionHeader(stateDir, forkId).forkedFrom?.seq, finished.length - 1);
});

t.test('a session that has done nothing can be forked', async (t) => {
  const { stateDir, fork } = rig(t, []);
  t.same(await read(await fork()), []);
  t.equal(readSessionHeader(stateDir, forkId).forkedFrom?.seq, -1);
});

t.test('words about turns that stand in a text decide nothing', async (t) => {
  const text = '{"type":"turn/end"} and "turn/start" and \\"turn/end\\"\n"turn/start"';
  const { fork } = rig(t, [...turn(1, text), ...turn(2, text).slice(0, 3)]);
  t.equal((await read(await fork())).length, 4);
});

t.test('lines may be longer than what is read at once, and lie across it anywhere', async (t) => {
  const past = [400_000, 10, 262_144, 262_100, 3, 900_000].flatMap((length, index) => turn(index + 1, 'é'.repeat(length)));
  const { fork } = rig(t, past);
  const events = await read(await fork());
  t.same(
    events.map(({ type, data }) => ({ type, data })),
    past,
  );
});

t.test("what the log refers to is the session's own afterwards", async (t) => {
  const { stateDir, source, fork } = rig(t, []);
  const spilled = join(source.spillDir, 'output-1.txt');
  mkdirSync(join(source.spillDir, 'snapshots'), { recursive: true });
  writeFileSync(spilled, 'all of it');
  writeFileSync(join(source.spillDir, 'snapshots', 'aa'), 'kept');
  symlinkSync('/etc/passwd', join(source.spillDir, 'link'));
  const result = `[cut; all of it is in ${spilled}, twice: ${spilled}]`;
  appendFileSync(source.log, lines([...turn(1), one('tool/result', { text: result }), ...turn(2)]));
  const paths = await fork();
  rmSync(source.spillDir, { recursive: true });
  rmSync(source.log);
  const found = (await read(paths)).find((event) => event.type === 'tool/result');
  const own = join(stateDir, 'sessions', `${forkId}.d`, 'output-1.txt');
  t.match(found, { data: { text: `[cut; all of it is in ${own}, twice: ${own}]` } }, 'the line is sealed again: the reader took it');
  t.equal(readFileSync(own, 'utf8'), 'all of it');
  t.equal(readFileSync(join(paths.spillDir, 'snapshots', 'aa'), 'utf8'), 'kept');
  t.notOk(existsSync(join(paths.spillDir, 'link')), 'a link is not taken along');
  t.equal(statSync(paths.spillDir).mode & 0o777, 0o700);
});

t.test('a damaged line is not made good', async (t) => {
  const { source, fork } = rig(t, turn(1));
  const bytes = lines([one('tool/result', { text: `see ${sampleId}.d/x` })], 4);
  bytes[40] = bytes[40] === 0x61 ? 0x62 : 0x61;
  appendFileSync(source.log, Buffer.concat([bytes, lines(turn(2), 5)]));
  const paths = await fork();
  await t.rejects(openLog(paths), { code: 'LOG_CORRUPT' });
});

t.test('what cannot be forked leaves nothing behind', async (t) => {
  const { stateDir, source, fork } = rig(t, turn(1));
  await t.rejects(forkSession({ stateDir, sourceId: forkId, header: forkHeader }), { code: 'SESSION_NOT_FOUND' });
  await t.rejects(forkSession({ stateDir, sourceId: '../x', header: forkHeader }), { code: 'SESSION_NOT_FOUND' });
  mkdirSync(source.spillDir);
  writeFileSync(join(source.spillDir, 'a'), '');
  const taken = join(stateDir, 'sessions', `${forkId}.jsonl`);
  linkSync(source.log, taken);
  await t.rejects(fork(), { code: 'LOG_WRITE_FAILED' }, 'never over a session that is there');
  t.same(readdirSync(join(stateDir, 'sessions')).sort(), [`${sampleId}.d`, `${sampleId}.jsonl`, `${forkId}.jsonl`].sort());
  rmSync(taken);
  rmSync(source.log);
  mkdirSync(source.log);
  await t.rejects(fork(), { code: 'LOG_CORRUPT' });
  t.notOk(existsSync(taken));
});
