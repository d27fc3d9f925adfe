/**
 * What must be true after every fault, whatever the fault was: the harness that all fault tests share.
 *
 * After the body of a test each server that is still there closes its sessions and has then nothing more open than before them, and is
 * closed as a leaving client does. And then: stdout held only valid frames; each request has had exactly one response; no process is
 * left; every log is read whole, obeys the rules of a log and says what its clients were shown, but for the end of a turn that was cut
 * off; no lock is left behind; nothing a client saw holds a stack; and no secret of the environment is in what was said, in a file or in a child.
 *
 * Tests of parts of the program, which start no server, have {@link partTest}.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { sessionsDir } from '../../src/shared/log/session-paths.ts';
import { markedProcesses } from '../../src/shared/process-table.ts';
import { assertLegalLog } from '../unit/worker/agent/legal-log.ts';
import { canaries, filesWithCanary, holdsCanary } from './canaries.ts';
import { FaultServer, type FaultServerOptions, type SeenSession } from './fault-server.ts';
import { childrenOf, footprint, type Footprint } from './footprint.ts';
import { differences } from './log-against-client.ts';
import { ModelServer, type ModelServerOptions } from './model-server.ts';
import { readSession, type StoredSession } from './read-events.ts';
import type { ServerProcess } from './server-process.ts';
import { SessionPicture } from './session-picture.ts';

export { FaultServer, type FaultServerOptions } from './fault-server.ts';
export { readEvents } from './read-events.ts';

export interface FaultRig {
  /** Holds whatever the test needs; removed afterwards. */
  readonly dir: string;
  /** An initialized server. */
  serve(options?: FaultServerOptions): Promise<FaultServer>;
  model(options?: ModelServerOptions): Promise<ModelServer>;
}

/** A test after which the invariants are checked. */
export function faultTest(name: string, body: (t: Test, rig: FaultRig) => Promise<void>): Promise<unknown> {
  return t.test(name, async (t) => {
    const rig = new Rig(t);
    t.teardown(() => rig.dispose());
    const start = performance.now();
    await body(t, rig);
    const { user, system } = process.cpuUsage();
    await rig.verify();
    const used = process.cpuUsage({ user, system });
    t.comment(
      `took ${(performance.now() - start).toFixed(0)} ms, ${((used.user + used.system) / 1000).toFixed(0)} ms of the processor to verify`,
    );
  });
}

class Rig implements FaultRig {
  readonly dir: string;
  readonly #t: Test;
  readonly #servers: FaultServer[] = [];
  readonly #models: ModelServer[] = [];

  constructor(t: Test) {
    this.#t = t;
    this.dir = mkdtempSync(join(tmpdir(), 'dsh-acp-fault-'));
  }

  async serve(options: FaultServerOptions = {}): Promise<FaultServer> {
    const server = new FaultServer({ stateDir: join(this.dir, 'state'), ...options });
    this.#servers.push(server);
    const answer = await server.initialize(options.capabilities);
    this.#t.equal(answer.error, undefined, 'initialize is answered');
    return server;
  }

  async model(options?: ModelServerOptions): Promise<ModelServer> {
    const model = await ModelServer.start(options);
    this.#models.push(model);
    return model;
  }

  async verify(): Promise<void> {
    // Connections that lie idle are kept for the next question; a provider ends them some day.
    for (const model of this.#models) model.closeIdleConnections();
    for (const server of this.#servers) {
      if (!server.hasEnded && !server.unread) this.#t.same(await server.settle(), [], 'closed sessions hold nothing open');
      await this.#verifyServer(server);
    }
    await this.#verifyNothingRuns();
    for (const stateDir of new Set(this.#servers.map((server) => server.stateDir))) await this.#verifyState(stateDir);
    this.#t.same(filesWithCanary(this.dir), [], 'no secret is in a file');
  }

  async dispose(): Promise<void> {
    for (const server of this.#servers) await server.dispose();
    for (const model of this.#models) await model.close();
    for (const { pid } of markedProcesses(this.dir)) process.kill(pid, 'SIGKILL');
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #verifyServer(server: FaultServer): Promise<void> {
    const t = this.#t;
    const exit = await server.close();
    if (!server.killed)
      t.same(exit, { code: server.expectedExit, signal: null }, `it exits in order; stderr: ${server.stderr.slice(-1000)}`);
    t.same(server.violations, [], 'stdout holds only valid frames');
    const counts = countedAnswers(server);
    const wrong = counts.filter((count) => (server.killed || server.unread ? count > 1 : count !== 1));
    t.same(wrong, [], 'each request has exactly one response');
    t.notOk(
      server.frames.some((frame) => /\\n {4}at |secret\/path/.test(JSON.stringify(frame))),
      'no frame holds a stack',
    );
    if (server.expectedExit === 0) t.notMatch(server.stderr, /unexpected fault/, 'no unexpected fault');
    t.same(server.leaks, [], 'no secret is in what it said, or in a child');
  }

  async #verifyNothingRuns(): Promise<void> {
    const deadline = performance.now() + 1000;
    let left = markedProcesses(this.dir);
    while (left.length > 0 && performance.now() < deadline) {
      await delay(20);
      left = markedProcesses(this.dir);
    }
    this.#t.same(
      left.map(({ pid }) => pid),
      [],
      'no process is left',
    );
  }

  async #verifyState(stateDir: string): Promise<void> {
    const dir = sessionsDir(stateDir);
    if (!existsSync(dir)) return;
    const servers = this.#servers.filter((server) => server.stateDir === stateDir);
    const killed = servers.some((server) => server.killed);
    const open = killed || servers.some((server) => server.leavesOpenTurn);
    const names = readdirSync(dir);
    const views = servers.map((server) => ({ server, views: server.views() }));
    const wrong: string[] = [];
    for (const name of names.filter((one) => one.endsWith('.jsonl'))) {
      const stored = await readSession(join(dir, name));
      const seen = views.flatMap(({ server, views }) => {
        const view = views.get(stored.header.id);
        return view === undefined ? [] : [{ server, view }];
      });
      wrong.push(...illegal(stored, open), ...disagreements(stored, seen).map((what) => `${name}: ${what}`));
    }
    this.#t.same(wrong, [], 'each log is legal and says what was shown');
    if (killed) return;
    this.#t.same(
      names.filter((name) => !name.endsWith('.jsonl') && !name.endsWith('.d')),
      [],
      'no lock and no draft is left',
    );
  }
}

function illegal({ header, events }: StoredSession, open: boolean): string[] {
  try {
    assertLegalLog(events, { open });
    return [];
  } catch (error) {
    return [`${header.id}: ${error instanceof Error ? error.message : String(error)}`];
  }
}

/** What each client saw of a session against its log. Whoever came last must have seen all of it. */
function disagreements(stored: StoredSession, views: readonly { readonly server: FaultServer; readonly view: SeenSession }[]): string[] {
  const last = Math.max(...views.map(({ view }) => view.lastUsed));
  return views.flatMap(({ server, view }) => {
    const mayLack = view.lastUsed < last || server.killed || server.unread;
    const wrong = differences(stored, { ...view, mayLack });
    const isToldInPieces = new SessionPicture().takeAll(view.updates).texts.some(holdsCanary);
    return isToldInPieces ? [...wrong, 'a secret came in pieces'] : wrong;
  });
}

/** How many answers each request has had. */
function countedAnswers(server: FaultServer): number[] {
  const counts = new Map<unknown, number>(server.requests.map(({ id }) => [id, 0]));
  for (const { id, method } of server.frames) if (method === undefined && counts.has(id)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts.values()];
}

/**
 * The same for a part of the program in this process, in whose environment are secrets: afterwards nothing of the test's is open or runs,
 * and no secret is in what it wrote into its directory.
 */
export function partTest(
  name: string,
  ...rest: [body: PartBody] | [options: { readonly skip?: string | boolean }, body: PartBody]
): Promise<unknown> {
  const [options, body] = rest.length === 1 ? [{}, rest[0]] : rest;
  return t.test(name, options, async (t) => {
    Object.assign(process.env, canaries);
    const before = ownFootprint();
    // A test of its own, so that what it gives back at its end is given back before it is looked at.
    await t.test('the part itself', async (part) => {
      await body(part);
      part.same(filesWithCanary(part.testdirName), [], 'no secret is in a file');
    });
    const deadline = performance.now() + 1000;
    let left = leftOpen(before);
    for (; left.length > 0 && performance.now() < deadline; left = leftOpen(before)) await delay(10);
    t.same(left, [], 'nothing is left open or running');
  });
}

type PartBody = (t: Test) => Promise<void>;

interface OwnFootprint extends Footprint {
  readonly children: readonly number[];
}

function ownFootprint(): OwnFootprint {
  const now = footprint(process.pid);
  if (now === undefined) throw new Error('there is no /proc');
  return { ...now, children: childrenOf(process.pid) };
}

function leftOpen(before: OwnFootprint): string[] {
  const now = ownFootprint();
  const more = (['pipes', 'sockets', 'watches', 'loops'] as const).filter((what) => now[what] > before[what]);
  return [
    ...now.files.filter((path) => !before.files.includes(path)),
    ...more.map((what) => `${now[what] - before[what]} more ${what}`),
    ...now.children.filter((pid) => !before.children.includes(pid)).map((pid) => `process ${pid}`),
  ];
}

export function logPath(server: ServerProcess, sessionId: string): string {
  return join(sessionsDir(server.stateDir), `${sessionId}.jsonl`);
}

export function processesIn(dir: string): number[] {
  return markedProcesses(dir).map(({ pid }) => pid);
}

/** Resident memory of a process, in MB. */
export function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
