/**
 * Kills the server process below a supervisor at random moments while many sessions work, and looks whether anything of it
 * reaches the client: each request answered once, valid frames alone, one connection; nothing run twice; each log whole and legal,
 * none that is nobody's; no process left. Prints figures; exits 1 when something is wrong.
 *
 * Usage: npm run campaign:supervisor -- [--kills=N] [--sessions=N] [--seed=N]. Needs `npm run compile` and `npm run build`.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from './source-stamp.mjs';

const options = { kills: 100, sessions: 20, seed: Math.floor(Math.random() * 1e9) };
for (const argument of process.argv.slice(2)) {
  const [, name, value] = /^--(kills|sessions|seed)=(\d+)$/.exec(argument) ?? [];
  if (name === undefined) throw new Error(`unknown option ${argument}; known are --kills=N, --sessions=N and --seed=N`);
  options[name] = Number(value);
}

const { randomWith } = await import(join(root, 'build/test/support/subagent-campaign.js'));
const { validateAgentFrame } = await import(join(root, 'build/test/support/acp-schema.js'));
const { readEvents } = await import(join(root, 'build/test/support/read-events.js'));
const { assertLegalLog } = await import(join(root, 'build/test/unit/worker/agent/legal-log.js'));
const { markedProcesses } = await import(join(root, 'build/src/shared/process-table.js'));

const signals = ['SIGKILL', 'SIGKILL', 'SIGSEGV', 'SIGABRT'];
/** One kill in so many is none: the process is stopped, and the supervisor has to find that out. */
const stopEvery = 20;
const stuckServerMs = 4_000;
const answerLimitMs = 120_000;
const random = randomWith(options.seed);
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'campaign-')));
const state = join(folder, 'state');
const work = join(folder, 'work');
mkdirSync(work);
const complaints = [];
const complain = (text) => void (complaints.length < 30 && complaints.push(text));

/** The client: every frame is checked, every answer counted. */
class Client {
  answers = new Map();
  methods = new Map();
  /** Of requests that are open. */
  params = new Map();
  ids = new Set();
  ended = false;
  stderr = '';
  #waiting = new Map();
  #count = 0;
  #rest = '';

  constructor() {
    const args = [join(root, 'dist/main/cli.js'), '--supervise', '--max-restarts', '1000', '--model', 'scripted'];
    const more = ['--pace-ms', '2', '--stuck-server-ms', String(stuckServerMs), '--permission-mode', 'full-access', '--state-dir', state];
    this.child = spawn(process.execPath, [...args, ...more], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, HOME: folder },
    });
    this.child.stdout.setEncoding('utf8').on('data', (text) => this.#read(text));
    this.child.stdout.on('end', () => (this.ended = true));
    this.child.stderr.on('data', (text) => (this.stderr += text));
    this.exited = new Promise((resolve) => this.child.once('close', (code, signal) => resolve({ code, signal })));
  }

  ask(method, params) {
    this.#count += 1;
    const id = this.#count;
    this.ids.add(id);
    this.methods.set(id, method);
    this.params.set(id, params);
    const answer = new Promise((resolve) => this.#waiting.set(id, resolve));
    this.send({ id, method, params });
    return { id, answer };
  }

  send(frame) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
  }

  /** Splits at LF. */
  #read(text) {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop();
    for (const line of lines) this.#take(line);
  }

  #take(line) {
    let frame;
    try {
      frame = JSON.parse(line);
    } catch {
      complain(`not a frame: ${line.slice(0, 120)}`);
      return;
    }
    for (const problem of validateAgentFrame(frame, { method: this.methods.get(frame.id) })) complain(problem);
    if (frame.method !== undefined) {
      this.onUpdate?.(frame);
      return;
    }
    const times = (this.answers.get(frame.id) ?? 0) + 1;
    this.answers.set(frame.id, times);
    if (times > 1) complain(`request ${frame.id} (${this.methods.get(frame.id)}) was answered ${times} times`);
    this.params.delete(frame.id);
    this.#waiting.get(frame.id)?.(frame);
    this.#waiting.delete(frame.id);
  }
}

const client = new Client();
const outcomes = new Map();
const count = (word) => outcomes.set(word, (outcomes.get(word) ?? 0) + 1);
const openCards = new Map();
client.onUpdate = ({ params }) => {
  const { sessionUpdate, toolCallId, status } = params?.update ?? {};
  if (sessionUpdate === 'tool_call') openCards.set(`${params.sessionId} ${toolCallId}`, true);
  if (status === 'completed' || status === 'failed') openCards.delete(`${params.sessionId} ${toolCallId}`);
};

async function answered({ id, answer }) {
  const late = new AbortController();
  const frame = await Promise.race([answer, delay(answerLimitMs, undefined, { signal: late.signal }).catch(() => undefined)]);
  late.abort();
  if (frame === undefined) throw new Error(await unanswered(id));
  return frame;
}

/** All that may say why: what was asked, what its session's log says, what the server says, and what was killed lately. */
async function unanswered(id) {
  const params = client.params.get(id);
  const late = delay(10_000, 'not answered within 10 s', { ref: false });
  const status = await Promise.race([client.ask('_status', {}).answer.then(({ result, error }) => JSON.stringify(result ?? error)), late]);
  const log = join(state, 'sessions', `${params?.sessionId}.jsonl`);
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  const processes = markedProcesses(folder).map(({ pid }) => `${pid} ${stateOf(pid)}`);
  return [
    `request ${id} (${client.methods.get(id)}) was not answered within ${answerLimitMs / 1000} s, ${clock()} s after the start`,
    JSON.stringify(params),
    `_status: ${status}`,
    `its log has ${lines.length} lines: ${lines
      .slice(-4)
      .map((line) => line.slice(0, 200))
      .join('\n    ')}`,
    `killed lately: ${history.slice(-8).join('; ')}`,
    `processes: ${processes.join(', ')}`,
    `open: ${[...client.params.keys()].map((one) => `${one} ${client.methods.get(one)}`).join(', ')}`,
  ].join('\n  ');
}

function stateOf(pid) {
  try {
    return /^State:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return 'gone';
  }
}

/** Asked until it is answered: a request of which three processes died gets an error that says so. Any other error is wrong. */
async function done(method, params) {
  for (;;) {
    const { result, error } = await answered(client.ask(method, params));
    count(`${method}${error === undefined ? '' : ' cut'}`);
    if (error === undefined) return result;
    if (error.data?.code !== 'SERVER_RESTARTED') throw new Error(`${method}: ${JSON.stringify(error)}`);
  }
}

const sessions = new Set();
/** What was asked, by its token: the session, and whether it was done. */
const prompts = new Map();
let stop = false;
let tokens = 0;

async function newSession() {
  const { sessionId } = await done('session/new', { cwd: work, mcpServers: [] });
  sessions.add(sessionId);
  return sessionId;
}

function promptText(token) {
  const texts = [
    `say ${token}`,
    `repeat 60 ${token}`,
    `say ${token}\nrun echo ${token} >> ran`,
    `run echo ${token} >> ran && sleep 0.2\nsay ${token}`,
    `run sleep 5 & echo ${token} >> ran\nsay ${token}`,
  ];
  return texts[Math.floor(random() * texts.length)];
}

async function worker() {
  let session = await newSession();
  while (!stop) {
    const dice = random();
    if (dice < 0.06) {
      await done('session/close', { sessionId: session });
      await done('session/load', { sessionId: session, cwd: work, mcpServers: [] });
    } else if (dice < 0.12) {
      session = await newSession();
    } else if (dice < 0.16) {
      await done('session/list', {});
    } else await onePrompt(session);
  }
}

async function onePrompt(session) {
  tokens += 1;
  const token = `token${tokens}x`;
  const meta = random() < 0.3 ? { _meta: { 'dsh-acp': { key: token } } } : {};
  const asked = client.ask('session/prompt', { sessionId: session, prompt: [{ type: 'text', text: promptText(token) }], ...meta });
  if (random() < 0.08) setTimeout(() => client.send({ method: 'session/cancel', params: { sessionId: session } }), random() * 300);
  const { result, error } = await answered(asked);
  const word = result?.stopReason ?? error.data?.code;
  count(word);
  if (!['end_turn', 'cancelled', 'SERVER_RESTARTED', 'TURN_INTERRUPTED'].includes(word))
    complain(`a prompt ended with ${JSON.stringify(error ?? result)}`);
  prompts.set(token, { session, done: word === 'end_turn' });
  for (const card of openCards.keys()) if (card.startsWith(session)) complain(`a card of ${session} is open behind its prompt's answer`);
}

function serverPid() {
  return Number(readFileSync(`/proc/${client.child.pid}/task/${client.child.pid}/children`, 'utf8').trim().split(' ')[0]);
}

/** Resident memory of the supervisor, in MB. */
function residentMb() {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${client.child.pid}/status`, 'utf8'))?.[1]) / 1024;
}

function figures(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const at = (part) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(0);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms of ${sorted.length}`;
}

const times = [];
/** When what was killed. */
const history = [];
const began = performance.now();
const clock = () => ((performance.now() - began) / 1000).toFixed(1);
let kills = 0;
let stops = 0;
try {
  console.log(`seed ${options.seed}`);
  const start = performance.now();
  await answered(client.ask('initialize', { protocolVersion: 1, clientCapabilities: {} }));
  const fdsBefore = readdirSync(`/proc/${client.child.pid}/fd`).length;
  const rssBefore = residentMb();
  const workers = Promise.all(Array.from({ length: options.sessions }, worker));
  workers.catch(() => undefined);
  while (kills < options.kills) {
    await Promise.race([delay(50 + random() * random() * 4_000), workers]);
    const pid = serverPid();
    if (!(pid > 0)) continue; // Between two processes.
    const killed = performance.now();
    const isStop = kills % stopEvery === stopEvery - 1;
    const signal = isStop ? 'SIGSTOP' : signals[Math.floor(random() * signals.length)];
    process.kill(pid, signal);
    history.push(`${signal} at ${clock()} s`);
    kills += 1;
    if (isStop) stops += 1;
    const asked = client.ask('_status', {});
    const served = answered(asked).then(() => performance.now() - killed);
    // Now and then the next one dies while it opens its sessions again. One that is stopped is found out first.
    if (!isStop && random() < 0.25) {
      served.catch((error) => complain(error.message));
      await delay(random() * 1500);
    } else {
      const time = await Promise.race([served, workers]);
      if (!isStop) times.push(time);
      // Else, on a slow machine, each kill would come before anything is done.
      const before = prompts.size;
      const until = performance.now() + 20_000;
      while (prompts.size === before && performance.now() < until) await Promise.race([delay(20), workers]);
    }
    if (kills % 20 === 0) console.log(`${kills} kills, ${prompts.size} prompts`);
  }
  stop = true;
  await workers;
  const rss = residentMb();
  const fds = readdirSync(`/proc/${client.child.pid}/fd`).length;
  if (fds > fdsBefore) complain(`the supervisor has ${fds} descriptors, ${fdsBefore} before`);
  if (client.ended) complain('the connection was dropped');
  const unanswered = [...client.ids].filter((id) => client.answers.get(id) !== 1).length;
  if (unanswered > 0) complain(`${unanswered} requests were not answered exactly once`);
  client.child.stdin.end();
  const exit = await client.exited;
  if (exit.code !== 0) complain(`it ended with ${JSON.stringify(exit)}`);
  await checkLogs();
  checkRuns();
  await delay(500);
  const left = markedProcesses(folder).map(({ pid }) => pid);
  if (left.length > 0) complain(`processes are left: ${left.join(', ')}`);
  const restarts = client.stderr.match(/it is started again/g)?.length ?? 0;
  if (restarts !== kills) complain(`${restarts} restarts were told of`);
  console.log(
    `${kills} kills, ${stops} of them stops, in ${((performance.now() - start) / 1000).toFixed(0)} s; ${sessions.size} sessions, ${client.ids.size} requests`,
  );
  console.log(`answers: ${[...outcomes].map(([word, times]) => `${word} ${times}`).join(', ')}`);
  console.log(`from death to the first answer of the next process: ${figures(times)}`);
  console.log(`supervisor: ${rssBefore.toFixed(0)} MB at the start, ${rss.toFixed(0)} MB at the end`);
} catch (error) {
  complain(error.stack);
  console.log(client.stderr.slice(-2000));
} finally {
  client.child.kill('SIGKILL');
  for (const { pid } of markedProcesses(folder)) process.kill(pid, 'SIGKILL');
  if (complaints.length === 0) rmSync(folder, { recursive: true, force: true });
}

/** Each is whole and legal, belongs to a session that the client knows, and holds each prompt at most once. */
async function checkLogs() {
  const dir = join(state, 'sessions');
  const logs = readdirSync(dir).filter((name) => name.endsWith('.jsonl'));
  for (const name of logs) if (!sessions.has(name.slice(0, -'.jsonl'.length))) complain(`${name} is a log of nobody's session`);
  if (logs.length !== sessions.size) complain(`${sessions.size} sessions have ${logs.length} logs`);
  const said = new Map();
  for (const name of logs) {
    const events = await readEvents(join(dir, name));
    try {
      assertLegalLog(events, { open: true });
    } catch (error) {
      complain(`${name}: ${error.message}`);
    }
    for (const event of events.filter(({ type }) => type === 'user/message')) {
      for (const [token] of JSON.stringify(event.data).matchAll(/token\d+x/g))
        said.set(token, new Set([...(said.get(token) ?? []), event.seq]));
    }
  }
  for (const [token, { done }] of prompts) {
    const turns = said.get(token)?.size ?? 0;
    if (turns > 1) complain(`${token} was said ${turns} times`);
    if (done && turns !== 1) complain(`${token} was answered, and is not in the log`);
  }
}

/** No command ran twice. */
function checkRuns() {
  const ran = readFileSync(join(work, 'ran'), 'utf8').trim().split('\n');
  if (new Set(ran).size !== ran.length) complain('a command ran twice');
  console.log(`commands that ran: ${ran.length}, each once`);
}

for (const complaint of complaints) console.log(`WRONG: ${complaint}`);
if (complaints.length > 0) console.log(`kept: ${folder}`);
process.exitCode = complaints.length > 0 ? 1 : 0;
