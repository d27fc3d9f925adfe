import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ServerError } from '../../../../src/shared/errors.ts';
import { sealLine } from '../../../../src/shared/log/line-seal.ts';
import { listSessions, type SessionPage } from '../../../../src/shared/log/list-sessions.ts';
import { readSessionHeader } from '../../../../src/shared/log/read-header.ts';
import { createSessionFile, isSessionId, makeSessionsDir, sessionPaths } from '../../../../src/shared/log/session-paths.ts';
import { sessionTitle } from '../../../../src/shared/log/session-title.ts';
import { writeTitleFile } from '../../../../src/shared/log/title-file.ts';
import { sampleHeader, sampleId, sampleOptions, samples } from './sample-events.ts';

function idOf(index: number): string {
  return `00000000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`;
}

function codeOf(action: () => unknown): string | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    return error instanceof ServerError ? error.code : String(error);
  }
}

t.test('only lower-case UUIDs become paths', async (t) => {
  t.ok(isSessionId(sampleId));
  for (const bad of ['', '../x', sampleId.toUpperCase(), `${sampleId}\n`, `${sampleId}/..`, sampleId.slice(1), 7, undefined]) {
    t.notOk(isSessionId(bad));
    t.equal(
      codeOf(() => sessionPaths('/s', bad as string)),
      'SESSION_NOT_FOUND',
    );
  }
  t.equal(sessionPaths('/s', sampleId).spillDir, `/s/sessions/${sampleId}.d`);
});

t.test('directories are 0700 and logs 0600, whatever the umask', async (t) => {
  for (const umask of [0o000, 0o022, 0o277]) {
    const before = process.umask(umask);
    t.teardown(() => process.umask(before));
    const stateDir = join(t.testdir(), 'state', `u${umask}`);
    process.umask(before);
    mkdirSync(join(stateDir, '..'), { recursive: true });
    process.umask(umask);
    const { log } = createSessionFile(stateDir, sampleHeader());
    process.umask(before);
    t.equal(statSync(stateDir).mode & 0o777, 0o700);
    t.equal(statSync(join(stateDir, 'sessions')).mode & 0o777, 0o700);
    t.equal(statSync(log).mode & 0o777, 0o600);
    t.same(readSessionHeader(stateDir, sampleId), sampleHeader());
  }
  const stateDir = t.testdir({ sessions: {} });
  chmodSync(join(stateDir, 'sessions'), 0o755);
  makeSessionsDir(stateDir);
  t.equal(statSync(join(stateDir, 'sessions')).mode & 0o777, 0o700, 'a wider directory is made private');
});

t.test('a link, even a dangling one, or a file at the path of a new log is refused and left alone', async (t) => {
  const stateDir = t.testdir({ victim: 'precious' });
  makeSessionsDir(stateDir);
  const target = join(stateDir, 'nothing-here');
  symlinkSync(target, sessionPaths(stateDir, sampleId).log);
  t.equal(
    codeOf(() => createSessionFile(stateDir, sampleHeader())),
    'LOG_WRITE_FAILED',
  );
  t.notOk(existsSync(target));
  t.equal(
    codeOf(() => readSessionHeader(stateDir, sampleId)),
    'LOG_CORRUPT',
  );
  symlinkSync(join(stateDir, 'victim'), sessionPaths(stateDir, idOf(1)).log);
  t.equal(
    codeOf(() => createSessionFile(stateDir, sampleHeader(idOf(1)))),
    'LOG_WRITE_FAILED',
  );
  t.equal(readFileSync(join(stateDir, 'victim'), 'utf8'), 'precious');
  createSessionFile(stateDir, sampleHeader(idOf(2)));
  t.equal(
    codeOf(() => createSessionFile(stateDir, sampleHeader(idOf(2)))),
    'LOG_WRITE_FAILED',
  );
  t.equal(
    codeOf(() => createSessionFile(stateDir, sampleHeader(idOf(3), `/${'x'.repeat(600_000)}`))),
    'LOG_WRITE_FAILED',
    'a header that could not be read again',
  );
});

t.test('a header that cannot be trusted is refused with its reason', async (t) => {
  const stateDir = t.testdir({ sessions: {} });
  const path = sessionPaths(stateDir, sampleId).log;
  const header = sampleHeader();
  const cases: [string, string | Buffer, string][] = [
    ['future version', sealLine(JSON.stringify({ ...header, version: 2 })), 'LOG_VERSION'],
    ['past version', sealLine(JSON.stringify({ ...header, version: 0 })), 'LOG_VERSION'],
    ['version as text', sealLine(JSON.stringify({ ...header, version: '1' })), 'LOG_CORRUPT'],
    ['no version', sealLine(JSON.stringify({ ...header, version: undefined })), 'LOG_CORRUPT'],
    ['an event', sealLine(JSON.stringify({ type: 'turn/start', seq: 0, time: 1, data: { turn: 1 } })), 'LOG_CORRUPT'],
    ['the id of another session', sealLine(JSON.stringify(sampleHeader(idOf(9)))), 'LOG_CORRUPT'],
    ['relative cwd', sealLine(JSON.stringify({ ...header, cwd: 'a' })), 'LOG_CORRUPT'],
    ['no cwd', sealLine(JSON.stringify({ ...header, cwd: undefined })), 'LOG_CORRUPT'],
    ['bad time', sealLine(JSON.stringify({ ...header, createdAt: 'soon' })), 'LOG_CORRUPT'],
    ['no agent', sealLine(JSON.stringify({ ...header, agent: null })), 'LOG_CORRUPT'],
    ['a flipped letter in cwd', sealLine(JSON.stringify(header)).toString().replace('project', 'projekt'), 'LOG_CORRUPT'],
    ['no line end', JSON.stringify(header), 'LOG_CORRUPT'],
    ['empty', '', 'LOG_CORRUPT'],
    ['not JSON', 'hello\n', 'LOG_CORRUPT'],
    ['an array', '[]\n', 'LOG_CORRUPT'],
    ['endless', 'x'.repeat(600_000), 'LOG_CORRUPT'],
    ['options that are none', sealLine(JSON.stringify({ ...header, options: [] })), 'LOG_CORRUPT'],
    ['an unknown option', sealLine(JSON.stringify({ ...header, options: { env: { A: '1' } } })), 'LOG_CORRUPT'],
    ['a budget in words', sealLine(JSON.stringify({ ...header, options: { budget: { maxSteps: 'ten' } } })), 'LOG_CORRUPT'],
    ['a policy without its fallback', sealLine(JSON.stringify({ ...header, options: { policy: { rules: [] } } })), 'LOG_CORRUPT'],
    [
      'a rule with an unknown action',
      sealLine(JSON.stringify({ ...header, options: { policy: { rules: [{ name: 'a', action: 'maybe' }], fallback: 'deny' } } })),
      'LOG_CORRUPT',
    ],
  ];
  for (const [name, bytes, code] of cases) {
    writeFileSync(path, bytes);
    t.equal(
      codeOf(() => readSessionHeader(stateDir, sampleId)),
      code,
      name,
    );
    t.ok(readFileSync(path).equals(Buffer.from(bytes)), 'untouched');
  }
  writeFileSync(path, `${JSON.stringify(header)}\n`);
  t.same(readSessionHeader(stateDir, sampleId), header, 'a line made by hand, without checksum');
  writeFileSync(path, sealLine(JSON.stringify({ ...header, cwd: `/${'d'.repeat(10_000)}` })));
  t.equal(readSessionHeader(stateDir, sampleId).cwd.length, 10_001, 'longer than the first read');
  const options = { ...sampleOptions, persona: 'p'.repeat(300_000) };
  writeFileSync(path, sealLine(JSON.stringify({ ...header, options })));
  t.same(readSessionHeader(stateDir, sampleId), { ...header, options }, 'every option, and a long one');
  t.equal(
    codeOf(() => readSessionHeader(stateDir, idOf(5))),
    'SESSION_NOT_FOUND',
  );
  mkdirSync(sessionPaths(stateDir, idOf(6)).log);
  t.equal(
    codeOf(() => readSessionHeader(stateDir, idOf(6))),
    'LOG_CORRUPT',
    'a directory',
  );
});

t.test('a title is the first line that says something, clean and short', async (t) => {
  t.equal(sessionTitle('\n \t\n  Fix\u0007 the\u001b[31m  bug \nplease'), 'Fix the bug');
  t.equal(sessionTitle('a\u202egnp.exe'), 'agnp.exe');
  t.equal(sessionTitle(' \u0000 \n'), undefined);
  const long = sessionTitle('🚀'.repeat(200)) ?? '';
  t.equal(Array.from(long).length, 80);
  t.match(long, /^(🚀){79}…$/u);
  t.equal(sessionTitle('x'.repeat(80)), 'x'.repeat(80));
});

function makeSession(stateDir: string, index: number, options: { cwd?: string; text?: string; time: number }): string {
  const id = idOf(index);
  const { log } = createSessionFile(stateDir, sampleHeader(id, options.cwd));
  if (options.text !== undefined) {
    const data = { ...samples['user/message'], content: [{ type: 'text', text: options.text }], shown: undefined };
    appendFileSync(log, sealLine(JSON.stringify({ type: 'turn/start', seq: 0, time: 1, data: { turn: 1 } })));
    appendFileSync(log, sealLine(JSON.stringify({ type: 'user/message', seq: 1, time: 1, data })));
  }
  utimesSync(log, options.time, options.time);
  return id;
}

async function allPages(stateDir: string, pageSize: number, cwd?: string): Promise<SessionPage[]> {
  const pages: SessionPage[] = [];
  let cursor: string | undefined;
  do {
    const page = await listSessions(stateDir, { cursor, pageSize, cwd });
    pages.push(page);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return pages;
}

t.test('a session that was delegated to is not listed', async (t) => {
  const stateDir = t.testdir({});
  const own = createSessionFile(stateDir, { ...sampleHeader(idOf(1), '/work'), options: { depth: 0 } });
  createSessionFile(stateDir, { ...sampleHeader(idOf(2), '/work'), options: { depth: 1 } });
  const { sessions, skipped } = await listSessions(stateDir);
  t.same(
    sessions.map(({ id }) => id),
    [idOf(1)],
  );
  t.equal(skipped, 0, 'it is passed over, not taken as damaged');
  t.match(own.log, idOf(1));
});

t.test('sessions are listed newest first, in stable pages, by working directory', async (t) => {
  const stateDir = t.testdir({});
  t.same(await listSessions(stateDir), { sessions: [], nextCursor: undefined, skipped: 0 }, 'no sessions yet');
  for (let index = 0; index < 25; index += 1) {
    // Groups of three share a time, so that pages must be told apart by id.
    makeSession(stateDir, index, { time: 1000 + Math.floor(index / 3), text: `Do ${index}`, cwd: index % 2 === 0 ? '/even' : '/odd' });
  }
  const whole = (await listSessions(stateDir)).sessions;
  t.equal(whole.length, 25);
  t.same(whole[0], {
    id: idOf(24),
    cwd: '/even',
    createdAt: '2026-01-02T03:04:05.678Z',
    updatedAt: '1970-01-01T00:16:48.000Z',
    title: 'Do 24',
  });
  t.same(
    whole,
    [...whole].sort((a, b) => b.updatedAt.localeCompare(a.updatedAt) || a.id.localeCompare(b.id)),
  );
  for (const pageSize of [1, 4, 5, 25, 26]) {
    const pages = await allPages(stateDir, pageSize);
    t.same(
      pages.flatMap((page) => page.sessions),
      whole,
      `pages of ${pageSize}`,
    );
    t.equal(pages.length, Math.ceil(25 / pageSize), 'no empty last page');
  }
  const even = (await allPages(stateDir, 4, '/even')).flatMap((page) => page.sessions);
  t.same(
    even,
    whole.filter((session) => session.cwd === '/even'),
  );
  t.equal((await listSessions(stateDir, { cwd: '/none' })).sessions.length, 0);
});

t.test('a session whose header is longer than what is read of most logs is listed with its title', async (t) => {
  const stateDir = t.testdir({});
  const header = { ...sampleHeader(), options: { persona: 'p'.repeat(200_000) } };
  const { log } = createSessionFile(stateDir, header);
  const data = { ...samples['user/message'], content: [{ type: 'text', text: 'Do it' }], shown: undefined };
  appendFileSync(log, sealLine(JSON.stringify({ type: 'user/message', seq: 0, time: 1, data })));
  const [listed] = (await listSessions(stateDir)).sessions;
  t.match(listed, { id: sampleId, title: 'Do it' });
});

t.test('a title that was given goes over the prompt, wherever the log has it', async (t) => {
  const stateDir = t.testdir({});
  const line = (type: string, data: object): Buffer => sealLine(JSON.stringify({ type, seq: 0, time: 1, data }));
  const titled = createSessionFile(stateDir, sampleHeader(idOf(1)));
  const prompt = line('user/message', { ...samples['user/message'], content: [{ type: 'text', text: 'Say "session/title"' }] });
  const quoted = { ...samples['tool/result'], meta: { type: 'session/title', title: 'Not this' } };
  const given = [line('session/title', { title: 'First', source: 'prompt' }), line('session/title', { title: 'Second', source: 'model' })];
  appendFileSync(titled.log, Buffer.concat([prompt, ...given, line('tool/result', quoted)]));
  const deep = createSessionFile(stateDir, sampleHeader(idOf(2)));
  const long = line('assistant/message', { ...samples['assistant/message'], text: 'x'.repeat(100_000) });
  appendFileSync(deep.log, Buffer.concat([prompt, long, ...given]));
  const titles = async (): Promise<unknown> =>
    Object.fromEntries((await listSessions(stateDir)).sessions.map(({ id, title }) => [id, title]));
  t.same(await titles(), { [idOf(1)]: 'Second', [idOf(2)]: '/explain a.ts' }, 'what was typed, not what a command made of it');
  writeTitleFile(deep.spillDir, 'Sec\u202eond\nline');
  t.same(await titles(), { [idOf(1)]: 'Second', [idOf(2)]: 'Second' }, 'from the file beside the log, made clean');
  t.equal(statSync(join(deep.spillDir, 'title')).mode & 0o777, 0o600);
  t.equal(statSync(deep.spillDir).mode & 0o777, 0o700);
  rmSync(join(deep.spillDir, 'title'));
  symlinkSync(titled.log, join(deep.spillDir, 'title'));
  t.same(await titles(), { [idOf(1)]: 'Second', [idOf(2)]: '/explain a.ts' }, 'no link is followed');
  const without = (await listSessions(stateDir, { titles: false })).sessions;
  t.same(
    without.map(({ title }) => title),
    [undefined, undefined],
  );
});

t.test('a cursor that is not ours is refused', async (t) => {
  const stateDir = t.testdir({});
  const forged = [
    '',
    'x',
    '%%%',
    Buffer.from('12/../../etc').toString('base64url'),
    Buffer.from(`-1/${sampleId}`).toString('base64url'),
    Buffer.from(`1e3/${sampleId}`).toString('base64url'),
    `${Buffer.from(`5/${sampleId}`).toString('base64url')}=`,
    'A'.repeat(100_000),
  ];
  for (const cursor of forged) {
    await t.rejects(listSessions(stateDir, { cursor }), { code: 'INVALID_PARAMS' }, cursor.slice(0, 40));
  }
});

t.test('unreadable logs are counted, foreign files passed over', async (t) => {
  const stateDir = t.testdir({});
  makeSession(stateDir, 1, { time: 50 });
  const dir = join(stateDir, 'sessions');
  writeFileSync(join(dir, `${idOf(2)}.jsonl`), 'garbage\n');
  writeFileSync(join(dir, `${idOf(3)}.jsonl`), '');
  writeFileSync(join(dir, `${idOf(4)}.jsonl`), sealLine(JSON.stringify({ ...sampleHeader(idOf(4)), version: 99 })));
  writeFileSync(join(dir, `${idOf(1)}.lock`), '{}');
  writeFileSync(join(dir, 'notes.jsonl'), 'x');
  mkdirSync(join(dir, `${idOf(5)}.jsonl`));
  symlinkSync(join(dir, `${idOf(1)}.jsonl`), join(dir, `${idOf(6)}.jsonl`));
  const page = await listSessions(stateDir);
  t.same(
    page.sessions.map((session) => [session.id, session.title]),
    [[idOf(1), undefined]],
  );
  t.equal(page.skipped, 3);
});

t.test('a first page of 10,000 sessions comes soon and lets the event loop turn', async (t) => {
  const stateDir = t.testdir({});
  makeSessionsDir(stateDir);
  for (let index = 0; index < 10_000; index += 1) {
    writeFileSync(sessionPaths(stateDir, idOf(index)).log, `${JSON.stringify(sampleHeader(idOf(index)))}\n`);
  }
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 1);
  t.teardown(() => clearInterval(timer));
  const before = process.memoryUsage().rss;
  const started = performance.now();
  t.equal((await listSessions(stateDir)).sessions.length, 50);
  const firstMs = performance.now() - started;
  t.equal((await listSessions(stateDir, { cwd: '/elsewhere' })).sessions.length, 0);
  const allMs = performance.now() - started - firstMs;
  t.comment(`first page ${firstMs.toFixed(0)} ms, all headers ${allMs.toFixed(0)} ms, longest stall ${longest.toFixed(0)} ms`);
  t.ok(firstMs < 3000 && allMs < 5000);
  t.ok(process.memoryUsage().rss - before < 64 * 1024 * 1024, 'bounded memory');
});
