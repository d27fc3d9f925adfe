/** Slash commands in a session: hosted in this process, with its log, its model by script, and what the client is shown. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ServerError } from '../../../../src/shared/errors.ts';
import type { EventInput, PromptBlock } from '../../../../src/shared/events.ts';
import type { SessionPaths } from '../../../../src/shared/log/session-paths.ts';
import type { TurnOutcome } from '../../../../src/shared/thread-protocol.ts';
import { CommandRunner } from '../../../../src/worker/commands/command-runner.ts';
import { FileCommands } from '../../../../src/worker/commands/file-commands.ts';
import type { SessionCommand } from '../../../../src/worker/commands/session-command.ts';
import { events, HostRig, say } from '../session/host-rig.ts';

async function hosted(t: Test, rig: HostRig, session = rig.create()) {
  const one = await rig.attach(session);
  t.teardown(async () => {
    await one.api.dispose().catch(() => undefined);
    await one.hosted;
  });
  return { ...one, session };
}

const command = (cwd: string, name: string, body: string): void => {
  mkdirSync(join(cwd, '.dsh-acp', 'commands'), { recursive: true });
  writeFileSync(join(cwd, '.dsh-acp', 'commands', `${name}.md`), body);
};
const shownTo = (rig: HostRig) =>
  rig.frames
    .map(({ params: { update } }) => [update.sessionUpdate, update.messageId, update.content?.text])
    .filter(([, id]) => id !== undefined);

t.test('a command is answered without the model, and a replay shows what was typed and answered under the same ids', async (t) => {
  const rig = new HostRig(t, { model: { kind: 'scripted', paceMs: 0 } });
  const { api, session } = await hosted(t, rig);
  t.match(await rig.prompt(api, 1, 'say hello'), { outcome: { stopReason: 'end_turn' } });
  rig.frames.length = 0;
  t.match(await rig.prompt(api, 2, '/cost'), { outcome: { ok: true, stopReason: 'end_turn', usage: { steps: 0 } } });
  t.match(say(rig), /\*\*Session\*\*: [\d,]+ tokens, 1 steps.*\n- \*\*Last turn\*\*.*\n- \*\*Context\*\*/);
  const live = shownTo(rig);
  const logged = events(session.paths).at(-1);
  t.match(logged, { type: 'command/run', data: { name: 'cost', content: [{ text: '/cost' }], isError: false } });
  rig.frames.length = 0;
  await api.replay(3);
  await rig.completion(3);
  const replayed = shownTo(rig).slice(-2);
  t.same(replayed[1], live[0]);
  t.match(replayed[0], ['user_message_chunk', logged?.type === 'command/run' ? logged.data.messageId : '', '/cost']);
  t.match(await rig.prompt(api, 4, 'say again'), { outcome: { stopReason: 'end_turn' } });
  const header = events(session.paths).filter((event) => event.type === 'user/message' && event.data.source === 'prompt');
  t.equal(header.length, 2, 'the model has not heard of it');
});

t.test('/help lists what there is, /compact says what it has done', async (t) => {
  const rig = new HostRig(t, { model: { kind: 'scripted', paceMs: 0 } });
  const { api, session } = await hosted(t, rig);
  command(rig.cwd, 'review', '---\ndescription: Looks closely\n---\nReview $1.');
  await rig.prompt(api, 1, '/help');
  t.match(say(rig), /- `\/compact \[[^\]]+\]`: Summarize.*From files:\n- `\/review \[arguments\]`: Looks closely \(workspace\)/s);
  rig.frames.length = 0;
  t.match(await rig.prompt(api, 2, '/compact'), { outcome: { ok: true, stopReason: 'end_turn' } });
  t.match(say(rig), /not summarized: there is nothing to summarize/);
  t.match(events(session.paths).at(-1), { type: 'command/run', data: { isError: true } });
  rig.frames.length = 0;
  await rig.prompt(api, 3, 'repeat 2000 word');
  t.match(await rig.prompt(api, 4, '/compact the words'), {
    outcome: { ok: true, stopReason: 'end_turn', usage: { outputTokens: Number } },
  });
  t.match(say(rig), /Summarized the conversation: about [\d,]+ tokens before, [\d,]+ after\./);
});

t.test('a file makes a prompt: the log has what was typed and what the model saw, and a replay shows the former', async (t) => {
  const rig = new HostRig(t, { model: { kind: 'scripted', paceMs: 0 } });
  const { api, session } = await hosted(t, rig);
  command(rig.cwd, 'greet', 'say $ARGUMENTS');
  const prompt: PromptBlock[] = [
    { type: 'text', text: '/greet hello' },
    { type: 'image', mimeType: 'image/png', data: 'AAAA' },
  ];
  t.match(await rig.prompt(api, 1, prompt), { outcome: { stopReason: 'end_turn' } });
  t.match(say(rig), /hello/);
  const message = events(session.paths).find(({ type }) => type === 'user/message');
  t.match(message, { data: { source: 'prompt', content: [{ text: 'say hello' }, { type: 'image' }], shown: prompt } });
  rig.frames.length = 0;
  await api.replay(2);
  await rig.completion(2);
  t.same(
    rig.frames.flatMap(({ params: { update } }) =>
      update.sessionUpdate === 'user_message_chunk' ? [update.content.text ?? update.content.type] : [],
    ),
    ['/greet hello', 'image'],
  );
});

const promptsOf = (paths: SessionPaths) =>
  events(paths).flatMap((event) => (event.type === 'user/message' && event.data.source === 'prompt' ? [event.data] : []));

t.test('an unknown word with a slash goes to the model as it is, and so does a prompt with a key', async (t) => {
  const rig = new HostRig(t, { model: { kind: 'scripted', paceMs: 0 } });
  const { api, session } = await hosted(t, rig);
  await rig.prompt(api, 1, '/nothing here\nsay one');
  await api.prompt(2, [{ type: 'text', text: '/cost' }], { key: { id: 'k', payload: 'p' } });
  await rig.completion(2);
  t.match(promptsOf(session.paths), [
    { content: [{ text: '/nothing here\nsay one' }], shown: undefined },
    { content: [{ text: '/cost' }] },
  ]);
});

t.test('a program has no commands', async (t) => {
  const rig = new HostRig(t, { profile: 'automation', model: { kind: 'scripted', paceMs: 0 } });
  const { api, session } = await hosted(t, rig);
  await rig.prompt(api, 1, '/cost');
  t.match(promptsOf(session.paths), [{ content: [{ text: '/cost' }] }]);
});

interface Ran {
  readonly events: EventInput[];
  readonly outcomes: (TurnOutcome | 'sent')[];
  readonly faults: unknown[];
  readonly runner: CommandRunner;
  run(text: string): void;
  ended(): Promise<void>;
}

function runnerOf(t: Test, run: SessionCommand['run']): Ran {
  const logged: EventInput[] = [];
  const outcomes: Ran['outcomes'] = [];
  const faults: unknown[] = [];
  let wake = (): void => undefined;
  const runner = new CommandRunner({
    commands: [{ name: 'try', description: 'Tries', run }],
    files: new FileCommands({ cwd: t.testdir({}) }),
    journal: {
      append: (event) => {
        logged.push(event);
        return { ...event, seq: logged.length, time: 0 };
      },
      barrier: async () => undefined,
    },
    newId: () => 'id',
    onFault: (error) => faults.push(error),
  });
  const done = (outcome: TurnOutcome | 'sent'): void => {
    outcomes.push(outcome);
    wake();
  };
  return {
    events: logged,
    outcomes,
    faults,
    runner,
    run: (text) => void runner.take([{ type: 'text', text }], {}, { answer: done, send: () => done('sent') }),
    ended: () => new Promise<void>((resolve) => (wake = resolve)),
  };
}

t.test('a cancel ends a command that runs, and one that is done keeps its answer', async (t) => {
  const waits = runnerOf(
    t,
    (_args, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
  );
  waits.run('/try');
  t.equal(waits.runner.isRunning, true);
  const ended = waits.ended();
  waits.runner.cancel();
  await ended;
  t.match(waits.outcomes, [{ ok: true, stopReason: 'cancelled' }]);
  t.match(waits.events, [{ type: 'command/run', data: { content: [{ text: '/try' }], output: { text: '' } } }]);
  t.same(waits.faults, []);
  t.equal(waits.runner.isRunning, false);
  const done = runnerOf(t, async () => ({ kind: 'text', text: 'done' }));
  done.run('/try');
  done.runner.cancel();
  await done.ended();
  t.match(done.outcomes, [{ ok: true, stopReason: 'end_turn' }]);
  const prompts = runnerOf(t, async () => ({ kind: 'prompt', content: [{ type: 'text', text: 'go' }] }));
  prompts.run('/try');
  prompts.runner.cancel();
  await prompts.ended();
  t.match(prompts.outcomes, [{ ok: true, stopReason: 'cancelled' }], 'and nothing goes to the model');
  prompts.run('/unknown');
  prompts.runner.cancel();
  await prompts.ended();
  t.match(prompts.outcomes[1], { stopReason: 'cancelled' });
});

t.test('what a command throws is shown when it is meant for people, and told to the log when it is not', async (t) => {
  const meant = runnerOf(t, () => Promise.reject(new ServerError('INVALID_PARAMS', 'Say a number.')));
  meant.run('/try x');
  await meant.ended();
  t.match(meant.events, [{ data: { output: { text: 'Say a number.' }, isError: true } }]);
  t.match(meant.outcomes, [{ ok: true, stopReason: 'end_turn' }]);
  const broken = runnerOf(t, () => Promise.reject(new TypeError('secret')));
  broken.run('/try x');
  await broken.ended();
  t.match(broken.events, [{ data: { output: { text: '`/try` met an unexpected fault.' }, isError: true } }]);
  t.match(broken.faults, [{ message: 'secret' }]);
});

t.test('a log that takes nothing more is the answer of the command', async (t) => {
  const runner = new CommandRunner({
    commands: [{ name: 'try', description: 'Tries', run: async () => ({ kind: 'text', text: 'done' }) }],
    files: { find: async () => undefined },
    journal: {
      append: () => {
        throw new ServerError('LOG_WRITE_FAILED', 'no space left');
      },
      barrier: async () => undefined,
    },
    newId: () => 'id',
    onFault: () => undefined,
  });
  const outcome = await new Promise((resolve) =>
    runner.take([{ type: 'text', text: '/try' }], {}, { answer: resolve, send: () => resolve('sent') }),
  );
  t.match(outcome, { ok: false, error: { code: 'LOG_WRITE_FAILED' } });
});

t.test('a session that leaves waits for its command, and takes no other', async (t) => {
  const waits = runnerOf(
    t,
    (_args, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
  );
  waits.run('/try');
  await waits.runner.dispose();
  t.equal(waits.events.length, 1);
  t.equal(waits.runner.take([{ type: 'text', text: '/try' }], {}, { answer: () => undefined, send: () => undefined }), false);
});
