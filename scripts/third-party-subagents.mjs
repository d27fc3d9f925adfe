/**
 * Agents that others wrote, as subagents of the built server: the SDK's example agent, OpenCode and Gemini CLI from npm, against
 * a model server on loopback. Usage: `npm run test:third-party-subagents`.
 *
 * The agents are installed at pinned versions into a cache folder of the user and never into this project. Ends 0 only if every
 * check has passed and no process of any of them is left.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { setupOrExit } from './setup.mjs';
import { root } from './source-stamp.mjs';
import { answer, startTwoWireModel } from './two-wire-model.mjs';

const packages = { '@agentclientprotocol/sdk': '1.0.0', 'opencode-ai': '1.18.33', '@google/gemini-cli': '0.61.0' };
const turnTimeoutMs = 120_000;
const endDeadlineMs = 15_000;

const run = promisify(execFile);

/** Installs the agents; gives the folder of their packages. */
async function install() {
  const base = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const name = Object.entries(packages)
    .map(([one, version]) => `${one.replace(/^.*\//, '')}-${version}`)
    .join('-');
  const folder = join(base, 'dsh-acp', `third-party-${name}`);
  const modules = join(folder, 'node_modules');
  if (Object.keys(packages).every((one) => existsSync(join(modules, one, 'package.json')))) return modules;
  console.log(`installing ${Object.keys(packages).join(', ')} into the cache`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }));
  const wanted = Object.entries(packages).map(([one, version]) => `${one}@${version}`);
  await run('npm', ['install', '--save-exact', '--no-audit', '--no-fund', '--no-progress', ...wanted], {
    cwd: folder,
    timeout: 600_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  return modules;
}

/** A home with settings that point OpenCode and Gemini CLI at the local model, and one that names the three as subagents. */
function prepare(scratch, modules, port) {
  const homes = { opencode: join(scratch, 'opencode-home'), gemini: join(scratch, 'gemini-home') };
  mkdirSync(join(homes.opencode, '.config', 'opencode'), { recursive: true });
  mkdirSync(join(homes.gemini, '.gemini'), { recursive: true });
  const local = {
    npm: '@ai-sdk/openai-compatible',
    options: { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'none' },
    models: { mock: {} },
  };
  writeFileSync(
    join(homes.opencode, '.config', 'opencode', 'opencode.json'),
    JSON.stringify({ model: 'local/mock', small_model: 'local/mock', autoupdate: false, share: 'disabled', provider: { local } }),
  );
  writeFileSync(
    join(homes.gemini, '.gemini', 'settings.json'),
    JSON.stringify({
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { enableAutoUpdate: false },
      privacy: { usageStatisticsEnabled: false },
    }),
  );
  const config = `
[[subagents]]
name = "example"
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(join(modules, '@agentclientprotocol/sdk/dist/examples/agent.js'))}]
permission = "reject"

[[subagents]]
name = "opencode"
command = ${JSON.stringify(join(modules, '.bin/opencode'))}
args = ["acp"]
[subagents.env]
HOME = ${JSON.stringify(homes.opencode)}

[[subagents]]
name = "gemini"
command = ${JSON.stringify(join(modules, '.bin/gemini'))}
args = ["--acp", "-m", "gemini-2.5-flash"]
[subagents.env]
HOME = ${JSON.stringify(homes.gemini)}
GEMINI_API_KEY = "none"
GOOGLE_GEMINI_BASE_URL = "http://127.0.0.1:${port}"
`;
  writeFileSync(join(scratch, 'config.toml'), config, { mode: 0o600 });
}

/** One server with one session, over raw frames. */
class Server {
  #waiting = new Map();
  #next = 1;
  updates = [];

  constructor(scratch) {
    const args = [join(root, 'dist/main/cli.js'), '--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access'];
    this.child = spawn(process.execPath, [...args, '--config', join(scratch, 'config.toml'), '--state-dir', join(scratch, 'state')], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, HOME: scratch, TMPDIR: scratch },
    });
    this.ended = new Promise((resolve) => this.child.on('exit', (code, signal) => resolve(code ?? signal)));
    createInterface({ input: this.child.stdout }).on('line', (line) => this.#take(JSON.parse(line)));
  }

  request(method, params) {
    const id = this.#next++;
    const settled = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    const late = sleep(turnTimeoutMs, undefined, { ref: false }).then(() => Promise.reject(new Error(`${method} was not answered`)));
    return Promise.race([settled, late]);
  }

  #take(frame) {
    if (frame.method === 'session/update') this.updates.push(frame.params.update);
    const waiting = this.#waiting.get(frame.id);
    if (frame.error !== undefined) waiting?.reject(new Error(JSON.stringify(frame.error)));
    else waiting?.resolve(frame.result);
  }

  /** Delegates and gives what the parent's model got: the result of the call, from the session's log. */
  async delegate(sessionId, scratch, agent, prompt) {
    const before = toolResults(scratch).length;
    await this.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: `delegate ${agent} ${prompt}` }] });
    const result = toolResults(scratch)[before];
    if (result === undefined) throw new Error('the call has no result in the log');
    return result;
  }
}

function toolResults(scratch) {
  const folder = join(scratch, 'state');
  const logs = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.name.endsWith('.jsonl'));
  return logs
    .flatMap((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8').split('\n'))
    .filter((line) => line.includes('"tool/result"'))
    .map((line) => JSON.parse(line).data);
}

function expect(condition, what, shown) {
  if (!condition) throw new Error(`${what}\n${JSON.stringify(shown ?? '').slice(0, 3000)}`);
}

async function leftovers(scratch) {
  const { stdout } = await run('ps', ['-A', 'e', '-o', 'pid=,args='], { maxBuffer: 64 * 1024 * 1024 });
  return stdout.split('\n').filter((line) => line.includes(scratch) && !line.includes('ps -A'));
}

const checks = {
  "the SDK's example agent, its question rejected": async (server, sessionId, scratch) => {
    const result = await server.delegate(sessionId, scratch, 'example', 'show what you can do');
    expect(!result.isError && result.text.includes('understand'), 'its text did not arrive', result);
  },
  'OpenCode answers with what the local model said': async (server, sessionId, scratch) => {
    const result = await server.delegate(sessionId, scratch, 'opencode', 'say something');
    expect(!result.isError && result.text.includes(answer), 'its text did not arrive', result);
  },
  'Gemini CLI answers with what the local model said': async (server, sessionId, scratch) => {
    const result = await server.delegate(sessionId, scratch, 'gemini', 'say something');
    expect(!result.isError && result.text.includes(answer), 'its text did not arrive', result);
  },
};

async function main() {
  await setupOrExit();
  const modules = await install();
  const model = await startTwoWireModel();
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-3p-agents-')));
  const workspace = join(scratch, 'workspace');
  mkdirSync(workspace);
  prepare(scratch, modules, model.port);
  const server = new Server(scratch);
  let failed = 0;
  const check = async (name, body) => {
    const start = performance.now();
    try {
      await body();
      console.log(`ok      ${name}  ${((performance.now() - start) / 1000).toFixed(1)} s`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error instanceof Error ? error.message : String(error)}`);
    }
  };
  try {
    await server.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await server.request('session/new', { cwd: workspace, mcpServers: [] });
    for (const [name, body] of Object.entries(checks)) await check(name, () => body(server, sessionId, scratch));
    await check('nothing is left once the server has ended', async () => {
      server.child.stdin.end();
      expect((await server.ended) === 0, 'the server did not end in order');
      const deadline = performance.now() + endDeadlineMs;
      let left = await leftovers(scratch);
      for (; left.length > 0 && performance.now() < deadline; left = await leftovers(scratch)) await sleep(100);
      expect(left.length === 0, 'processes are left', left);
    });
  } finally {
    server.child.kill('SIGKILL');
    model.close();
    rmSync(scratch, { recursive: true, force: true });
  }
  console.log(`${Object.keys(checks).length + 1 - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

try {
  await main();
} catch (error) {
  console.error(`the agents could not be driven: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
