/**
 * Makes a report as a run of 200 jobs would leave it, and pictures of it with headless Chromium where that is installed: wide and
 * narrow, light and dark. A few sessions are real, run by the built server with its scripted model; the other results are made up.
 *
 * Usage: `npm run compile && npm run build && node scripts/report-pictures.mjs [directory [jobs]]`. For looking at, not a test; with
 * 10,000 jobs it says how long a large report takes.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { root } from './source-stamp.mjs';

const build = (path) => import(join(root, 'build', path));
const { createObservers } = await build('src/main/run/view/create-observers.js');
const { transcriptName } = await build('src/main/run/report/page-names.js');
const { eventsOf, outcomeOf, sampleRandom, sampleStart, variedResult } = await build('test/support/run-samples.js');

const out = resolve(process.argv[2] ?? mkdtempSync(join(tmpdir(), 'dsh-acp-pictures-')));
const jobs = Number(process.argv[3] ?? 200);
const hostile = '<script>alert(1)</script> \u001b[31mred\u001b[0m \u202Etxt.exe\u202C zero\u200Bwidth';

/** What each real session is asked, in the language of the scripted model. */
const sessions = [
  [
    `think The stock rules are in src/stock.js, so I look there first.
say I will read the project and run its tests.
todo *Read the project; Run the tests; Mend the fault
read README.md
& read src/stock.js
grep minimum in src
run node test/inventory.test.js
say The tests have run. Next I mend the comparison.`,
    `say I mend the comparison and run the tests again.
edit src/stock.js /item.quantity < item.minimum/item.quantity <= item.minimum/
run node test/inventory.test.js
write notes.md <<EOF
# Notes

The comparison takes in the minimum itself.
EOF
todo x Read the project; x Run the tests; x Mend the fault
say The comparison now takes in the minimum itself, and the tests pass.`,
  ],
  [
    `say This session meets trouble.
read no/such/file.txt
run printf '%s\\n' "${hostile.replaceAll('"', '')}" && exit 3
run sleep 0.2; kill -9 $$
say ${hostile}`,
  ],
];

async function realResults(dir) {
  const stateDir = join(dir, 'state');
  const child = spawn(process.execPath, [join(root, 'dist/main/cli.js'), 'serve', '--model', 'scripted', '--state-dir', stateDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const results = [];
  await client({ name: 'report-pictures' })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      const option = params.options.find((each) => each.kind === 'allow_once');
      return { outcome: { outcome: 'selected', optionId: option.optionId } };
    })
    .onNotification(methods.client.session.update, () => undefined)
    .connectWith(stream, async (agent) => {
      await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
      for (const [index, prompts] of sessions.entries()) results.push(await oneSession(agent, { dir, stateDir, index, prompts }));
    });
  child.stdin.end();
  return results;
}

async function oneSession(agent, { dir, stateDir, index, prompts }) {
  const cwd = join(dir, `workspace-${index}`);
  mkdirSync(cwd, { recursive: true });
  cpSync(join(root, 'examples/inventory'), cwd, { recursive: true });
  spawnSync('git', ['init', '-q'], { cwd });
  spawnSync('git', ['add', '-A'], { cwd });
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  let stopReason;
  for (const text of prompts) {
    ({ stopReason } = await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] }));
  }
  const patch = spawnSync('git', ['diff'], { cwd, encoding: 'utf8' }).stdout;
  return { stopReason, sessionId, logPath: join(stateDir, 'sessions', `${sessionId}.jsonl`), ...(patch === '' ? {} : { patch }) };
}

function allResults(real) {
  const random = sampleRandom(7);
  return Array.from({ length: jobs }, (_, index) => {
    const result = variedResult(index, random);
    if (index === 4) return { ...result, key: `${hostile}/${'long-'.repeat(30)}`, labels: { [hostile]: hostile } };
    const status = ['passed', 'failed'][index];
    if (real[index] === undefined) return result;
    const output = index === 0 ? 'ok 12 tests\n' : `not ok 1 - ${hostile}\n`;
    return { ...result, ...real[index], status, error: undefined, check: { exitCode: index, signal: null, timedOut: false, output } };
  });
}

async function makeReport(dir) {
  const results = allResults(await realResults(dir));
  const resultsPath = join(dir, 'results.jsonl');
  writeFileSync(
    resultsPath,
    results
      .filter(({ status }) => status !== 'cancelled')
      .map((result) => `${JSON.stringify(result)}\n`)
      .join(''),
  );
  const events = eventsOf(results, 16);
  const wallMs = events.at(-1).time - sampleStart;
  const outcome = outcomeOf(results, { total: jobs + 12, notRun: 12, wallMs, stopped: 'max-cost' });
  const paths = {
    reportPath: join(dir, 'report.html'),
    junitPath: join(dir, 'junit.xml'),
    trajectoriesPath: join(dir, 'trajectories.jsonl'),
  };
  const [observer] = createObservers({
    mode: 'plain',
    stdout: process.stdout,
    stderr: process.stderr,
    resultsPath,
    ...paths,
    now: () => sampleStart + wallMs,
  });
  for (const event of events) observer.onEvent(event);
  const started = performance.now();
  await observer.finish(outcome);
  console.log(`files made in ${((performance.now() - started) / 1000).toFixed(1)} s`);
  return paths.reportPath;
}

const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path));

function picture(page, name, { width, height, dark }) {
  const profile = mkdtempSync(join(tmpdir(), 'dsh-acp-chromium-'));
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'];
  flags.push('--disable-component-update', '--disable-sync', '--hide-scrollbars', `--user-data-dir=${profile}`);
  flags.push(`--window-size=${width},${height}`, `--screenshot=${join(out, `${name}.png`)}`);
  if (dark) flags.push('--force-dark-mode', '--blink-settings=preferredColorScheme=0');
  const { status } = spawnSync(chromium, [...flags, `file://${page}`], { stdio: 'ignore', timeout: 60_000 });
  rmSync(profile, { recursive: true, force: true });
  console.log(`${name}.png ${status === 0 ? 'made' : 'failed'}`);
}

mkdirSync(out, { recursive: true });
const report = await makeReport(out);
console.log(`report: ${report}`);
if (chromium === undefined) console.log('Chromium is not installed: no pictures');
else {
  const pageOf = (key) => join(out, 'report/transcripts', transcriptName(key));
  const shots = { report, passed: pageOf('task-001'), failed: pageOf('task-001#2') };
  for (const [name, page] of Object.entries(shots)) {
    for (const dark of [false, true]) {
      picture(page, `${name}-wide${dark ? '-dark' : ''}`, { width: 1280, height: name === 'report' ? 1500 : 2600, dark });
      picture(page, `${name}-phone${dark ? '-dark' : ''}`, { width: 500, height: 2600, dark });
    }
  }
}
