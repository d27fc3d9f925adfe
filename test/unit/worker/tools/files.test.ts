import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import * as fc from 'fast-check';
import t from 'tap';
import { applyEdit } from '../../../../src/worker/tools/edit-text.ts';
import { editTool } from '../../../../src/worker/tools/edit.ts';
import { readTool } from '../../../../src/worker/tools/read.ts';
import { writeTool } from '../../../../src/worker/tools/write.ts';
import { testContext } from './tool-context.ts';

const dir = (t: { testdir(content: { work: {}; outside: {} }): string }, files: Record<string, string | Buffer> = {}) => {
  const root = realpathSync(t.testdir({ work: {}, outside: {} }));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(root, 'work', name), content);
  return join(root, 'work');
};

t.test('read', async (t) => {
  t.test('gives numbered lines, the whole of a small file, and says where it ends', async (t) => {
    const cwd = dir(t, { 'a.txt': 'one\ntwo\r\nthree' });
    const outcome = await readTool.execute({ file_path: 'a.txt' }, testContext(cwd));
    t.equal(outcome.text, '1\tone\n2\ttwo\n3\tthree\n\n(lines 1 - 3 of 3; end of file)');
    t.notOk(outcome.isError);
    const absolute = await readTool.execute({ file_path: join(cwd, 'a.txt'), offset: 2, limit: 1 }, testContext(cwd));
    t.equal(absolute.text, '2\ttwo\n\n(lines 2 - 2 of 3; read on with offset=3)');
  });

  t.test('windows chain without a gap or an overlap, whatever the limits cut', async (t) => {
    const lines = Array.from({ length: 5321 }, (_, i) => `line ${i + 1} ${'x'.repeat(i % 90)}`);
    const cwd = dir(t, { 'a.txt': `${lines.join('\n')}\n` });
    const seen: string[] = [];
    let offset = 1;
    for (let guard = 0; guard < 50; guard += 1) {
      const { text } = await readTool.execute({ file_path: 'a.txt', offset }, testContext(cwd));
      const [body = '', footer = ''] = text.split('\n\n(');
      t.ok(Buffer.byteLength(body) <= 51_200);
      for (const line of body.split('\n')) seen.push(line.slice(line.indexOf('\t') + 1));
      const next = /offset=(\d+)/.exec(footer)?.[1];
      if (next === undefined) break;
      offset = Number(next);
    }
    t.strictSame(seen, lines);
  });

  t.test('cuts a long line by characters and never through one', async (t) => {
    const cwd = dir(t, { 'a.txt': `${'é'.repeat(1999)}😀tail\nnext\n`, 'fits.txt': 'x'.repeat(2000) });
    const { text } = await readTool.execute({ file_path: 'a.txt' }, testContext(cwd));
    t.match(text, /é… \[line cut after 1999 characters\]\n2\tnext/);
    t.notMatch(text, /\uFFFD/);
    const fits = await readTool.execute({ file_path: 'fits.txt' }, testContext(cwd));
    t.notMatch(fits.text, /line cut/);
  });

  t.test('a character split by a chunk border stays whole', async (t) => {
    const line = `${'a'.repeat(65_535 - 4)}\n`;
    const cwd = dir(t, { 'a.txt': `${line}bc€😀é\n` });
    const { text } = await readTool.execute({ file_path: 'a.txt', offset: 2 }, testContext(cwd));
    t.match(text, /^2\tbc€😀é\n/);
  });

  t.test('hides a BOM, names an empty file, refuses an offset past the end', async (t) => {
    const cwd = dir(t, { 'bom.txt': '\uFEFFhello\n', 'empty.txt': '' });
    t.match((await readTool.execute({ file_path: 'bom.txt' }, testContext(cwd))).text, /^1\thello\n/);
    const empty = await readTool.execute({ file_path: 'empty.txt' }, testContext(cwd));
    t.match(empty, { isError: false, text: '(empty.txt is empty)' });
    t.match(await readTool.execute({ file_path: 'bom.txt', offset: 9 }, testContext(cwd)), { isError: true, code: 'FS_OUT_OF_RANGE' });
  });

  t.test('refuses what is not text: NUL bytes and UTF-16', async (t) => {
    const cwd = dir(t, {
      'nul.bin': Buffer.from([65, 66, 0, 67]),
      'le.txt': Buffer.from('\uFEFF漢字', 'utf16le'),
      'late.bin': Buffer.concat([Buffer.alloc(8191, 65), Buffer.from([0])]),
    });
    for (const file of ['nul.bin', 'le.txt', 'late.bin']) {
      t.match(await readTool.execute({ file_path: file }, testContext(cwd)), { isError: true, code: 'FS_NOT_TEXT' }, file);
    }
  });

  t.test('refuses FIFO, socket, device, directory, kernel files, NUL and what is missing, at once', async (t) => {
    const cwd = dir(t);
    execFileSync('mkfifo', [join(cwd, 'pipe')]);
    // A socket's own path must be short.
    const short = mkdtempSync(join(tmpdir(), 'sock-'));
    const server = createServer().listen(join(short, 's'));
    t.teardown(() => {
      server.close();
      rmSync(short, { recursive: true, force: true });
    });
    await new Promise((resolve) => server.once('listening', resolve));
    symlinkSync(join(short, 's'), join(cwd, 'sock'));
    symlinkSync('/dev/zero', join(cwd, 'zero'));
    symlinkSync('loop', join(cwd, 'loop'));
    writeFileSync(join(cwd, 'file'), 'x');
    const expected: Record<string, string> = {
      pipe: 'FS_NOT_REGULAR_FILE',
      sock: 'FS_NOT_REGULAR_FILE',
      zero: 'FS_NOT_REGULAR_FILE',
      '/dev/zero': 'FS_NOT_REGULAR_FILE',
      '.': 'FS_NOT_REGULAR_FILE',
      '/proc/kcore': 'FS_NOT_REGULAR_FILE',
      '/proc/self/environ': 'FS_NOT_REGULAR_FILE',
      'a\0b': 'FS_INVALID_PATH',
      ['x'.repeat(300)]: 'FS_INVALID_PATH',
      missing: 'FS_NOT_FOUND',
      'file/below': 'FS_NOT_DIRECTORY',
      loop: 'FS_PATH_CHANGED',
    };
    for (const [path, code] of Object.entries(expected)) {
      t.match(await readTool.execute({ file_path: path }, testContext(cwd)), { isError: true, code }, JSON.stringify(path.slice(0, 20)));
    }
    t.match(await readTool.execute({ file_path: '/proc/self/cwd/package.json' }, testContext(cwd)), { isError: false });
  });

  t.test('says so when the working directory is gone', async (t) => {
    const cwd = dir(t, { 'a.txt': 'x' });
    rmSync(cwd, { recursive: true });
    const outcome = await readTool.execute({ file_path: 'a.txt' }, testContext(cwd));
    t.match(outcome, { isError: true, code: 'FS_NOT_FOUND', text: /working directory .* no longer exists/ });
  });

  t.test('a 1 GB file is read in flat memory, and stops when its signal aborts', async (t) => {
    const cwd = dir(t);
    const fd = openSync(join(cwd, 'big.txt'), 'w');
    writeSync(fd, `first\n${'y'.repeat(9000)}`);
    ftruncateSync(fd, 1 << 30);
    writeSync(fd, '\nlast\n', 1 << 30);
    closeSync(fd);
    let peak = 0;
    const base = process.memoryUsage().rss;
    const timer = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss - base);
    }, 5);
    const outcome = await readTool.execute({ file_path: 'big.txt', offset: 3 }, testContext(cwd));
    clearInterval(timer);
    t.match(outcome.text, /^3\tlast\n/);
    t.ok(peak < 64 << 20, `grew by ${peak} bytes`);
    const head = await readTool.execute({ file_path: 'big.txt', limit: 1 }, testContext(cwd));
    t.match(head.text, /^1\tfirst\n\n\(lines 1 - 1 of a large file; read on with offset=2\)$/);

    const controller = new AbortController();
    const running = readTool.execute({ file_path: 'big.txt', offset: 3 }, testContext(cwd, { signal: controller.signal }));
    setImmediate(() => controller.abort());
    t.match(await running, { isError: true, code: 'ABORTED' });
    rmSync(join(cwd, 'big.txt'));
  });
});

t.test('paths', async (t) => {
  t.test('access answers the canonical target of links, whole or dangling, and of what does not exist yet', async (t) => {
    const cwd = dir(t, { 'a.txt': 'x' });
    const outside = join(cwd, '..', 'outside');
    symlinkSync(outside, join(cwd, 'dirlink'));
    symlinkSync(join(outside, 'new.txt'), join(cwd, 'dangling'));
    symlinkSync('a.txt', join(cwd, 'inner'));
    const paths = (file: string) => {
      const access = writeTool.access({ file_path: file, content: '' }, { cwd });
      return access.kind === 'write' ? access.paths : [];
    };
    t.strictSame(paths('a.txt'), [join(cwd, 'a.txt')]);
    t.strictSame(paths('inner'), [join(cwd, 'a.txt')]);
    t.strictSame(paths('dirlink/deep/new.txt'), [join(outside, 'deep', 'new.txt')]);
    t.strictSame(paths('dangling'), [join(outside, 'new.txt')]);
    t.strictSame(paths('dangling/below'), [join(outside, 'new.txt', 'below')]);
    t.strictSame(paths('../outside/x'), [join(outside, 'x')]);
    t.strictSame(paths('/proc/self/environ'), ['/proc/self/environ'], 'what cannot be resolved is answered as written');
    t.match(await writeTool.execute({ file_path: '/proc/self/environ', content: '' }, testContext(cwd)), { code: 'FS_NOT_REGULAR_FILE' });
  });

  t.test('a call whose path leads elsewhere than when it was decided is refused', async (t) => {
    const cwd = dir(t, { 'a.txt': 'inside' });
    const secret = join(cwd, '..', 'outside', 'secret.txt');
    writeFileSync(secret, 'secret');
    const read = { file_path: 'a.txt' };
    readTool.access(read, { cwd });
    const write = { file_path: 'new.txt', content: 'x' };
    writeTool.access(write, { cwd });
    unlinkSync(join(cwd, 'a.txt'));
    symlinkSync(secret, join(cwd, 'a.txt'));
    symlinkSync(join(cwd, '..', 'outside', 'created.txt'), join(cwd, 'new.txt'));
    t.match(await readTool.execute(read, testContext(cwd)), { isError: true, code: 'FS_PATH_CHANGED' });
    t.match(await writeTool.execute(write, testContext(cwd)), { isError: true, code: 'FS_PATH_CHANGED' });
    t.notOk(existsSync(join(cwd, '..', 'outside', 'created.txt')));
  });

  t.test('the last name swapped for a link is not followed', async (t) => {
    const cwd = dir(t, { real: 'inside' });
    writeFileSync(join(cwd, '..', 'outside', 'secret'), 'secret');
    const swapper = new Worker(
      `const fs = require('node:fs'); const { workerData: { cwd, outside } } = require('node:worker_threads');
       const f = cwd + '/f';
       for (;;) { fs.writeFileSync(cwd + '/t', 'inside'); fs.renameSync(cwd + '/t', f); fs.symlinkSync(outside + '/secret', cwd + '/l'); fs.renameSync(cwd + '/l', f); }`,
      { eval: true, workerData: { cwd, outside: join(cwd, '..', 'outside') } },
    );
    t.teardown(() => swapper.terminate());
    await new Promise((resolve) => swapper.once('online', resolve));
    let escaped = 0;
    for (let round = 0; round < 500; round += 1) {
      const args = { file_path: 'f' };
      const access = readTool.access(args, { cwd });
      if (access.kind !== 'read' || access.paths[0] !== join(cwd, 'f')) continue;
      if ((await readTool.execute(args, testContext(cwd))).text.includes('secret')) escaped += 1;
    }
    await swapper.terminate();
    t.equal(escaped, 0);
  });
});

t.test('write', async (t) => {
  t.test('creates a file with its directories, 0666 less the umask, and shows it as new', async (t) => {
    const cwd = dir(t);
    const context = testContext(cwd);
    const args = { file_path: 'deep/er/a.txt', content: 'héllo\n' };
    const outcome = await writeTool.execute(args, context);
    t.match(outcome, { isError: false, text: 'Created deep/er/a.txt (7 bytes).' });
    t.equal(readFileSync(join(cwd, 'deep/er/a.txt'), 'utf8'), 'héllo\n');
    t.equal(statSync(join(cwd, 'deep/er/a.txt')).mode & 0o777, 0o666 & ~process.umask());
    t.strictSame(readdirSync(join(cwd, 'deep/er')), ['a.txt'], 'no temporary file is left');
    t.strictSame(writeTool.presentResult(args, outcome, { cwd }), {
      card: 'diff',
      diffs: [{ path: join(cwd, 'deep/er/a.txt'), oldText: null, newText: 'héllo\n' }],
    });
    t.match(await writeTool.execute({ ...args, content: 'again' }, context), { isError: false }, 'what it wrote, it has seen');
  });

  t.test('an existing file must have been read, in the version that is there', async (t) => {
    const cwd = dir(t, { 'a.txt': 'old' });
    const context = testContext(cwd);
    const args = { file_path: 'a.txt', content: 'new' };
    t.match(await writeTool.execute(args, context), { isError: true, code: 'FS_NOT_OBSERVED' });
    await readTool.execute({ file_path: 'a.txt' }, context);
    writeFileSync(join(cwd, 'a.txt'), 'changed meanwhile');
    const stale = await writeTool.execute(args, context);
    t.match(stale, { isError: true, code: 'FS_STALE' });
    t.match(writeTool.presentResult(args, stale, { cwd }), { card: 'generic', content: [/has changed since/] });
    t.equal(readFileSync(join(cwd, 'a.txt'), 'utf8'), 'changed meanwhile');
    await readTool.execute({ file_path: 'a.txt' }, context);
    rmSync(join(cwd, 'a.txt'));
    t.match(await writeTool.execute(args, context), { isError: false }, 'a file that is gone is created');
  });

  t.test('keeps the mode, follows a link to its target, and leaves the link', async (t) => {
    const cwd = dir(t, { 'run.sh': '#!/bin/sh\n' });
    chmodSync(join(cwd, 'run.sh'), 0o751);
    symlinkSync('run.sh', join(cwd, 'link'));
    const context = testContext(cwd);
    await readTool.execute({ file_path: 'link' }, context);
    t.match(await writeTool.execute({ file_path: 'link', content: '#!/bin/sh\necho\n' }, context), { isError: false });
    t.equal(statSync(join(cwd, 'run.sh')).mode & 0o777, 0o751);
    t.ok(lstatSync(join(cwd, 'link')).isSymbolicLink());
    t.equal(readFileSync(join(cwd, 'run.sh'), 'utf8'), '#!/bin/sh\necho\n');
  });

  t.test('refuses directories, devices, half characters and what is too large', async (t) => {
    const cwd = dir(t, { file: 'x' });
    mkdirSync(join(cwd, 'sub'));
    const write = (file_path: string, content = 'x') => writeTool.execute({ file_path, content }, testContext(cwd));
    t.match(await write('sub'), { isError: true, code: 'FS_NOT_REGULAR_FILE' });
    t.match(await write('/dev/null'), { isError: true, code: 'FS_NOT_REGULAR_FILE' });
    t.match(await write('file/below'), { isError: true, code: 'FS_NOT_DIRECTORY' });
    t.match(await write('a', 'x\uD800y'), { isError: true, code: 'FS_NOT_TEXT' });
    t.match(await write('a', 'x'.repeat((10 << 20) + 1)), { isError: true, code: 'FS_TOO_LARGE' });
    t.match(await write('x'.repeat(300)), { isError: true, code: 'FS_INVALID_PATH' });
    t.strictSame(readdirSync(cwd).sort(), ['file', 'sub']);
  });

  t.test('meta stays small whatever is written', async (t) => {
    const cwd = dir(t, { 'a.txt': '\u0001'.repeat(300_000) });
    const context = testContext(cwd);
    const created = await writeTool.execute({ file_path: 'big.txt', content: '\u0001'.repeat(250_000) }, context);
    await readTool.execute({ file_path: 'a.txt' }, context);
    const replaced = await writeTool.execute({ file_path: 'a.txt', content: 'line\n'.repeat(200_000) }, context);
    for (const outcome of [created, replaced]) {
      t.notOk(outcome.isError);
      t.ok(Buffer.byteLength(JSON.stringify(outcome.meta)) <= 256 * 1024);
      t.strictSame(writeTool.presentResult({ file_path: 'x', content: '' }, outcome, { cwd }), { card: 'diff', diffs: [] });
    }
    const call = writeTool.presentCall({ file_path: 'a.txt', content: 'x'.repeat(1 << 20) }, { cwd });
    t.match(call, { card: 'generic', kind: 'edit' });
  });

  t.test('an aborted call leaves the old content and no temporary file', async (t) => {
    const cwd = dir(t, { 'a.txt': 'old' });
    const controller = new AbortController();
    const context = testContext(cwd, { signal: controller.signal });
    await readTool.execute({ file_path: 'a.txt' }, context);
    controller.abort();
    t.match(await writeTool.execute({ file_path: 'a.txt', content: 'new' }, context), { isError: true, code: 'ABORTED' });
    t.strictSame(readdirSync(cwd), ['a.txt']);
    t.equal(readFileSync(join(cwd, 'a.txt'), 'utf8'), 'old');
  });
});

t.test('edit', async (t) => {
  const seen = async (t: Parameters<typeof dir>[0], content: string | Buffer) => {
    const cwd = dir(t, { 'a.txt': content });
    const context = testContext(cwd);
    await readTool.execute({ file_path: 'a.txt' }, context);
    const edit = (old_string: string, new_string: string, replace_all?: boolean) =>
      editTool.execute({ file_path: 'a.txt', old_string, new_string, ...(replace_all === undefined ? {} : { replace_all }) }, context);
    return { cwd, context, edit, text: () => readFileSync(join(cwd, 'a.txt'), 'utf8') };
  };

  t.test('replaces one exact match and shows hunks with three lines of context', async (t) => {
    const lines = Array.from({ length: 40 }, (_, i) => `line ${i + 1}`);
    const { edit, text, cwd } = await seen(t, `${lines.join('\n')}\n`);
    const outcome = await edit('line 20\n', 'line twenty\nand more\n');
    t.match(outcome, { isError: false, text: 'Edited a.txt in 1 place.' });
    t.equal(text(), `${lines.join('\n')}\n`.replace('line 20\n', 'line twenty\nand more\n'));
    t.strictSame(editTool.presentResult({ file_path: 'a.txt', old_string: '', new_string: '' }, outcome, { cwd }), {
      card: 'diff',
      diffs: [
        {
          path: join(cwd, 'a.txt'),
          oldText: 'line 17\nline 18\nline 19\nline 20\nline 21\nline 22\nline 23\n',
          newText: 'line 17\nline 18\nline 19\nline twenty\nand more\nline 21\nline 22\nline 23\n',
        },
      ],
    });
    t.match(await edit('line 21', 'line 21b'), { isError: false }, 'its own edit does not make it stale');
  });

  t.test('tells how many matches there are and where, or what comes closest', async (t) => {
    const { edit, text } = await seen(t, 'foo(1)\nbar\nfoo(1)\n  indented line here\n  second\nconst value = compute(alpha);\n');
    t.match(await edit('foo(1)', 'x'), { isError: true, code: 'EDIT_AMBIGUOUS', text: /matches 2 places .*lines 1, 3/ });
    t.match(await edit('indented line here\nsecond', 'x'), {
      isError: true,
      code: 'EDIT_NOT_FOUND',
      text: /Lines 4 - 5 match except for blanks/,
    });
    t.match(await edit('bar\nbaz', 'x'), { code: 'EDIT_NOT_FOUND', text: /first line is at line 2/ });
    t.match(await edit('const value = compute(beta);', 'x'), { code: 'EDIT_NOT_FOUND', text: /closest line is 6/ });
    t.match(await edit('zzz', 'x'), { code: 'EDIT_NOT_FOUND', text: /was not found in a.txt. Read/ });
    t.match(await edit('bar', 'bar'), { code: 'INVALID_ARGS' });
    t.match(await edit('', 'x'), { code: 'INVALID_ARGS' });
    t.match(await edit('foo(1)', 'f', true), { isError: false, text: 'Edited a.txt in 2 places.' });
    t.match(text(), /^f\nbar\nf\n/);
  });

  t.test('keeps CRLF, mixed endings, a BOM and the mode', async (t) => {
    const crlf = await seen(t, '\uFEFFone\r\ntwo\r\nthree\r\n');
    chmodSync(join(crlf.cwd, 'a.txt'), 0o640);
    t.match(await crlf.edit('one\ntwo\n', '1\n2\n2b\n'), { isError: false });
    t.equal(crlf.text(), '\uFEFF1\r\n2\r\n2b\r\nthree\r\n');
    t.equal(statSync(join(crlf.cwd, 'a.txt')).mode & 0o777, 0o640);
    const mixed = await seen(t, 'a\r\nb\nc\r\nd\r\n');
    t.match(await mixed.edit('b\nc\n', 'B\nC\n'), { isError: false });
    t.equal(mixed.text(), 'a\r\nB\r\nC\r\nd\r\n');
    const lf = await seen(t, 'a\nb\n');
    t.match(await lf.edit('a\r\nb', 'x\r\ny'), { isError: false });
    t.equal(lf.text(), 'x\ny\n');
  });

  t.test('needs the file read, unchanged, and decodable', async (t) => {
    const cwd = dir(t, { 'a.txt': 'x' });
    const args = { file_path: 'a.txt', old_string: 'x', new_string: 'y' };
    t.match(await editTool.execute(args, testContext(cwd)), { isError: true, code: 'FS_NOT_OBSERVED' });
    t.match(await editTool.execute({ ...args, file_path: 'none' }, testContext(cwd)), { isError: true, code: 'FS_NOT_FOUND' });
    const stale = await seen(t, 'alpha');
    utimesSync(join(stale.cwd, 'a.txt'), 1, 1);
    t.match(await stale.edit('alpha', 'beta'), { isError: true, code: 'FS_STALE' });
    const replaced = await seen(t, 'alpha');
    writeFileSync(join(replaced.cwd, 'b.txt'), 'alpha');
    renameSync(join(replaced.cwd, 'b.txt'), join(replaced.cwd, 'a.txt'));
    t.match(await replaced.edit('alpha', 'beta'), { isError: true, code: 'FS_STALE' });
    const latin = await seen(t, Buffer.from('caf\xe9\n', 'latin1'));
    t.match(await latin.edit('caf', 'CAF'), { isError: true, code: 'FS_NOT_TEXT' });
  });

  t.test('fills an empty file, and refuses to blow a text up', async (t) => {
    const empty = await seen(t, '');
    t.match(await empty.edit('', 'hello\n'), { isError: false });
    t.equal(empty.text(), 'hello\n');
    const many = await seen(t, 'a'.repeat(1 << 20));
    t.match(await many.edit('a', 'b'.repeat(1 << 20), true), { isError: true, code: 'FS_TOO_LARGE' });
  });

  t.test('a rewrite of everything is shown in bounded time', async (t) => {
    const { edit } = await seen(t, Array.from({ length: 3000 }, (_, i) => `old ${i} {`).join('\n'));
    const started = performance.now();
    t.match(await edit('{', '}', true), { isError: false, text: /3000 places/ });
    t.ok(performance.now() - started < 10_000);
  });

  t.test('bytes outside the matches never change (property)', (t) => {
    const text = fc.array(fc.constantFrom('a', 'b', '\r\n', '\n', '\r', 'é', '😀'), { maxLength: 40 }).map((parts) => parts.join(''));
    const small = fc.array(fc.constantFrom('a', 'b', '\r\n', '\n', 'é'), { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, small, small, fc.boolean(), (raw, oldString, newString, replaceAll) => {
        const result = applyEdit(raw, { oldString, newString, replaceAll });
        const lf = (value: string) => value.replaceAll('\r\n', '\n');
        const parts = lf(raw).split(lf(oldString));
        if (!result.ok) {
          return result.reason === 'none' ? parts.length === 1 : !replaceAll && parts.length > 2;
        }
        // The same by another way: cut the raw text at the matches, and join the pieces with the replacement.
        const pieces: string[] = [];
        let at = 0;
        for (const part of parts) {
          const end = at + mapped(raw.slice(at), part.length);
          pieces.push(raw.slice(at, end));
          at = end + mapped(raw.slice(end), lf(oldString).length);
        }
        const own = raw.includes('\n') ? lf(newString) : newString;
        const crlf = raw.split('\r\n').length - 1;
        const written = crlf > raw.split('\n').length - 1 - crlf ? own.replaceAll('\n', '\r\n') : own;
        return result.after === parts.join(own) && result.raw === pieces.join(written);
      }),
      { numRuns: 3000 },
    );
    t.end();
  });
});

/** Raw length of the first `length` characters of the LF text. */
function mapped(raw: string, length: number): number {
  let at = 0;
  for (let done = 0; done < length && at < raw.length; done += 1) at += raw.startsWith('\r\n', at) ? 2 : 1;
  return at;
}
