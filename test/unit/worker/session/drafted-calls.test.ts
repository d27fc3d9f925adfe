import * as fc from 'fast-check';
import t from 'tap';
import type { ArgumentsDraft } from '../../../../src/shared/render-intents.ts';
import { DraftedCalls } from '../../../../src/worker/session/drafted-calls.ts';

interface Shown {
  readonly callId: string;
  readonly name: string;
  readonly args: ArgumentsDraft;
}

/** Drafts whose clock moves when the test says so. */
function rig() {
  const shown: Shown[] = [];
  const client = { hasRoom: true };
  let due: (() => void) | undefined;
  const drafts = new DraftedCalls({
    show: (callId, name, args) => void shown.push({ callId, name, args }),
    hasRoom: () => client.hasRoom,
    schedule: (task, delayMs) => {
      if (delayMs < 100) throw new Error('looked at too often');
      due = task;
      return () => (due = undefined);
    },
  });
  const look = (): boolean => {
    const task = due;
    due = undefined;
    task?.();
    return task !== undefined;
  };
  const add = (text: string, callId = 'c'): void => drafts.take({ kind: 'arguments', callId, text });
  return { drafts, shown, client, look, add };
}

t.test('a call is shown once per look, however many pieces come', async (t) => {
  const { drafts, shown, look, add } = rig();
  drafts.take({ kind: 'named', callId: 'c', name: 'bash' });
  t.strictSame(shown, [], 'not at once: its answer may be there in a moment');
  look();
  t.strictSame(shown, [{ callId: 'c', name: 'bash', args: { members: {} } }]);
  for (const piece of '{"command":"ls -la","descr') add(piece);
  look();
  t.equal(shown.length, 2);
  t.strictSame(shown[1]?.args, { members: { command: 'ls -la' } });
  add('iption":"List');
  look();
  t.strictSame(shown[2]?.args, { members: { command: 'ls -la' }, growing: { name: 'description', value: 'List' } });
  t.notOk(look(), 'no timer runs while nothing comes');
});

t.test('a call whose answer comes first is never shown as a draft', async (t) => {
  const { drafts, shown, look, add } = rig();
  drafts.take({ kind: 'named', callId: 'c', name: 'bash' });
  add('{"comm');
  drafts.clear();
  t.notOk(look());
  add('and":"ls"}');
  look();
  t.strictSame(shown, []);
});

t.test('while the client is behind drafts wait', async (t) => {
  const { drafts, shown, client, look, add } = rig();
  client.hasRoom = false;
  drafts.take({ kind: 'named', callId: 'c', name: 'read' });
  add('{"file_path":"a"}');
  look();
  look();
  t.strictSame(shown, []);
  client.hasRoom = true;
  look();
  t.strictSame(
    shown.map(({ args }) => args),
    [{ members: { file_path: 'a' } }],
  );
});

t.test('long arguments are read again only when they have grown by a part, and not without end', async (t) => {
  const { drafts, shown, look, add } = rig();
  drafts.take({ kind: 'named', callId: 'c', name: 'write' });
  add('{"content":"');
  let read = 0;
  for (let pieces = 0; pieces < 4000; pieces += 1) {
    add('x'.repeat(100));
    look();
  }
  for (const { args } of shown) read += JSON.stringify(args).length;
  t.ok(shown.length < 150, `${shown.length} updates`);
  t.ok(read < 12 * 256 * 1024, `${read} characters were read`);
  t.ok(JSON.stringify(shown.at(-1)?.args).length <= 300 * 1024, 'what comes behind the limit shows with the call');
});

t.test('arguments that are nested without end show nothing and cost next to nothing', async (t) => {
  const { drafts, shown, look, add } = rig();
  drafts.take({ kind: 'named', callId: 'c', name: 'x' });
  add(`{"a":1,"b":${'['.repeat(60_000)}`);
  const start = performance.now();
  look();
  t.strictSame(shown, [{ callId: 'c', name: 'x', args: { members: {} } }]);
  t.ok(performance.now() - start < 5000, 'it took seconds');
});

t.test('whatever the arguments are, a draft is read without a throw, and complete members are those of the whole', async () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 4 }), fc.jsonValue()),
      (args) => {
        const json = JSON.stringify(args);
        const { drafts, shown, look, add } = rig();
        drafts.take({ kind: 'named', callId: 'c', name: 'x' });
        for (const unit of json) {
          add(unit);
          look();
        }
        const isObject = typeof args === 'object' && args !== null && !Array.isArray(args);
        for (const { args: draft } of shown) {
          if (!isObject && Object.keys(draft.members).length > 0) throw new Error('members of what is no object');
          for (const [name, value] of Object.entries(draft.members)) {
            const whole: unknown = (args as Record<string, unknown>)[name];
            // An object inside counts as complete as far as it is there.
            if (typeof whole !== 'object' && JSON.stringify(value) !== JSON.stringify(whole)) throw new Error(`${name} is not complete`);
          }
        }
      },
    ),
    { numRuns: 40 },
  );
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '\\', 'u', 'a', '1', '-', ' '), maxLength: 30 }),
      (text) => {
        const { drafts, look, add } = rig();
        drafts.take({ kind: 'named', callId: 'c', name: 'x' });
        for (const unit of text) {
          add(unit);
          look();
        }
      },
    ),
    { numRuns: 100 },
  );
});
