/**
 * Starts and puts away many subagents at random moments, good and bad ones, fresh and warm, and looks at what is left:
 * processes, file descriptors, threads, listeners, timers, memory. Prints figures; exits 1 when anything is left.
 *
 * Usage: npm run campaign:subagents -- [--count=N] [--seed=N]. Needs `npm run compile`.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { root } from './source-stamp.mjs';

const atOnce = 8;
/** Memory may be this much above what it was after the first round. */
const allowedGrowthMb = 40;

const options = { count: 200, seed: Math.floor(Math.random() * 1e9) };
for (const argument of process.argv.slice(2)) {
  const [, name, value] = /^--(count|seed)=(\d+)$/.exec(argument) ?? [];
  if (name === undefined) throw new Error(`unknown option ${argument}; known are --count=N and --seed=N`);
  options[name] = Number(value);
}

const { Broker } = await import(join(root, 'build/src/worker/broker/broker.js'));
const { markedProcesses } = await import(join(root, 'build/src/shared/process-table.js'));
const { badProvider } = await import(join(root, 'build/test/support/subagent-rig.js'));

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

/** A small generator with a seed (mulberry32): a run can be repeated. */
let state = options.seed;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let x = Math.imul(state ^ (state >>> 15), 1 | state);
  x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
  return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
}
const pick = (list) => list[Math.floor(random() * list.length)];

const behaviours = [
  'good',
  'good',
  'slow',
  'mute',
  'dies-after',
  'daemon',
  'deaf',
  'late',
  'works',
  'asks',
  'answers-twice',
  'noise',
  'dies-before',
];
const graces = { disposeEofGraceMs: 500, disposeGraceMs: 200, permission: 'ask', maxRunning: 6 };
const providers = behaviours.flatMap((behaviour, index) => [
  badProvider(behaviour, { name: `fresh-${index}`, ...graces }),
  badProvider(behaviour, { name: `warm-${index}`, poolSize: 2, poolIdleMs: 1500, ...graces }),
]);

const folder = mkdtempSync(join(tmpdir(), 'campaign-'));
const mark = `campaign-${process.pid}-${options.seed}`;
const groups = new Set();
const ends = new Map();
const startTimes = [];
const disposeTimes = [];
let spawned = 0;

function makeBroker() {
  return new Broker({
    mark,
    ambient: process.env,
    subagents: providers,
    onGroupStarted: (pgid) => {
      groups.add(pgid);
      spawned += 1;
    },
    onGroupEnded: (pgid) => groups.delete(pgid),
  });
}

function measure() {
  collectGarbage();
  return {
    descriptors: readdirSync('/proc/self/fd').length,
    threads: Number(/Threads:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]),
    listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
    resources: process.getActiveResourcesInfo().length,
    heapMb: process.memoryUsage().heapUsed / 1024 / 1024,
    rssMb: process.memoryUsage().rss / 1024 / 1024,
  };
}

const count = (word) => ends.set(word, (ends.get(word) ?? 0) + 1);

/** Reads to the end, and answers whatever is asked, or not. */
async function follow(broker, { owner, runId }) {
  for (let seq = -1; ; ) {
    const answer = await broker.awaitSubagent(owner, runId, seq, 5000);
    if (!answer.ok || answer.value.result !== undefined) return answer.value?.result;
    for (const { questionId } of answer.value.questions) {
      if (random() < 0.8) await broker.answerSubagent(owner, runId, questionId, random() < 0.5);
    }
    seq = answer.value.seq;
  }
}

async function oneRun(broker, number) {
  const request = {
    owner: `session-${number % 20}`,
    runId: `run-${number}`,
    provider: pick(providers).name,
    prompt: 'work',
    cwd: folder,
    depth: 1,
    spillDir: join(folder, 'spill'),
  };
  const { owner, runId } = request;
  const startedAt = performance.now();
  const starting = broker.startSubagent(request);
  const patience = random() * 400;
  const way = pick(['dispose', 'cancel', 'release', 'wait']);
  if (random() < 0.3) await delay(random() * 100);
  else if ((await starting).ok) startTimes.push(performance.now() - startedAt);
  const following = starting.then((started) => (started.ok ? follow(broker, request) : undefined));
  const timer = new AbortController();
  const waited = delay(way === 'wait' ? patience + 1500 : patience, undefined, { signal: timer.signal }).catch(() => undefined);
  await (way === 'wait' ? Promise.race([following, waited]) : waited);
  timer.abort();
  if (way === 'cancel') await broker.cancelSubagent(owner, runId);
  if (way === 'release') await broker.releaseOwner(owner);
  const disposedAt = performance.now();
  await broker.disposeSubagent(owner, runId);
  disposeTimes.push(performance.now() - disposedAt);
  const started = await starting;
  count(started.ok ? ((await following)?.stopReason ?? 'forgotten') : `not started: ${started.code}`);
}

async function round(runs, first) {
  const broker = makeBroker();
  let next = first;
  const lane = async () => {
    while (next < first + runs) {
      const number = next;
      next += 1;
      await oneRun(broker, number);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  const shutdownAt = performance.now();
  await broker.shutdown();
  return performance.now() - shutdownAt;
}

const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))]?.toFixed(0) ?? '-';

console.log(`seed ${options.seed}: ${options.count} subagents, ${atOnce} at once`);
// The library is loaded and the code is warm after these.
await round(20, 0);
await delay(200);
const before = measure();
const startedAt = performance.now();
const shutdownMs = await round(options.count, 20);
const seconds = (performance.now() - startedAt) / 1000;
await delay(200);
const after = measure();
const left = markedProcesses(`${mark}/`).length;
rmSync(folder, { recursive: true, force: true });

console.log(`${spawned} processes were started in ${seconds.toFixed(1)} s; the last shutdown took ${shutdownMs.toFixed(0)} ms`);
console.log(
  `start p50 ${quantile(startTimes, 0.5)} ms, p95 ${quantile(startTimes, 0.95)} ms; put away p50 ${quantile(disposeTimes, 0.5)} ms, p95 ${quantile(disposeTimes, 0.95)} ms`,
);
for (const [word, times] of [...ends].sort()) console.log(`  ${String(times).padStart(4)}  ${word}`);
for (const name of Object.keys(before))
  console.log(`${name.padEnd(12)} ${before[name].toFixed(0).padStart(5)} -> ${after[name].toFixed(0).padStart(5)}`);
console.log(`processes left: ${left}, groups left: ${groups.size}`);

const grown = ['descriptors', 'threads', 'listeners', 'resources'].filter((name) => after[name] > before[name]);
if (after.rssMb - before.rssMb > allowedGrowthMb) grown.push('memory');
if (left > 0 || groups.size > 0 || grown.length > 0) {
  console.error(`something is left: ${[...grown, ...(left > 0 || groups.size > 0 ? ['processes'] : [])].join(', ')}`);
  process.exitCode = 1;
}
