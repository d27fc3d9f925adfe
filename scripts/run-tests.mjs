/**
 * Runs the compiled tests and ends with the line `N passed, N failed`.
 *
 * tap is the library the tests are written with; its own runner is not used, as it costs half a second a file in
 * loaders that compiled tests do not need. Usage: `npm test -- [--jobs=N] [part of a path ...]`.
 *
 * Tests that measure how soon something happens run first and one at a time, then those that start whole servers, three at a time: they
 * wait more than they work. All the while the others run behind them, in what these leave of the cores, several small files to a process.
 */
import { existsSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setup } from './setup.mjs';
import { root } from './source-stamp.mjs';
import { killAllTests, runTests } from './test-process.mjs';

const testRoot = 'build/test';
const serverFolders = ['lifecycle', 'e2e', 'fault', 'snapshot', 'conversations'];
const serverJobs = 3;
/** Begun first, so that none of them still runs on one core when all others have ended. */
const longest = ['snapshot/snapshot', 'e2e/checklist', 'e2e/protocol-prompts', 'e2e/packed', 'e2e/protocol-sessions', 'fault/disk'];
const alone = ['lifecycle/isolation', 'fault/slow-reader', 'fault/thread-death', 'fault/shutdown'];
/** Long by themselves, or looking at their own process: these do not share one. The longest first. */
const apart = [
  'simulation/simulation',
  'simulation/simulation-more',
  'unit/main/transport/agent-stream',
  'unit/worker/log/log-damage',
  'unit/worker/broker/subagents/subagents',
  'unit/worker/broker/mcp/mcp-servers',
  'unit/worker/broker/subagents/child-pool',
  'unit/worker/broker/broker',
  'fuzz/fuzz',
  'unit/shared/log/session-lock',
  'unit/worker/broker/subagents/campaign',
  'unit/worker/agent/agent-races',
  'unit/worker/tools/files',
  'unit/main/cli/sessions',
  'unit/main/transport/stdout-guard',
];
const groupSize = 12;
/** How far the filling goes behind tests that measure, and behind servers: not so far that it starves on a machine with other work. */
const [behindMeasuring, behindServers] = [10, 5];

function parseArguments(args) {
  const jobs = args.find((arg) => arg.startsWith('--jobs='));
  const filters = args.filter((arg) => !arg.startsWith('--'));
  const unknown = args.find((arg) => arg.startsWith('--') && !arg.startsWith('--jobs='));
  if (unknown !== undefined) throw new Error(`unknown option ${unknown}; known is --jobs=N`);
  const count = jobs === undefined ? Math.min(4, availableParallelism() + 1) : Number(jobs.slice('--jobs='.length));
  if (!Number.isInteger(count) || count < 1) throw new Error('--jobs needs a whole number from 1 up');
  return { jobs: count, filters };
}

function testFiles(filters) {
  if (!existsSync(join(root, testRoot))) return [];
  return readdirSync(join(root, testRoot), { recursive: true })
    .map((file) => String(file).replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.test.js'))
    .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter.replace(/^test\//, '').replace(/\.ts$/, ''))))
    .sort();
}

const nameOf = (file) => file.replace(/\.test\.js$/, '');

/** Those named, in the order of the names, then the rest. */
function inOrder(files, names) {
  const place = (file) => (names.includes(nameOf(file)) ? names.indexOf(nameOf(file)) : names.length);
  return files.toSorted((one, other) => place(one) - place(other));
}

/** The files for one process each: neighbours together, as they load the same modules. */
function grouped(files) {
  return Array.from({ length: Math.ceil(files.length / groupSize) }, (_, index) => files.slice(index * groupSize, (index + 1) * groupSize));
}

const single = (files) => files.map((file) => [file]);

/** What each process is to run, in the order in which they begin. */
function queuesOf(files) {
  const queues = { measuring: [], servers: [], others: [], small: [] };
  for (const file of files) {
    const name = nameOf(file);
    if (alone.includes(name)) queues.measuring.push(file);
    else if (serverFolders.includes(name.split('/')[0])) queues.servers.push(file);
    else queues[apart.includes(name) ? 'others' : 'small'].push(file);
  }
  const { measuring, servers, others, small } = queues;
  return {
    measuring: single(measuring),
    servers: single(inOrder(servers, longest)),
    others: [...single(inOrder(others, apart)), ...grouped(small)],
  };
}

function report(result) {
  const mark = result.failures.length > 0 ? 'FAIL' : 'ok  ';
  const counts = `${result.passed} passed${result.failed > 0 ? `, ${result.failed} failed` : ''}${result.skipped > 0 ? `, ${result.skipped} skipped` : ''}`;
  console.log(`${mark} ${result.file.replace(/\.js$/, '.ts')}  ${counts}  ${result.seconds.toFixed(1)} s`);
  for (const failure of result.failures) {
    console.log(`  not ok: ${failure.name}`);
    for (const line of failure.lines) console.log(`      ${line}`);
  }
  if (result.failures.length > 0 && result.stderr.trim() !== '') {
    console.log(`  stderr of ${result.file}:`);
    for (const line of result.stderr.trim().split('\n').slice(-80)) console.log(`      ${line}`);
  }
}

/** Takes from the queue, with so many processes at a time, until it is empty. `niceness` may change between two processes. */
async function drain(queue, lanes, niceness, results) {
  const onResult = (result) => {
    results.push(result);
    report(result);
  };
  const lane = async () => {
    for (let files = queue.shift(); files !== undefined; files = queue.shift()) await runTests(files, { niceness: niceness(), onResult });
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function runAll({ measuring, servers, others }, jobs) {
  const results = [];
  let fillers = measuring.length > 0 ? behindMeasuring : servers.length > 0 ? behindServers : 0;
  const fill = (lanes) => drain(others, lanes, () => fillers, results);
  const first = () => 0;
  // With one job nothing runs beside anything.
  const filling = jobs === 1 ? [] : [fill(1)];
  await drain(measuring, 1, first, results);
  fillers = behindServers;
  if (jobs > 1) filling.push(fill(1));
  await drain(servers, Math.min(jobs, serverJobs), first, results);
  fillers = 0;
  await Promise.all([...filling, fill(Math.max(1, jobs - filling.length))]);
  return results;
}

function stopOnSignal() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      killAllTests();
      process.exit(130);
    });
  }
}

async function main() {
  const { jobs, filters } = parseArguments(process.argv.slice(2));
  await setup({ tests: true });
  stopOnSignal();
  const files = testFiles(filters);
  const start = performance.now();
  const results = await runAll(queuesOf(files), jobs);
  const total = (key) => results.reduce((sum, result) => sum + result[key], 0);
  const failedFiles = results.filter((result) => result.failures.length > 0);
  if (files.length === 0) console.log(filters.length === 0 ? 'no test files were found' : `no test file matches ${filters.join(' ')}`);
  if (failedFiles.length > 0) {
    console.log('\nfailed:');
    for (const failure of failedFiles.flatMap((result) => result.failures)) console.log(`  ${failure.name}`);
  }
  const skipped = total('skipped');
  console.log(
    `\n${results.length} files in ${((performance.now() - start) / 1000).toFixed(0)} s${skipped > 0 ? `, ${skipped} tests skipped` : ''}`,
  );
  const [passed, failed] = [total('passed'), total('failed')];
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
  console.log(`${passed} passed, ${failed} failed`);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  console.log('0 passed, 1 failed');
  process.exitCode = 1;
}
