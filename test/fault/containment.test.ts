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
import { holdsCanary } from '../support/canaries.ts';
import { fileAppears } from '../support/file-appears.ts';
import { mcpRig } from '../unit/worker/broker/mcp/mcp-rig.ts';
import { faultTest, logPath, partTest, processesIn, readEvents } from '../support/invariants.ts';

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

void partTest('fault 64: daemons end with their command, whatever they did to get away', contained, async (t) => {
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

void partTest('fault 64: where there is no sandbox, a daemon that wiped its environment is out of reach', async (t) => {
  const { run, work } = makeScene(t, { use: 'off' });
  await run(
    `(setsid env -i sh -c 'echo $$ > ${work}/daemon; exec sleep 63' >/dev/null 2>&1 &) ; while [ ! -s daemon ]; do sleep 0.01; done`,
  );
  const pid = Number(readFileSync(join(work, 'daemon'), 'utf8'));
  t.ok(Number.isInteger(pid) && pid > 1);
  t.same(runningWith('sleep\x0063'), [pid], 'the documented limit');
  process.kill(pid, 'SIGKILL');
});

/** Says whether the listener on this machine could be reached. */
const reach = (port: number): string => `(exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3) 2>&1; cat | wc -c`;

async function listener(t: Test): Promise<number> {
  const server = createServer((socket) => socket.end('reached'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

const bash = (...calls: readonly object[]): string =>
  JSON.stringify({
    plans: [
      ...calls.map((call) => ({ tools: [{ name: 'bash', arguments: JSON.stringify({ description: 'x', ...call }) }] })),
      { text: ['done'] },
    ],
  });

void faultTest(
  'fault 66: commands read no protocol, reach nobody unless they ask and a person says yes, and everyone is told',
  async (t, rig) => {
    const port = await listener(t);
    const model = await rig.model();
    const words: string[] = [];
    const server = await rig.serve({
      args: ['--base-url', model.baseUrl, '--model', 'bench', '--titles', 'off', '--sandbox', 'auto'],
      onRequest: ({ params }) => {
        words.push(JSON.stringify(params.toolCall));
        return { outcome: { outcome: 'selected', optionId: 'allow_once' } };
      },
    });
    const dir = mkdtempSync(join(rig.dir, 'work-'));
    const session = await server.newSession(dir);
    const work = bash({ command: reach(port) }, { command: reach(port), network: true }, { command: 'echo x > .envrc' });
    t.equal((await server.prompt(session, work)).result?.stopReason, 'end_turn');
    const isContained = state.kind === 'bubblewrap';
    const inside = 'Runs contained: writes only in the workspace';
    t.match(
      words,
      isContained ? [`${inside}, no network.`, `${inside}, with network.`, inside] : [/Runs without a sandbox, with network\./],
    );
    t.match((await server.request('_status', {})).result, { sandbox: { kind: state.kind, network: isContained ? 'ask' : 'on' } });
    await server.request('session/set_mode', { sessionId: session, modeId: 'full-access' });
    const free = bash({ command: `${reach(port)}; echo x > .mcp.json; git init -q new; git -C new config core.fsmonitor ./x` });
    t.equal((await server.prompt(session, free)).result?.stopReason, 'end_turn');
    await server.close();
    const events = await readEvents(logPath(server, session));
    t.equal(events[0]?.type, 'thread/attached');
    const seen = state;
    t.match(
      events[0]?.data,
      { sandbox: { use: 'auto', ...seen, network: isContained ? 'ask' : 'on' } },
      'the first event says what is in effect',
    );
    const results = events.flatMap((event) => (event.type === 'tool/result' ? [event.data] : []));
    t.match(results[1]?.text, /reached\n?0/, 'what a person gave');
    t.match(results[3]?.text, /reached\n?0/, 'and who gave all, gave the network');
    if (!isContained) return;
    t.match(results[0], {
      isError: false,
      text: /0\n\[no network: .*network set to true/s,
      meta: { sandbox: 'bubblewrap', network: 'off' },
    });
    t.notMatch(results[0]?.text, 'reached');
    t.match(results[2]?.text, /other programs trust: ".*\/\.envrc"; tell/, 'who was asked is told');
    for (const name of ['.mcp.json', 'new/.git/config']) {
      t.match(
        results[3]?.text,
        new RegExp(`moved out of the workspace: .*/${name}" \\(now ".*\\.d/quarantine/`),
        'what nobody was asked about is gone',
      );
    }
    t.same(readdirSync(dir).toSorted(), ['.envrc', 'new']);
    t.notMatch(readFileSync(join(dir, 'new/.git/config'), 'utf8'), 'fsmonitor');
  },
);

void faultTest(
  'fault 82: for work without a person full access gives no network, and nothing else does but the settings and a rule',
  async (t, rig) => {
    const port = await listener(t);
    const model = await rig.model();
    const args = ['--base-url', model.baseUrl, '--model', 'bench', '--titles', 'off', '--sandbox', 'auto', '--profile', 'automation'];
    const server = await rig.serve({ args: [...args, '--permission-mode', 'full-access'] });
    const work = bash({ command: reach(port) }, { command: reach(port), network: true });
    const open = async (policy?: object): Promise<string> => {
      const meta = policy === undefined ? {} : { _meta: { 'dsh-acp': { policy } } };
      return (await server.request('session/new', { cwd: rig.dir, mcpServers: [], ...meta })).result.sessionId;
    };
    const rules = (network?: string) => ({
      rules: [{ action: 'allow', access: ['execute'], ...(network === undefined ? {} : { network }) }],
    });
    const sessions = await Promise.all([open(), open(rules()), open(rules('any'))]);
    await Promise.all(sessions.map((session) => server.prompt(session, work)));
    await server.close();
    const texts = await Promise.all(
      sessions.map(async (session) =>
        (await readEvents(logPath(server, session))).flatMap((event) => (event.type === 'tool/result' ? [event.data.text] : [])),
      ),
    );
    for (const text of texts[2] ?? []) t.match(text, /reached/, 'a rule that says so gives it');
    if (state.kind !== 'bubblewrap') return;
    for (const text of [...(texts[0] ?? []), ...(texts[1] ?? [])]) t.notMatch(text, 'reached');
    t.match(texts[0]?.[1], /asked for it, but nobody who decides here may give it/);
  },
);

void partTest('fault 79: a secret of the environment does not reach a command', async (t) => {
  const { run } = makeScene(t, {}, { env: { MY_SERVICE_API_KEY: 'sk-canary-0123456789abcdef' } });
  const { text } = await run('env; cat /proc/self/environ /proc/1/environ 2>/dev/null');
  t.notMatch(text, 'canary');
  t.notOk(holdsCanary(text));
});

void partTest('fault 80: the environment of the server cannot be read from a contained command', async (t) => {
  const { run } = makeScene(t);
  const result = await run(`tr '\\0' '\\n' < /proc/${process.pid}/environ | wc -l; ls /proc | grep -c '^[0-9]'`);
  if (state.kind === 'bubblewrap') t.match(result.stderr.text, /No such file/);
  else t.match(result.text, /^\d+/, 'without a sandbox a command of the same user reads it: the documented limit');
});

void partTest('fault 81: credentials of the person and places of this program are hidden', contained, async (t) => {
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

void partTest('fault 82: a command without a network has a loopback of its own', contained, async (t) => {
  const { run } = makeScene(t, { network: 'off' });
  const own = `const s=require('net').createServer(c=>c.end('own')).listen(0,'127.0.0.1',()=>require('net').connect(s.address().port,'127.0.0.1').on('data',d=>{console.log(String(d));process.exit()}))`;
  t.match(await run(`'${process.execPath}' -e "${own}"`), { text: 'own\n', exitCode: 0, networkOff: 'settings' });
});

t.test('sockets are out of reach wherever they are, and nothing in the environment leads to one', contained, async (t) => {
  // A path for a socket must be short, and not in /tmp, which is hidden as a whole; a checkout may be there.
  const checkout = fileURLToPath(new URL('../..', import.meta.url));
  const base = checkout.length < 70 && !checkout.startsWith(realpathSync(tmpdir())) ? checkout : (process.env['HOME'] ?? '/');
  const odd = realpathSync(mkdtempSync(join(base, 'dsh-acp-s-')));
  const path = join(odd, 'engine.sock');
  const server = createServer((socket) => socket.end('reached'));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(() => {
    server.close();
    rmSync(odd, { recursive: true, force: true });
  });
  const env = { DISPLAY: ':0', SSH_AUTH_SOCK: path, DOCKER_HOST: `unix://${path}`, DBUS_SESSION_BUS_ADDRESS: `unix:path=${path}` };
  const client = `require('net').connect('${path}').on('data',d=>console.log(String(d))).on('error',e=>console.log(e.code))`;
  const look = `'${process.execPath}' -e "${client}"; env | grep -E '^(${Object.keys(env).join('|')})='; ls -A /run/systemd /run/dbus /run/user /tmp/.X11-unix 2>/dev/null`;
  const { run } = makeScene(t, {}, { env });
  t.notMatch((await run(look, { cwd: '/' })).text, /reached|unix:|=:0|private|bus|resolve/);
  const opened = makeScene(t, { writable: [path] }, { env });
  t.match((await opened.run(look)).text, /reached[^]*DOCKER_HOST=/, 'but for what the settings open');
});

t.test('what a short command has written is never lost, and no descriptor of the start is left to it', contained, async (t) => {
  const { run } = makeScene(t);
  const texts: string[] = [];
  for (let count = 0; count < 12; count += 1) texts.push((await run('echo on; ls -l /proc/self/fd | grep -c contained')).text);
  t.same(new Set(texts), new Set(['on\n0\n']));
});

t.test('git works in the workspace, and what it runs for others cannot be changed', contained, async (t) => {
  const { run, work, own } = makeScene(t);
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
  const redirected = await run('mkdir -p evil && echo ../evil > .git/commondir', { spillDir: join(own, 's.d') });
  t.match(redirected.movedFiles, [{ path: join(work, '.git/commondir') }]);
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

t.test('what holds the limits is told, and where it is not control groups, why', async (t) => {
  t.same(await new CommandLimits({ memoryMb: 0, maxProcesses: 0 }).state(), {});
  const told = await limits.state();
  t.match(told, told.limits === 'cgroup' ? { limits: 'cgroup' } : { limits: 'ulimit', limitsWhy: /control group|delegated/ });
  t.match(await makeScene(t, { maxProcesses: 40 }).broker.sandboxState(), told);
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

void partTest('fault 86: nothing that is more than an allowed argv gets past an allow-list', async (t) => {
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

void partTest('fault 86: a rule can demand a sandbox, and the stricter word of two policies counts', async (t) => {
  const one = (sandbox?: 'required') =>
    new CompiledPolicy(
      { rules: [{ name: 'all', action: 'allow', access: ['execute'], ...(sandbox === undefined ? {} : { sandbox }) }], fallback: 'deny' },
      { cwd: '/w', home: undefined },
    ).decide({ toolName: 'bash', access: { kind: 'execute', command: 'x; y', cwd: '/w', canonicalCwd: '/w' } });
  t.match(one(), { action: 'allow', sandbox: undefined });
  t.match(strictest([one(), one('required')]), { action: 'allow', sandbox: 'required' });
});

void partTest('fault 87: words that begin with a dash, and names with line breaks, stay words', async (t) => {
  const { run, work } = makeScene(t);
  const odd = ['-rf', '--pre=sh', 'a\nb', '$(id)', '; id', "it's"];
  for (const name of odd) writeFileSync(join(work, name), '');
  const program = 'const fs=require("fs");fs.writeFileSync("seen",JSON.stringify(process.argv.slice(1)))';
  await run('', { command: process.execPath, args: ['-e', program, '--', ...odd] });
  t.same(JSON.parse(readFileSync(join(work, 'seen'), 'utf8')), odd, 'argv goes as it is, through whatever stands before the command');
  t.match(await run('', { command: '-rf', args: [] }), { exitCode: state.kind === 'bubblewrap' ? 127 : null }, 'no option of the sandbox');
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
