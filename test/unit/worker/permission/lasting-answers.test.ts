/** Answers that outlive their call: what is offered, where they are kept, who shares them, and what becomes of a file in doubt. */
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import { appendGrant, grantsDir, grantsPath, readGrants } from '../../../../src/shared/permission/grants-file.ts';
import { grantWords } from '../../../../src/shared/permission/grant-words.ts';
import { canonicalPath } from '../../../../src/worker/permission/canonical-path.ts';
import { SessionPermissions, type SessionPermissionsOptions } from '../../../../src/worker/permission/session-permissions.ts';
import { WorkspaceGrants } from '../../../../src/worker/permission/workspace-grants.ts';
import type { ToolAccess } from '../../../../src/worker/tools/tool.ts';
import { memoryGrants } from './memory-grants.ts';

const run = (command: string, cwd: string): ToolAccess => ({ kind: 'execute', command, cwd });

async function places(t: Test): Promise<{ state: string; ws: string }> {
  const dir = t.testdir({ state: {}, ws: { 'a.txt': 'x', sub: {} }, other: {} });
  const root = (await canonicalPath(dir)) ?? dir;
  return { state: join(root, 'state'), ws: join(root, 'ws') };
}

/** A session of one workspace; `answer` is the option that is chosen in every request. */
function session(state: string, ws: string, answer: string, options: Partial<SessionPermissionsOptions> = {}) {
  const events: EventInput[] = [];
  const asked: any[] = [];
  const notes: string[] = [];
  const path = grantsPath(state, ws);
  const gate = new SessionPermissions({
    sessionId: 's',
    cwd: ws,
    mode: 'ask',
    timeoutMs: 0,
    journal: { append: (event) => ({ ...event, seq: events.push(event) - 1, time: 0 }) },
    ask: async ({ params }) => {
      asked.push(params);
      return { outcome: 'selected', optionId: answer };
    },
    withdraw: () => undefined,
    flush: () => 0,
    toolCall: (call, reason) => ({ toolCallId: call.callId, title: reason ?? '' }),
    ownDirectories: [state],
    lasting: new WorkspaceGrants({ path, workspace: ws, use: 'answers', note: (text) => notes.push(text) }),
    ...options,
  });
  const decide = async (access: ToolAccess, toolName = 'tool') =>
    await gate.decide(
      { turn: 1, callId: 'c', toolName, access, view: { card: 'generic', title: 'T' }, rawInput: {} },
      new AbortController().signal,
    );
  const outcomes = (): string[] => events.flatMap((event) => (event.type === 'permission/decided' ? [event.data.outcome] : []));
  return { gate, asked, notes, decide, outcomes, path, events };
}

const kinds = (params: any): string[] => params.options.map((option: any) => option.kind);
const every = ['allow_once', 'allow_always', 'reject_once', 'reject_always'];

t.test(
  'an answer for good holds for every session of the workspace, in this server and in others, and for no other workspace',
  async (t) => {
    const { state, ws } = await places(t);
    const [first, second] = [session(state, ws, 'allow_always'), session(state, ws, 'reject_once')];
    t.match(await second.decide(run('npm test', ws)), { allowed: false }, 'read once, while there is nothing');
    t.match(await first.decide(run('npm test', ws)), { allowed: true });
    t.match(await second.decide(run('npm test', ws)), { allowed: true });
    t.equal(second.asked.length, 1);
    t.same(second.outcomes(), ['reject', 'allow-always']);
    const elsewhere = session(state, join(ws, 'sub'), 'reject_once');
    t.match(await elsewhere.decide(run('npm test', join(ws, 'sub'))), { allowed: false });
    t.match(await elsewhere.decide(run('npm test', ws)), { allowed: false }, 'the very same call, asked for in another workspace');
  },
);

t.test('the file is private, and a person can read it', async (t) => {
  const { state, ws } = await places(t);
  const umask = process.umask(0o777);
  t.teardown(() => process.umask(umask));
  const one = session(state, ws, 'allow_always');
  t.match(await one.decide(run('npm run "x"', ws)), { allowed: true });
  process.umask(umask);
  t.equal(statSync(grantsDir(state)).mode & 0o777, 0o700);
  t.equal(statSync(one.path).mode & 0o777, 0o600);
  const lines = readFileSync(one.path, 'utf8').trimEnd().split('\n');
  t.equal(lines.length, 1);
  t.match(JSON.parse(lines[0] ?? ''), {
    version: 1,
    workspace: ws,
    answer: 'allow',
    words: `with or without a sandbox: the command "npm run \\"x\\"" in ${ws}`,
    key: JSON.stringify(['execute', ws, 'npm run "x"', 'uncontained', 'network', 'foreground']),
    at: /^\d{4}-\d\d-\d\dT/,
  });
  t.same(readdirSync(ws), ['a.txt', 'sub'], 'nothing is kept in the workspace');
});

t.test('what is rejected for good is refused without a question, in every mode, until it is taken back', async (t) => {
  const { state, ws } = await places(t);
  const one = session(state, ws, 'reject_always');
  t.match(await one.decide(run('git push', ws)), { allowed: false, text: /for good/ });
  for (const mode of ['ask', 'accept-edits', 'full-access'] as const) {
    one.gate.setMode(mode);
    t.match(await one.decide(run('git push', ws)), { allowed: false, code: 'PERMISSION_DENIED', text: /without asking again/ }, mode);
  }
  t.equal(one.asked.length, 1);
  t.match(await one.decide(run('git status', ws)), { allowed: true }, 'full access goes on for the rest');
  const key = JSON.stringify(['execute', ws, 'git push']);
  await appendGrant(one.path, { workspace: ws, answer: 'forget', words: '', key, at: new Date().toISOString() });
  t.match(await one.decide(run('git push', ws)), { allowed: true }, 'taken back while the session is open');
});

t.test('a file that is rejected for good is that file by whatever name, for what was rejected', async (t) => {
  const { state, ws } = await places(t);
  symlinkSync('a.txt', join(ws, 'link'));
  const one = session(state, ws, 'reject_always', {
    policies: [{ decide: () => ({ action: 'ask', rule: 'r', network: undefined, askTimeoutMs: undefined, why: undefined }) }],
  });
  t.match(await one.decide({ kind: 'write', paths: [join(ws, 'a.txt')] }), { allowed: false });
  const open = session(state, ws, 'reject_once', { mode: 'full-access' });
  t.match(await open.decide({ kind: 'write', paths: [join(ws, 'link')] }), { allowed: false, text: /without asking/ });
  t.match(await open.decide({ kind: 'write', paths: [join(ws, 'b.txt'), join(ws, 'a.txt')] }), { allowed: false }, 'one of several');
  t.match(await open.decide({ kind: 'read', paths: [join(ws, 'a.txt')] }), { allowed: true });
});

t.test('a yes for good is offered for one file, command, agent or tool; not for more, and not for what this program trusts', async (t) => {
  const { state, ws } = await places(t);
  mkdirSync(join(ws, '.ssh'));
  mkdirSync(join(ws, '.git'));
  symlinkSync('loop', join(ws, 'loop'));
  const cases: [string, ToolAccess, readonly string[]][] = [
    ['a command', run('ls', ws), every],
    ['a command in a place that cannot be known', run('ls', join(ws, 'loop')), ['allow_once', 'reject_once']],
    ['a very long command', run(`echo ${'x'.repeat(20_000)}`, ws), ['allow_once', 'reject_once']],
    ['a file outside', { kind: 'write', paths: ['/nowhere/x'] }, every],
    ['a control file', { kind: 'write', paths: [join(ws, '.git/config')] }, every],
    ['a directory of control files', { kind: 'write', paths: [join(ws, '.git')] }, ['allow_once', 'reject_once', 'reject_always']],
    ['a secret', { kind: 'read', paths: [join(ws, '.env')] }, every],
    ['a directory of secrets', { kind: 'read', paths: [join(ws, '.ssh')] }, ['allow_once', 'reject_once', 'reject_always']],
    ['own state', { kind: 'write', paths: [grantsPath(state, ws)] }, ['allow_once', 'reject_once', 'reject_always']],
    ['no path', { kind: 'write', paths: [] }, ['allow_once', 'reject_once']],
    ['a loop', { kind: 'write', paths: [join(ws, 'loop')] }, ['allow_once', 'reject_once']],
    ['an agent', { kind: 'delegate', provider: 'other' }, every],
  ];
  for (const [what, access, offered] of cases) {
    const one = session(state, ws, 'reject_once');
    t.match(await one.decide(access), { allowed: false });
    t.same(kinds(one.asked[0]), offered, what);
    t.equal(new Set(kinds(one.asked[0])).size, offered.length, 'one of a kind');
  }
  const names = async (access: ToolAccess): Promise<string> => {
    const one = session(state, ws, 'reject_once');
    await one.decide(access);
    return one.asked[0].options.find((option: any) => option.kind === 'allow_always').name;
  };
  t.equal(await names({ kind: 'write', paths: ['/nowhere/x'] }), 'Always allow writing exactly this file in this workspace');
  t.equal(await names({ kind: 'delegate', provider: 'other' }), 'Always allow delegating to other in this workspace');
});

t.test('an answer that cannot be kept holds for its session, also when that comes back from its log', async (t) => {
  const { state, ws } = await places(t);
  for (const [answer, outcome, allowed] of [
    ['allow_always', 'allow-session', true],
    ['reject_always', 'reject-session', false],
  ] as const) {
    const lasting = memoryGrants();
    lasting.keeps = false;
    const one = session(state, ws, answer, { lasting });
    await one.decide(run('ls', ws));
    t.match(await one.decide(run('ls', ws)), { allowed });
    t.same(one.outcomes(), [outcome, outcome]);
    t.equal(one.asked.length, 1);
    const again = session(state, ws, 'cancelled', { lasting: memoryGrants() });
    for (const event of one.events) again.gate.observe(event);
    t.match(await again.decide(run('ls', ws)), { allowed });
    t.equal(again.asked.length, 0);
  }
});

t.test('a disk that does not answer holds no decision up beyond the end of its turn', async (t) => {
  const { state, ws } = await places(t);
  const lasting = { ...memoryGrants(), add: () => new Promise<boolean>(() => undefined) };
  const one = session(state, ws, 'allow_always', { lasting });
  const abort = new AbortController();
  const call = {
    turn: 1,
    callId: 'c',
    toolName: 'tool',
    access: run('ls', ws),
    view: { card: 'generic', title: 'T' },
    rawInput: {},
  } as const;
  const decision = one.gate.decide(call, abort.signal);
  while (one.asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  t.same(one.outcomes(), [], 'it waits for the disk');
  abort.abort();
  t.match(await decision, { allowed: true }, 'what runs next finds the turn ended');
  t.same(one.outcomes(), ['allow-session']);
});

t.test('work that no person watches heeds refusals alone', async (t) => {
  const { state, ws } = await places(t);
  await session(state, ws, 'allow_always').decide(run('yes', ws));
  await session(state, ws, 'reject_always').decide(run('no', ws));
  const path = grantsPath(state, ws);
  const lasting = new WorkspaceGrants({ path, workspace: ws, use: 'refusals', note: () => undefined });
  const child = session(state, ws, 'allow_once', { lasting, offersGrants: false });
  t.match(await child.decide(run('no', ws)), { allowed: false, text: /for good/ });
  t.match(await child.decide(run('yes', ws)), { allowed: true });
  t.same(child.asked.map(kinds), [['allow_once', 'reject_once']], 'the other was asked about');
});

t.test('a file in doubt allows nothing, is added to by nobody, and is told of once', async (t) => {
  const { state, ws } = await places(t);
  const path = grantsPath(state, ws);
  const key = JSON.stringify(['execute', ws, 'ls']);
  const line = (more: object): string =>
    `${JSON.stringify({ version: 1, workspace: ws, answer: 'allow', words: '', key, at: 'now', ...more })}\n`;
  const refuse = line({ answer: 'reject', key: JSON.stringify(['execute', ws, 'rm']) });
  mkdirSync(grantsDir(state), { recursive: true });
  const cases: [string, () => void][] = [
    ['a line that is no JSON', () => writeFileSync(path, `${line({})}${refuse}{"torn\n`, { mode: 0o600 })],
    ['a later version', () => writeFileSync(path, line({}) + refuse + line({ version: 2 }), { mode: 0o600 })],
    ['an unknown answer', () => writeFileSync(path, line({}) + refuse + line({ answer: 'maybe' }), { mode: 0o600 })],
    ['a line about another workspace', () => writeFileSync(path, line({}) + refuse + line({ workspace: '/else' }), { mode: 0o600 })],
    ['a file about another workspace', () => writeFileSync(path, line({ workspace: '/else' }), { mode: 0o600 })],
    [
      'a file that others may write',
      () => {
        writeFileSync(path, line({}), { mode: 0o600 });
        chmodSync(path, 0o666);
      },
    ],
    ['a link', () => symlinkSync(join(ws, 'a.txt'), path)],
    ['a directory', () => mkdirSync(path)],
    ['too much', () => writeFileSync(path, line({}) + '\n'.repeat(4 * 1024 * 1024), { mode: 0o600 })],
  ];
  for (const [what, make] of cases) {
    make();
    const one = session(state, ws, 'allow_always');
    t.match(await one.decide(run('ls', ws)), { allowed: true }, what);
    t.equal(one.asked.length, 1, `${what}: asked`);
    t.same(one.outcomes(), ['allow-session'], `${what}: holds for the session`);
    t.ok(one.notes.length > 0 && new Set(one.notes).size === one.notes.length, `${what}: noted once`);
    if (/^(?:a line|a later|an unknown)/.test(what))
      t.match(await one.decide(run('rm', ws)), { allowed: false, text: /for good/ }, `${what}: refusals stay`);
    if (statSync(path).isDirectory()) break;
    unlinkSync(path);
  }
});

t.test('a torn last line spoils no later one, a full file takes no answer, and what takes one back still fits', async (t) => {
  const { state, ws } = await places(t);
  const path = grantsPath(state, ws);
  const entry = (answer: 'allow' | 'reject' | 'forget', name: string) =>
    ({ workspace: ws, answer, words: '', key: JSON.stringify(['tool', name]), at: 'now' }) as const;
  await appendGrant(path, entry('allow', 'a'));
  appendFileSync(path, '{"version":1,"wor');
  await appendGrant(path, entry('reject', 'b'));
  const { entries, fault } = readGrants(path);
  t.match(fault, /line 2/);
  t.same([...entries.keys()], ['["tool","a"]', '["tool","b"]']);
  unlinkSync(path);
  await appendGrant(path, entry('allow', 'a'));
  appendFileSync(path, '\n'.repeat(1024 * 1024));
  await t.rejects(appendGrant(path, entry('allow', 'c')), { message: 'it is full' });
  await appendGrant(path, entry('forget', 'a'));
  t.same(readGrants(path).entries.size, 0);
  t.equal(readGrants(path).fault, undefined);
});

t.test('many writers at once lose no answer', async (t) => {
  const { state, ws } = await places(t);
  const path = grantsPath(state, ws);
  const sessions = Array.from({ length: 20 }, () => session(state, ws, 'allow_always'));
  await Promise.all(sessions.map((one, index) => one.decide(run(`echo ${index}`, ws))));
  t.equal(readGrants(path).entries.size, 20);
  t.equal(readGrants(path).fault, undefined);
  unlinkSync(path);
  t.match(await session(state, ws, 'reject_once').decide(run('echo 1', ws)), { allowed: false }, 'a file that is gone allows nothing');
  const last = sessions[0];
  t.match(await last?.decide(run('echo 2', ws)), { allowed: true }, 'it answers allow_always again');
  t.equal(last?.asked.length, 2, 'because it was asked');
  t.ok(existsSync(path));
});

t.test('a key says in words what it is about', async (t) => {
  const cases: [string, 'allow' | 'reject', string][] = [
    ['["execute","/ws","npm test"]', 'reject', 'the command "npm test" in /ws'],
    ['["execute","/ws","npm test"]', 'allow', 'while contained: the command "npm test" in /ws'],
    ['["execute","/ws","ls","contained","network","foreground"]', 'allow', 'while contained: the command "ls" in /ws'],
    [
      '["execute","/ws","ls","contained","no-network","background"]',
      'allow',
      'while contained, without a network, also in the background: the command "ls" in /ws',
    ],
    ['["execute","/ws","ls","uncontained","network","foreground"]', 'allow', 'with or without a sandbox: the command "ls" in /ws'],
    ['["read","/a","/b"]', 'allow', 'reading /a, /b'],
    ['["write","/a"]', 'allow', 'writing /a'],
    ['["delegate","x"]', 'allow', 'delegating to x'],
    ['["tool","todo_write"]', 'allow', 'the tool todo_write'],
    ['["later",1]', 'allow', '["later",1]'],
    ['{', 'allow', '{'],
  ];
  for (const [key, answer, words] of cases) t.equal(grantWords(key, answer), words);
});
