/**
 * Starts and puts away many subagents at random moments and looks at what is left: processes, file descriptors, threads,
 * listeners, timers, memory. First through a broker of its own, with good children and bad ones, fresh and warm; then through
 * the built server. Prints figures; exits 1 when anything is left, or when too little happened to show it.
 *
 * Usage: npm run campaign:subagents -- [--count=N] [--seed=N]. Needs `npm run compile` and `npm run build`.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { root } from './source-stamp.mjs';

const atOnce = 8;
/** Memory may be this much above what it was after the first round: 8 to 20 MB were measured. */
const allowedGrowthMb = 30;
const turns = 20;
const delegationsPerTurn = 3;
/** From the last turn to the measured end. */
const settleMs = 5000;

const options = { count: 200, seed: Math.floor(Math.random() * 1e9) };
for (const argument of process.argv.slice(2)) {
  const [, name, value] = /^--(count|seed)=(\d+)$/.exec(argument) ?? [];
  if (name === undefined) throw new Error(`unknown option ${argument}; known are --count=N and --seed=N`);
  options[name] = Number(value);
}

const { SubagentCampaign, randomWith } = await import(join(root, 'build/test/support/subagent-campaign.js'));
const { ServerProcess } = await import(join(root, 'build/test/support/server-process.js'));
const { markedProcesses } = await import(join(root, 'build/src/shared/process-table.js'));
const badAgent = join(root, 'build/test/support/bad-agent-main.js');

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'campaign-')));
const complaints = [];

const descriptorsOf = (pid) => readdirSync(`/proc/${pid}/fd`).length;
const threadsOf = (pid) => Number(/Threads:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))]?.toFixed(0) ?? '-';

function print(before, after) {
  for (const name of Object.keys(before))
    console.log(`${name.padEnd(12)} ${before[name].toFixed(0).padStart(5)} -> ${after[name].toFixed(0).padStart(5)}`);
}

async function throughBroker() {
  const measure = () => {
    collectGarbage();
    return {
      descriptors: descriptorsOf(process.pid),
      threads: threadsOf(process.pid),
      listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
      resources: process.getActiveResourcesInfo().length,
      heapMb: process.memoryUsage().heapUsed / 1024 / 1024,
      rssMb: process.memoryUsage().rss / 1024 / 1024,
    };
  };
  const campaign = new SubagentCampaign(folder, options.seed);
  // The library is loaded and the code is warm after these.
  await campaign.round(20, atOnce);
  await delay(200);
  const before = measure();
  const startedAt = performance.now();
  const shutdownMs = await campaign.round(options.count, atOnce);
  const seconds = (performance.now() - startedAt) / 1000;
  await delay(200);
  const after = measure();
  const left = campaign.left().length + campaign.groups.size;

  console.log(`${campaign.spawned} processes were started in ${seconds.toFixed(1)} s; the last shutdown took ${shutdownMs.toFixed(0)} ms`);
  const { startTimes, disposeTimes } = campaign;
  console.log(
    `start p50 ${quantile(startTimes, 0.5)} ms, p95 ${quantile(startTimes, 0.95)} ms; put away p50 ${quantile(disposeTimes, 0.5)} ms, p95 ${quantile(disposeTimes, 0.95)} ms`,
  );
  for (const [word, times] of [...campaign.ends].sort()) console.log(`  ${String(times).padStart(4)}  ${word}`);
  print(before, after);
  console.log(`processes and groups left: ${left}`);
  const complaint = campaign.complaint();
  if (complaint !== undefined) complaints.push(complaint);
  if (left > 0) complaints.push('processes are left');
  for (const name of ['descriptors', 'threads', 'listeners', 'resources']) if (after[name] > before[name]) complaints.push(`more ${name}`);
  if (after.rssMb - before.rssMb > allowedGrowthMb) complaints.push('more memory');
}

/** One session of the built server that delegates to itself and to processes; every second turn is cancelled somewhere. */
async function throughServer() {
  const random = randomWith(options.seed);
  const stateDir = join(folder, 'state');
  const work = join(folder, 'work');
  mkdirSync(work);
  const config = join(folder, 'config.toml');
  const table = (name, behaviour, more) =>
    `[[subagents]]\nname = "${name}"\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify([badAgent, behaviour])}\ndispose_eof_grace_ms = 500\n${more}\n`;
  writeFileSync(
    config,
    table('fresh', 'good', '') +
      table('warm', 'good', 'pool_size = 2\npool_idle_ms = 500') +
      table('daemon', 'daemon', '') +
      table('slow', 'slow', ''),
    { mode: 0o600 },
  );
  // Without spare threads, which the server starts one by one, a thread more is one too many.
  const args = ['--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access', '--spare-threads', '0', '--config', config];
  const server = new ServerProcess({ stateDir, args });
  try {
    await server.initialize();
    const session = await server.newSession(work);
    const tasks = {
      self: ['run touch begun; sleep 0.2', 'say done'],
      fresh: ['do it'],
      warm: ['do it'],
      daemon: ['do it'],
      slow: ['do it'],
    };
    const delegate = (name, at) => [`${at === 0 ? '' : '& '}delegate ${name} <<END`, ...tasks[name], 'END'].join('\n');
    const measure = () => ({
      processes: markedProcesses(stateDir).filter(({ pid }) => pid !== server.pid).length,
      descriptors: descriptorsOf(server.pid),
      threads: threadsOf(server.pid),
      locks: readdirSync(join(stateDir, 'sessions')).filter((name) => name.endsWith('.lock') && !name.includes(session)).length,
    });
    // Everything there is has been used once.
    await server.prompt(session, ['self', 'fresh', 'warm', 'daemon'].map(delegate).join('\n'));
    const settled = async (isSettled) => {
      const deadline = performance.now() + settleMs;
      while (!isSettled(measure()) && performance.now() < deadline) await delay(50);
      return measure();
    };
    const before = await settled(({ processes, locks }) => processes === 0 && locks === 0);
    const startedAt = performance.now();
    const ends = new Map();
    for (let turn = 0; turn < turns; turn += 1) {
      const isCancelled = turn % 2 === 1;
      // One that hangs until it is cancelled stands in turns that are.
      const names = Object.keys(tasks).filter((name) => isCancelled || name !== 'slow');
      const chosen = Array.from({ length: delegationsPerTurn }, () => names[Math.floor(random() * names.length)]);
      if (isCancelled && random() < 0.7) chosen[0] = 'slow';
      const prompt = server.startPrompt(session, chosen.map(delegate).join('\n'));
      if (isCancelled) {
        // The scripted model would give the script of a prompt that it never answered to the next one.
        await server.next(({ params }) => params?.update?.status === 'in_progress', 'a delegation that has begun');
        await delay(random() * 600);
        server.notify('session/cancel', { sessionId: session });
      }
      const { result, error } = await server.response(prompt);
      const end = result?.stopReason ?? error?.data?.code ?? 'no answer';
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    const seconds = (performance.now() - startedAt) / 1000;
    const names = Object.keys(before);
    const after = await settled((now) => names.every((name) => now[name] <= before[name]));
    const log = readFileSync(join(stateDir, 'sessions', `${session}.jsonl`), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const runs = new Map();
    for (const { type, data } of log) if (type === 'subagent/end') runs.set(data.stopReason, (runs.get(data.stopReason) ?? 0) + 1);
    const words = (counts) => [...counts].map(([word, times]) => `${times} ${word}`).join(', ');
    console.log(
      `through the server: ${turns} turns (${words(ends)}) with ${turns * delegationsPerTurn} delegations in ${seconds.toFixed(1)} s; runs: ${words(runs)}`,
    );
    print(before, after);
    for (const name of names) if (after[name] > before[name]) complaints.push(`the server has more ${name}`);
    if (before.processes + before.locks > 0) complaints.push('the first turn left something in the server');
    if ((runs.get('completed') ?? 0) < turns || !runs.has('aborted'))
      complaints.push('too few runs of the server completed, or none was cancelled');
    const { code } = await server.close();
    if (code !== 0 || server.violations.length > 0 || server.stderr !== '')
      complaints.push(`the server ended with ${code}; it wrote: ${server.stderr}`);
  } finally {
    await server.dispose();
  }
}

console.log(`seed ${options.seed}: ${options.count} subagents, ${atOnce} at once`);
try {
  await throughBroker();
  await throughServer();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (complaints.length > 0) {
  console.error(`something is wrong: ${complaints.join('; ')}`);
  process.exitCode = 1;
}
