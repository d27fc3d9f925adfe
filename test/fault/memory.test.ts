/** Memory: what one session grows by ends its own turn, typed, and nobody else's; the session goes on. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { faultTest, logPath, readEvents, residentMb } from '../support/invariants.ts';
import type { FaultServer } from '../support/invariants.ts';

t.setTimeout(110_000);

/** The highest resident memory until it is stopped, in MB. */
function watchPeak(server: FaultServer): () => number {
  let peak = 0;
  const look = (): void => void (peak = Math.max(peak, residentMb(server.child.pid ?? 0)));
  const timer = setInterval(look, 20);
  return () => {
    clearInterval(timer);
    look();
    return peak;
  };
}

void faultTest('fault 2: buffers that grow in a thread end its session before the process is in danger', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--max-thread-mb', '96', '--max-rss-mb', '4096'],
  });
  const [victim, bystander] = [await server.newSession(rig.dir), await server.newSession(rig.dir)];
  const other = server.startPrompt(bystander, '{"tokens":60,"delayMs":20}');
  await server.nextUpdate(bystander);
  const peak = watchPeak(server);
  const answer = await server.prompt(victim, '[!buffers 50] {"tokens":100000,"delayMs":5}');
  t.match(answer.error, { code: -31013, data: { code: 'SESSION_MEMORY' } });
  t.ok(peak() < 900, 'long before the bound of the process');
  t.equal((await server.prompt(victim, 'again {"tokens":2}')).result.stopReason, 'end_turn', 'the session goes on');
  t.equal((await server.response(other)).result?.stopReason, 'end_turn');
  t.match((await server.request('_status', {})).result.memory, { endedThreads: 1, endedTurns: 0 });
});

void faultTest('fault 2: growth in one piece of work, which no thread can measure, ends the thread that stands still', async (t, rig) => {
  const model = await rig.model();
  const server = await rig.serve({
    args: ['--base-url', model.baseUrl, '--model', 'bench', '--max-rss-mb', '400', '--stuck-thread-ms', '60000'],
  });
  const [victim, bystander] = [await server.newSession(rig.dir), await server.newSession(rig.dir)];
  const other = server.startPrompt(bystander, '{"tokens":60,"delayMs":20}');
  await server.nextUpdate(bystander);
  const answer = await server.prompt(victim, '[!hoard 50] {"tokens":100000,"delayMs":5}');
  t.match(answer.error, { code: -31013, data: { code: 'SESSION_MEMORY' } });
  t.equal((await server.response(other)).result?.stopReason, 'end_turn');
  t.equal((await server.prompt(victim, 'again {"tokens":2}')).result.stopReason, 'end_turn', 'the session goes on');
});

void faultTest(
  'a turn that comes over max_session_mb ends with SESSION_MEMORY; the next one goes on with what fits, also in another server',
  async (t, rig) => {
    const model = await rig.model();
    const args = ['--base-url', model.baseUrl, '--model', 'bench', '--max-session-mb', '1'];
    writeFileSync(join(rig.dir, 'large.txt'), `${'x'.repeat(1000)}\n`.repeat(49));
    const server = await rig.serve({ args, saboteur: false });
    const sessionId = await server.newSession(rig.dir);
    const read = { name: 'read', arguments: JSON.stringify({ file_path: join(rig.dir, 'large.txt') }) };
    const greedy = JSON.stringify({ plans: Array.from({ length: 20 }, () => ({ tools: [read, read] })) });
    const answer = await server.prompt(sessionId, `greedy ${greedy}`);
    t.match(answer.error, { code: -31013, data: { code: 'SESSION_MEMORY' }, message: /conversation/ });
    t.equal((await server.prompt(sessionId, 'again {"tokens":2}')).result.stopReason, 'end_turn');
    const asked = JSON.stringify(model.requests.at(-1)?.body.messages);
    t.match(asked, /too large for the memory/, 'the model is told');
    t.ok(asked.length < 700_000, `it is sent what fits: ${asked.length}`);
    await server.close();
    const events = await readEvents(logPath(server, sessionId));
    t.ok(
      events.some(
        (event) => event.type === 'turn/end' && event.data.reason.kind === 'error' && event.data.reason.code === 'SESSION_MEMORY',
      ),
      'the log says why the turn ended',
    );
    const next = await rig.serve({ args, saboteur: false });
    t.equal((await next.request('session/load', { sessionId, cwd: rig.dir, mcpServers: [] })).error, undefined);
    t.equal((await next.prompt(sessionId, 'third {"tokens":2}')).result.stopReason, 'end_turn');
  },
);

/** Twenty seconds of two cores for 200; the suite tries the same with fewer. */
const crowd = process.env['DSH_ACP_CAMPAIGN'] === 'memory' ? 200 : 40;

void faultTest(`${crowd} sessions on shared threads: whatever one of them is filled with, the others finish`, async (t, rig) => {
  const model = await rig.model({ keepRequests: 0 });
  const args = [
    '--base-url',
    model.baseUrl,
    '--model',
    'bench',
    '--isolation',
    'shared',
    '--permission-mode',
    'full-access',
    '--max-session-mb',
    '32',
  ];
  const server = await rig.serve({ args, saboteur: false });
  const file = join(rig.dir, 'wide.bin');
  writeFileSync(file, 'y'.repeat(64 * 1024 * 1024));
  const victim = await server.newSession(rig.dir);
  const others = await Promise.all(Array.from({ length: crowd - 1 }, () => server.newSession(rig.dir)));
  const prompts = others.map((id) => server.startPrompt(id, '{"tokens":100,"delayMs":50}'));
  const peak = watchPeak(server);
  const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) });
  const done = { tokens: 1 };
  const ways = {
    'a chatty command': {
      plans: [{ tools: [call('bash', { description: 'a command', command: 'head -c 300000000 /dev/zero | tr "\\\\0" z' })] }, done],
    },
    'a large file': { plans: [{ tools: [call('read', { file_path: file }), call('grep', { pattern: 'y+', path: rig.dir })] }, done] },
    'many calls': { plans: [{ tools: Array.from({ length: 300 }, () => call('read', { file_path: file })) }, done] },
  };
  for (const [way, plan] of Object.entries(ways)) {
    const answer = await server.prompt(victim, `${way} ${JSON.stringify(plan)}`);
    t.ok(
      answer.result?.stopReason !== undefined || typeof answer.error?.data?.code === 'string',
      `${way}: ${JSON.stringify(answer.error ?? answer.result).slice(0, 120)}`,
    );
  }
  // The others have asked long since.
  model.enqueue({ text: Array.from({ length: 400 }, () => 'q'.repeat(65_536)) });
  const endless = await server.prompt(victim, 'an endless answer');
  t.ok(
    endless.result?.stopReason === 'max_tokens' || endless.error?.data?.code === 'SESSION_MEMORY',
    JSON.stringify(endless.error ?? endless.result).slice(0, 200),
  );
  const large = await server.prompt(victim, `${'w'.repeat(20_000_000)} {"tokens":2}`);
  t.match(large.error, { data: { code: 'SESSION_MEMORY' } }, 'a prompt too large for a session');
  t.equal((await server.prompt(victim, 'at last {"tokens":2}')).result?.stopReason, 'end_turn');
  const ends = await Promise.all(prompts.map((id) => server.response(id)));
  t.equal(ends.filter((end) => end.result?.stopReason === 'end_turn').length, crowd - 1);
  t.ok(peak() < 1500, `resident at most ${peak().toFixed(0)} MB`);
});
