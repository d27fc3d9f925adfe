import t from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import type { DataBatch } from '../../../../src/shared/thread-protocol.ts';
import { ThreadOutbox } from '../../../../src/worker/outbox/thread-outbox.ts';
import { Projector } from '../../../../src/worker/projection/projector.ts';
import { SessionScreen } from '../../../../src/worker/session/session-screen.ts';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';

const registry = createToolRegistry([]);

function rig(options: { profile?: 'editor' | 'automation'; maxUpdatesPerSecond?: number } = {}) {
  const batches: DataBatch[] = [];
  const outbox = new ThreadOutbox({ postMessage: (batch) => void batches.push(batch) });
  const projector = new Projector({
    sessionId: 's',
    cwd: '/ws',
    profile: options.profile ?? 'editor',
    client: { terminalOutput: true },
    tools: (name) => registry.get(name),
  });
  const { maxUpdatesPerSecond } = options;
  const screen = new SessionScreen({
    sessionId: 's',
    projector,
    outbox,
    ...(maxUpdatesPerSecond === undefined ? {} : { maxUpdatesPerSecond }),
  });
  const updates = (): any[] => {
    outbox.flush();
    return batches.flatMap(({ text }) =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line).params.update),
    );
  };
  const show = (event: EventInput): void => screen.show({ ...event, seq: 0, time: 0 });
  return { screen, show, updates, cards: () => batches.flatMap(({ cards }) => cards) };
}

const chunk = (text: string) => ({ turn: 1, step: 1, messageId: 'm', kind: 'text' as const, text });
const answer = (callId: string, name: string, args: object): EventInput => ({
  type: 'assistant/message',
  data: {
    turn: 1,
    step: 1,
    messageId: 'm',
    text: '',
    reasoning: '',
    toolCalls: [{ callId, name, arguments: JSON.stringify(args) }],
    finish: 'tool-calls',
  },
});

t.test('text that waits for its pace stands before whatever comes behind it', async (t) => {
  const { screen, show, updates } = rig({ maxUpdatesPerSecond: 1 });
  for (const text of ['a', 'b', 'c']) screen.showChunk(chunk(text));
  show(answer('r', 'read', { file_path: 'x' }));
  t.match(updates(), [{ content: { text: 'a' } }, { content: { text: 'bc' } }, { sessionUpdate: 'tool_call' }]);
  screen.showChunk(chunk('d'));
  screen.endCards();
  t.match(
    updates().slice(3),
    [{ content: { text: 'd' } }, { toolCallId: 'r', status: 'failed' }],
    'the end of a turn leaves nothing behind',
  );
});

t.test('main is told of each card that opens and ends, drafts and terminals among them', async (t) => {
  const { screen, show, updates, cards } = rig();
  screen.live?.draft({ kind: 'named', callId: 'never shown', name: 'read' });
  show(answer('b', 'bash', { command: 'ls', description: 'List' }));
  show({ type: 'tool/start', data: { turn: 1, step: 1, callId: 'b' } });
  screen.live?.output('b', 'x');
  show({ type: 'tool/result', data: { turn: 1, step: 1, callId: 'b', text: '', isError: false } });
  t.equal(updates().length, 4);
  t.strictSame(cards(), [
    { sessionId: 's', callId: 'b', open: true, terminal: true },
    { sessionId: 's', callId: 'b', open: false },
  ]);
});

t.test('automation has no live view', async (t) => {
  const { screen, updates } = rig({ profile: 'automation' });
  t.equal(screen.live, undefined);
  screen.showChunk(chunk('x'));
  t.strictSame(updates(), []);
});
