/** What commands may reach: real ones in a real sandbox where this machine has one, and what is left to say where it has none. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import type { RunRequest } from '../../src/shared/broker-protocol.ts';
import { CompiledPolicy, strictest } from '../../src/shared/permission/compiled-policy.ts';
import { decideAccess } from '../../src/shared/permission/mode-policy.ts';
import type { SandboxSettings } from '../../src/shared/sandbox.ts';
import { Broker } from '../../src/worker/broker/broker.ts';
import { CommandLimits } from '../../src/worker/broker/sandbox/command-limits.ts';
import { Containment } from '../../src/worker/broker/sandbox/containment.ts';
import { fileAppears } from '../support/file-appears.ts';
import { mcpRig } from '../unit/worker/broker/mcp/mcp-rig.ts';
import { faultTest, logPath, processesIn, readEvents } from '../support/invariants.ts';

t.setTimeout(110_000);

const auto: SandboxSettings = { use: 'auto', network: 'on', writable: [], memoryMb: 0, maxProcesses: 0 };
const trial = new Broker({
  mark: 'trial',
  ambient: process.env,
  sandbox: auto,
  onGroupStarted: () => undefined,
  onGroupEnded: () => undefined,
});
const state = await trial.sandboxState();
const contained = state.kind === 'bubblewrap' ? {} : { skip: `no sandbox here: ${state.why}` };
const limits = new CommandLimits({ memoryMb: 0, maxProcesses: 100 });
const limitsHold = (await limits.state()).limits === 'cgroup' || (state.kind === 'bubblewrap' && process.getuid?.() !== 0);

function makeScene(
  t: Test,
  sandbox: Partial<SandboxSettings> = {},
  { env = {}, base = tmpdir() }: { env?: Record<string, string>; base?: string } = {},
) {
  const dir = realpathSync(mkdtempSync(join(base, 'dsh-acp-contained-')));
  const [home, work, own] = [join(dir, 'home'), join(dir, 'work'), join(dir, 'own')] as const;
  for (const one of [home, work, own]) mkdirSync(one);
  const broker = new Broker({
    mark: `mark-${dir}`,
    ambient: { ...process.env, HOME: home, ...env },
    sandbox: { ...auto, ...sandbox },
    ownDirectories: [own],
    onGroupStarted: () => undefined,
    onGroupEnded: () => undefined,
  });
  t.teardown(async () => {
    await broker.shutdown();
    rmSync(dir, { recursive: true, force: true });
  });
  let last = 0;
  const spec = (command: string, more: Partial<RunRequest> = {}): RunRequest => ({
    owner: 's1',
    runId: `r${(last += 1)}`,
    command: 'bash',
    args: ['-c', command],
    cwd: work,
    roots: [work],
    keepBytes: 64_000,
    timeoutMs: 20_000,
    ...more,
  });
  const run = async (command: string, more: Partial<RunRequest> = {}) => {
    const result = await broker.run(spec(command, more));
    return { ...result, text: `${result.stdout.text}${result.stderr.text}` };
  };
  return { broker, dir, home, work, own, run, spec };
}

t.test('a contained command writes in the workspace and in a /tmp of its session, and nowhere else', contained, async (t) => {
  const { run, work, home } = makeScene(t);
  const canary = join('/tmp', `canary-${process.pid}`);
  const first = await run(`echo a > in && echo b > ${canary} && echo c > ${home}/out; echo d > /etc/out; cat /proc/1/comm; exit 7`);
  t.equal(first.exitCode, 7);
  t.equal(first.contained, true);
  t.match(first.stderr.text, /Read-only|No such file/);
  t.equal(readFileSync(join(work, 'in'), 'utf8'), 'a\n');
  t.notOk(existsSync(canary), 'the system keeps its own /tmp');
  t.notOk(existsSync(join(home, 'out')));
  t.notOk(existsSync('/etc/out'));
  t.equal((await run(`cat ${canary}`)).text, 'b\n', 'a later command finds what an earlier one left');
  t.not((await run(`cat ${canary}`, { owner: 's2' })).exitCode, 0, 'another session does not');
  t.match((await run('echo x > /tmp/y && echo $TMPDIR && touch /dev/shm/z && echo fine')).text, 'fine');
});

t.test('exit codes, streams and the working directory are as without', contained, async (t) => {
  const { run, work } = makeScene(t);
  mkdirSync(join(work, 'sub'));
  const result = await run('pwd; echo err >&2; exit 42', { cwd: join(work, 'sub') });
  t.same([result.exitCode, result.signal, result.stdout.text, result.stderr.text], [42, null, `${join(work, 'sub')}\n`, 'err\n']);
  t.equal((await run('kill -9 $$')).exitCode, 137, 'a signal is told as a shell tells it');
});

t.test('the end of a command is asked for before it is forced, as without', contained, async (t) => {
  const { broker, spec, work } = makeScene(t);
  const request = spec(`trap 'echo cleaned > cleaned; exit 3' TERM; touch ready; while :; do sleep 0.05; done`);
  const result = broker.run(request);
  await fileAppears(join(work, 'ready'));
  await broker.cancelRun('s1', request.runId);
  t.match(await result, { exitCode: 3, cancelled: true });
  t.ok(existsSync(join(work, 'cleaned')));
  const deaf = spec(`trap '' TERM; touch deaf; while :; do sleep 0.05; done`);
  const forced = broker.run(deaf);
  await fileAppears(join(work, 'deaf'));
  await broker.cancelRun('s1', deaf.runId);
  t.match(await forced, { signal: 'SIGKILL', cancelled: true });
});

t.test('fault 64: daemons end with their command, whatever they did to get away', contained, async (t) => {
  const { broker, run, spec, work, dir } = makeScene(t);
  const daemon = `(setsid env -i sh -c 'echo on > ${work}/daemon; exec sleep 61' >/dev/null 2>&1 &) ; while [ ! -e daemon ]; do sleep 0.01; done`;
  await run(daemon);
  t.same(runningWith('sleep\x0061'), [], 'without a mark, a group or a parent it is gone with the command');
  rmSync(join(work, 'daemon'));
  const started = await broker.startBackground(spec(`${daemon}; sleep 62`));
  if (!('taskId' in started)) throw new Error(started.spawnError);
  await fileAppears(join(work, 'daemon'));
  await broker.killBackground('s1', started.taskId);
  t.same(runningWith('sleep\x0061'), [], 'and with its kill');
  t.same(processesIn(dir), []);
});

t.test('fault 64: where there is no sandbox, a daemon that wiped its environment is out of reach', async (t) => {
  const { run, work } = makeScene(t, { use: 'off' });
  await run(
    `(setsid env -i sh -c 'echo $$ > ${work}/daemon; exec sleep 63' >/dev/null 2>&1 &) ; while [ ! -s daemon ]; do sleep 0.01; done`,
  );
  const pid = Number(readFileSync(join(work, 'daemon'), 'utf8'));
  t.ok(Number.isInteger(pid) && pid > 1);
  t.same(runningWith('sleep\x0063'), [pid], 'the documented limit');
  process.kill(pid, 'SIGKILL');
});

void faultTest('fault 66: a command reads the end of input, never the protocol; and everyone is told what it runs in', async (t, rig) => {
  const words: string[] = [];
  const server = await rig.serve({
    args: ['--model', 'scripted', '--sandbox', 'auto'],
    onRequest: ({ params }) => {
      words.push(JSON.stringify(params.toolCall));
      return { outcome: { outcome: 'selected', optionId: 'allow_once' } };
    },
  });
  const session = await server.newSession(rig.dir);
  t.equal((await server.prompt(session, 'run cat; wc -c')).result?.stopReason, 'end_turn');
  t.match(words, [state.kind === 'bubblewrap' ? /Runs contained: writes only in the workspace\./ : /Runs without a sandbox\./]);
  t.match((await server.request('_status', {})).result, { sandbox: { kind: state.kind, network: 'on' } });
  await server.close();
  const events = await readEvents(logPath(server, session));
  const result = events.find((event) => event.type === 'tool/result');
  t.match(result, { data: { isError: false, text: /^0/, meta: { exitCode: 0 } } });
  t.match(events.find((event) => event.type === 'thread/attached')?.data, { sandbox: { use: 'auto', network: 'on' } });
  if (state.kind === 'bubblewrap') t.match(result, { data: { meta: { sandbox: 'bubblewrap' } } });
});

t.test('fault 79: a secret of the environment does not reach a command', async (t) => {
  const { run } = makeScene(t, {}, { env: { MY_SERVICE_API_KEY: 'sk-canary-0123456789abcdef' } });
  t.notMatch((await run('env; cat /proc/self/environ /proc/1/environ 2>/dev/null')).text, 'canary');
});

t.test('fault 80: the environment of the server cannot be read from a contained command', async (t) => {
  const { run } = makeScene(t);
  const result = await run(`tr '\\0' '\\n' < /proc/${process.pid}/environ | wc -l; ls /proc | grep -c '^[0-9]'`);
  if (state.kind === 'bubblewrap') t.match(result.stderr.text, /No such file/);
  else t.match(result.text, /^\d+/, 'without a sandbox a command of the same user reads it: the documented limit');
});

t.test('fault 81: credentials of the person and places of this program are hidden', contained, async (t) => {
  // Not in the system's /tmp, which is hidden as a whole; a checkout may be there.
  const base = fileURLToPath(new URL('.', import.meta.url));
  const { run, home, own, work } = makeScene(t, {}, { base });
  mkdirSync(join(home, '.ssh'));
  writeFileSync(join(home, '.ssh/id_ed25519'), 'canary');
  writeFileSync(join(home, '.npmrc'), 'canary');
  writeFileSync(join(own, 'log.jsonl'), 'canary');
  writeFileSync(join(home, '.gitconfig'), '[user]\n\tname = me\n');
  const result = await run(`cat ${home}/.ssh/* ${home}/.npmrc ${own}/*; echo x > ${home}/.ssh/x; git config --global user.name`);
  t.notMatch(result.text, 'canary');
  if (!base.startsWith(`${realpathSync(tmpdir())}/`)) t.match(result.text, 'me\n', 'what is no secret can be read');
  t.same(readdirSync(join(home, '.ssh')), ['id_ed25519']);
  const opened = makeScene(t, { writable: [join(home, '.ssh')] }, { base, env: { HOME: home } });
  t.equal((await opened.run(`cat ${home}/.ssh/id_ed25519`)).text, 'canary', 'what the settings name is open');
  t.notOk(existsSync(join(work, '.ssh')));
});

t.test('fault 82: a contained command without network reaches nobody, and its own loopback still works', contained, async (t) => {
  const { run } = makeScene(t, { network: 'off' });
  const server = createServer((socket) => socket.end('reached'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  t.notMatch((await run(`exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`)).text, 'reached');
  const own = `const s=require('net').createServer(c=>c.end('own')).listen(0,'127.0.0.1',()=>require('net').connect(s.address().port,'127.0.0.1').on('data',d=>{console.log(String(d));process.exit()}))`;
  t.match(await run(`'${process.execPath}' -e "${own}"`), { text: 'own\n', exitCode: 0 });
  const open = makeScene(t);
  t.match((await open.run(`exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`)).text, 'reached', 'with network it does');
});

t.test('git works in the workspace, and what it runs for others cannot be changed', contained, async (t) => {
  const { run, work } = makeScene(t);
  execFileSync('git', ['init', '-q', '--template=', work]);
  writeFileSync(join(work, '.mcp.json'), '{}');
  mkdirSync(join(work, '.github/workflows'), { recursive: true });
  mkdirSync(join(work, '.git/modules/sub/hooks'), { recursive: true });
  writeFileSync(join(work, '.git/modules/sub/config'), '');
  const before = readFileSync(join(work, '.git/config'), 'utf8');
  const commit = await run('echo 1 > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline | wc -l');
  t.match(commit, { exitCode: 0, stdout: { text: /1/ } });
  const attacks = [
    'echo x >> .git/config',
    'git config core.fsmonitor ./x',
    'echo x > .git/hooks/pre-commit',
    'mv .git away',
    'rm -rf .git/hooks && mkdir .git/hooks',
    'echo x > .mcp.json',
    'rm .mcp.json',
    'mv .github away',
    'echo x > .github/workflows/ci.yml',
    'ln -sf /etc/passwd .mcp.json',
    'echo x >> .git/modules/sub/config',
    'echo x > .git/modules/sub/hooks/pre-commit',
  ];
  const held = await run(attacks.map((attack, index) => `( ${attack} ) 2>/dev/null || echo held ${index}`).join('\n'));
  t.same(held.text.match(/held/g)?.length, attacks.length, held.text);
  t.equal(readFileSync(join(work, '.git/config'), 'utf8'), before);
  t.equal(readFileSync(join(work, '.mcp.json'), 'utf8'), '{}');
  const redirected = await run('mkdir -p evil && echo ../evil > .git/commondir');
  t.same(redirected.controlFiles, [join(work, '.git/commondir')]);
  t.notOk(existsSync(join(work, '.git/commondir')), 'git is not sent to settings of a stranger');
  rmSync(join(work, 'evil'), { recursive: true });
  const opened = makeScene(t, { writable: [join(work, '.git/config')] });
  const place = { cwd: work, roots: [work] };
  t.match(
    await opened.run('git config user.name me && ! echo x > .git/hooks/x', place),
    { exitCode: 0 },
    'what the settings open can be changed',
  );
  const made = await run('echo x > .envrc; mkdir -p .vscode; echo x > .vscode/tasks.json');
  t.same(new Set(made.controlFiles), new Set([join(work, '.envrc'), join(work, '.vscode')]), 'what was not there can be made, and is told');
  t.same(readdirSync(work).toSorted(), ['.envrc', '.git', '.github', '.mcp.json', '.vscode', 'a'], 'nothing of the sandbox is left');
});

t.test('a linked work tree can be committed to; a file that only claims to be one opens nothing', contained, async (t) => {
  const { run, dir, work } = makeScene(t);
  const [repo, tree] = [join(dir, 'repo'), join(dir, 'tree')];
  execFileSync('sh', [
    '-ec',
    `git init -q ${repo}; cd ${repo}; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one; git worktree add -q ${tree}`,
  ]);
  const place = { cwd: tree, roots: [tree] };
  t.match(await run('echo 1 > a && git add a && git -c user.name=a -c user.email=a@b commit -qm two', place), { exitCode: 0 });
  t.not((await run(`echo x >> ${repo}/.git/config`, place)).exitCode, 0);
  writeFileSync(join(work, '.git'), `gitdir: ${repo}/.git/worktrees/tree\n`);
  t.not((await run(`echo x > ${repo}/.git/refs/heads/x`)).exitCode, 0);
});

t.test('a sandbox that is demanded and not there starts nothing', async (t) => {
  const { spec } = makeScene(t);
  const none = (use: SandboxSettings['use'], network: 'on' | 'off' = 'on') =>
    new Containment({ settings: { ...auto, use, network }, own: [], ambient: process.env, platform: 'darwin' });
  t.match(await none('required').prepare(spec('true')), { ok: false, spawnCode: 'SANDBOX_UNAVAILABLE', spawnError: /Linux only/ });
  t.match(await none('off').prepare(spec('true', { sandbox: 'required' })), { ok: false, spawnCode: 'SANDBOX_UNAVAILABLE' });
  t.match(await none('auto').prepare(spec('true')), { ok: true, argv: { command: 'bash' } }, 'one that is only preferred is done without');
  t.match(
    await none('auto', 'off').prepare(spec('true')),
    { ok: false, spawnError: /ENOTSUP/ },
    'but a network that must be cut is not left',
  );
  t.match(await none('required').state(), { kind: 'none', why: /Linux only/ });
});

t.test('where a sandbox is demanded, MCP servers run in one, too', contained, async (t) => {
  // The server's program may stand in /tmp, which is hidden.
  const program = fileURLToPath(new URL('../../..', import.meta.url));
  const rig = mcpRig(t, { ...auto, use: 'required', writable: [program] });
  await rig.open([rig.stdio('one')]);
  t.match(await rig.settled('one'), { state: 'connected' });
  t.same(await rig.call('one', 'echo', { text: 'hello' }), { kind: 'result', text: 'hello', isError: false });
  const leaders = [...rig.groups.keys()].map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[0]);
  t.match(leaders, [/bwrap$/]);
  await rig.broker.releaseOwner('s1');
  t.same(rig.living(), [], 'and end with the session');
});

t.test('a fork bomb ends within its bounds', limitsHold ? {} : { skip: 'no limit holds here' }, async (t) => {
  const { run } = makeScene(t, { maxProcesses: 40 });
  const result = await run('i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done', { command: '/bin/sh', timeoutMs: 5_000 });
  t.match(result.stderr.text, /fork|unavailable/);
  t.match(await run('echo on'), { text: 'on\n' }, 'and the next command runs');
});

/** Commands that an allow-list of plain ones must not let through. */
const bypasses = [
  ['git status; id', 'git status && id', 'git status || id', 'git status | sh', 'git status & id', 'git status\nid', 'git status\r\nid'],
  [
    'git status $(id)',
    'git status `id`',
    'git${IFS}status',
    'git status > /etc/x',
    'git status < x',
    'git status 2>&1',
    'git status <(id)',
  ],
  ['bash -c id', 'sh -c "git status"', 'env git status', 'X=1 git status', 'PATH=. git status', 'exec git status', 'eval git status'],
  ['command git status', 'builtin cd', 'source x', '. x', 'time git status', '! git status', '{ git status; }', '(git status)'],
  ['if true; then id; fi', 'find . -exec id', 'find . -delete x', 'find . -name x -exec id', 'sed -n w out', "sed -n '1e id' f"],
  ['git -c core.fsmonitor=x status', 'git --exec-path=. status', 'git -C / status', 'git status --output=x', 'rg --pre=x', 'rg --pre x'],
  ['rg "$(id)"', "rg $'x'", 'rg x # y', 'rg {a,b}', 'rg ~root', 'rg *', 'rg x\\ y', 'git status\0', '-git status', '%1', 'git status %1;'],
  [' git status', 'git status ', 'git  status', 'git\tstatus', "'git' status", 'gi""t status', 'g\\it status'],
  [Array.from({ length: 51 }, () => 'git status').join(' && '), `git status ${'x'.repeat(10_000)}`],
].flat();

t.test('fault 86: nothing that is more than an allowed argv gets past an allow-list', async (t) => {
  const commands = [
    ['git', 'status'],
    ['rg', '*'],
    ['find', '.', '-name', '*'],
    ['sed', '-n', '*', '*.txt'],
  ];
  const policy = new CompiledPolicy(
    { rules: [{ name: 'reading', action: 'allow', commands }], fallback: 'deny' },
    { cwd: '/w', home: undefined },
  );
  const actionOf = (command: string) =>
    policy.decide({ toolName: 'bash', access: { kind: 'execute', command, cwd: '/w', canonicalCwd: '/w' } })?.action;
  for (const command of ['git status', 'rg needle', "find . -name 'a'", 'sed -n 1p a.txt']) t.equal(actionOf(command), 'allow', command);
  for (const command of bypasses) t.equal(actionOf(command), 'deny', JSON.stringify(command.slice(0, 60)));
  const elsewhere = { kind: 'execute', command: 'git status', cwd: '/w/sub', canonicalCwd: '/w/sub' } as const;
  t.equal(policy.decide({ toolName: 'bash', access: elsewhere })?.action, 'deny', 'the same words elsewhere are another command');
  for (const command of [...bypasses, 'git status']) {
    const verdict = decideAccess('ask', { kind: 'execute', command, cwd: '/w' }, { cwd: '/w', grants: new Set() });
    t.equal(verdict.kind, 'ask', 'without a policy each command is asked about, whatever it looks like');
  }
});

t.test('fault 86: a rule can demand a sandbox, and the stricter word of two policies counts', async (t) => {
  const one = (sandbox?: 'required') =>
    new CompiledPolicy(
      { rules: [{ name: 'all', action: 'allow', access: ['execute'], ...(sandbox === undefined ? {} : { sandbox }) }], fallback: 'deny' },
      { cwd: '/w', home: undefined },
    ).decide({ toolName: 'bash', access: { kind: 'execute', command: 'x; y', cwd: '/w', canonicalCwd: '/w' } });
  t.match(one(), { action: 'allow', sandbox: undefined });
  t.match(strictest([one(), one('required')]), { action: 'allow', sandbox: 'required' });
});

t.test('fault 87: words that begin with a dash, and names with line breaks, stay words', async (t) => {
  const { run, work } = makeScene(t);
  const odd = ['-rf', '--pre=sh', 'a\nb', '$(id)', '; id', "it's"];
  for (const name of odd) writeFileSync(join(work, name), '');
  const program = 'const fs=require("fs");fs.writeFileSync("seen",JSON.stringify(process.argv.slice(1)))';
  await run('', { command: process.execPath, args: ['-e', program, '--', ...odd] });
  t.same(JSON.parse(readFileSync(join(work, 'seen'), 'utf8')), odd, 'argv goes as it is, through whatever stands before the command');
  t.match(await run('', { command: '-rf', args: [] }), { exitCode: state.kind === 'bubblewrap' ? 1 : null }, 'no option of the sandbox');
});

/** Pids whose command line begins so. */
function runningWith(commandLine: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith(commandLine);
      } catch {
        return false; // Ended meanwhile.
      }
    });
}
