/**
 * Holds the documentation to the program: tables against their source, examples against the built server, links against files.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import t from 'tap';
import { forkMethod } from '../../src/main/acp/fork-method.ts';
import { initializeResponse, statusMethod } from '../../src/main/acp/initialize.ts';
import { rewindMethod } from '../../src/main/acp/rewind-method.ts';
import { steerMethod } from '../../src/main/acp/steer-method.ts';
import { modeState } from '../../src/main/acp/modes.ts';
import { parseCommandLine } from '../../src/main/cli/parse-command-line.ts';
import { flagOf } from '../../src/main/config/key-spelling.ts';
import { loadConfig } from '../../src/main/config/load-config.ts';
import { runFlagNames } from '../../src/main/cli/run-flags.ts';
import { sessionsFlagNames } from '../../src/main/cli/sessions-flags.ts';
import { keyNames } from '../../src/main/config/schema.ts';
import { defaultSelf } from '../../src/main/config/subagents/parse-subagents.ts';
import { builtInCommands } from '../../src/shared/commands/command-words.ts';
import { errorCatalogue } from '../../src/shared/errors.ts';
import { createToolRegistry, everyExtra } from '../../src/worker/tools/all-tools.ts';
import { rewindFlags } from '../../src/worker/commands/rewind-arguments.ts';
import { cliPath, projectRoot } from '../support/server-process.ts';

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'ARCHITECTURE.md',
  'docs/automation.md',
  'docs/configuration.md',
  'docs/editors.md',
  'docs/event-log.md',
  'docs/mcp.md',
  'docs/policy.md',
  'docs/run-outputs.md',
  'docs/runner.md',
  'docs/subagents.md',
  'docs/supervisor.md',
  'docs/telemetry.md',
  'examples/README.md',
];
const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');
const readme = read('README.md');
const packageJson = JSON.parse(read('package.json'));

function section(heading: string): string {
  const start = readme.indexOf(`\n## ${heading}\n`);
  if (start === -1) throw new Error(`README has no section "${heading}"`);
  const end = readme.indexOf('\n## ', start + 1);
  return readme.slice(start, end === -1 ? undefined : end);
}

/** The rows of the first table below a heading line, each as its cells; without the two head lines. */
function rowsOf(text: string, headLine: string): string[][] {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.startsWith(headLine));
  if (start === -1) throw new Error(`no table begins with ${headLine}`);
  const rest = lines.slice(start + 2);
  const end = rest.findIndex((line) => !line.startsWith('|'));
  return rest.slice(0, end === -1 ? undefined : end).map((line) =>
    line
      .slice(1, line.lastIndexOf('|'))
      .split('|')
      .map((cell) => cell.trim()),
  );
}

const unquoted = (cell: string | undefined): string => /^`([^`]+)`/.exec(cell ?? '')?.[1] ?? '';

function blocks(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map((match) => match[1] ?? '');
}

/** Words after which a flag is another program's. */
const foreign = /\b(?:npm (?:run|test|install|pack)|node --|jq|tail|head|tsc|git)\b/;

t.test('the table of errors is the catalogue: the same codes in the same order, numbers and advice', async (t) => {
  const rows = rowsOf(section('Errors'), '| code | JSON-RPC |');
  t.same(
    rows.map(([code, number, , advice]) => [unquoted(code), Number(number), advice]),
    Object.entries(errorCatalogue).map(([code, { rpcCode, hint }]) => [code, rpcCode, hint]),
  );
  for (const [code, , meaning] of rows) t.match(meaning, /^[A-Z`].{8,}\.$/, `${code} says what it means in a sentence`);
});

t.test('the tables of tools, modes, methods and capabilities are those of the program', async (t) => {
  const tools = createToolRegistry([defaultSelf()], everyExtra).schemas();
  t.same(
    rowsOf(section('Tools'), '| tool |')
      .map(([name]) => unquoted(name))
      .sort(),
    tools.map((tool) => tool.name).sort(),
  );
  t.same(
    rowsOf(section('Permissions'), '| mode |').map(([mode]) => unquoted(mode)),
    modeState('ask').availableModes.map((mode) => mode.id),
  );
  const source = read('src/main/acp/agent-app.ts');
  const registered = [...source.matchAll(/^ {6}methods\.agent\.([\w.]+),$|onNotification\(methods\.agent\.([\w.]+),/gm)].map(
    (match) => match[1] ?? match[2],
  );
  const documented = rowsOf(section('Protocol'), '| method |').map(([method]) => unquoted(method));
  const spelled = registered.map((name) => name?.replace('.', '/').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  t.same(new Set(documented), new Set([...spelled, '$/cancel_request', statusMethod, steerMethod, forkMethod, rewindMethod]));

  const { config } = await loadConfig({
    env: {},
    home: '/nowhere',
    cwd: '/',
    flags: new Map(),
    file: undefined,
    cores: 2,
    version: '0',
    ripgrepPath: undefined,
  });
  const capabilities = initializeResponse(config, 'editor', []).agentCapabilities ?? {};
  t.same(
    rowsOf(section('Protocol'), '| capability')
      .map(([name]) => unquoted(name))
      .sort(),
    [...Object.keys(capabilities).filter((name) => name !== '_meta'), '_meta["dsh-acp"]'].sort(),
  );
  const value = (name: string) => rowsOf(section('Protocol'), '| capability').find(([cell]) => unquoted(cell) === name)?.[1];
  const listed = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');
  t.equal(value('loadSession'), `\`${capabilities.loadSession}\``);
  t.equal(value('sessionCapabilities'), listed(Object.keys(capabilities.sessionCapabilities ?? {})));
  t.equal(value('_meta["dsh-acp"]'), listed(Object.keys(capabilities._meta?.['dsh-acp'] as object)));
  const promptKinds = [...(value('promptCapabilities') ?? '').matchAll(/`(\w+)`:/g)].map((match) => match[1]);
  t.same(promptKinds, Object.keys(capabilities.promptCapabilities ?? {}));
  t.match(
    capabilities.promptCapabilities,
    { image: false, audio: false, embeddedContext: true },
    'as it is said, for a model without eyes',
  );
  const commands = rowsOf(section('Prompts and commands'), '| command |').map(([name]) => /^`\/([a-z]+)/.exec(name ?? '')?.[1]);
  t.same(
    commands,
    builtInCommands.map(({ name }) => name),
  );
  t.equal(value('mcpCapabilities'), '`http` and `sse` are `true`, `false` for automation');
  t.same(capabilities.mcpCapabilities, { http: true, sse: true });
  t.same(initializeResponse(config, 'automation', []).agentCapabilities?.mcpCapabilities, { http: false, sse: false });
});

t.test('the configuration blocks can be parsed, and the server takes their arguments and settings', async (t) => {
  const page = read('docs/editors.md');
  const editors = blocks(page, 'json').map((block) => JSON.parse(block));
  t.equal(editors.length, 2);
  const [short = ''] = blocks(section('In your editor'), 'json');
  t.match(JSON.parse(short).agent_servers, { 'dsh-acp': { type: 'custom', command: 'dsh-acp', args: ['--model', 'scripted'] } });
  const commandLines: string[][] = [];
  for (const { agent_servers: servers } of editors) {
    t.equal(Object.keys(servers).length, 3, 'scripted, DeepSeek, and any other server');
    for (const { command, args = [] } of Object.values<{ command: string; args?: string[] }>(servers)) {
      const own = command === 'dsh-acp' ? args : args.slice(1);
      if (command !== 'dsh-acp') t.equal(args[0], '/path/to/dist/main/cli.js');
      commandLines.push(own);
    }
  }
  for (const language of ['lua', 'elisp']) {
    const [block = ''] = blocks(page, language);
    t.match(block, /"--model",? "scripted"/);
    t.match(block, /DEEPSEEK_API_KEY/);
    const [, args = ''] = /("--base-url"[^})]*)/.exec(block) ?? [];
    commandLines.push([...args.matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? ''));
  }
  t.equal(commandLines.length, 8);
  const load = async (argv: readonly string[], file?: string) => {
    const { flags } = parseCommandLine(argv);
    return await loadConfig({ env: {}, home: '/nowhere', cwd: '/', flags, file, cores: 2, version: '0', ripgrepPath: undefined });
  };
  for (const argv of commandLines) {
    const { config } = await load(argv);
    const expected = argv.includes('--base-url') ? 'openai-compatible' : 'scripted';
    t.equal(config.session.model.kind, expected, argv.join(' '));
  }
  for (const block of [...blocks(readme, 'toml'), ...blocks(read('docs/configuration.md'), 'toml')]) {
    t.ok(parseToml(block));
    const file = join(t.testdir({ 'config.toml': block }), 'config.toml');
    t.equal((await load([], file)).config.session.mode, 'accept-edits');
  }
});

t.test('every flag and variable that the documentation names exists', async (t) => {
  const known = new Set([
    ...keyNames.map((name) => flagOf(name)),
    ...runFlagNames.map((name) => `--${name}`),
    ...sessionsFlagNames.map((name) => `--${name}`),
    ...rewindFlags,
    '--config',
    '--format',
    '--help',
    '--version',
    '--login',
    '--key-stdin',
  ]);
  const variables = new Set([...keyNames.map((name) => `DSH_ACP_${name.toUpperCase()}`), 'DSH_ACP_CONFIG', 'DSH_ACP_CODE_CACHE']);
  // Contributors use flags of other programs, and the history names what may be gone.
  const others = ['CONTRIBUTING.md', 'CHANGELOG.md'];
  for (const page of [...pages.filter((one) => !others.includes(one)), 'examples/coding-tasks/README.md']) {
    for (const line of read(page).split('\n')) {
      if (!foreign.test(line)) for (const [flag] of line.matchAll(/(?<![\w-])--[a-z][a-z-]+/g)) t.ok(known.has(flag), `${page}: ${flag}`);
      for (const [name] of line.matchAll(/\bDSH_ACP_[A-Z_]*[A-Z]/g)) t.ok(variables.has(name), `${page}: ${name}`);
    }
  }
});

t.test('scripts and keys of package.json are as documented', async (t) => {
  for (const page of pages) {
    for (const [, script = ''] of read(page).matchAll(/\bnpm run ([a-z:-]+)/g))
      t.ok(packageJson.scripts[script], `${page}: npm run ${script}`);
  }
  t.same(packageJson.bin, { 'dsh-acp': 'dist/main/cli.js' });
  const [, minimum] = /^>=(\d+\.\d+)$/.exec(packageJson.engines.node) ?? [];
  for (const page of ['README.md', 'CONTRIBUTING.md']) t.match(read(page), `Node ${minimum} or newer`, page);
  t.match(read('CHANGELOG.md'), new RegExp(`^## \\[Unreleased\\]$`, 'm'));
  t.match(read('CHANGELOG.md'), packageJson.version);
});

/** GitHub's anchor of a heading, for the plain headings used here. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

t.test('links between the documents lead to files and headings that exist', async (t) => {
  let links = 0;
  for (const page of pages) {
    for (const [, target = ''] of read(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      links += 1;
      const [file = '', anchor] = target.split('#');
      const path = file === '' ? page : join(dirname(page), file);
      t.ok(existsSync(join(projectRoot, path)), `${page}: ${target}`);
      if (anchor === undefined) continue;
      const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map((match) => anchorOf(match[1] ?? ''));
      t.ok(headings.includes(anchor), `${page}: ${target}`);
    }
    for (const [, path = ''] of read(page).matchAll(/`((?:src|test|docs|schemas|scripts|bench|examples)\/[\w./-]*)`/g)) {
      t.ok(existsSync(join(projectRoot, path)), `${page}: ${path}`);
    }
  }
  t.ok(links > 8, `${links} links were found`);
});

t.test('the client in README runs two sessions on one server and ends with it', async (t) => {
  const marked = /<!-- automation example: begin[\s\S]*?-->\n([\s\S]*?)<!-- automation example: end -->/.exec(readme)?.[1] ?? '';
  const [example] = blocks(marked, 'js');
  t.ok(example);
  // Below the project, so that the example finds the SDK as it would where that is installed.
  const folder = t.testdir({ one: { 'a.txt': 'first' }, two: { 'b.txt': 'second' }, bin: {}, state: {} });
  writeFileSync(join(folder, 'run.mjs'), example ?? '');
  symlinkSync(cliPath, join(folder, 'bin', 'dsh-acp'));
  mkdirSync(join(folder, 'home'));
  const child = spawn(process.execPath, [join(folder, 'run.mjs'), 'run ls > seen.txt', join(folder, 'one'), join(folder, 'two')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env['PATH']}`,
      HOME: join(folder, 'home'),
      XDG_STATE_HOME: join(folder, 'state'),
    },
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), 30_000);
  t.teardown(() => {
    clearTimeout(timer);
    child.kill('SIGKILL');
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const code = await new Promise<number | null>((done) => child.on('close', done));
  t.equal(code, 0, stderr);
  t.equal(stderr, '', 'the server had nothing to complain about');
  const ends = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .sort((a, b) => (a.cwd < b.cwd ? -1 : 1));
  t.same(
    ends.map(({ cwd, stopReason }) => [cwd, stopReason]),
    [
      [join(folder, 'one'), 'end_turn'],
      [join(folder, 'two'), 'end_turn'],
    ],
  );
  for (const { text } of ends) t.match(text, /Tool calls: bash 1/);
  t.match(readFileSync(join(folder, 'one', 'seen.txt'), 'utf8'), 'a.txt', 'the command ran in its own workspace, with permission');
  t.match(readFileSync(join(folder, 'two', 'seen.txt'), 'utf8'), 'b.txt');
});

const noCheckout = existsSync(join(projectRoot, '.git')) ? false : 'not a checkout';

t.test('no tracked file names a package registry or a path of the machine it was written on', { skip: noCheckout }, async (t) => {
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: projectRoot, encoding: 'utf8' })
    .split('\0')
    .filter((file) => file !== '');
  t.ok(tracked.length > 100);
  // Put together here, so that this file does not hold what it looks for.
  const registries = ['npmjs.org', 'yarnpkg.com', 'npmmirror.com', 'pkg.github.com'].map(
    (host) => `(?:registry|npm)\\.${host.replaceAll('.', '\\.')}`,
  );
  const forbidden = new RegExp(registries.join('|'));
  const root = resolve(projectRoot);
  const home = homedir();
  // A path too short is a word of prose: `/root`, `/app`.
  const paths = [`${root}/`, `${home}/`].filter((path) => path.split('/').length > 3);
  for (const file of tracked) {
    if (!existsSync(join(projectRoot, file))) continue;
    const text = read(file);
    const found = [forbidden.exec(text)?.[0], ...paths.filter((path) => text.includes(path))].filter((hit) => hit !== undefined);
    if (found.length > 0) t.fail(`${file} names ${found.join(', ')}`);
  }
});
