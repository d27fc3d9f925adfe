/**
 * Drives the built server with a client that others wrote: `acpx` from npm, as it comes. Usage: `npm run test:third-party`.
 *
 * acpx needs a newer Node than this project, so both are installed, at pinned versions, into a cache folder of the user and never
 * into this project. Everything else happens in a scratch folder that is removed. Ends 0 only if every check has passed.
 */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { setupOrExit } from './setup.mjs';
import { root } from './source-stamp.mjs';

const versions = { acpx: '0.19.1', node: '24.21.0' };
const commandTimeoutMs = 60_000;
const endDeadlineMs = 10_000;

const run = promisify(execFile);

/** Installs the client and its Node; gives the paths of both. */
async function install() {
  const base = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const folder = join(base, 'dsh-acp', `third-party-acpx-${versions.acpx}-node-${versions.node}`);
  const client = { node: join(folder, 'node_modules/node/bin/node'), acpx: join(folder, 'node_modules/acpx/dist/cli.js') };
  if (existsSync(client.node) && existsSync(client.acpx)) return client;
  console.log(`installing acpx ${versions.acpx} and node ${versions.node} into the cache`);
  mkdirSync(folder, { recursive: true });
  // The package `node` fetches its binary in an install script, which a newer npm runs only when it is named.
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, allowScripts: { node: true, esbuild: true } }));
  const packages = Object.entries(versions).map(([name, version]) => `${name}@${version}`);
  await run('npm', ['install', '--save-exact', '--no-audit', '--no-fund', '--no-progress', '--ignore-scripts=false', ...packages], {
    cwd: folder,
    timeout: 10 * commandTimeoutMs,
  });
  if (!existsSync(client.node))
    throw new Error(`npm installed the package node without its binary; remove ${folder} and look at npm's ignore-scripts`);
  return client;
}

class Bench {
  constructor(client) {
    this.client = client;
    this.scratch = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-3p-')));
    this.workspace = join(this.scratch, 'workspace');
    this.home = join(this.scratch, 'home');
    mkdirSync(this.workspace);
    mkdirSync(this.home);
    // On the Node that runs this script: the one this project supports, not the client's.
    this.agent = [process.execPath, join(root, 'dist/main/cli.js'), '--model', 'scripted', '--state-dir', join(this.scratch, 'state')]
      .map((part) => JSON.stringify(part))
      .join(' ');
  }

  /** Starts acpx in the workspace; fulfils with its exit code and everything it said. */
  acpx(...args) {
    return new Promise((resolve, reject) => {
      const child = spawn(this.client.node, [this.client.acpx, '--agent', this.agent, ...args], {
        cwd: this.workspace,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { PATH: process.env.PATH, HOME: this.home, TMPDIR: this.scratch },
        timeout: commandTimeoutMs,
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
      child.on('error', reject);
      child.on('exit', (code, signal) => resolve({ code, signal, output }));
    });
  }

  file(name) {
    const path = join(this.workspace, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  /** Command lines of processes that were started for this run. */
  async processes() {
    const { stdout } = await run('ps', ['-A', '-o', 'pid=,args='], { maxBuffer: 64 * 1024 * 1024 });
    return stdout.split('\n').filter((line) => line.includes(this.scratch) || line.includes(sleepMark));
  }

  async none(what, matches = () => true) {
    const deadline = performance.now() + endDeadlineMs;
    for (;;) {
      const left = (await this.processes()).filter(matches);
      if (left.length === 0) return;
      if (performance.now() > deadline) throw new Error(`${what}: ${left.join(' | ').slice(0, 500)}`);
      await sleep(50);
    }
  }

  async dispose() {
    for (const line of await this.processes()) {
      try {
        process.kill(Number.parseInt(line, 10), 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    }
    rmSync(this.scratch, { recursive: true, force: true });
    // acpx keeps its sockets outside of the home that it is given, under a name made of it.
    rmSync(join('/tmp', `acpx-${createHash('sha256').update(this.home).digest('hex').slice(0, 10)}`), { recursive: true, force: true });
  }
}

/** A length of sleep that nothing else on this machine will ask for. */
const sleepMark = `sleep 61.${process.pid}`;
/** How long acpx keeps a server for a session that is not used, in seconds. A prompt that comes just then fails in acpx itself. */
const brief = ['--ttl', '4'];
const long = ['--ttl', '60'];

function expect(condition, what, shown) {
  if (!condition) throw new Error(`${what}\n${String(shown ?? '').slice(-3000)}`);
}

function expectParts(result, parts) {
  expect(result.code === 0, `acpx ended with ${result.code ?? result.signal}`, result.output);
  for (const part of parts) expect(result.output.includes(part), `${JSON.stringify(part)} is missing in the output`, result.output);
}

const checks = {
  'one-shot exec: read, search, run, edit, plan': async (bench) => {
    writeFileSync(join(bench.workspace, 'a.txt'), 'alpha\nbeta\n');
    const script =
      'read a.txt\n& grep alpha\nrun echo out-of-the-command; exit 3\nedit a.txt /alpha/ALPHA/\ntodo x look; *change\nsay all done';
    const result = await bench.acpx('--approve-all', 'exec', script);
    const cards = ['Read a.txt (completed)', 'Search alpha (completed)', 'Edit a.txt (completed)', 'out-of-the-command', 'Exit code 3'];
    expectParts(result, [...cards, '[in_progress] change', 'all done', '[done] end_turn']);
    expect(bench.file('a.txt') === 'ALPHA\nbeta\n', 'the file was not edited', bench.file('a.txt'));
    await bench.none('left after exec');
  },
  'one-shot exec: only reads are approved': async (bench) => {
    const flags = ['--approve-reads', '--non-interactive-permissions', 'deny', '--format', 'json'];
    const result = await bench.acpx(...flags, 'exec', 'read a.txt\nrun touch denied.txt');
    expect(result.code === 5, `acpx says with exit code 5 that it denied something, but ended with ${result.code}`, result.output);
    const frames = result.output.split('\n').filter((line) => line.startsWith('{'));
    expect(
      frames.some((line) => JSON.parse(line).result?.stopReason === 'end_turn'),
      'the turn did not end',
      result.output,
    );
    expect(result.output.includes('"optionId":"reject_once"'), 'acpx did not choose to reject', result.output);
    expect(bench.file('denied.txt') === undefined, 'a denied command ran');
  },
  'a session over three prompts and a restart of the server': async (bench) => {
    expectParts(await bench.acpx('sessions', 'new', '--name', 'one'), []);
    const first = await bench.acpx('--approve-all', ...brief, 'prompt', '-s', 'one', 'write n.txt <<EOF\nhello\nEOF\nsay first');
    expectParts(first, ['Write n.txt (completed)', 'first', '[done] end_turn']);
    expectParts(await bench.acpx('--approve-all', ...brief, 'prompt', '-s', 'one', 'edit n.txt /hello/bye/\nsay second'), ['second']);
    await bench.none('the idle server did not end', (line) => line.includes('cli.js'));
    const third = await bench.acpx('--approve-all', ...long, 'prompt', '-s', 'one', 'read n.txt\nsay third');
    expectParts(third, ['session/resume', 'bye', 'third', '[done] end_turn']);
    expect(!third.output.includes('session/new'), 'the session was not resumed but replaced', third.output);
  },
  'a running command is cancelled': async (bench) => {
    const prompt = bench.acpx('--approve-all', ...long, 'prompt', '-s', 'one', `run touch started; ${sleepMark}`);
    while (bench.file('started') === undefined) {
      const ended = await Promise.race([prompt, sleep(50)]);
      expect(ended === undefined, 'the prompt ended before it was cancelled', ended?.output);
    }
    const start = performance.now();
    expectParts(await bench.acpx('cancel', '-s', 'one'), []);
    const { output } = await prompt;
    expect(output.includes('cancelled'), 'the prompt does not say that it was cancelled', output);
    await bench.none('the cancelled command runs on', (line) => line.includes(sleepMark) && !line.includes('cli.js'));
    return `${(performance.now() - start).toFixed(0)} ms`;
  },
  'a mode is set and holds': async (bench) => {
    expectParts(await bench.acpx(...long, 'set-mode', 'read-only', '-s', 'one'), []);
    const result = await bench.acpx('--approve-all', ...long, 'prompt', '-s', 'one', 'edit n.txt /bye/never/');
    expect(result.output.includes('read-only'), 'the edit was not refused', result.output);
    expect(bench.file('n.txt') === 'bye\n', 'the file was changed in read-only mode', bench.file('n.txt'));
  },
  'sessions are listed and closed, and nothing is left': async (bench) => {
    const list = await bench.acpx('sessions', 'list');
    expectParts(list, ['write n.txt', bench.workspace]);
    expectParts(await bench.acpx('sessions', 'close', 'one'), []);
    await bench.none('left after close');
  },
};

async function main() {
  await setupOrExit();
  const client = await install();
  const { stdout } = await run(client.node, ['--version']);
  console.log(`acpx ${versions.acpx} on node ${stdout.trim()} drives dsh-acp on node ${process.version}`);
  const bench = new Bench(client);
  let failed = 0;
  try {
    for (const [name, check] of Object.entries(checks)) {
      const start = performance.now();
      try {
        const note = await check(bench);
        console.log(`ok      ${name}  ${((performance.now() - start) / 1000).toFixed(1)} s${note === undefined ? '' : ` (${note})`}`);
      } catch (error) {
        failed += 1;
        console.log(`FAILED  ${name}\n${error instanceof Error ? error.message : String(error)}`);
      }
    }
  } finally {
    await bench.dispose();
  }
  console.log(`${Object.keys(checks).length - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

try {
  await main();
} catch (error) {
  console.error(`the third-party client could not be used: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
