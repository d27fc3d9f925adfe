/**
 * Faults that other tests show in one part of the program, here once through the whole of it: a real server, its threads and its
 * processes, with all that must hold after a fault.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import t from 'tap';
import { createSessionFile } from '../../src/shared/log/session-paths.ts';
import type { EventData } from '../../src/shared/events.ts';
import type { PlannedToolCall } from '../support/answer-plan.ts';
import { holdsCanary } from '../support/canaries.ts';
import { faultTest, type FaultServer, logPath, processesIn, readEvents, residentMb } from '../support/invariants.ts';
import { growLog } from '../support/large-log.ts';
import type { Frame } from '../support/server-process.ts';
import { sampleHeader } from '../unit/shared/log/sample-events.ts';

t.setTimeout(110_000);

type Result = EventData['tool/result'];

/** Of the file that is written over and over. */
const fileSize = 256 * 1024;

const call = (name: string, args: object): PlannedToolCall => ({ name, arguments: JSON.stringify(args) });
const bash = (command: string): PlannedToolCall => call('bash', { command, description: 'x' });

/** A prompt whose model makes these calls in one answer; gives their results in order. */
async function results(server: FaultServer, sessionId: string, tools: readonly PlannedToolCall[]): Promise<Result[]> {
  const answer = await server.prompt(sessionId, JSON.stringify({ plans: [{ tools }, { tokens: 1 }] }));
  if (answer.result?.stopReason !== 'end_turn') throw new Error(JSON.stringify(answer));
  const events = await readEvents(logPath(server, sessionId));
  return events.flatMap((event) => (event.type === 'tool/result' ? [event.data] : [])).slice(-tools.length);
}

void faultTest('faults 24, 64, 70, 71, 87 and 89, through the server', async (t, rig) => {
  const root = realpathSync(rig.dir);
  const cwd = join(root, 'w');
  mkdirSync(cwd);
  const model = await rig.model();
  const server = await rig.serve({ args: ['--base-url', model.baseUrl, '--model', 'bench', '--permission-mode', 'full-access'] });
  const session = await server.newSession(cwd);

  await t.test('fault 70: what is no regular file is refused as a target, at once', async (t) => {
    execFileSync('mkfifo', [join(cwd, 'fifo')]);
    symlinkSync('/dev/zero', join(cwd, 'zero'));
    const targets = ['fifo', 'zero', '/dev/zero', '/proc/kcore', '/proc/self/environ'];
    const tools = targets.flatMap((file_path) => [call('read', { file_path }), call('write', { file_path, content: 'x' })]);
    for (const { isError, code } of await results(server, session, tools))
      t.match({ isError, code }, { isError: true, code: /^FS_(?:NOT_REGULAR_FILE|NOT_OBSERVED)$/ });
  });

  await t.test('fault 71: a file that changed between the read and the edit is not edited', async (t) => {
    const path = join(cwd, 'a.txt');
    writeFileSync(path, 'one');
    t.match(await results(server, session, [call('read', { file_path: path })]), [{ isError: false }]);
    writeFileSync(path, 'one, and of another');
    t.match(await results(server, session, [call('edit', { file_path: path, old_string: 'one', new_string: 'mine' })]), [
      { code: 'FS_STALE' },
    ]);
    t.equal(readFileSync(path, 'utf8'), 'one, and of another');
  });

  await t.test('fault 87: names and patterns that begin with a dash, or hold a line break, stay words', async (t) => {
    for (const name of ['-rf', '--pre=touch ran', 'a\nb', '$(touch ran)']) writeFileSync(join(cwd, name), 'needle\n');
    const [dash, pre, line, grep, glob] = await results(server, session, [
      call('read', { file_path: '-rf' }),
      call('grep', { pattern: 'needle', path: '--pre=touch ran' }),
      call('read', { file_path: 'a\nb' }),
      call('grep', { pattern: '--pre=touch ran', path: '.' }),
      call('glob', { pattern: '-*' }),
    ]);
    for (const found of [dash, pre, line]) t.match(found, { isError: false, text: /needle/ });
    t.match(grep, { isError: false, text: /^No matches/ });
    t.match(glob?.text, /-rf/);
    t.notOk(existsSync(join(cwd, 'ran')));
  });

  await t.test(
    'fault 89: what is put aside is private, under names that nobody can foresee, and not in a place of all users',
    async (t) => {
      const found = await results(server, session, [bash('seq 40000'), bash('seq 40000')]);
      const paths = found.map(({ text }) => /is in (\/\S+)\]/.exec(text)?.[1] ?? '');
      t.equal(new Set(paths).size, 2);
      for (const path of paths) {
        t.ok(path.startsWith(server.stateDir), path);
        t.same([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777], [0o600, 0o700]);
      }
      t.same(readdirSync(join(root, 'tmp')), []);
    },
  );

  await t.test('fault 64: what a command leaves behind goes with its session at the latest', async (t) => {
    const other = await server.newSession(cwd);
    const daemon = `(setsid sh -c 'touch daemon; exec sleep 341' >/dev/null 2>&1 &); while [ ! -e daemon ]; do sleep 0.01; done`;
    t.match(await results(server, other, [bash(daemon)]), [{ isError: false }]);
    await server.request('session/close', { sessionId: other });
    t.same(processesIn(root), [server.pid]);
  });

  await t.test('fault 24: a long log is opened in memory that does not grow with it, while others are served', async (t) => {
    const header = { ...sampleHeader(), cwd };
    const paths = createSessionFile(server.stateDir, header);
    const { bytes } = growLog(paths, 4 * 1024 * 1024);
    const before = residentMb(server.pid);
    const opened = server.request('session/resume', { sessionId: header.id, cwd, mcpServers: [] });
    t.match(await server.prompt(session, '{"tokens":2}'), { result: { stopReason: 'end_turn' } });
    t.ok((await opened).result);
    t.match(await server.prompt(header.id, 'go on {"tokens":2}'), { result: { stopReason: 'end_turn' } });
    const grown = residentMb(server.pid) - before;
    t.ok(grown < 60, `grew by ${grown.toFixed(0)} MB for ${(bytes / 1024 / 1024).toFixed(0)}`);
    await server.request('session/close', { sessionId: header.id });
    rmSync(paths.log);
  });
});

void faultTest(
  'fault 72: a server killed while it writes files leaves the old content or the new, never half, and the mode',
  async (t, rig) => {
    const cwd = realpathSync(rig.dir);
    const path = join(cwd, 'big.txt');
    writeFileSync(path, '0'.repeat(fileSize));
    chmodSync(path, 0o640);
    const model = await rig.model();
    const args = ['--base-url', model.baseUrl, '--model', 'bench', '--permission-mode', 'full-access', '--undo', 'off'];
    const server = await rig.serve({ args });
    const session = await server.newSession(cwd);
    model.enqueue(
      { tools: [call('read', { file_path: path })] },
      ...Array.from({ length: 10 }, (_, at) => ({ raw: written(path, String(at % 10)) })),
    );
    server.startPrompt(session, 'write');
    const isWritten = ({ params }: Frame): boolean => params?.update?.status === 'completed' && params.update.toolCallId === 'w-3';
    await server.next(isWritten, 'the third file');
    await server.crash();
    t.equal(readFileSync(path, 'utf8').replace(/^(\d)\1*/, '').length, 0, 'of one character');
    t.equal(statSync(path).size, fileSize);
    t.equal(statSync(path).mode & 0o777, 0o640);
    model.reset();
    const next = await rig.serve({ args });
    t.ok((await next.request('session/load', { sessionId: session, cwd, mcpServers: [] })).result);
    t.match(await next.prompt(session, 'on {"tokens":1}'), { result: { stopReason: 'end_turn' } });
  },
);

/** The data lines of an answer that fills the file with one character. */
function written(file_path: string, character: string): string[] {
  const args = JSON.stringify({ file_path, content: character.repeat(fileSize) });
  const made = { index: 0, id: `w-${character}`, type: 'function', function: { name: 'write', arguments: args } };
  return [
    JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [made] } }] }),
    '{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
    '[DONE]',
  ];
}

void faultTest('faults 77, 80, 81, 82 and 86, through the server', async (t, rig) => {
  const root = realpathSync(rig.dir);
  const [cwd, outside, home] = [join(root, 'w'), join(root, 'outside'), join(root, 'home')];
  for (const dir of [cwd, outside, join(home, '.ssh'), join(root, 'w_evil')]) mkdirSync(dir, { recursive: true });
  for (const path of [join(outside, 'secret'), join(root, 'w_evil', 'secret'), join(home, '.ssh', 'id_test'), join(cwd, '.env')])
    writeFileSync(path, 'KEEP-OUT');
  symlinkSync(outside, join(cwd, 'dir-link'));
  const model = await rig.model();
  const asked: string[] = [];
  const server = await rig.serve({
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--titles', 'off'],
    env: { HOME: home, DSH_ACP_SANDBOX: 'auto' },
    onRequest: ({ params }) => {
      asked.push(params.toolCall.toolCallId);
      return {
        outcome: { outcome: 'selected', optionId: params.options.find(({ kind }: { kind: string }) => kind === 'reject_once').optionId },
      };
    },
  });
  const sessionWith = async (rule: object): Promise<string> => {
    const policy = { rules: [{ name: 'one', action: 'allow', ...rule }], fallback: 'deny' };
    const { result, error } = await server.request('session/new', { cwd, mcpServers: [], _meta: { 'dsh-acp': { policy } } });
    if (error !== undefined) throw new Error(JSON.stringify(error));
    return result.sessionId;
  };
  const saysSomething = (found: readonly Result[]): boolean => JSON.stringify(found).includes('KEEP-OUT');

  await t.test('fault 77, 81: what leads out of the workspace, and what may hold keys, is asked about, however it is spelt', async (t) => {
    const session = await server.newSession(cwd);
    const reads = [
      '../outside/secret',
      join(outside, 'secret'),
      '../w_evil/secret',
      'dir-link/secret',
      '.env',
      '.ENV',
      `${home}/.ssh/id_test`,
    ];
    const writes = ['../new', 'dir-link/new', '.git/config', '.GIT/config', '.envrc'];
    const tools = [
      ...reads.map((file_path) => call('read', { file_path })),
      ...writes.map((file_path) => call('write', { file_path, content: 'x' })),
    ];
    const found = await results(server, session, tools);
    t.same(new Set(asked), new Set(found.map(({ callId }) => callId)), 'each of them');
    t.ok(found.every(({ isError, code }) => isError && code === 'PERMISSION_DENIED'));
    t.notOk(saysSomething(found));
    t.same([readdirSync(outside), readdirSync(cwd).sort()], [['secret'], ['.env', 'dir-link']]);
  });

  await t.test('fault 86: nothing that is more than an allowed argv gets past an allow-list', async (t) => {
    const session = await sessionWith({ commands: [['echo', 'allowed']] });
    const commands = ['; touch ran', ' && touch ran', ' | sh', '\ntouch ran', ' $(touch ran)', ' > ran', ' `touch ran`', ' ${IFS}x'];
    const found = await results(server, session, [
      bash('echo allowed'),
      ...commands.map((more) => bash(`echo allowed${more}`)),
      bash('env echo allowed'),
    ]);
    t.match(found[0], { isError: false, text: /^allowed/ });
    t.same([...new Set(found.slice(1).map(({ code }) => code))], ['PERMISSION_DENIED']);
    t.notOk(existsSync(join(cwd, 'ran')));
  });

  await t.test('fault 80, 82: a contained command sees neither the environment of the server nor keys, and reaches nobody', async (t) => {
    const listener = createServer((socket) => socket.end('KEEP-OUT')).listen(0, '127.0.0.1');
    await new Promise((resolve) => listener.once('listening', resolve));
    const { port } = listener.address() as AddressInfo;
    const session = await sessionWith({ access: ['execute'], sandbox: 'required', network: 'none' });
    const found = await results(server, session, [
      bash(`tr '\\0' '\\n' < /proc/${server.pid}/environ; cat /proc/*/environ | tr '\\0' '\\n' | grep -a FAULT_`),
      bash(`cat ${home}/.ssh/id_test`),
      bash(`timeout 2 bash -c 'cat < /dev/tcp/127.0.0.1/${port}'`),
    ]);
    listener.close();
    t.notOk(saysSomething(found));
    t.notMatch(JSON.stringify(found), /FAULT_\w+=/, 'not even the names');
    t.notOk(holdsCanary(JSON.stringify(found)));
    // Where there is no sandbox the rule denies, and nothing runs either.
    t.ok(
      found.every(({ text, code }) => code === 'PERMISSION_DENIED' || /exit code|No such file|Permission denied/.test(text)),
      JSON.stringify(found),
    );
  });
});
