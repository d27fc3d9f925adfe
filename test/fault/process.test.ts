/** The process and what it runs on: searches that never end, threads that wait for a child, descriptors and processes that run out. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { fileAppears } from '../support/file-appears.ts';
import { faultTest, residentMb } from '../support/invariants.ts';
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
  t.equal((await server.prompt(bystander, '{"tokens":3}')).result?.stopReason, 'end_turn');
  t.equal((await server.response(prompt)).result?.stopReason, 'end_turn');
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

void faultTest('fault 69: a directory that cannot be written is an error of the call, and works once it can', async (t, rig) => {
  if (process.getuid?.() === 0) {
    t.pass('root may write everywhere');
    return;
  }
  const model = await rig.model();
  const server = await rig.serve({
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--permission-mode', 'full-access'],
    saboteur: false,
  });
  const work = join(rig.dir, 'work');
  mkdirSync(work);
  const sessionId = await server.newSession(work);
  chmodSync(work, 0o500);
  const write = plan(call('write', { file_path: join(work, 'a.txt'), content: 'x' }));
  t.equal((await server.prompt(sessionId, write)).result?.stopReason, 'end_turn');
  chmodSync(work, 0o700);
  t.equal((await server.prompt(sessionId, write)).result?.stopReason, 'end_turn');
  const statuses = callIds(server, sessionId).map((id) => updatesOfCall(server, sessionId, id).at(-1)?.status);
  t.same(statuses, ['failed', 'completed']);
});

void faultTest('fault 69: without descriptors or processes calls fail and the server lives; released, they work', async (t, rig) => {
  const model = await rig.model();
  const args = [
    '--base-url',
    model.baseUrl,
    '--model',
    'bench',
    '--permission-mode',
    'full-access',
    '--isolation',
    'shared',
    '--max-threads',
    '1',
  ];
  // The shell gives the limit to the server alone.
  const cli = new URL('../../../dist/main/cli.js', import.meta.url).pathname;
  const server = await rig.serve({
    args,
    command: ['bash', '-c', `ulimit -n 70; exec "${process.execPath}" "${cli}" "$@"`, 'limited'],
    saboteur: false,
  });
  const sessionId = await server.newSession(rig.dir);
  const sleepers = Array.from({ length: 10 }, () =>
    call('bash', { description: 'a command', command: 'sleep 1', run_in_background: true }),
  );
  const many = await server.prompt(
    sessionId,
    plan(...sleepers, ...Array.from({ length: 20 }, () => call('bash', { description: 'a command', command: 'echo on' }))),
  );
  t.ok(many.result !== undefined || many.error !== undefined, `answered: ${JSON.stringify(many.error ?? many.result).slice(0, 200)}`);
  const ids = callIds(server, sessionId);
  t.ok(ids.length >= 10);
  const deadline = performance.now() + 15_000;
  const last = () => updatesOfCall(server, sessionId, callIds(server, sessionId).at(-1) ?? '').at(-1)?.status;
  do await server.prompt(sessionId, plan(call('bash', { description: 'a command', command: 'sleep 0.2; echo on' })));
  while (last() !== 'completed' && performance.now() < deadline);
  t.equal(last(), 'completed', 'once they are free again');
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
