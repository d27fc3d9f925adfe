/** `_session/rewind` and the slash commands of undo, over the wire. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ModelServer } from '../support/model-server.ts';
import { endServer, startServer } from '../support/started-server.ts';

const args = ['--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access', '--undo', 'workspace'];
const write = (name: string, text: string): string => `write ${name} <<EOF\n${text}\nEOF`;

await t.test(
  'a client goes back to before a prompt that it named; the next server shows all of it, and undoes what a killed one did',
  async (t) => {
    const server = await startServer(t, { args });
    const [initialized] = server.frames;
    t.equal(initialized?.result.agentCapabilities._meta['dsh-acp'].rewind, '_session/rewind');
    const cwd = realpathSync(t.testdir({ 'a.txt': 'old\n', 'gone.txt': 'here\n' }));
    const read = (name: string): string => readFileSync(join(cwd, name), 'utf8');
    const sessionId = await server.newSession(cwd);
    const prompt = (text: string, messageId?: string) =>
      server.request('session/prompt', {
        sessionId,
        prompt: [{ type: 'text', text }],
        ...(messageId === undefined ? {} : { _meta: { 'dsh-acp': { messageId } } }),
      });
    await prompt('say first');
    await prompt(`read a.txt\nedit a.txt /old/new/\n${write('made/b.txt', 'made')}`, 'second');
    await prompt('say third');
    t.match((await prompt('say again', 'second')).error, { data: { code: 'INVALID_PARAMS', field: 'messageId' } });

    const rewind = (params: object) => server.request('_session/rewind', { sessionId, ...params });
    const { result } = await rewind({ messageId: 'second' });
    t.same(result, {
      turns: [2, 3],
      files: [
        { path: join(cwd, 'a.txt'), outcome: 'restored' },
        { path: join(cwd, 'made/b.txt'), outcome: 'removed' },
      ],
      notUndone: [],
    });
    t.equal(read('a.txt'), 'old\n');
    t.notOk(existsSync(join(cwd, 'made')));
    const note = server.updates(sessionId).at(-1);
    t.match(note, { sessionUpdate: 'agent_message_chunk', content: { text: /^\*\*Undone: 2 prompts/ } }, 'the note came before the answer');

    for (const [params, field] of [
      [{ messageId: 'second' }, 'messageId'],
      [{}, 'messageId'],
      [{ messageId: 'x', files: 'yes' }, 'files'],
      [{ messageId: 'x', more: 1 }, 'more'],
    ] as const) {
      t.match((await rewind(params)).error, { code: -32602, data: { code: 'INVALID_PARAMS', field } });
    }
    t.match((await server.request('_session/rewind', { sessionId: '00000000-0000-7000-8000-000000000000', messageId: 'x' })).error, {
      data: { code: 'SESSION_NOT_FOUND' },
    });

    await prompt('run echo new > a.txt; rm gone.txt; touch made.txt\nbg touch later.txt; sleep 60');
    t.equal(read('a.txt'), 'new\n');
    await prompt('/undo');
    t.strictSame([read('a.txt'), read('gone.txt')], ['old\n', 'here\n'], 'what commands changed is undone where that was asked for');
    t.notOk(existsSync(join(cwd, 'made.txt')));
    t.match(server.text(sessionId), /as they left it: `touch later\.txt; sleep 60`\./, 'a background command is named');

    const shown = server.text(sessionId);
    server.start('session/prompt', {
      sessionId,
      prompt: [{ type: 'text', text: 'read a.txt\nedit a.txt /old/new/\nsay done\nwait 60000' }],
    });
    await server.next((frame) => frame.params?.update?.content?.text?.includes('done') === true, 'the edit');
    t.match((await rewind({ messageId: 'second' })).error, { data: { code: 'SESSION_BUSY' } });
    process.kill(server.pid, 'SIGKILL');
    await server.exited;

    const later = await startServer(t, { args, stateDir: server.stateDir });
    t.match(await later.request('session/load', { sessionId, cwd, mcpServers: [] }), { result: {} });
    t.ok(later.text(sessionId).startsWith(shown), 'live and loaded are the same');
    t.equal(read('a.txt'), 'new\n');
    await later.prompt(sessionId, '/undo');
    t.equal(read('a.txt'), 'old\n');
    await endServer(t, later);
  },
);

await t.test('the model is told nothing of what was undone, and hears of it again after a redo', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const server = await startServer(t, { args: ['--base-url', models.baseUrl, '--model', 'bench'] });
  const sessionId = await server.newSession(realpathSync(t.testdir({})));
  const asked = async (text: string): Promise<string> => {
    await server.prompt(sessionId, `${text} {"tokens":2}`);
    const body = models.requests.at(-1)?.body as { messages: { role: string }[] } | undefined;
    return JSON.stringify(body?.messages.filter(({ role }) => role !== 'system'));
  };
  await asked('the word is lantern');
  t.match(await asked('the word is anchor'), /lantern[^]*anchor/);
  await server.prompt(sessionId, '/undo');
  await server.prompt(sessionId, '/redo');
  t.match(await asked('which words'), /lantern[^]*anchor[^]*which words/);
  await server.prompt(sessionId, '/undo 2');
  const requests = models.requests.length;
  const told = await asked('start anew');
  t.equal(models.requests.length, requests + 1);
  t.match(told, /lantern[^]*start anew/);
  t.notMatch(told, /anchor|which words|\/undo/);
  await endServer(t, server);
});
