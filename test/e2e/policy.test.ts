/**
 * Unattended runs of the assembled server: a policy file decides, the log says by which rule, and the frames show what came
 * of it. Nobody answers unless a test says so.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Frame, ServerProcess } from '../support/server-process.ts';
import { NetworkCut } from '../../src/worker/broker/network-cut.ts';
import { callIds, endServer, startServer, statusesOfCall } from '../support/started-server.ts';

const rules = `
ask_timeout_ms = 150
[[rule]]
name = "no secrets"
action = "deny"
paths = ["secrets/**"]
[[rule]]
name = "workspace"
action = "allow"
access = ["read", "write"]
paths = ["**"]
[[rule]]
name = "cut off"
action = "allow"
commands = [["bash", "connect.sh", "cut"]]
network = "none"
[[rule]]
name = "tools"
action = "allow"
commands = [["touch", "allowed"], ["bash", "connect.sh", "open"], ["bash", "keep.sh"]]
[[rule]]
name = "think first"
action = "ask"
commands = [["touch", "*"]]
`;

interface Started {
  readonly server: ServerProcess;
  /** The workspace, canonical. */
  readonly cwd: string;
}

const canCut = await new NetworkCut({ platform: process.platform }).isPossible();
const isAsking = (frame: Frame): boolean => frame.method === 'session/request_permission';

async function start(
  t: Test,
  args: readonly string[],
  policy = rules,
  onRequest: (frame: Frame) => unknown = () => undefined,
): Promise<Started> {
  const root = realpathSync(t.testdir({ ws: { secrets: { key: 'x' } }, 'policy.toml': policy }));
  const options = ['--model', 'scripted', '--pace-ms', '0', '--policy-file', join(root, 'policy.toml'), ...args];
  return { server: await startServer(t, { args: options, onRequest }), cwd: join(root, 'ws') };
}

/** The decisions in a session's log, as `outcome by rule`. */
function decisions(server: ServerProcess, sessionId: string): string[] {
  const lines = readFileSync(join(server.stateDir, 'sessions', `${sessionId}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n');
  const events: any[] = lines.slice(1).map((line) => JSON.parse(line));
  return events.flatMap(({ type, data }) => (type === 'permission/decided' ? [`${data.outcome} ${data.by} ${data.rule}`] : []));
}

const newSession = async (server: ServerProcess, cwd: string, options?: object): Promise<string> => {
  const extension = options === undefined ? {} : { _meta: { 'dsh-acp': options } };
  return (await server.request('session/new', { cwd, mcpServers: [], ...extension })).result.sessionId;
};

await t.test('allowed, denied and asked without an answer, in frames and log', async (t) => {
  const { server, cwd } = await start(t, ['--permission-mode', 'full-access']);
  const sessionId = await server.newSession(cwd);
  const script = [
    'run touch allowed',
    'run touch allowed; touch denied',
    'run touch asked',
    'read secrets/key',
    'write new.txt <<EOF',
    'x',
    'EOF',
    'write .npmrc <<EOF',
    'x',
    'EOF',
  ];
  t.match(await server.prompt(sessionId, script.join('\n')), { result: { stopReason: 'end_turn' } });
  t.same(decisions(server, sessionId), [
    'allow-once policy tools',
    'reject policy fallback',
    'unavailable timeout think first',
    'reject policy no secrets',
    'allow-once policy workspace',
    'unavailable timeout workspace',
  ]);
  const statuses = callIds(server, sessionId).map((id) => statusesOfCall(server, sessionId, id).at(-1));
  t.same(statuses, ['completed', 'failed', 'failed', 'failed', 'completed', 'failed']);
  t.same(
    ['allowed', 'denied', 'asked', 'new.txt', '.npmrc'].map((name) => existsSync(join(cwd, name))),
    [true, false, false, true, false],
  );
  const questions = server.frames.filter(isAsking);
  t.equal(questions.length, 2, 'only what a rule asks, and what a broad rule must not allow');
  t.match(JSON.stringify(questions[0]?.params.toolCall), /rule .*think first.* asks for your word/);
  t.match(JSON.stringify(questions[1]?.params.toolCall), /can change what other programs run/);
  const withdrawn = server.frames.filter((frame) => frame.method === '$/cancel_request').map((frame) => frame.params.requestId);
  t.same(
    withdrawn,
    questions.map((question) => question.id),
  );
  const shown = JSON.stringify(server.updates(sessionId));
  t.match(shown, /rule \\+"no secrets\\+" of the policy denies this call/);
  t.match(shown, /Do not try to get around it/);
  await endServer(t, server);
});

await t.test('automation: a program is offered one call at a time, and a grant is no answer', async (t) => {
  let option = 'allow_once';
  const { server, cwd } = await start(t, ['--profile', 'automation'], rules.replace('150', '20_000'), () => ({
    outcome: { outcome: 'selected', optionId: option },
  }));
  const sessionId = await server.newSession(cwd);
  for (option of ['allow_once', 'allow_always', 'reject_once']) {
    t.match(await server.prompt(sessionId, `run touch ${option}`), { result: { stopReason: 'end_turn' } });
  }
  const kinds = server.frames.filter(isAsking).map((frame) => frame.params.options.map(({ kind }: { kind: string }) => kind));
  t.same(
    kinds,
    Array.from({ length: 3 }, () => ['allow_once', 'reject_once']),
  );
  t.same(decisions(server, sessionId), ['allow-once client think first', 'unavailable client think first', 'reject client think first']);
  t.same(
    ['allow_once', 'allow_always', 'reject_once'].map((name) => existsSync(join(cwd, name))),
    [true, false, false],
  );
  await endServer(t, server);
});

await t.test('a command without a network does not reach what the same command reaches with one', { skip: !canCut }, async (t) => {
  const target = createServer((socket) => socket.end('reached'));
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  t.teardown(() => target.close());
  const { server, cwd } = await start(t, []);
  const { port } = target.address() as AddressInfo;
  writeFileSync(join(cwd, 'connect.sh'), `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3 > "$1"\n`);
  const sessionId = await server.newSession(cwd);
  await server.prompt(sessionId, 'run bash connect.sh open\nrun bash connect.sh cut');
  t.same(decisions(server, sessionId), ['allow-once policy tools', 'allow-once policy cut off']);
  t.equal(readFileSync(join(cwd, 'open'), 'utf8'), 'reached');
  t.notOk(existsSync(join(cwd, 'cut')));
  t.match(JSON.stringify(server.updates(sessionId)), /unreachable|refused/i);
  await endServer(t, server);
});

await t.test('a session brings a policy of its own: the stricter word counts', async (t) => {
  const { server, cwd } = await start(t, []);
  mkdirSync(join(cwd, 'docs'));
  const policy = { rules: [{ name: 'docs', action: 'allow', access: ['write'], paths: ['docs/**', 'secrets/**'] }] };
  const sessionId = await newSession(server, cwd, { policy });
  const script = ['docs/a', 'b', 'secrets/c'].map((name) => `write ${name} <<EOF\nx\nEOF`);
  await server.prompt(sessionId, `${script.join('\n')}\nrun touch allowed`);
  const expected = [
    'allow-once policy workspace',
    'reject policy session:fallback',
    'reject policy no secrets',
    'reject policy session:fallback',
  ];
  t.same(decisions(server, sessionId), expected);
  await server.request('session/close', { sessionId });
  t.ok((await server.request('session/load', { sessionId, cwd, mcpServers: [] })).result);
  await server.prompt(sessionId, 'write b <<EOF\nx\nEOF');
  t.same(decisions(server, sessionId), [...expected, 'reject policy session:fallback'], 'it is kept with the session');
  await endServer(t, server);
});

await t.test('variables of a session reach its commands and nothing else', async (t) => {
  const canary = 'canary-5d0c7b1f';
  const { server, cwd } = await start(t, ['--log-level', 'warn']);
  writeFileSync(join(cwd, 'keep.sh'), 'test "$GIVEN_TOKEN" = "$(cat expected)" && touch seen\n');
  writeFileSync(join(cwd, 'expected'), canary);
  const sessionId = await newSession(server, cwd, { env: { GIVEN_TOKEN: canary } });
  const other = await server.newSession(cwd);
  await server.prompt(other, 'run bash keep.sh');
  t.notOk(existsSync(join(cwd, 'seen')), 'another session does not have it');
  await server.prompt(sessionId, 'run bash keep.sh\nrun touch denied; true');
  t.ok(existsSync(join(cwd, 'seen')));
  await server.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 7 }] });
  await server.request('session/new', { cwd, mcpServers: [], _meta: { 'dsh-acp': { env: { GIVEN_TOKEN: canary, 'A=B': canary, N: 7 } } } });
  const log = readFileSync(join(server.stateDir, 'sessions', `${sessionId}.jsonl`), 'utf8');
  t.notMatch(log + JSON.stringify(server.frames) + server.stderr, canary);
  await endServer(t, server);
});

await t.test('a server with a wrong policy does not start, and says where it is wrong', async (t) => {
  const root = t.testdir({ 'policy.toml': '[[rule]]\naction = "allow"\npaths = ["a/../b"]\n' });
  for (const [file, message] of [
    ['policy.toml', /CONFIG_INVALID.*rule\[0\]\.paths\[0\]: expected a glob without the names/s],
    ['none.toml', /CONFIG_INVALID.*policy_file: expected a readable file/s],
  ] as const) {
    const server = await startServer(t, { args: ['--model', 'scripted', '--policy-file', join(root, file)], initialize: false });
    const exit = await server.exited;
    t.not(exit.code, 0);
    t.match(server.stderr, message);
    t.equal(server.frames.length, 0);
  }
});
