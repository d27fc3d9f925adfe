/**
 * The assembled server under the SDK's own client, which checks every frame that it is given, as an editor built on it would.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import {
  type ClientContext,
  client,
  methods,
  ndJsonStream,
  type PermissionOptionKind,
  PROTOCOL_VERSION,
  type PromptResponse,
  type RequestError,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import t, { type Test } from 'tap';
import { settledCards } from '../support/merged-updates.ts';
import { cliPath, codeCache } from '../support/server-process.ts';

const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-sdk-')));
const stateDir = join(dir, 'state');

/** What the client of one connection has seen. */
class Editor {
  readonly updates = new Map<string, SessionUpdate[]>();
  readonly asked: RequestPermissionRequest[] = [];
  choose: PermissionOptionKind = 'allow_once';
  readonly #waiters = new Set<() => void>();

  see(sessionId: string, update: SessionUpdate): void {
    this.updates.set(sessionId, [...this.of(sessionId), update]);
    for (const waiter of this.#waiters) waiter();
  }

  of(sessionId: string): readonly SessionUpdate[] {
    return this.updates.get(sessionId) ?? [];
  }

  text(sessionId: string): string {
    const chunks = this.of(sessionId).filter((update) => update.sessionUpdate === 'agent_message_chunk');
    return chunks.map(({ content }) => (content.type === 'text' ? content.text : '')).join('');
  }

  /** Titles and last states of the session's cards. */
  cards(sessionId: string): string[] {
    const cards = new Map<string, { title?: string | null; status?: string | null }>();
    for (const update of this.of(sessionId)) {
      if (update.sessionUpdate === 'tool_call') cards.set(update.toolCallId, { title: update.title, status: update.status ?? null });
      if (update.sessionUpdate === 'tool_call_update') {
        const card = cards.get(update.toolCallId);
        cards.set(update.toolCallId, { title: update.title ?? card?.title ?? null, status: update.status ?? card?.status ?? null });
      }
    }
    return [...cards.values()].map(({ title, status }) => `${title} ${status}`);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        const waiter = (): void => {
          this.#waiters.delete(waiter);
          resolve();
        };
        this.#waiters.add(waiter);
      });
    }
  }

  answer(request: RequestPermissionRequest) {
    this.asked.push(request);
    const option = request.options.find(({ kind }) => kind === this.choose);
    if (option === undefined) return { outcome: { outcome: 'cancelled' as const } };
    return { outcome: { outcome: 'selected' as const, optionId: option.optionId } };
  }
}

/** Runs `work` on a connection of its own to a server of its own; the server has ended in order afterwards. */
async function connected(t: Test, work: (agent: ClientContext, editor: Editor) => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, [cliPath, '--model', 'scripted', '--state-dir', stateDir], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: dir, DSH_ACP_CODE_CACHE: codeCache },
  });
  t.teardown(() => child.kill('SIGKILL'));
  const closed = once(child, 'close');
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const editor = new Editor();
  await client({ name: 'sdk-client-test' })
    .onNotification(methods.client.session.update, ({ params }) => editor.see(params.sessionId, params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => editor.answer(params))
    .connectWith(streamOf(child), async (agent) => {
      const { protocolVersion, agentCapabilities } = await agent.request(methods.agent.initialize, {
        protocolVersion: PROTOCOL_VERSION,
        clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
        clientInfo: { name: 'sdk-client-test', version: '1' },
      });
      t.equal(protocolVersion, PROTOCOL_VERSION);
      t.equal(agentCapabilities?.loadSession, true);
      await work(agent, editor);
    });
  child.stdin.end();
  t.same(await closed, [0, null], 'the server exits 0');
  t.equal(stderr, '', 'stderr is quiet');
}

function streamOf({ stdin, stdout }: ChildProcess) {
  return ndJsonStream(Writable.toWeb(stdin!), Readable.toWeb(stdout!) as ReadableStream<Uint8Array>);
}

function workspace(name: string): string {
  const path = join(dir, name);
  mkdirSync(path);
  writeFileSync(join(path, 'a.txt'), `alpha ${name}\n`);
  return path;
}

async function open(agent: ClientContext, cwd: string): Promise<string> {
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  return sessionId;
}

function prompt(agent: ClientContext, sessionId: string, text: string): Promise<PromptResponse> {
  return agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
}

await t.test('under the client of the SDK', async (t) => {
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const cwd = workspace('one');
  let sessionId = '';
  let live: readonly SessionUpdate[] = [];

  await t.test('a prompt with a permission, a refused one, a cancel', (t) =>
    connected(t, async (agent, editor) => {
      sessionId = await open(agent, cwd);
      t.match(await prompt(agent, sessionId, 'read a.txt\nrun echo from-the-command >> log.txt\nsay done'), { stopReason: 'end_turn' });
      t.match(editor.text(sessionId), /done/);
      t.same(
        editor.asked.map(({ toolCall }) => toolCall.title),
        ['echo from-the-command >> log.txt'],
      );
      editor.choose = 'reject_once';
      t.match(await prompt(agent, sessionId, 'run echo twice >> log.txt'), { stopReason: 'end_turn' });
      t.same(editor.cards(sessionId), [
        'Read a.txt completed',
        'echo from-the-command >> log.txt completed',
        'echo twice >> log.txt failed',
      ]);
      t.equal(readFileSync(join(cwd, 'log.txt'), 'utf8'), 'from-the-command\n');

      const ended = prompt(agent, sessionId, 'say working\nwait 60000');
      await editor.until(() => editor.text(sessionId).includes('working'));
      const start = performance.now();
      await agent.notify(methods.agent.session.cancel, { sessionId });
      t.match(await ended, { stopReason: 'cancelled' });
      t.ok(performance.now() - start < 10_000, 'a cancel is answered at once');
      live = editor.of(sessionId);
    }),
  );

  await t.test('the session is listed, loaded and gone on with by a new server; an unknown one is refused', (t) =>
    connected(t, async (agent, editor) => {
      const { sessions } = await agent.request(methods.agent.session.list, { cwd });
      t.match(sessions, [{ sessionId, cwd, title: 'read a.txt' }]);
      await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
      t.same(kinds(editor.of(sessionId)), kinds(live), 'the cards are those of the live session');
      const before = editor.text(sessionId);
      t.match(await prompt(agent, sessionId, 'say more'), { stopReason: 'end_turn' });
      t.match(editor.text(sessionId).slice(before.length), /more/);
      const unknown = prompt(agent, '00000000-0000-4000-8000-000000000000', 'say never');
      await t.rejects(unknown, { code: -32002 } satisfies Partial<RequestError>);
    }),
  );

  await t.test('eight sessions at once, each in its own workspace', (t) =>
    connected(t, async (agent, editor) => {
      const names = Array.from({ length: 8 }, (_, index) => `many-${index}`);
      const folders = names.map(workspace);
      const ids = await Promise.all(folders.map((folder) => open(agent, folder)));
      t.equal(new Set(ids).size, 8);
      const script = 'read a.txt\nrun cat a.txt > copy.txt\nedit a.txt /alpha/ALPHA/\nsay done';
      const answers = await Promise.all(ids.map((id) => prompt(agent, id, script)));
      t.same(new Set(answers.map(({ stopReason }) => stopReason)), new Set(['end_turn']));
      for (const [index, id] of ids.entries()) {
        t.same(editor.cards(id), ['Read a.txt completed', 'cat a.txt > copy.txt completed', 'Edit a.txt completed']);
        t.equal(readFileSync(join(folders[index]!, 'copy.txt'), 'utf8'), `alpha ${names[index]}\n`);
        t.equal(readFileSync(join(folders[index]!, 'a.txt'), 'utf8'), `ALPHA ${names[index]}\n`);
      }
      t.same(new Set(editor.asked.map((request) => request.sessionId)), new Set(ids), 'each session has asked for its own command');
      await Promise.all(ids.map((id) => agent.request(methods.agent.session.close, { sessionId: id })));
    }),
  );
});

/** Cards with their states, in order; chunks are cut differently when a log is shown again. */
function kinds(updates: readonly SessionUpdate[]): string[] {
  return settledCards(updates, {}).flatMap((update) => {
    if (update.sessionUpdate === 'tool_call') return [`${update.title} ${update.kind} ${update.status}`];
    return update.sessionUpdate === 'tool_call_update' ? [`${update.toolCallId} ${update.status}`] : [];
  });
}
