import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { rgPath } from '@vscode/ripgrep';
import t from 'tap';
import type { BrokerApi, RunRequest } from '../../../../src/shared/broker-protocol.ts';
import { Broker } from '../../../../src/worker/broker/broker.ts';
import { globFilter } from '../../../../src/worker/tools/glob-filter.ts';
import { globPattern } from '../../../../src/shared/glob-pattern.ts';
import { globTool } from '../../../../src/worker/tools/glob.ts';
import { grepTool } from '../../../../src/worker/tools/grep.ts';
import { kernelNamesOpenFiles } from '../../../../src/worker/tools/opened-path.ts';
import { testContext } from './tool-context.ts';

const noKernelAnswer = 'without /proc/self/fd a very short race remains, as anchored-directory.ts says';

const broker = new Broker({ onGroupStarted: () => {}, onGroupEnded: () => {}, mark: `search-test-${process.pid}`, ambient: process.env });
t.teardown(() => broker.shutdown());

const tree = (t: { testdir(content: { work: {}; outside: {} }): string }, files: Record<string, string | Buffer>) => {
  const cwd = join(realpathSync(t.testdir({ work: {}, outside: {} })), 'work');
  let time = 1_000_000;
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), content);
    utimesSync(join(cwd, name), time, time);
    time += 10;
  }
  return cwd;
};

const search = (cwd: string, parts = {}) => testContext(cwd, { broker, ripgrepPath: rgPath, ...parts });
const lines = (text: string) => text.split('\n\n')[0]?.split('\n') ?? [];

t.test('glob', async (t) => {
  t.test('finds files newest first, hidden ones too, without .git and what is ignored', async (t) => {
    const cwd = tree(t, {
      'old.ts': '',
      'src/a.ts': '',
      '.hidden/z.ts': '',
      'node_modules/m/i.ts': '',
      'src/node_modules/n/j.ts': '',
      'debug.log': '',
      'src/new.ts': '',
      '.gitignore': 'node_modules\n',
      'with space/ü\n.ts': '',
    });
    execFileSync('git', ['init', '-q', cwd]);
    writeFileSync(join(cwd, '.git', 'x.ts'), '');
    const glob = async (pattern: string, path?: string) =>
      lines((await globTool.execute({ pattern, ...(path === undefined ? {} : { path }) }, search(cwd))).text);
    t.strictSame(
      (await globTool.execute({ pattern: '*.ts' }, search(cwd))).text,
      'with space/ü\n.ts\nsrc/new.ts\n.hidden/z.ts\nsrc/a.ts\nold.ts',
    );
    t.strictSame(await glob('src/*.ts'), ['src/new.ts', 'src/a.ts']);
    t.strictSame(await glob('*.{log,md}'), ['debug.log']);
    for (const all of ['src/**', 'src/**/*', './src/**', join(cwd, 'src/**')])
      t.strictSame(await glob(all), ['src/new.ts', 'src/a.ts'], all);
    t.strictSame(await glob('*.ts', 'src'), ['src/new.ts', 'src/a.ts']);
    for (const all of ['**', '**/*', '*']) t.notMatch((await glob(all)).join(), /node_modules|\.git\//, all);
    t.match(await globTool.execute({ pattern: '*.rs' }, search(cwd)), { isError: false, text: 'No files match.' });
  });

  t.test('gives at most a hundred and says how many there are', async (t) => {
    const cwd = tree(t, Object.fromEntries(Array.from({ length: 130 }, (_, i) => [`f${i}.txt`, ''])));
    const { text } = await globTool.execute({ pattern: '*.txt' }, search(cwd));
    t.equal(lines(text).length, 100);
    t.equal(lines(text)[0], 'f129.txt');
    t.match(text, /\(the newest 100 of 130 files; narrow/);
  });

  t.test('refuses bad patterns and bad places', async (t) => {
    const cwd = tree(t, { 'a.txt': '' });
    execFileSync('mkfifo', [join(cwd, 'pipe')]);
    const glob = (pattern: string, path: string) => globTool.execute({ pattern, path }, search(cwd));
    t.match(await glob('a[', '.'), { isError: true, code: 'INVALID_ARGS' });
    t.match(await glob('a\0b', '.'), { isError: true, code: 'INVALID_ARGS' });
    t.match(await glob('*', 'missing'), { isError: true, code: 'FS_NOT_FOUND' });
    t.match(await glob('*', 'a.txt'), { isError: true, code: 'FS_NOT_DIRECTORY' });
    t.match(await glob('*', 'pipe'), { isError: true, code: 'FS_NOT_REGULAR_FILE' });
    t.match(await glob('*', '/proc/self'), { isError: true, code: 'FS_NOT_REGULAR_FILE' });
  });

  t.test('does not follow links, not even when the pattern names one', async (t) => {
    const cwd = tree(t, { 'a.txt': '' });
    const outside = join(cwd, '..', 'outside');
    writeFileSync(join(outside, 'secret.txt'), 'secret');
    symlinkSync(outside, join(cwd, 'link'));
    for (const pattern of ['**/*.txt', 'link/**', 'link/*.txt', '../outside/**', '*']) {
      for (const ripgrepPath of [rgPath, undefined]) {
        t.notMatch((await globTool.execute({ pattern }, search(cwd, { ripgrepPath }))).text, /secret/, pattern);
      }
    }
    t.match(globTool.access({ pattern: '*', path: 'link' }, { cwd }), { kind: 'read', paths: [outside] }, 'the policy sees the target');
    t.match(globFilter('link/**', cwd), { below: 'link', options: [] });
  });

  t.test('without ripgrep a walk finds the same, and says what it cannot do', async (t) => {
    const cwd = tree(t, { 'a.ts': '', 'src/b.ts': '', 'src/deep/c.test.ts': '', 'node_modules/x.ts': '', 'd.js': '' });
    const walk = search(cwd, { ripgrepPath: undefined });
    for (const pattern of ['*.ts', 'src/*.ts', 'src/**', '**/*.ts', '*.{ts,js}', '[ab].ts', '[!a].?s', '**', join(cwd, 'src/*.ts')]) {
      const found = await globTool.execute({ pattern }, walk);
      t.match(found.text, /ignore files were not read/);
      const expected = lines((await globTool.execute({ pattern }, search(cwd))).text).filter((line) => !line.includes('node_modules'));
      t.strictSame(lines(found.text), expected, pattern);
    }
    t.match(await globTool.execute({ pattern: '{a' }, walk), { isError: true });
    t.equal(globPattern('[z-a]'), undefined);
    t.ok(globPattern('a+(b).$^|')?.test('x/a+(b).$^|'));
  });
});

t.test('grep', async (t) => {
  t.test('gives path:line:text in the order of paths, for directories, files and patterns', async (t) => {
    const cwd = tree(t, {
      'b.ts': 'one\nneedle two\r\n',
      'a/x.ts': 'needle: one\n',
      'a/y.md': '--needle\n',
      'bin.dat': Buffer.from('needle\0needle\n'),
      '.hidden': 'needle hidden\n',
    });
    const grep = (args: Partial<Parameters<typeof grepTool.execute>[0]>) => grepTool.execute({ pattern: 'needle', ...args }, search(cwd));
    t.equal((await grep({})).text, '.hidden:1:needle hidden\na/x.ts:1:needle: one\na/y.md:1:--needle\nb.ts:2:needle two');
    t.equal((await grep({ include: '*.ts' })).text, 'a/x.ts:1:needle: one\nb.ts:2:needle two');
    t.equal((await grep({ path: 'b.ts' })).text, 'b.ts:2:needle two');
    t.equal((await grep({ path: join(cwd, 'a'), include: '**' })).text, 'a/x.ts:1:needle: one\na/y.md:1:--needle');
    t.equal((await grep({ pattern: '--needle' })).text, 'a/y.md:1:--needle', 'a pattern is never an option');
    t.equal((await grep({ pattern: '--pre=touch pwned' })).text, 'No matches.');
    t.equal((await grep({ pattern: 'zzz' })).text, 'No matches.');
  });

  t.test('leaves out what may hold secrets, whatever names it but its own path, and says so', async (t) => {
    const secrets = {
      'certs/.env': 'needle\n',
      '.ENV.local': 'needle\n',
      'certs/server.pem': 'needle\n',
      'src/id_ed25519': 'needle\n',
      'home/.ssh/config': 'needle\n',
      '.config/gh/hosts.yml': 'needle\n',
      '.env\u200b': 'needle\n',
      '.netrc. ': 'needle\n',
    };
    const plain = ['.config/other/x', '.env/bin/x.ts', 'src/a.ts', 'src/environment.ts'];
    const cwd = tree(t, { ...secrets, ...Object.fromEntries(plain.map((path) => [path, 'needle\n'])) });
    const grep = async (args: Partial<Parameters<typeof grepTool.execute>[0]>, parts = {}) =>
      (await grepTool.execute({ pattern: 'needle', ...args }, search(cwd, parts))).text;
    const all = await grep({});
    t.strictSame(
      lines(all),
      plain.map((path) => `${path}:1:needle`),
    );
    t.match(all, /\n\n\(8 files that may hold secrets, such as \.env or keys, left out; to search one, give it as path\)$/);
    t.equal(await grep({ pattern: 'nothing' }), all.replace(/^[^]*\n\n/, 'No matches.\n'), 'the note tells nothing of what is in them');
    for (const include of [
      '.env',
      '.env*',
      '**/.ENV.local',
      '*.pem',
      'certs/**',
      'home/**',
      'home/.ssh/**',
      '.ssh/**',
      '.config/gh/*',
      '[.]env',
      'id_*',
    ]) {
      t.match(await grep({ include }), /^No matches\.(?:\n\(\d files? that may hold secrets.*)?$/, include);
    }
    t.match(await grep({ path: 'src' }), /\n\n\(1 file that may hold secrets/);
    t.notMatch(await grep({ include: '*.ts' }), /secrets/, 'nothing was left out of what was asked for');
    for (const path of Object.keys(secrets)) t.equal(await grep({ path }), `${path}:1:needle`, `${path} is named`);
    t.equal(await grep({ path: 'home/.ssh' }), 'home/.ssh/config:1:needle', 'a place that the gate asks about as such');
    writeFileSync(join(cwd, '.ignore'), '.env\n.ENV.local\n*.pem\n');
    t.match(await grep({}), /\n\n\(5 files that/, 'what is ignored anyway is not counted');
  });

  t.test('says at least how many files were left out where they cannot be listed whole', async (t) => {
    const cwd = tree(t, { 'a.txt': 'needle\n', '.env': 'needle\n' });
    const list = ['.env', ...Array.from({ length: 5 }, (_, i) => `file${i}`)].join('\\0');
    const long: BrokerApi = new Proxy(broker, {
      get: (target, name) => {
        if (name !== 'run') return undefined;
        return async (request: RunRequest) => {
          const isList = request.args.includes('--files');
          const result = await target.run(isList ? { ...request, command: '/usr/bin/printf', args: [`${list}\\0`] } : request);
          return isList ? { ...result, stdout: { ...result.stdout, truncated: true } } : result;
        };
      },
    });
    const { text } = await grepTool.execute({ pattern: 'needle' }, search(cwd, { broker: long }));
    t.match(text, /^a\.txt:1:needle\n\n\(at least 1 file that may hold secrets/);
  });

  t.test('a broken expression, glob or place is an error that tells what is wrong', async (t) => {
    const cwd = tree(t, { 'a.txt': 'x' });
    const grep = (pattern: string, include?: string, path?: string) =>
      grepTool.execute({ pattern, ...(include === undefined ? {} : { include }), ...(path === undefined ? {} : { path }) }, search(cwd));
    t.match(await grep('('), { isError: true, code: 'INVALID_REGEX', text: /unclosed group/ });
    t.match(await grep('(?=x)'), { isError: true, code: 'INVALID_REGEX' });
    t.match(await grep('a\nb'), { isError: true, code: 'INVALID_REGEX' });
    t.match(await grep('a\0b'), { isError: true, code: 'INVALID_ARGS' });
    t.match(await grep('x', '{a'), { isError: true, code: 'INVALID_ARGS' });
    t.match(await grep('x', undefined, 'missing'), { isError: true, code: 'FS_NOT_FOUND' });
    t.match(await grep('x', undefined, '/dev/zero'), { isError: true, code: 'FS_NOT_REGULAR_FILE' });
    const none = await grepTool.execute({ pattern: 'x' }, search(cwd, { ripgrepPath: undefined }));
    t.match(none, { isError: true, code: 'RIPGREP_UNAVAILABLE' });
    const gone = await grepTool.execute({ pattern: 'x' }, search(cwd, { ripgrepPath: join(cwd, 'no-rg') }));
    t.match(gone, { isError: true, code: 'RIPGREP_UNAVAILABLE' });
  });

  t.test('bounds the count, the line and the whole', async (t) => {
    const cwd = tree(t, {
      'many.txt': 'needle\n'.repeat(300_000),
      'wide.txt': `needle ${'x'.repeat(1 << 20)}\n`.repeat(3),
      'wide2.txt': `${'é'.repeat(900)}needle\n`.repeat(200),
    });
    const many = await grepTool.execute({ pattern: 'needle' }, search(cwd));
    t.equal(lines(many.text).length, 250);
    t.match(many.text, /only the first 250 matches are shown/);
    const wide = await grepTool.execute({ pattern: 'needle', path: 'wide.txt' }, search(cwd));
    t.equal(lines(wide.text).length, 3);
    t.ok(lines(wide.text).every((line) => Buffer.byteLength(line) < 2200));
    const all = await grepTool.execute({ pattern: 'needle', path: 'wide2.txt' }, search(cwd));
    t.ok(Buffer.byteLength(all.text) < 52_000);
    t.match(all.text, /only the first \d+ matches/);
  });

  t.test('an aborted call ends the search', async (t) => {
    const cwd = tree(t, { 'a.txt': 'x\n' });
    const controller = new AbortController();
    const cancelled: string[] = [];
    const ran: string[] = [];
    let onStart: (request: RunRequest) => void = () => {};
    const started = new Promise<RunRequest>((resolve) => {
      onStart = resolve;
    });
    // A search that would never end by itself, run by the real broker.
    const endless: BrokerApi = new Proxy(broker, {
      get: (target, name) => {
        if (name === 'run') {
          return (request: RunRequest) => {
            ran.push(request.runId);
            onStart(request);
            return target.run({ ...request, command: '/bin/sleep', args: ['60'] });
          };
        }
        if (name === 'cancelRun') {
          return (owner: string, runId: string) => {
            cancelled.push(runId);
            return target.cancelRun(owner, runId);
          };
        }
        return undefined;
      },
    });
    const running = grepTool.execute({ pattern: 'x' }, search(cwd, { broker: endless, signal: controller.signal }));
    const { args } = await started;
    t.ok(args.includes('--no-config'));
    controller.abort();
    t.match(await running, { isError: true, code: 'ABORTED' });
    t.strictSame(cancelled, ran);
    t.match(await grepTool.execute({ pattern: 'x' }, search(cwd, { signal: controller.signal })), { code: 'ABORTED' });
  });

  t.test(
    'a root swapped for a link while searches run never leads outside',
    { skip: kernelNamesOpenFiles() ? false : noKernelAnswer },
    async (t) => {
      const cwd = tree(t, { 'd/f.txt': 'needle inside\n' });
      const outside = join(cwd, '..', 'outside');
      writeFileSync(join(outside, 'f.txt'), 'needle secret\n');
      const swapper = new Worker(new URL('./swap-directory.js', import.meta.url), { workerData: { cwd, outside } });
      t.teardown(() => swapper.terminate());
      await new Promise((resolve) => swapper.once('online', resolve));
      let inside = 0;
      const deadline = performance.now() + 20_000;
      for (let round = 0; round < 120 && performance.now() < deadline; ) {
        const args = { pattern: 'needle', path: round % 2 === 0 ? 'd' : 'd/f.txt' };
        const access = grepTool.access(args, { cwd });
        if (access.kind !== 'read' || access.paths[0] !== join(cwd, args.path)) continue;
        round += 1;
        const outcome = await grepTool.execute(args, search(cwd));
        if (outcome.text.includes('secret')) t.fail('a search escaped');
        if (outcome.text.includes('inside')) inside += 1;
      }
      await swapper.terminate();
      rmSync(join(cwd, 'd'), { recursive: true, force: true });
      t.ok(inside > 0, `${inside} searches found the file`);
    },
  );
});

t.test('a decided place that changed is not searched', async (t) => {
  const cwd = tree(t, { 'd/f.txt': 'needle\n' });
  const args = { pattern: 'needle', path: 'd' };
  grepTool.access(args, { cwd });
  unlinkSync(join(cwd, 'd/f.txt'));
  rmSync(join(cwd, 'd'), { recursive: true });
  symlinkSync(join(cwd, '..', 'outside'), join(cwd, 'd'));
  t.match(await grepTool.execute(args, search(cwd)), { isError: true, code: 'FS_PATH_CHANGED' });
});
