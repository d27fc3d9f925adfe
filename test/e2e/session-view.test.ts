/** What an editor is shown of a session as a whole, over the real server: its plan, its window and cost, and its title. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { AnswerPlan } from '../support/answer-plan.ts';
import { ModelServer } from '../support/model-server.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

const usage = (prompt: number, completion: number): object => ({ prompt_tokens: prompt, completion_tokens: completion });

function planStep(todos: readonly object[]): AnswerPlan {
  return { tools: [{ name: 'todo_write', arguments: JSON.stringify({ todos }) }], usage: usage(4000, 50) };
}

/** The updates about the session as a whole, in order. */
function wholeUpdates(server: ServerProcess, sessionId: string): any[] {
  return server.updates(sessionId).filter(({ sessionUpdate }) => ['plan', 'usage_update', 'session_info_update'].includes(sessionUpdate));
}

function loggedTitles(server: ServerProcess, sessionId: string): any[] {
  const lines = readFileSync(join(server.stateDir, 'sessions', `${sessionId}.jsonl`), 'utf8')
    .trim()
    .split('\n');
  return lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'session/title');
}

t.test('plan, window, cost and title are shown live, and the same in a load', async (t) => {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const cwd = t.testdir({});
  const args = ['--base-url', model.baseUrl, '--model', 'm', '--context-window', '100000', '--price-input', '1', '--price-output', '2'];
  const server = await startServer(t, { args: [...args, '--permission-mode', 'full-access'] });
  model.enqueue(
    planStep([
      { content: 'Look', status: 'in_progress', priority: 'high' },
      { content: 'Mend', status: 'pending' },
    ]),
    { text: ['Half done.'], usage: usage(5000, 100) },
  );
  const sessionId = await server.newSession(cwd);
  await server.prompt(sessionId, '\n Mend the \u202etests\nplease');
  const live = wholeUpdates(server, sessionId);
  t.same(
    live.map(({ sessionUpdate }) => sessionUpdate),
    ['plan', 'usage_update', 'usage_update', 'plan', 'session_info_update'],
  );
  t.same(live[0].entries, [
    { content: 'Look', priority: 'high', status: 'in_progress' },
    { content: 'Mend', priority: 'medium', status: 'pending' },
  ]);
  t.same(
    live[3].entries.map((entry: any) => entry.status),
    ['pending', 'pending'],
    'nothing is worked on once the turn has ended',
  );
  t.same(live[1].cost, { amount: 0.0041, currency: 'USD' });
  t.same(live[2].cost, { amount: 0.0093, currency: 'USD' }, 'of the whole session');
  t.ok(live.slice(1, 3).every(({ used, size }) => Number.isInteger(used) && used > 4000 && used < 6000 && size === 100_000));
  t.match(live[4], { title: 'Mend the tests', updatedAt: /^\d{4}-.*Z$/ });
  const { sessions } = (await server.request('session/list', {})).result;
  t.equal(sessions[0].title, 'Mend the tests');

  // The next turn finds its plan done, and the one after it begins without.
  model.enqueue(planStep([{ content: 'Look', status: 'completed' }]), { text: ['Done.'] }, { text: ['Hello.'] });
  await server.prompt(sessionId, 'Go on');
  t.same(wholeUpdates(server, sessionId).findLast((update) => update.sessionUpdate === 'plan').entries, [
    { content: 'Look', priority: 'medium', status: 'completed' },
  ]);
  await server.prompt(sessionId, 'Hello');
  const all = wholeUpdates(server, sessionId);
  t.same(all.findLast((update) => update.sessionUpdate === 'plan').entries, []);
  t.equal(all.filter((update) => update.sessionUpdate === 'session_info_update').length, 1, 'one title is enough');

  await server.request('session/close', { sessionId });
  const before = server.frames.length;
  await server.request('session/load', { sessionId, cwd, mcpServers: [] });
  const loaded = server.frames.slice(before).flatMap(({ params }) => (params?.update === undefined ? [] : [params.update]));
  t.same(
    loaded.filter(({ sessionUpdate }) => ['plan', 'usage_update', 'session_info_update'].includes(sessionUpdate)),
    all,
  );
  await endServer(t, server);
});

t.test('a title from the model comes behind the answer, counts in the cost, and stands in list and load', async (t) => {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const cwd = t.testdir({});
  const args = ['--base-url', model.baseUrl, '--model', 'm', '--price-input', '1', '--price-output', '2', '--titles', 'model'];
  const server = await startServer(t, { args });
  model.enqueue(
    { text: ['Hello.'], usage: usage(100, 10) },
    { text: ['**"Greeting the \u001b[1magent"**'], usage: usage(50, 5) },
    { text: ['Bye.'], usage: usage(200, 20) },
  );
  const sessionId = await server.newSession(cwd);
  const titled = server.next(({ params }) => params?.update?.title === 'Greeting the agent', 'the title');
  const answer = await server.prompt(sessionId, 'Hello there');
  t.match(answer.result._meta['dsh-acp'].usage, { inputTokens: 100, outputTokens: 10 }, 'the turn pays for itself alone');
  await titled;
  t.same(
    wholeUpdates(server, sessionId).flatMap(({ title }) => (title === undefined ? [] : [title])),
    ['Hello there', 'Greeting the agent'],
  );
  const [, question] = model.requests;
  t.match(question?.body, { max_tokens: 64, messages: [{ role: 'system' }, { role: 'user', content: /Hello there[^]*Hello\./ }] });
  t.notOk('tools' in (question?.body ?? {}));
  t.match(loggedTitles(server, sessionId).at(-1).data, { source: 'model', usage: { inputTokens: 50, outputTokens: 5, costUsd: 0.00006 } });
  await server.prompt(sessionId, 'Bye');
  t.same(wholeUpdates(server, sessionId).at(-1).cost, { amount: 0.00042, currency: 'USD' }, 'title and turns together');
  t.equal(model.requests.length, 3, 'it is asked once');
  await endServer(t, server);

  const again = await startServer(t, { args, stateDir: server.stateDir });
  t.equal((await again.request('session/list', {})).result.sessions[0].title, 'Greeting the agent');
  await again.request('session/load', { sessionId, cwd, mcpServers: [] });
  t.equal(wholeUpdates(again, sessionId).findLast(({ title }) => title !== undefined).title, 'Greeting the agent');
  model.enqueue({ text: ['Again.'], usage: usage(300, 30) });
  await again.prompt(sessionId, 'Again');
  t.same(wholeUpdates(again, sessionId).at(-1).cost, { amount: 0.00078, currency: 'USD' }, 'a reopened session has the same sums');
  t.equal(model.requests.length, 4);
  await endServer(t, again);
});
