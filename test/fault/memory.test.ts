/** Memory: what one session grows by ends its own turn, typed, and nobody else's; the session goes on. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { AnswerPlan } from '../support/answer-plan.ts';
import { type FaultServer, faultTest, logPath, readEvents, residentMb } from '../support/invariants.ts';
import type { Frame } from '../support/server-process.ts';

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

/** The suite tries with fewer what `npm run campaign:memory` does with 200. */
const crowd = process.env['DSH_ACP_CAMPAIGN'] === 'memory' ? 200 : 40;
const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) });

/** What a model, a command or a file can fill a thread with, by the ways in which a heap is known to burst: one answer each. */
function waysToFill(dir: string): Record<string, AnswerPlan> {
  const file = join(dir, 'wide.bin');
  writeFileSync(file, 'y'.repeat(64 * 1024 * 1024));
  const print = 'head -c 300000000 /dev/zero | tr "\\0" z';
  const numbers = ['{"todos":[', ...Array.from({ length: 4 }, () => '0,'.repeat(512 * 1024)), '0]}'];
  return {
    'the output of a command': { tools: [call('bash', { description: 'a command', command: print })] },
    'files in one line': {
      tools: [...Array.from({ length: 300 }, () => call('read', { file_path: file })), call('grep', { pattern: 'y+' })],
    },
    'calls without end': { tools: Array.from({ length: 20_000 }, () => call('read', { file_path: 'x' })) },
    'an event without end': { rawBody: `data: {"choices":[{"index":0,"delta":{"content":"${'e'.repeat(48 * 1024 * 1024)}"}}]}` },
    'an answer without end': { text: Array.from({ length: 400 }, () => 'q'.repeat(65_536)) },
    'numbers in the arguments of a call': { raw: [...numbers.map((piece) => argumentsPiece(piece)), finished, '[DONE]'] },
  };
}

const finished = '{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}';

function argumentsPiece(text: string): string {
  const call = { index: 0, id: 'numbers', type: 'function', function: { name: 'todo_write', arguments: text } };
  return JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] });
}

/** Thirty seconds of two cores for 200. */
void faultTest(`${crowd} sessions on shared threads: whatever one of them is filled with, the others go on and finish`, async (t, rig) => {
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
    '--max-retries',
    '0',
  ];
  const server = await rig.serve({ args, saboteur: false });
  const others = await Promise.all(Array.from({ length: crowd - 1 }, () => server.newSession(rig.dir)));
  const prompts = others.map((id) => server.startPrompt(id, '{"untilReleased":true,"delayMs":250}'));
  await Promise.all(others.map((id) => server.waitFor((frame) => isTextOf(frame, id), `text of ${id}`)));
  const words = (): number[] => others.map((id) => server.text(id).split(' ').length - 1);
  const peak = watchPeak(server);
  for (const [way, answer] of Object.entries(waysToFill(rig.dir))) {
    const victim = await server.newSession(rig.dir);
    model.enqueue(answer);
    const before = performance.now();
    const told = await server.prompt(victim, way);
    const end = told.result?.stopReason ?? told.error?.data?.code;
    t.type(end, 'string', `${way}: ${end}, after ${(performance.now() - before).toFixed(0)} ms`);
    t.equal((await server.prompt(victim, 'go on {"tokens":2}')).result?.stopReason, 'end_turn', 'and the session goes on');
  }
  const victim = await server.newSession(rig.dir);
  const large = await server.prompt(victim, `${'w'.repeat(20_000_000)} {"tokens":2}`);
  t.match(large.error, { data: { code: 'SESSION_MEMORY' } }, 'a prompt too large for a session');
  t.equal((await server.prompt(victim, 'at last {"tokens":2}')).result?.stopReason, 'end_turn');
  t.ok(peak() < 1500, `resident at most ${peak().toFixed(0)} MB`);

  t.equal(prompts.flatMap((id) => server.responses(id)).length, 0, 'the others have felt all of it: each is in its turn');
  const [least, most] = [Math.min(...words()), Math.max(...words())];
  t.comment(`the others had between ${least} and ${most} words when it was over`);
  t.ok(least > 1, 'and has gone on meanwhile');
  model.release();
  const ends = await Promise.all(prompts.map((id) => server.response(id)));
  t.equal(ends.filter((end) => end.result?.stopReason === 'end_turn').length, crowd - 1, 'they finish');
  const torn = others.filter((id) =>
    server
      .text(id)
      .split(' ')
      .slice(0, -1)
      .some((word, at) => word !== `tok${at}`),
  );
  t.same(torn, [], 'nothing of what they were sent is missing');
});

function isTextOf({ params }: Frame, sessionId: string): boolean {
  return params?.sessionId === sessionId && params.update?.sessionUpdate === 'agent_message_chunk';
}
