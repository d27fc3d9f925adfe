/** `dsh-acp sessions`, over a state directory that a real server has filled, in part while that server still runs. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import t from 'tap';
import { parseCommandLine } from '../../../../src/main/cli/parse-command-line.ts';
import { runSessions } from '../../../../src/main/cli/sessions-command.ts';
import { deleteSessions } from '../../../../src/main/cli/sessions-delete.ts';
import { readSessionsCall } from '../../../../src/main/cli/sessions-flags.ts';
import { SessionLock } from '../../../../src/shared/log/session-lock.ts';
import { sessionPaths } from '../../../../src/shared/log/session-paths.ts';
import { parsePage } from '../../../support/parse-page.ts';
import { cliPath, ServerProcess } from '../../../support/server-process.ts';

const dir = realpathSync(t.testdir({ state: {}, one: { 'a.txt': 'old\n' }, two: {} }));
const stateDir = join(dir, 'state');
const server = new ServerProcess({
  stateDir,
  args: ['--model', 'scripted', '--pace-ms', '0', '--sandbox', 'off', '--permission-mode', 'full-access'],
});
t.teardown(() => server.dispose());
await server.initialize();
const first = await server.newSession(join(dir, 'one'));
const hostile = '\u001b[31mred <script>alert(1)</script>';
await server.prompt(first, `say look\nread a.txt\nedit a.txt /old/new/\nrun printf 'out\\n'; exit 3\nsay ${hostile}`);
const second = await server.newSession(join(dir, 'two'));
await server.prompt(second, 'say second');

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** In this process, but as the program does it. */
async function run(
  words: readonly string[],
  { tty = false, env = {} }: { tty?: boolean; env?: Record<string, string> } = {},
): Promise<Ran> {
  const [stdout, stderr, stdin] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const texts = { stdout: '', stderr: '' };
  stdout.setEncoding('utf8').on('data', (text) => (texts.stdout += text));
  stderr.setEncoding('utf8').on('data', (text) => (texts.stderr += text));
  const line = parseCommandLine(['sessions', ...words]);
  const terminal = Object.assign(stdout, { isTTY: tty });
  const place = { stateDir, cwd: dir, home: '/nowhere', env, stdin, stdout: terminal, stderr } as unknown as Parameters<
    typeof runSessions
  >[1];
  const code = await runSessions(readSessionsCall(line.words, line.sessions), place);
  await new Promise((resolve) => setImmediate(resolve));
  return { code, ...texts };
}

t.test('list names the newest first, with titles, and only those of a directory where that is asked', async (t) => {
  const { stdout, code } = await run(['list', '--json']);
  t.equal(code, 0);
  const all: any[] = JSON.parse(stdout);
  t.same(new Set(all.map(({ id }) => id)), new Set([first, second]));
  t.match(
    all.find(({ id }) => id === second),
    { title: 'say second', cwd: join(dir, 'two'), logPath: sessionPaths(stateDir, second).log },
  );
  t.same(
    JSON.parse((await run(['list', '--json', '--cwd', 'one'])).stdout).map(({ id }: any) => id),
    [first],
  );
  const table = (await run([])).stdout;
  t.match(table, new RegExp(`${second} +now  say second`));
  t.notMatch(table, '\u001b', 'no colours in a pipe');
  const one = (await run(['list', '--limit', '1'])).stdout;
  t.match(one, 'these are the newest 1; --limit N shows more');
  t.match((await run(['list', '--cwd', '/no/such'])).stdout, 'There are no sessions of /no/such.');
});

t.test('show tells a session as text, with colours on a terminal alone; nothing of the log acts on the screen', async (t) => {
  const { stdout } = await run(['show', first]);
  t.match(stdout, /── Turn 1 /);
  t.match(stdout, /✓ Read a\.txt/);
  t.match(stdout, /✓ Edit a\.txt .*\n    a\.txt\n    -old\n    \+new\n/);
  t.match(stdout, /✗ printf 'out\\n'; exit 3 exit 3 .*\n(?: {4}permission.*\n)* {4}out\n/);
  t.match(stdout, '\u2039ESC\u203a[31mred <script>alert(1)</script>');
  t.match(stdout, /1 turns, \d steps, 3 tool calls, in /);
  t.notMatch(stdout, '\u001b');
  const painted = (await run(['show', first], { tty: true })).stdout;
  t.match(painted, '\u001b[32m+new\u001b[39m');
  t.notMatch(painted.replaceAll('\u001b[31m-old', ''), '\u001b[31mred');
  t.notMatch((await run(['show', first], { tty: true, env: { NO_COLOR: '1' } })).stdout, '\u001b');
});

t.test('the beginning of an id is enough when it is the only one', async (t) => {
  let length = 1;
  while (first.slice(0, length) === second.slice(0, length)) length += 1;
  t.equal(JSON.parse((await run(['show', first.slice(0, length).toUpperCase(), '--json'])).stdout).id, first);
  await t.rejects(run(['show', first.slice(0, length - 1)]), { code: 'INVALID_PARAMS', message: /2 sessions begin with/ });
  await t.rejects(run(['show', 'ffffffff']), { code: 'SESSION_NOT_FOUND' });
  await t.rejects(run(['show', '../x']), { code: 'SESSION_NOT_FOUND' });
});

t.test('show gives programs what is known of a session', async (t) => {
  const facts = JSON.parse((await run(['show', first, '--json'])).stdout);
  t.match(facts, { id: first, cwd: join(dir, 'one'), model: 'scripted', turnCount: 1, damaged: 0, usage: { toolCalls: 3 } });
  t.match(facts.turns, [{ turn: 1, prompt: 'say look', reason: { kind: 'completed' }, usage: { toolCalls: 3 } }]);
});

t.test('a page goes to the file that is named, or to a pipe, and never onto a terminal', async (t) => {
  const file = join(dir, 'page.html');
  t.equal((await run(['show', first, '--html', 'page.html'])).stdout, `${file}\n`);
  const html = readFileSync(file, 'utf8');
  const page = parsePage(html);
  t.same(page.errors, []);
  t.equal(page.elements.filter(({ tagName }) => tagName === 'script').length, 0);
  t.ok(page.raw.includes(hostile), 'as text');
  t.equal((await run(['show', first, '--html'])).stdout.replace(/<time.*/g, ''), html.replace(/<time.*/g, ''));
  const named = join(dir, `session-${first.slice(0, 8)}.html`);
  t.equal((await run(['show', first, '--html'], { tty: true })).stdout, `${named}\n`);
  t.ok(existsSync(named));
  await t.rejects(run(['show', first, '--html', 'no/such/place.html']), { code: 'INTERNAL', message: /cannot be written/ });
});

t.test('export gives the log byte by byte, without a line that is not whole, and the trajectory of the model', async (t) => {
  const { log } = sessionPaths(stateDir, first);
  const whole = readFileSync(log, 'utf8');
  t.equal((await run(['export', first])).stdout, whole);
  await run(['export', first, '--out', 'copy.jsonl']);
  t.equal(readFileSync(join(dir, 'copy.jsonl'), 'utf8'), whole);
  const torn = join(stateDir, 'sessions', '00000000-0000-4000-8000-000000000000.jsonl');
  writeFileSync(torn, `${whole}{"type":"turn/sta`);
  t.equal((await run(['export', '00000000'])).stdout, whole);
  const line = JSON.parse((await run(['export', first, '--trajectory'])).stdout);
  t.match(line, {
    version: 1,
    id: first,
    reward: null,
    complete: true,
    stop_reason: 'end_turn',
    usage: { tool_calls: 3 },
    model: 'scripted',
  });
  t.same(
    line.messages.slice(0, 3).map(({ role }: any) => role),
    ['system', 'user', 'assistant'],
  );
  const { code } = await run(['delete', '00000000', '--yes']);
  t.equal(code, 0);
  t.notOk(existsSync(torn));
});

t.test('delete wants a yes, leaves what a server works on, and deletes nothing when one of the ids is wrong', async (t) => {
  await t.rejects(run(['delete', second]), { code: 'CONFIG_INVALID', message: /--yes/ });
  await t.rejects(run(['delete', second, 'ffffffff', '--yes']), { code: 'SESSION_NOT_FOUND' });
  // The server has it on a thread for a minute after its turn.
  const refused = await run(['delete', second, '--yes']);
  t.equal(refused.code, 1);
  t.match(refused.stderr, `${second}: SESSION_LOCKED`);
  t.match((await run(['list'])).stdout, new RegExp(`● ${second}`));
  t.match((await run(['show', second])).stdout, 'say second', 'and it can be looked at all the while');

  await server.request('session/close', { sessionId: second });
  const asked = async (answer: string): Promise<Ran> => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    let stdout = '';
    input.end(answer);
    const print = (text: string): void => void (stdout += text);
    const code = await deleteSessions({ stateDir, ids: [second], yes: false, terminal: { input, output }, print, say: print });
    return { code, stdout, stderr: String(output.read()) };
  };
  t.match(await asked('no\n'), { code: 1, stdout: 'Nothing was deleted.\n', stderr: /Delete session .* for good\?/ });
  t.match(await asked(''), { code: 1 }, 'whoever closes the terminal has not said yes');
  t.ok(existsSync(sessionPaths(stateDir, second).log));
  t.match(await asked('yes\n'), { code: 0, stdout: `Deleted ${second}\n` });
  t.notOk(existsSync(sessionPaths(stateDir, second).log));
});

t.test('a lock of another process that lives is respected', async (t) => {
  await server.close();
  const lock = await SessionLock.acquire({ lockPath: sessionPaths(stateDir, first).lock, serverNonce: 'other', threadId: 1 });
  t.match(await run(['delete', first, '--yes']), { code: 1, stderr: /SESSION_LOCKED/ });
  lock.release();
});

t.test('wrong words are refused by name', async (t) => {
  for (const [words, message] of [
    [['lists'], /lists: expected one of list, show, export, delete after sessions.*Did you mean list/],
    [['show'], /sessions show: expected the id of a session/],
    [['list', 'x'], /x: expected no more words/],
    [['show', 'a', 'b'], /b: expected no more words/],
    [['list', '--html'], /--html: expected it only with sessions show/],
    [['show', 'a', '--json', '--text'], /--text: expected it without --json/],
    [['list', '--limit', '0'], /--limit: expected a whole number from 1 to 10000/],
    [['list', '--junit', 'x'], /--junit: expected it only with the command run/],
  ] as const)
    await t.rejects(run(words), { code: 'CONFIG_INVALID', message }, words.join(' '));
  t.throws(() => parseCommandLine(['serve', '--trajectory']), { message: /--trajectory: expected it only with the command sessions/ });
  t.throws(() => parseCommandLine(['run', 'x', '--yes']), { message: /--yes: expected it only with the command sessions/ });
});

t.test('the program itself lists, explains, and says in one line what is wrong', async (t) => {
  const cli = (...words: string[]) =>
    spawnSync(process.execPath, [cliPath, 'sessions', ...words, '--state-dir', stateDir], { encoding: 'utf8' });
  t.match(JSON.parse(execFileSync(process.execPath, [cliPath, 'sessions', '--json', '--state-dir', stateDir], { encoding: 'utf8' })), [
    { id: first },
  ]);
  t.match(cli('--help').stdout, /--trajectory {2}\(export\)/);
  const gone = cli('show', 'ffff');
  t.equal(gone.status, 1);
  t.match(gone.stderr, /^dsh-acp: SESSION_NOT_FOUND: There is no session ffff in .*\n$/);
});
