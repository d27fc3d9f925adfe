/** Whoever is asked does not answer, answers nonsense, answers late or is gone; and what was allowed changes before it runs. */
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type FaultServer, faultTest, logPath, readEvents } from '../support/invariants.ts';
import type { Frame } from '../support/server-process.ts';

t.setTimeout(110_000);

const scripted = ['--model', 'scripted', '--pace-ms', '0'];
const quiet = { saboteur: false, onRequest: () => undefined } as const;

const isQuestion = ({ method }: Frame): boolean => method === 'session/request_permission';
const questionsOf = (server: FaultServer, sessionId: string): Frame[] =>
  server.frames.filter((frame) => isQuestion(frame) && frame.params.sessionId === sessionId);

/** Sends a prompt; gives its id and the question that it leads to. */
async function asked(server: FaultServer, sessionId: string, text: string): Promise<{ prompt: number; question: Frame }> {
  const next = server.next((frame) => isQuestion(frame) && frame.params.sessionId === sessionId, 'a permission request');
  const prompt = server.startPrompt(sessionId, text);
  return { prompt, question: await next };
}

function answer(server: FaultServer, question: Frame, kind: string): void {
  const { optionId } = question.params.options.find((option: { kind: string }) => option.kind === kind);
  server.send({ jsonrpc: '2.0', id: question.id, result: { outcome: { outcome: 'selected', optionId } } });
}

async function resultsOf(server: FaultServer, sessionId: string): Promise<(string | undefined)[]> {
  const events = await readEvents(logPath(server, sessionId));
  return events.flatMap((event) => (event.type === 'tool/result' ? [event.data.code] : []));
}

void faultTest('fault 74: an unanswered request waits, blocks only its own session, and ends with a cancel', async (t, rig) => {
  const dir = realpathSync(rig.dir);
  const server = await rig.serve({ ...quiet, args: scripted });
  const [stuck, other] = [await server.newSession(dir), await server.newSession(dir)];
  const { prompt, question } = await asked(server, stuck, `read ${join(dir, '..', 'nothing')}\n& read ${join(dir, '..', 'more')}`);
  while (questionsOf(server, stuck).length < 2) await server.next(isQuestion, 'the second request');
  t.equal((await server.prompt(other, 'say free')).result?.stopReason, 'end_turn');
  t.same(server.responses(prompt), [], 'it waits');
  const withdrawals = ['first', 'second'].map((which) =>
    server.next((frame) => frame.method === '$/cancel_request', `the ${which} withdrawal`),
  );
  server.notify('session/cancel', { sessionId: stuck });
  t.equal((await server.response(prompt)).result?.stopReason, 'cancelled');
  await Promise.all(withdrawals);
  const withdrawn = server.frames.filter(({ method }) => method === '$/cancel_request').map(({ params }) => params.requestId);
  t.same(new Set(withdrawn), new Set(questionsOf(server, stuck).map(({ id }) => id)), 'both are taken back');
  t.ok(withdrawn.includes(question.id));
  t.same(new Set(await resultsOf(server, stuck)), new Set(['PERMISSION_CANCELLED']));
});

void faultTest('fault 74: where a policy decides nobody is asked, and a rule that asks waits no longer than it says', async (t, rig) => {
  const dir = realpathSync(rig.dir);
  const policy = join(dir, 'policy.toml');
  writeFileSync(policy, 'ask_timeout_ms = 50\n[[rule]]\naction = "ask"\ncommands = [["touch", "asked"]]\n');
  const server = await rig.serve({ ...quiet, args: [...scripted, '--profile', 'automation', '--policy-file', policy] });
  const session = await server.newSession(dir);
  t.equal((await server.prompt(session, 'run touch denied')).result?.stopReason, 'end_turn');
  t.same(questionsOf(server, session), []);
  t.equal((await server.prompt(session, 'run touch asked\nsay on')).result?.stopReason, 'end_turn');
  t.equal(questionsOf(server, session).length, 1);
  t.same(await resultsOf(server, session), ['PERMISSION_DENIED', 'PERMISSION_UNAVAILABLE']);
  t.notOk(existsSync(join(dir, 'denied')) || existsSync(join(dir, 'asked')));
});

void faultTest('fault 75: a client that is gone, fails or chooses what was not offered has not allowed anything', async (t, rig) => {
  const dir = realpathSync(rig.dir);
  const server = await rig.serve({ ...quiet, args: scripted });
  const answers: object[] = [
    { result: { outcome: { outcome: 'selected', optionId: 'allow' } } },
    { result: { outcome: { outcome: 'selected', optionId: ['allow_once'] } } },
    { error: { code: -32601, message: 'Method not found' } },
    { result: null },
  ];
  await Promise.all(
    answers.map(async (wrong, index) => {
      const session = await server.newSession(dir);
      const { prompt, question } = await asked(server, session, `run touch wrong-${index}`);
      server.send({ jsonrpc: '2.0', id: question.id, ...wrong });
      t.equal((await server.response(prompt)).result?.stopReason, 'end_turn', JSON.stringify(wrong));
      t.same(await resultsOf(server, session), ['PERMISSION_UNAVAILABLE']);
      t.notOk(existsSync(join(dir, `wrong-${index}`)));
    }),
  );
  const left = await server.newSession(dir);
  await asked(server, left, 'run touch left');
  await server.close();
  t.notOk(existsSync(join(dir, 'left')), 'the client went away while it was asked');
});

void faultTest('fault 75: a late answer, and one that is sent again for another command, count for nothing', async (t, rig) => {
  const dir = realpathSync(rig.dir);
  const server = await rig.serve({ ...quiet, args: scripted });
  const session = await server.newSession(dir);
  const first = await asked(server, session, 'run touch late');
  server.notify('session/cancel', { sessionId: session });
  t.equal((await server.response(first.prompt)).result?.stopReason, 'cancelled');
  for (const kind of ['allow_once', 'allow_always']) answer(server, first.question, kind);

  const second = await asked(server, session, 'run touch late');
  t.not(second.question.id, first.question.id);
  answer(server, first.question, 'allow_once');
  t.equal((await server.prompt(await server.newSession(dir), 'say meanwhile')).result?.stopReason, 'end_turn');
  t.same(server.responses(second.prompt), [], 'the answer of the earlier request is none to this one');
  answer(server, second.question, 'allow_once');
  t.equal((await server.response(second.prompt)).result?.stopReason, 'end_turn');
  t.ok(existsSync(join(dir, 'late')), 'its own is');

  const third = await asked(server, session, 'run touch late changed');
  answer(server, second.question, 'allow_once');
  answer(server, third.question, 'reject_once');
  t.equal((await server.response(third.prompt)).result?.stopReason, 'end_turn');
  t.notOk(existsSync(join(dir, 'changed')));
});

void faultTest('fault 75: what is swapped while somebody is asked is not what was allowed, and nothing is touched', async (t, rig) => {
  const root = realpathSync(rig.dir);
  const [ws, outside] = [join(root, 'ws'), join(root, 'outside')];
  for (const dir of [ws, outside, join(ws, 'sub'), join(outside, 'sub')]) mkdirSync(dir);
  const [shown, precious] = [join(outside, 'shown.txt'), join(outside, 'precious.txt')];
  const server = await rig.serve({ ...quiet, args: scripted });
  const session = await server.newSession(ws);
  const afterSwap = async (text: string, swap: () => void): Promise<void> => {
    const { prompt, question } = await asked(server, session, text);
    swap();
    answer(server, question, 'allow_once');
    t.equal((await server.response(prompt)).result?.stopReason, 'end_turn', text);
  };
  const swapForLink = (): void => {
    rmSync(shown, { force: true });
    symlinkSync(precious, shown);
  };

  for (const name of [shown, precious]) writeFileSync(name, 'old\n');
  const read = await asked(server, session, `read ${shown}\nedit ${shown} /old/new/`);
  answer(server, read.question, 'allow_once');
  const edit = await server.waitFor(
    (frame) => isQuestion(frame) && /Edit/.test(frame.params.toolCall.title),
    'the question about the edit',
  );
  t.match(edit.params.toolCall.content[0], { type: 'diff', path: shown, oldText: 'old', newText: 'new' }, 'the diff stands first');
  writeFileSync(shown, 'old, and of another\n');
  answer(server, edit, 'allow_once');
  await server.response(read.prompt);
  t.equal(readFileSync(shown, 'utf8'), 'old, and of another\n', 'a file that changed meanwhile is left as it is');

  await afterSwap(`write ${shown} <<EOF\nmine\nEOF`, swapForLink);
  t.equal(readFileSync(precious, 'utf8'), 'old\n', 'a link in the place of a file is not followed');
  rmSync(shown);
  await afterSwap(`write ${shown} <<EOF\nmine\nEOF`, swapForLink);
  t.equal(readFileSync(precious, 'utf8'), 'old\n', 'also where there was nothing');

  await afterSwap(`write ${join(outside, 'sub', 'x')} <<EOF\nmine\nEOF`, () => {
    renameSync(join(outside, 'sub'), join(outside, 'moved'));
    symlinkSync(join(ws, 'sub'), join(outside, 'sub'));
  });
  t.notOk(existsSync(join(ws, 'sub', 'x')) || existsSync(join(outside, 'moved', 'x')), 'nor one in the place of its directory');
  const codes = await resultsOf(server, session);
  t.same(codes, [undefined, 'FS_STALE', 'FS_PATH_CHANGED', 'FS_PATH_CHANGED', 'FS_PATH_CHANGED']);
});
