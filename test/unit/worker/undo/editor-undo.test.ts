/** Undo where the client has an editor: its open buffers are what is there, and changes go through it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { ClientAnswer, ClientRequest } from '../../../../src/shared/thread-protocol.ts';
import { ClientFiles } from '../../../../src/worker/workspace/client-files.ts';
import { EditorFiles } from '../../../../src/worker/workspace/editor-files.ts';
import { UndoRig } from './undo-rig.ts';

/** An editor with open buffers, which formats what it saves. */
class Editor {
  readonly rig: UndoRig;
  readonly buffers = new Map<string, string>();
  readonly written: string[] = [];
  format = (text: string): string => text;

  constructor(t: Test) {
    this.rig = UndoRig.in(t);
    const client = new ClientFiles({
      sessionId: 's',
      ask: async (request) => this.#take(request),
      withdraw: () => undefined,
      flush: () => 0,
      onGivenUp: () => undefined,
    });
    this.rig.editor = new EditorFiles({ roots: [this.rig.cwd], client, isWorkRunning: async () => false, wallClock: Date.now });
  }

  /** Types into a buffer, and does not save. */
  type(name: string, text: string): void {
    this.buffers.set(join(this.rig.cwd, name), text);
  }

  #take({ params }: ClientRequest): ClientAnswer {
    const { path, content } = params as { path: string; content?: string };
    if (content !== undefined) {
      this.written.push(content);
      writeFileSync(path, this.format(content));
      this.buffers.delete(path);
      return { kind: 'result', result: {} };
    }
    const text = this.buffers.get(path) ?? (existsSync(path) ? readFileSync(path, 'utf8') : undefined);
    return text === undefined ? { kind: 'error', code: -32002, message: 'no such file' } : { kind: 'result', result: { content: text } };
  }
}

t.test('what a tool put through the editor is undone through it', async (t) => {
  const editor = new Editor(t);
  const { rig } = editor;
  rig.put('a', 'old');
  await rig.turn('go', () => rig.write('a', 'new'));
  await rig.undo();
  t.equal(rig.read('a'), 'old');
  await rig.redo();
  t.strictSame(editor.written, ['new', 'old', 'new']);
});

t.test('a text that the editor changed while saving is still the change that is undone', async (t) => {
  const editor = new Editor(t);
  const { rig } = editor;
  rig.put('a', 'old');
  editor.format = (text) => `${text}\n`;
  await rig.turn('go', async () => {
    await rig.write('a', 'new');
    await rig.write('made', 'x');
  });
  t.equal(rig.read('a'), 'new\n');
  t.match(await rig.undo(), { files: [{ outcome: 'restored' }, { outcome: 'removed' }] });
  t.notOk(existsSync(join(rig.cwd, 'made')));
  t.match(await rig.redo(), { files: [{ outcome: 'restored' }, { outcome: 'restored' }] });
  t.equal(rig.read('a'), 'new\n\n', 'what was there, formatted once more');
  t.match(await rig.undo(), { files: [{ outcome: 'restored' }, { outcome: 'removed' }] });
});

t.test('unsaved text is a change since: it is left, and kept before it is overwritten by force', async (t) => {
  const editor = new Editor(t);
  const { rig } = editor;
  rig.put('a', 'old');
  await rig.turn('go', async () => {
    await rig.write('a', 'new');
    await rig.write('made', 'x');
  });
  editor.type('a', 'new and mine');
  editor.type('made', 'x and mine');
  t.match(await rig.undo(), {
    files: [
      { outcome: 'left', canForce: true },
      { outcome: 'left', canForce: true },
    ],
  });
  await rig.redo();
  t.match(await rig.undo(1, { force: true }), { files: [{ outcome: 'restored' }, { outcome: 'left', why: /unsaved/ }] });
  t.equal(rig.read('a'), 'old');
  t.equal(rig.read('made'), 'x');
  await rig.redo();
  t.equal(rig.read('a'), 'new and mine');
});

t.test('what a tool replaces is the unsaved text, and that comes back', async (t) => {
  const editor = new Editor(t);
  const { rig } = editor;
  rig.put('a', 'old');
  editor.type('a', 'old and mine');
  await rig.turn('go', () => rig.write('a', 'new'));
  t.equal(rig.read('a'), 'new');
  await rig.undo();
  t.equal(rig.read('a'), 'old and mine');
});
