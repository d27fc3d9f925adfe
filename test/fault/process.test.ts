/** The process and what it runs on: searches that never end, threads that wait for a child, descriptors and processes that run out. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { fileAppears } from '../support/file-appears.ts';
import { faultTest, residentMb } from '../support/invariants.ts';
import { cliPath } from '../support/server-process.ts';
import { updatesOfCall, callIds } from '../support/started-server.ts';

t.setTimeout(110_000);

const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) });
const plan = (...tools: object[]): string => JSON.stringify({ plans: [{ tools }, { tokens: 2 }] });

/** Whether a `sleep` of the server is left. */
function sleeping(pid: number): boolean {
  return readdirSync('/proc').some((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/stat`, 'utf8').includes(`(sleep) S ${pid} `);
    } catch {
      return false; // It ended while we looked.
    }
  });
}

void faultTest('fault 7: a pattern made to backtrack for ever runs out of process and costs one call at most', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({ args: ['--base-url', model.baseUrl, '--model', 'bench'], saboteur: false });
  writeFileSync(join(rig.dir, 'a.txt'), `${'a'.repeat(200_000)}!\n`);
  const [victim, bystander] = [await server.newSession(rig.dir), await server.newSession(rig.dir)];
  const prompt = server.startPrompt(
    victim,
    plan(call('grep', { pattern: '^(a+)+$', path: rig.dir }), call('grep', { pattern: '(a*)*b\\1', path: rig.dir })),
  );
  const start = performance.now();
  t.equal((await server.prompt(bystander, '{"tokens":3}')).result?.stopReason, 'end_turn');
  t.ok(performance.now() - start < 5000, `another session was answered after ${(performance.now() - start).toFixed(0)} ms`);
  t.equal((await server.response(prompt)).result?.stopReason, 'end_turn');
  t.ok(performance.now() - start < 32_000, 'within the time that a search has');
  const results = model.requests
    .flatMap(({ body }) => body.messages)
    .filter(({ role }: { role: string }) => role === 'tool')
    .map(({ content }: { content: string }) => content);
  t.match(results[0], /^No matches|took longer than 30 s/, 'the first found nothing or was ended');
  // In the words of ripgrep's own stderr: the pattern was never given to an engine of this process.
  t.match(results[1], /regex parse error:[^]*backreferences are not supported/, 'a pattern that needs backtracking is refused by ripgrep');
});

void faultTest(
  'fault 8: a thread that waits for a child answers its cancelled prompt at once, the router serves on, the child is ended',
  async (t, rig) => {
    const server = await rig.serve({ args: ['--model', 'scripted', '--stuck-thread-ms', '3000'] });
    const [victim, bystander] = [await server.newSession(rig.dir), await server.newSession(rig.dir)];
    const prompt = server.startPrompt(victim, '[!spawn 300 30]\nrepeat 4000 word');
    await fileAppears(join(rig.dir, '.sabotaged'));
    const start = performance.now();
    t.equal((await server.prompt(bystander, 'say hello')).result?.stopReason, 'end_turn', 'the router serves the others');
    server.notify('session/cancel', { sessionId: victim });
    t.equal((await server.response(prompt)).result?.stopReason, 'cancelled');
    t.ok(performance.now() - start < 8000);
    t.equal((await server.prompt(victim, 'say again')).result?.stopReason, 'end_turn', 'the session is revived: its thread was freed');
    t.notOk(existsSync('/proc') && sleeping(server.pid), 'the child was ended');
  },
);

/** Root may write everywhere, unless it runs without the capabilities that let it. */
const isRoot = process.getuid?.() === 0;
const withoutOverride = ['setpriv', '--bounding-set', '-dac_override,-dac_read_search'];
const canDrop = !isRoot || spawnSync(withoutOverride[0]!, [...withoutOverride.slice(1), 'true']).status === 0;

void faultTest('fault 69: a directory that cannot be written is an error of the call, and works once it can', async (t, rig) => {
  if (!canDrop) {
    t.comment('not injected: root may write everywhere, and setpriv cannot take that from it here');
    return;
  }
  const model = await rig.model();
  const server = await rig.serve({
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--permission-mode', 'full-access'],
    saboteur: false,
    ...(isRoot ? { command: [...withoutOverride, process.execPath, cliPath] } : {}),
  });
  const work = join(rig.dir, 'work');
  mkdirSync(work);
  const sessionId = await server.newSession(work);
  chmodSync(work, 0o500);
  const write = plan(call('write', { file_path: join(work, 'a.txt'), content: 'x' }));
  t.equal((await server.prompt(sessionId, write)).result?.stopReason, 'end_turn');
  t.match(model.requests.at(-1)?.body.messages.at(-1).content, /may not be (opened|changed) by this user/, 'the model is told why');
  t.notOk(existsSync(join(work, 'a.txt')));
  chmodSync(work, 0o700);
  t.equal((await server.prompt(sessionId, write)).result?.stopReason, 'end_turn');
  const statuses = callIds(server, sessionId).map((id) => updatesOfCall(server, sessionId, id).at(-1)?.status);
  t.same(statuses, ['failed', 'completed']);
});

void faultTest('fault 69: without descriptors calls fail by name and the server lives; released, they work', async (t, rig) => {
  const model = await rig.model();
  const args = ['--base-url', model.baseUrl, '--model', 'bench', '--permission-mode', 'full-access', '--titles', 'off'];
  const server = await rig.serve({ args, saboteur: false });
  const sessionId = await server.newSession(rig.dir);
  writeFileSync(join(rig.dir, 'a.txt'), 'legible\n');
  const both = plan(call('read', { file_path: join(rig.dir, 'a.txt') }), call('bash', { description: 'a command', command: 'echo on' }));
  const told = (): string[] =>
    model.requests
      .at(-1)
      ?.body.messages.filter(({ role }: { role: string }) => role === 'tool')
      .slice(-2)
      .map(({ content }: { content: string }) => content);
  const limit = (to: string) => execFileSync('prlimit', ['--pid', String(server.pid), `--nofile=${to}:`]);
  const soft = execFileSync('prlimit', ['--pid', String(server.pid), '--nofile', '--noheadings', '--output', 'SOFT'], {
    encoding: 'utf8',
  }).trim();
  t.equal((await server.prompt(sessionId, both)).result?.stopReason, 'end_turn');
  t.match(told(), [/legible/, /on/]);
  // Below every free number: whatever is open goes on, and nothing more can be opened.
  limit('3');
  t.equal((await server.prompt(sessionId, both)).result?.stopReason, 'end_turn', 'the turn comes to its end');
  t.match(told(), [/too many files are open in this process/, /EMFILE/]);
  limit(soft);
  t.equal((await server.prompt(sessionId, both)).result?.stopReason, 'end_turn');
  t.match(told(), [/legible/, /on/]);
  const statuses = callIds(server, sessionId).map((id) => updatesOfCall(server, sessionId, id).at(-1)?.status);
  t.same(statuses, ['completed', 'completed', 'failed', 'failed', 'completed', 'completed']);
});

void faultTest('fault 63: binary output reaches client and model as whole characters', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--permission-mode', 'full-access'],
    saboteur: false,
  });
  const sessionId = await server.newSession(rig.dir);
  const command = "printf 'a\\0b\\377\\376\\342\\202'; sleep 0.05; printf '\\254 \\360\\237\\230\\200 end'";
  t.equal((await server.prompt(sessionId, plan(call('bash', { description: 'a command', command })))).result?.stopReason, 'end_turn');
  const asked = model.requests.at(-1)?.body.messages.at(-1).content as string;
  t.match(asked, /€ 😀 end/, 'a character that came in two pieces is one');
  t.notMatch(asked, /[\ud800-\udbff](?![\udc00-\udfff])/);
});

void faultTest('fault 15: after a tenth of 30 sessions lost their threads the others finish, and memory comes back', async (t, rig) => {
  const model = await rig.model({ keepRequests: 0 });
  const server = await rig.serve({
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--max-threads', '6', '--park-after-ms', '250', '--spare-threads', '0'],
  });
  const ids = await Promise.all(Array.from({ length: 30 }, () => server.newSession(rig.dir)));
  const round = async (kill: boolean) => {
    const prompts = ids.map((id, index) =>
      server.startPrompt(id, `${kill && index % 10 === 3 ? '[!throw 30] ' : ''}{"tokens":4,"delayMs":10}`),
    );
    return await Promise.all(prompts.map((id) => server.response(id)));
  };
  t.equal((await round(false)).filter(({ result }) => result?.stopReason === 'end_turn').length, 30);
  await round(false);
  const before = residentMb(server.pid);
  const hit = await round(true);
  t.ok(
    hit.some(({ error }) => error !== undefined),
    'some were hit',
  );
  t.ok(hit.filter(({ result }) => result?.stopReason === 'end_turn').length >= 6, 'the others finished');
  t.equal((await round(false)).filter(({ result }) => result?.stopReason === 'end_turn').length, 30, 'all of them go on');
  const after = residentMb(server.pid);
  t.ok(after < before * 1.5 + 40, `${before.toFixed(0)} MB before, ${after.toFixed(0)} MB after`);
});
