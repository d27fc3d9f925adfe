/**
 * Makes the log of a very long session, loads it over stdio with a client that reads as fast as it can, and looks at what that
 * costs: memory of the server while it loads, and the turns of another session meanwhile. Then forks and deletes it. Prints
 * figures; exits 1 when a bound below does not hold, or when anything of the history is missing.
 *
 * Usage: npm run campaign:large-log -- [--mb=N] [--isolation=dedicated|shared]. Needs `npm run compile` and `npm run build`.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from './source-stamp.mjs';

/** The server may grow by this while it loads, whatever the size of the log. */
const mostGrowthMb = 160;
/** Turns of the other session: half of them and the slowest, on a machine that has a core left. */
const mostTypicalMs = 60;
const mostSlowestMs = 500;
/** Megabytes of log a second, read, shown and taken. */
const leastMbPerSecond = 15;
const baselineTurns = 40;

const options = { mb: '500', isolation: 'dedicated' };
for (const argument of process.argv.slice(2)) {
  const [, name, value] = /^--(mb|isolation)=(\d+|dedicated|shared)$/.exec(argument) ?? [];
  if (name === undefined) throw new Error(`unknown option ${argument}; known are --mb=N and --isolation=dedicated|shared`);
  options[name] = value;
}

const { growLog, cardsPerTurn } = await import(join(root, 'build/test/support/large-log.js'));
const { LoadReader } = await import(join(root, 'build/test/support/load-reader.js'));
const { createSessionFile } = await import(join(root, 'build/src/shared/log/session-paths.js'));

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'large-log-')));
const sessionId = '01900000-0000-7000-8000-000000000001';
const complaints = [];
const complain = (text) => complaints.push(text);
const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))] ?? Number.NaN;
const ms = (value) => `${value.toFixed(1)} ms`;

function makeLog() {
  const header = {
    type: 'session',
    version: 1,
    id: sessionId,
    createdAt: new Date().toISOString(),
    cwd: folder,
    agent: { name: 'a', version: '1' },
  };
  return growLog(createSessionFile(join(folder, 'state'), header), Number(options.mb) * 1024 * 1024);
}

class Client {
  constructor() {
    const args = [
      '--model',
      'scripted',
      '--pace-ms',
      '0',
      '--isolation',
      options.isolation,
      '--titles',
      'off',
      '--attach-timeout-ms',
      '120000',
    ];
    this.child = spawn(process.execPath, [join(root, 'dist/main/cli.js'), '--state-dir', join(folder, 'state'), ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, HOME: folder },
    });
    this.waiting = new Map();
    this.reader = new LoadReader(sessionId, (frame) => {
      if (frame.method === undefined) this.waiting.get(frame.id)?.(frame);
    });
    this.reader.read(this.child.stdout);
    this.lastId = 0;
  }

  request(method, params) {
    this.lastId += 1;
    const id = this.lastId;
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, ({ result, error }) => {
        this.waiting.delete(id);
        if (error === undefined) resolve(result);
        else reject(new Error(`${method}: ${JSON.stringify(error)}`));
      });
    });
  }

  /** Milliseconds of one turn. */
  async turn(id) {
    const startedAt = performance.now();
    await this.request('session/prompt', { sessionId: id, prompt: [{ type: 'text', text: 'say hello' }] });
    return performance.now() - startedAt;
  }

  get rssMb() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.child.pid}/status`, 'utf8'))?.[1]) / 1024;
  }

  async close() {
    const gone = new Promise((resolve) => this.child.once('close', resolve));
    this.child.stdin.end();
    await gone;
  }
}

/** Does `work`; gives its time, the growth of the server and the turns of another session meanwhile. */
async function beside(client, other, work) {
  const before = client.rssMb;
  let peak = before;
  const timer = setInterval(() => (peak = Math.max(peak, client.rssMb)), 20);
  const turns = [];
  const startedAt = performance.now();
  let isOver = false;
  const working = work().finally(() => (isOver = true));
  const talking = (async () => {
    while (!isOver) {
      turns.push(await client.turn(other));
      await delay(10);
    }
  })();
  await Promise.all([working, talking]);
  clearInterval(timer);
  return { seconds: (performance.now() - startedAt) / 1000, growthMb: peak - before, turns };
}

function report(what, { seconds, growthMb, turns }) {
  console.log(`${what}: ${seconds.toFixed(1)} s; the server grew by ${growthMb.toFixed(0)} MB at most`);
  console.log(
    `  turns of another session meanwhile: ${turns.length}, p50 ${ms(quantile(turns, 0.5))}, p99 ${ms(quantile(turns, 0.99))}, slowest ${ms(Math.max(...turns))}`,
  );
  if (growthMb > mostGrowthMb) complain(`${what}: the server grew by more than ${mostGrowthMb} MB`);
  if (quantile(turns, 0.5) > mostTypicalMs) complain(`${what}: half of the other session's turns took more than ${mostTypicalMs} ms`);
  if (Math.max(...turns) > mostSlowestMs) complain(`${what}: a turn of the other session took more than ${mostSlowestMs} ms`);
}

try {
  const log = makeLog();
  console.log(`a log of ${(log.bytes / 1024 / 1024).toFixed(0)} MB: ${log.events} events, ${log.turns} turns`);
  const client = new Client();
  await client.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const other = (await client.request('session/new', { cwd: folder, mcpServers: [] })).sessionId;
  const alone = [];
  for (let turn = 0; turn < baselineTurns; turn += 1) alone.push(await client.turn(other));
  console.log(
    `turns of a session alone: p50 ${ms(quantile(alone, 0.5))}, slowest ${ms(Math.max(...alone))}; the server has ${client.rssMb.toFixed(0)} MB`,
  );

  const load = await beside(client, other, () => client.request('session/load', { sessionId, cwd: folder, mcpServers: [] }));
  report('load', load);
  const { updates, turns, cards, bytes, fault } = client.reader;
  const speed = Number(options.mb) / load.seconds;
  console.log(`  ${updates} updates, ${(bytes / 1024 / 1024).toFixed(0)} MB on the wire, ${speed.toFixed(0)} MB of log a second`);
  if (fault !== undefined) complain(fault);
  if (turns !== log.turns) complain(`${turns} of ${log.turns} turns were shown`);
  if (cards !== log.turns * cardsPerTurn) complain(`${cards} of ${log.turns * cardsPerTurn} tool calls were shown`);
  if (speed < leastMbPerSecond) complain(`less than ${leastMbPerSecond} MB of log a second`);

  let copy;
  report(
    'fork',
    await beside(client, other, async () => (copy = (await client.request('session/fork', { sessionId, cwd: folder })).sessionId)),
  );
  report(
    'delete',
    await beside(client, other, async () => {
      await client.request('session/delete', { sessionId });
      await client.request('session/delete', { sessionId: copy });
    }),
  );
  await client.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const complaint of complaints) console.error(complaint);
console.log(complaints.length === 0 ? 'every bound held' : `${complaints.length} bounds did not hold`);
process.exitCode = complaints.length === 0 ? 0 : 1;
