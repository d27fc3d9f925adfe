/**
 * Runs the compiled tests, each file in a process of its own, and ends with the line `N passed, N failed`.
 *
 * tap is the library the tests are written with; its own runner is not used, as it costs half a second a file in
 * loaders that compiled tests do not need. Usage: `npm test -- [--jobs=N] [part of a path ...]`.
 *
 * Cheap tests share the cores. Tests that start whole servers wait more than they work, so three of them run at a time; those that
 * measure how soon something happens run alone.
 */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setup } from './setup.mjs';
import { root } from './source-stamp.mjs';
import { createTapCounter } from './tap-count.mjs';

const testRoot = 'build/test';
const serverFolders = ['lifecycle', 'e2e', 'fault', 'snapshot', 'conversations'];
const serverJobs = 3;
/** Begun first, so that none of them still runs on one core when all others have ended. */
const longest = ['snapshot/snapshot', 'e2e/checklist', 'e2e/protocol-prompts', 'e2e/packed', 'e2e/protocol-sessions', 'fault/disk'];
const alone = ['lifecycle/isolation', 'fault/slow-reader', 'fault/thread-death', 'fault/shutdown'];
const fileTimeoutMs = 120_000;
const stderrLimit = 64 * 1024;

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

function longestFirst(files) {
  const place = (file) => (longest.includes(nameOf(file)) ? longest.indexOf(nameOf(file)) : longest.length);
  return files.toSorted((one, other) => place(one) - place(other));
}

/** Ends the file's whole process group, so that no server that it started stays behind. */
function killGroup(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL'); // No process group on this platform, or it is gone already.
  }
}

const running = new Set();

/** Runs one file to its end; never rejects. */
function runFile(file) {
  return new Promise((resolve) => {
    const start = performance.now();
    const counter = createTapCounter(file.replace(/\.js$/, ''));
    const child = spawn(process.execPath, ['--enable-source-maps', join(root, testRoot, file)], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
      env: { ...process.env, TAP: '1', TAP_TIMEOUT: '60', NO_COLOR: '1' },
    });
    running.add(child);
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child);
    }, fileTimeoutMs);
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines) counter.line(line);
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr = (stderr + text).slice(-stderrLimit);
    });
    let finished = false;
    const finish = (code, signal, problem) => {
      if (finished) return;
      finished = true;
      clearTimeout(timer);
      running.delete(child);
      killGroup(child);
      if (rest !== '') counter.line(rest);
      const outcome = counter.end();
      const fault = problem ?? (timedOut ? `took longer than ${fileTimeoutMs / 1000} s` : undefined);
      const bad = fault ?? (code === 0 ? undefined : `ended with ${code ?? signal}`);
      if (bad !== undefined && outcome.failures.length === 0) {
        outcome.failed += 1;
        outcome.failures.push({ name: file, lines: [bad] });
      }
      resolve({ file, ...outcome, stderr, seconds: (performance.now() - start) / 1000 });
    };
    child.on('error', (error) => finish(null, null, error.message));
    // Not on `close` alone: a left-over grandchild can hold the pipes open for ever.
    child.on('close', (code, signal) => finish(code, signal));
    child.on('exit', (code, signal) => setTimeout(() => finish(code, signal), 2_000).unref());
  });
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

async function runAll(files, jobs, results) {
  const waiting = [...files];
  const lane = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const result = await runFile(file);
      results.push(result);
      report(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, lane));
}

function stopOnSignal() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      for (const child of running) killGroup(child);
      process.exit(130);
    });
  }
}

async function main() {
  const { jobs, filters } = parseArguments(process.argv.slice(2));
  await setup({ tests: true });
  stopOnSignal();
  const files = testFiles(filters);
  const measuring = files.filter((file) => alone.some((name) => file.startsWith(`${name}.`)));
  const servers = files.filter((file) => serverFolders.includes(file.split('/')[0]) && !measuring.includes(file));
  const cheap = files.filter((file) => !serverFolders.includes(file.split('/')[0]));
  const start = performance.now();
  const results = [];
  await runAll(cheap, jobs, results);
  await runAll(longestFirst(servers), Math.min(jobs, serverJobs), results);
  await runAll(measuring, 1, results);
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
