/**
 * The package as a user gets it: packed, installed into an empty project with its dependencies, and started by its bin.
 *
 * Needs the registry that npm is set up with, or npm's cache. Skipped, with the reason, only when the registry cannot be reached.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { projectRoot } from '../support/server-process.ts';
import { endServer, startServer } from '../support/started-server.ts';

const run = promisify(execFile);

/** The SDK and zod are in it twice: in the program, and for the clients that the broker loads. */
const maxPackedBytes = 800 * 1024;
const maxUnpackedBytes = 3 * 1024 * 1024;
const allowed = [
  /^dist\/(main|worker)\/[\w-]+\.c?js$/,
  /^dist\/main\/package\.json$/,
  /^docs\/[\w-]+\.md$/,
  /^docs\/pictures\/[\w-]+\.png$/,
  /^examples\/[\w/.-]+$/,
  /^schemas\/[\w.-]+\.json$/,
  /^(README|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md$/,
  /^(LICENSE|package\.json)$/,
];
const needed = [
  'dist/main/cli.js',
  'dist/worker/session-thread.cjs',
  'dist/worker/session-host.cjs',
  'dist/worker/broker.cjs',
  'dist/worker/acp-client.js',
  'schemas/event-log.schema.json',
  'LICENSE',
  'package.json',
  'examples/README.md',
  ...['README', 'ARCHITECTURE', 'CHANGELOG', 'CONTRIBUTING'].map((page) => `${page}.md`),
  ...readdirSync(join(projectRoot, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
];
const unreachable = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED|ERR_SOCKET_TIMEOUT)\b/;

interface PackedFile {
  readonly path: string;
  readonly size: number;
  readonly mode: number;
}

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly PackedFile[];
}

const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));

await t.test('the package', async (t) => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-packed-')));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const project = join(dir, 'project');
  mkdirSync(project);
  const bin = join(project, 'node_modules', '.bin', 'dsh-acp');
  const packed = await pack(dir);
  await t.test('the tarball holds what is needed and nothing else', async (t) => checkContents(t, packed));
  const skip = await install(project, join(dir, packed.filename));
  await t.test('the bin answers --version and --help, and refuses what it does not know', { skip }, async (t) => {
    accessSync(bin, constants.X_OK);
    t.match(await run(bin, ['--version']), { stdout: `${version}\n`, stderr: '' });
    t.match(await run(bin, ['--help']), { stdout: /Usage: dsh-acp/, stderr: '' });
    await t.rejects(run(bin, ['--no-such-flag']), { code: 2, stdout: '', stderr: /no-such-flag/ });
  });
  await t.test('a session of the installed server reads, searches, runs and edits', { skip }, (t) => driveSession(t, bin));
  await t.test('the demo of the installed package ends by itself', { skip }, async (t) => {
    const { stdout } = await run(bin, ['demo'], { cwd: project, timeout: 40_000, env: { ...process.env, TMPDIR: dir } });
    t.match(stdout, /8 of 8 workspaces/);
  });
});

function checkContents(t: Test, { files, size, unpackedSize }: Packed): void {
  const paths = files.map(({ path }) => path);
  const stray = paths.filter((path) => !allowed.some((pattern) => pattern.test(path)));
  t.same(stray, [], 'no tests, no sources, no maps');
  const missing = needed.filter((path) => !paths.includes(path));
  t.same(missing, [], 'nothing is missing');
  t.ok(size <= maxPackedBytes, `${size} bytes packed`);
  t.ok(unpackedSize <= maxUnpackedBytes, `${unpackedSize} bytes unpacked`);
  t.equal((files.find(({ path }) => path === 'dist/main/cli.js')?.mode ?? 0) & 0o111, 0o111, 'the bin is executable');
  const local = paths.filter((path) => readFileSync(join(projectRoot, path), 'utf8').includes(projectRoot));
  t.same(local, [], 'no file names the place where it was built');
}

async function pack(dir: string): Promise<Packed> {
  // `prepack` builds; here the build is there already, and another test may be using it.
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', dir], { cwd: projectRoot });
  return JSON.parse(stdout)[0];
}

/** `false`, or the reason why the rest has to be skipped. Any other failure of the installation is a failure of the package. */
async function install(project: string, tarball: string): Promise<string | false> {
  writeFileSync(join(project, 'package.json'), '{"private":true}');
  // npm itself would wait for minutes before it says that nobody answers.
  const patience = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-timeout=15000'];
  const args = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-progress', ...patience, tarball];
  try {
    await run('npm', args, { cwd: project, timeout: 50_000 });
    return false;
  } catch (error) {
    const { message, stderr = '' } = error as { message: string; stderr?: string };
    const code = unreachable.exec(stderr)?.[1];
    if (code === undefined) throw new Error(`the package cannot be installed: ${message}\n${stderr}`, { cause: error });
    return `the registry of npm cannot be reached (${code})`;
  }
}

async function driveSession(t: Test, bin: string): Promise<void> {
  const cwd = realpathSync(t.testdir({ 'a.txt': 'alpha\nbeta\n' }));
  const server = await startServer(t, { command: [bin] });
  const sessionId = await server.newSession(cwd);
  const answer = await server.prompt(sessionId, 'read a.txt\n& grep alpha\nrun echo from-the-command\nedit a.txt /alpha/ALPHA/\nsay done');
  t.match(answer, { result: { stopReason: 'end_turn' } });
  const statuses = server.updates(sessionId).filter(({ status }) => status === 'completed' || status === 'failed');
  t.same(
    statuses.map(({ status }) => status),
    ['completed', 'completed', 'completed', 'completed'],
  );
  t.match(JSON.stringify(statuses), /from-the-command/);
  t.equal(readFileSync(join(cwd, 'a.txt'), 'utf8'), 'ALPHA\nbeta\n');
  await endServer(t, server);
}
