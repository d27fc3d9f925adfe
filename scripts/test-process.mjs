/**
 * Runs compiled test files in one process to their end and reads the TAP text that it writes.
 *
 * Knows nothing of order and priority beyond what it is told. Never rejects: whatever goes wrong is a failure of the file it went wrong in.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { root } from './source-stamp.mjs';
import { createTapReader } from './tap-count.mjs';

const testRoot = join(root, 'build/test');
const groupScript = join(root, 'scripts/test-group.mjs');
/** For each file, also of a group. */
/** What runs behind others on a slow machine waits long for its turn: these are for what hangs. */
const fileTimeoutMs = 300_000;
/** For the end of the process behind its last file's. */
const endTimeoutMs = 10_000;
const stderrLimit = 64 * 1024;
/** The only one that speaks to servers of the world. */
const online = 'e2e/packed.test.js';

const running = new Set();

/** Ends a file's whole process group, so that no server that it started stays behind. */
function killGroup(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL'); // No process group on this platform, or it is gone already.
  }
}

export function killAllTests() {
  for (const child of running) killGroup(child);
}

function environment(files) {
  const env = { ...process.env, TAP: '1', TAP_TIMEOUT: '180', NO_COLOR: '1' };
  // Node reads these files at each start, which takes longer than the rest of it.
  if (!files.includes(online)) delete env.NODE_EXTRA_CA_CERTS;
  return env;
}

/** Lets the process and all that it will start go behind others. */
function makeNice(pid, niceness) {
  try {
    setPriority(pid, niceness);
    // Where Linux shares the cores between terminals' sessions first, each of these processes is one.
    if (process.platform === 'linux') writeFileSync(`/proc/${pid}/autogroup`, String(niceness));
  } catch {
    // It has ended, or the system does not let us: then it takes its share.
  }
}

/** One process; fulfils with the files that it did not come to. */
function runProcess(files, { niceness, onResult }) {
  return new Promise((resolve) => {
    const script = files.length === 1 ? [join(testRoot, files[0])] : [groupScript, ...files];
    const child = spawn(process.execPath, ['--enable-source-maps', ...script], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
      env: environment(files),
    });
    if (niceness > 0 && child.pid !== undefined) makeNice(child.pid, niceness);
    running.add(child);
    let timedOut = false;
    const kill = () => {
      timedOut = true;
      killGroup(child);
    };
    let timer = setTimeout(kill, fileTimeoutMs);
    let finished = false;
    let stderr = '';
    let start = performance.now();
    let failures = 0;
    const reader = createTapReader(files, (file, outcome) => {
      failures += outcome.failures.length;
      onResult({ file, ...outcome, stderr, seconds: (performance.now() - start) / 1000 });
      start = performance.now();
      stderr = '';
      clearTimeout(timer);
      if (!finished) timer = setTimeout(kill, reader.left.length > 0 ? fileTimeoutMs : endTimeoutMs);
    });
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines) reader.line(line);
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr = (stderr + text).slice(-stderrLimit);
    });
    const finish = (code, signal, problem) => {
      if (finished) return;
      finished = true;
      clearTimeout(timer);
      running.delete(child);
      killGroup(child);
      if (rest !== '') reader.line(rest);
      const ended = problem ?? (timedOut ? 'took too long' : code === 0 ? undefined : `ended with ${code ?? signal}`);
      const bad = ended ?? (files.length > 1 && reader.left.length > 0 ? 'ended too early' : undefined);
      const isTold = reader.end(bad) || (failures > 0 && !timedOut);
      if (bad !== undefined && !isTold) {
        // What a file left behind keeps the process, or has failed it.
        const file = files[files.length - reader.left.length - 1];
        const lines = [`its process ${bad} when it was done`, ...files];
        onResult({ file, passed: 0, failed: 1, skipped: 0, failures: [{ name: file, lines }], stderr, seconds: 0 });
      }
      resolve(reader.left);
    };
    child.on('error', (error) => finish(null, null, error.message));
    // Not on `close` alone: a left-over grandchild can hold the pipes open for ever.
    child.on('close', (code, signal) => finish(code, signal));
    child.on('exit', (code, signal) => setTimeout(() => finish(code, signal), 2_000).unref());
  });
}

/**
 * Runs the files, in one process as long as that lives.
 *
 * @param files paths below `build/test`
 * @param options.niceness 0 to 19: how far they go behind others
 * @param options.onResult called for each file as it ends
 */
export async function runTests(files, options) {
  for (let left = files; left.length > 0; ) left = await runProcess(left, options);
}
