import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { ClientAnswer, ClientRequest } from '../../../../src/shared/thread-protocol.ts';
import { editTool } from '../../../../src/worker/tools/edit.ts';
import { readTool } from '../../../../src/worker/tools/read.ts';
import type { FileChange, ToolContext } from '../../../../src/worker/tools/tool.ts';
import { writeTool } from '../../../../src/worker/tools/write.ts';
import { ClientFiles, longestClientText } from '../../../../src/worker/workspace/client-files.ts';
import { EditorFiles } from '../../../../src/worker/workspace/editor-files.ts';
import { testContext } from '../tools/tool-context.ts';

/** An editor over real files: open buffers may differ from the disk until they are saved. */
class Editor {
  readonly cwd: string;
  readonly buffers = new Map<string, string>();
  readonly requests: ClientRequest[] = [];
  readonly withdrawn: string[] = [];
  readonly kept: FileChange[] = [];
  readonly givenUp: string[] = [];
  readonly context: ToolContext;
  readonly files: EditorFiles;
  /** In the place of what the editor would answer. */
  answer: ((request: ClientRequest) => ClientAnswer | Promise<ClientAnswer> | undefined) | undefined;
  /** What saving makes of a text. */
  format = (text: string): string => text;
  /** `false`: a text that is handed over stays in the buffer, unsaved. */
  saves = true;
  isWorkRunning = false;

  constructor(t: Test, files: Record<string, string> = {}, more: Partial<ToolContext> = {}) {
    this.cwd = join(realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-editor-'))), 'w');
    t.teardown(() => rmSync(join(this.cwd, '..'), { recursive: true, force: true }));
    mkdirSync(this.cwd);
    for (const [name, text] of Object.entries(files)) this.put(name, text);
    const client = new ClientFiles({
      sessionId: 'session-1',
      ask: async (request) => this.#take(request),
      withdraw: (key) => void this.withdrawn.push(key),
      flush: () => 7,
      onGivenUp: (why) => this.givenUp.push(why),
    });
    this.files = new EditorFiles({ roots: [this.cwd], client, isWorkRunning: async () => this.isWorkRunning, wallClock: Date.now });
    this.context = testContext(this.cwd, { editor: this.files, keepBefore: async (change) => void this.kept.push(change), ...more });
  }

  path(name: string): string {
    return join(this.cwd, name);
  }

  /** Changes the disk, as a command or another program does; never at the time of an earlier change. */
  put(name: string, text: string): void {
    writeFileSync(this.path(name), text);
    this.#time += 1;
    utimesSync(this.path(name), this.#time, this.#time);
  }
  #time = Date.now() / 1000 - 10_000;

  /** Types into an open buffer. */
  type(name: string, text: string): void {
    this.buffers.set(this.path(name), text);
  }

  save(name: string): void {
    this.put(name, this.buffers.get(this.path(name)) ?? '');
  }

  disk(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  read(name: string) {
    return readTool.execute({ file_path: name }, this.context);
  }

  edit(name: string, from: string, to: string) {
    return editTool.execute({ file_path: name, old_string: from, new_string: to }, this.context);
  }

  write(name: string, content: string) {
    return writeTool.execute({ file_path: name, content }, this.context);
  }

  async #take(request: ClientRequest): Promise<ClientAnswer> {
    this.requests.push(request);
    const given = await this.answer?.(request);
    if (given !== undefined) return given;
    const { path, content } = request.params as { path: string; content?: string };
    if (content !== undefined) {
      const text = this.format(content);
      if (this.saves) {
        writeFileSync(path, text);
        this.buffers.delete(path);
      } else this.buffers.set(path, text);
      return { kind: 'result', result: {} };
    }
    const buffer = this.buffers.get(path);
    if (buffer === undefined && !existsSync(path)) return { kind: 'error', code: -32002, message: 'not found' };
    return { kind: 'result', result: { content: buffer ?? readFileSync(path, 'utf8') } };
  }
}

const unsaved = /\(this is the unsaved text of the editor/;

t.test('reading', async (t) => {
  t.test('unsaved text counts, and says so; what is saved is just the file', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'saved\n' });
    t.notMatch((await editor.read('a.txt')).text, unsaved);
    t.match(editor.requests[0], {
      sessionId: 'session-1',
      method: 'fs/read_text_file',
      params: { sessionId: 'session-1', path: editor.path('a.txt') },
      afterBatch: 7,
    });
    editor.type('a.txt', 'unsaved\n');
    t.match(await editor.read('a.txt'), { isError: false, text: /^1\tunsaved\n[^]*unsaved text of the editor/ });
    editor.save('a.txt');
    t.notMatch((await editor.read('a.txt')).text, unsaved);
  });

  t.test('line ends, a byte order mark and the end of the last line make no difference', async (t) => {
    const editor = new Editor(t, { 'a.txt': '\uFEFFone\r\ntwo\r\n' });
    for (const buffer of ['one\ntwo\n', 'one\ntwo', '\uFEFFone\r\ntwo\r\n']) {
      editor.type('a.txt', buffer);
      t.notMatch((await editor.read('a.txt')).text, unsaved, JSON.stringify(buffer));
    }
  });

  t.test('a file that only the editor has is read; one that nobody has is missing', async (t) => {
    const editor = new Editor(t);
    editor.type('new.txt', 'not on the disk');
    t.match(await editor.read('new.txt'), { isError: false, text: /not on the disk[^]*unsaved/ });
    t.match(await editor.read('none.txt'), { isError: true, code: 'FS_NOT_FOUND' });
  });

  t.test('an answer that cannot be used leaves the disk', async (t) => {
    const bad: [string, ClientAnswer][] = [
      ['an error', { kind: 'error', code: -32603, message: 'no' }],
      ['not found', { kind: 'error', code: -32002, message: 'no' }],
      ['nothing', { kind: 'result', result: null }],
      ['a wrong shape', { kind: 'result', result: { content: 5 } }],
      ['half a character', { kind: 'result', result: { content: '\ud800' } }],
      ['far too much', { kind: 'result', result: { content: 'x'.repeat(longestClientText + 1) } }],
      ['no client', { kind: 'unavailable' }],
      ['silence', { kind: 'timeout' }],
    ];
    for (const [name, answer] of bad) {
      const editor = new Editor(t, { 'a.txt': 'disk' });
      editor.answer = () => answer;
      t.match(await editor.read('a.txt'), { isError: false, text: /^1\tdisk/ }, name);
    }
  });

  t.test('the client is not asked outside of the workspace, for what is too large, no text or no regular file', async (t) => {
    const editor = new Editor(t, { 'large.txt': 'x\n'.repeat(longestClientText), bin: 'a\0b', latin: '' });
    writeFileSync(editor.path('latin'), Buffer.from([0x61, 0xe9, 0x0a]));
    writeFileSync(join(editor.cwd, '..', 'outside.txt'), 'outside');
    symlinkSync('../outside.txt', editor.path('link.txt'));
    for (const name of ['large.txt', 'bin', 'latin', '../outside.txt', 'link.txt', '.', '/dev/zero']) await editor.read(name);
    t.strictSame(editor.requests, []);
  });

  t.test('two silences in a row, or a method that is not there, and it is asked no more', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'disk' });
    editor.answer = () => ({ kind: 'timeout' });
    for (let round = 0; round < 4; round += 1) t.match((await editor.read('a.txt')).text, /disk/);
    t.equal(editor.requests.length, 2);
    t.match(editor.givenUp, [/did not answer fs\/read_text_file/]);
    const other = new Editor(t, { 'a.txt': 'disk' });
    other.answer = () => ({ kind: 'error', code: -32601, message: 'no such method' });
    for (let round = 0; round < 3; round += 1) await other.read('a.txt');
    t.equal(other.requests.length, 1);
  });

  t.test('a cancel takes the request back and ends the call', async (t) => {
    const stop = new AbortController();
    const editor = new Editor(t, { 'a.txt': 'disk' }, { signal: stop.signal });
    editor.answer = () => new Promise(() => undefined);
    const reading = editor.read('a.txt');
    while (editor.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    t.match(await reading, { isError: true, code: 'ABORTED' });
    t.strictSame(editor.withdrawn, [editor.requests[0]?.requestKey]);
  });
});

t.test('which version counts after other work on the disk', async (t) => {
  const disputed = /the editor holds another, unsaved text/;

  t.test('a file that a command changed counts as the disk has it, also when it was never read', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n', 'b.txt': 'one\n' });
    editor.type('a.txt', 'typed\n');
    editor.type('b.txt', 'typed\n');
    t.match((await editor.read('a.txt')).text, /typed/);
    editor.files.noteWork();
    writeFileSync(editor.path('a.txt'), 'by the command\n');
    writeFileSync(editor.path('b.txt'), 'by the command\n');
    t.match((await editor.read('a.txt')).text, /by the command[^]*the editor holds another/);
    t.match((await editor.read('b.txt')).text, /by the command[^]*the editor holds another/);
  });

  t.test('a file that no command touched goes on to count as the editor has it', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n', 'b.txt': 'one\n' });
    editor.type('a.txt', 'typed\n');
    editor.type('b.txt', 'typed\n');
    await editor.read('a.txt');
    editor.files.noteWork();
    t.match((await editor.read('a.txt')).text, unsaved);
    t.match((await editor.read('b.txt')).text, unsaved, 'older than the first command');
  });

  t.test('without a command a change of the disk is the person: what they typed after saving counts', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    await editor.read('a.txt');
    editor.put('a.txt', 'saved\n');
    editor.type('a.txt', 'saved and more\n');
    t.match((await editor.read('a.txt')).text, /saved and more[^]*unsaved/);
    editor.isWorkRunning = true;
    editor.put('a.txt', 'by a background command\n');
    t.match((await editor.read('a.txt')).text, disputed);
  });

  t.test('a file that a command removed is gone', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    editor.type('a.txt', 'typed\n');
    await editor.read('a.txt');
    editor.files.noteWork();
    unlinkSync(editor.path('a.txt'));
    t.match(await editor.read('a.txt'), { isError: true, code: 'FS_NOT_FOUND' });
  });

  t.test('a change of a disputed file goes to the disk and leaves the unsaved text alone', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    editor.type('a.txt', 'typed\n');
    await editor.read('a.txt');
    editor.files.noteWork();
    writeFileSync(editor.path('a.txt'), 'by the command\n');
    await editor.read('a.txt');
    t.match(await editor.edit('a.txt', 'command', 'agent'), { isError: false });
    t.equal(editor.disk('a.txt'), 'by the agent\n');
    t.equal(editor.buffers.get(editor.path('a.txt')), 'typed\n');
    t.notOk(editor.requests.some(({ method }) => method === 'fs/write_text_file'));
  });
});

t.test('changing', async (t) => {
  t.test('goes through the editor, which sees it as its own; what was there is kept first', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    await editor.read('a.txt');
    t.match(await editor.edit('a.txt', 'one', 'two'), { isError: false, text: 'Edited a.txt in 1 place.' });
    t.equal(editor.disk('a.txt'), 'two\n');
    t.match(editor.requests.at(-2), { method: 'fs/write_text_file', params: { path: editor.path('a.txt'), content: 'two\n' } });
    t.match(editor.kept, [{ path: editor.path('a.txt'), data: Buffer.from('two\n') }]);
    t.equal(editor.kept[0]?.before, undefined, 'the disk has what was there before');
    t.match(await editor.edit('a.txt', 'two', 'three'), { isError: false }, 'what it wrote it has seen');
    t.match(await editor.write('deep/new.txt', 'new\n'), { isError: false, text: /^Created/ });
    t.equal(editor.disk('deep/new.txt'), 'new\n');
    t.match(await editor.write('deep/new.txt', 'newer\n'), { isError: false, text: /^Replaced/ });
    t.strictSame(readdirSync(editor.cwd).sort(), ['a.txt', 'deep'], 'nothing else is left');
  });

  t.test('unsaved text is what is edited, and is kept before', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    editor.type('a.txt', 'one and typed\n');
    await editor.read('a.txt');
    const outcome = await editor.edit('a.txt', 'and typed', 'and edited');
    t.match(outcome, { isError: false });
    t.equal(editor.disk('a.txt'), 'one and edited\n');
    t.equal(editor.kept[0]?.before?.toString(), 'one and typed\n');
    t.match(outcome.meta, { diffs: [{ oldText: /typed/, newText: /edited/ }] });
  });

  t.test('what was typed, or saved, between the read and the edit makes it stale', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    await editor.read('a.txt');
    editor.type('a.txt', 'one more\n');
    t.match(await editor.edit('a.txt', 'one', 'two'), { isError: true, code: 'FS_STALE' });
    t.match(await editor.write('a.txt', 'x'), { isError: true, code: 'FS_STALE' });
    t.equal(editor.disk('a.txt'), 'one\n');
    await editor.read('a.txt');
    editor.save('a.txt');
    t.match(await editor.edit('a.txt', 'one', 'two'), { isError: false }, 'saving what was seen changes nothing');
    t.match(await editor.edit('b.txt', 'one', 'two'), { isError: true, code: 'FS_NOT_FOUND' });
    editor.put('c.txt', 'unread');
    t.match(await editor.edit('c.txt', 'one', 'two'), { isError: true, code: 'FS_NOT_OBSERVED' });
    t.match(await editor.write('c.txt', 'x'), { isError: true, code: 'FS_NOT_OBSERVED' });
  });

  t.test('a file that only the editor has must have been read, too', async (t) => {
    const editor = new Editor(t);
    editor.type('a.txt', 'typed');
    t.match(await editor.write('a.txt', 'x'), { isError: true, code: 'FS_NOT_OBSERVED' });
    await editor.read('a.txt');
    t.match(await editor.write('a.txt', 'x'), { isError: false });
    t.equal(editor.disk('a.txt'), 'x');
  });

  t.test('a text that was formatted on saving must be read again, and the card shows what is there', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    editor.format = (text) => text.toUpperCase();
    await editor.read('a.txt');
    const outcome = await editor.edit('a.txt', 'one', 'two');
    t.match(outcome, { isError: false, text: /changed the text while saving it/ });
    t.match(outcome.meta, { diffs: [{ newText: /TWO/ }] });
    t.match(await editor.edit('a.txt', 'TWO', 'three'), { isError: true, code: 'FS_NOT_OBSERVED' });
  });

  t.test('an editor that does not save says so to the model', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    editor.saves = false;
    await editor.read('a.txt');
    t.match(await editor.edit('a.txt', 'one', 'two'), { isError: false, text: /has not saved it yet/ });
    t.equal(editor.disk('a.txt'), 'one\n');
    t.match(await editor.edit('a.txt', 'two', 'three'), { isError: false });
  });

  t.test('line ends and a byte order mark that an editor might lose are written to the disk', async (t) => {
    for (const text of ['one\r\ntwo\r\n', '\uFEFFone\n']) {
      const editor = new Editor(t, { 'a.txt': text });
      await editor.read('a.txt');
      t.match(await editor.edit('a.txt', 'one', '1'), { isError: false });
      t.equal(editor.disk('a.txt'), text.replace('one', '1'));
      t.notOk(editor.requests.some(({ method }) => method === 'fs/write_text_file'));
      editor.type('a.txt', text.replaceAll('\r', ''));
      t.match((await editor.read('a.txt')).text, /^1\t1/, 'an editor that has not noticed yet holds no unsaved text');
    }
  });

  t.test('a refusal leaves the disk to be written, unless there is unsaved text', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    const refuse = ({ method }: ClientRequest): ClientAnswer | undefined =>
      method === 'fs/write_text_file' ? { kind: 'error', code: -32603, message: 'no' } : undefined;
    editor.answer = refuse;
    await editor.read('a.txt');
    t.match(await editor.edit('a.txt', 'one', 'two'), { isError: false, text: /written to the disk/ });
    t.equal(editor.disk('a.txt'), 'two\n');
    editor.type('b.txt', 'typed\n');
    await editor.read('b.txt');
    t.match(await editor.edit('b.txt', 'typed', 'x'), {
      isError: true,
      code: 'FS_IO_ERROR',
      text: /unsaved changes[^]*Nothing was written/,
    });
    t.notOk(existsSync(editor.path('b.txt')));
  });

  t.test('silence is not taken for a yes: the disk says whether it was written', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' });
    await editor.read('a.txt');
    editor.answer = ({ method }) => (method === 'fs/write_text_file' ? { kind: 'timeout' } : undefined);
    t.match(await editor.edit('a.txt', 'one', 'two'), { isError: true, code: 'FS_IO_ERROR', text: /did not confirm/ });
    t.match(await editor.edit('a.txt', 'one', 'two'), { isError: true, code: 'FS_NOT_OBSERVED' }, 'it must be looked at first');
    await editor.read('a.txt');
    editor.answer = ({ method, params }) => {
      if (method !== 'fs/write_text_file') return undefined;
      editor.put('a.txt', (params as { content: string }).content);
      return { kind: 'timeout' };
    };
    t.match(await editor.edit('a.txt', 'one', 'two'), { isError: false });
  });

  t.test('a link that takes the place of a directory meanwhile is not written through', async (t) => {
    const editor = new Editor(t, { 'f.txt': '' });
    mkdirSync(editor.path('d'));
    mkdirSync(join(editor.cwd, '..', 'outside'));
    const args = { file_path: 'd/new.txt', content: 'x' };
    writeTool.access(args, { cwd: editor.cwd });
    rmSync(editor.path('d'), { recursive: true });
    symlinkSync('../outside', editor.path('d'));
    t.match(await writeTool.execute(args, editor.context), { isError: true, code: 'FS_PATH_CHANGED' });
    t.strictSame(editor.requests, []);
    t.strictSame(readdirSync(join(editor.cwd, '..', 'outside')), []);
  });

  t.test('when what is there cannot be kept, nothing is written', async (t) => {
    const editor = new Editor(t, { 'a.txt': 'one\n' }, { keepBefore: async () => Promise.reject(new Error('no log')) });
    await editor.read('a.txt');
    t.match(await editor.edit('a.txt', 'one', 'two'), { isError: true });
    t.equal(editor.disk('a.txt'), 'one\n');
  });
});
