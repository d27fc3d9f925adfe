/**
 * What must be true after every fault, whatever the fault was: the harness that all fault tests share.
 *
 * After the body of a test each server that is still there is closed as a leaving client does, and then: stdout held only valid frames;
 * each request has had exactly one response; no process is left; every log is read whole and obeys the rules of a log; no lock is left
 * behind; nothing a client saw holds a stack.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { sessionsDir } from '../../src/shared/log/session-paths.ts';
import { markedProcesses } from '../../src/shared/process-table.ts';
import { assertLegalLog } from '../unit/worker/agent/legal-log.ts';
import { ModelServer, type ModelServerOptions } from './model-server.ts';
import { readEvents } from './read-events.ts';
import { saboteurMain } from './saboteur-program.ts';
import { type Frame, type ServerOptions, ServerProcess } from './server-process.ts';

export { readEvents } from './read-events.ts';

export interface FaultServerOptions extends ServerOptions {
  /** `false` runs the built server; else its threads obey the saboteur. */
  readonly saboteur?: boolean;
  /** What the client says in `initialize`. */
  readonly capabilities?: object;
}

/** A server that remembers what was asked of it. */
export class FaultServer extends ServerProcess {
  readonly asked: number[] = [];
  /** Set by a test that kills it: answers may be missing, a turn may be open, a lock may be left. */
  killed = false;
  /** Set by a test that leaves a session behind whose thread was lost in a turn: the turn is closed by the next load. */
  leavesOpenTurn = false;
  /** Set by a test that takes the client's reading end away. */
  unread = false;
  expectedExit = 0;

  constructor(options: FaultServerOptions = {}) {
    super(options.saboteur === false ? options : { command: [process.execPath, saboteurMain], ...options });
  }

  override start(method: string, params: object): number {
    const id = super.start(method, params);
    this.asked.push(id);
    return id;
  }

  /** SIGKILL, and the wait for the end. */
  async crash(): Promise<void> {
    this.killed = true;
    this.child.kill('SIGKILL');
    await this.exited;
  }

  responses(id: number): Frame[] {
    return this.frames.filter((frame) => frame.method === undefined && frame.id === id);
  }

  /** Fulfils at the session's next update of this kind. */
  async nextUpdate(sessionId: string, kind = 'agent_message_chunk'): Promise<any> {
    const frame = await this.next(
      ({ method, params }) => method === 'session/update' && params.sessionId === sessionId && params.update.sessionUpdate === kind,
      `a ${kind} of ${sessionId}`,
    );
    return frame.params.update;
  }
}

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
    await rig.verify();
    t.comment(`took ${(performance.now() - start).toFixed(0)} ms`);
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
    for (const server of this.#servers) await this.#verifyServer(server);
    await this.#verifyNothingRuns();
    for (const stateDir of new Set(this.#servers.map((server) => server.stateDir))) await this.#verifyState(stateDir);
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
    const counts = server.asked.map((id) => server.responses(id).length);
    const wrong = counts.filter((count) => (server.killed || server.unread ? count > 1 : count !== 1));
    t.same(wrong, [], 'each request has exactly one response');
    t.notOk(
      server.frames.some((frame) => /\\n {4}at |secret\/path/.test(JSON.stringify(frame))),
      'no frame holds a stack',
    );
    if (server.expectedExit === 0) t.notMatch(server.stderr, /unexpected fault/, 'no unexpected fault');
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
    const killed = this.#servers.some((server) => server.stateDir === stateDir && server.killed);
    const open = killed || this.#servers.some((server) => server.stateDir === stateDir && server.leavesOpenTurn);
    const names = readdirSync(dir);
    for (const name of names.filter((one) => one.endsWith('.jsonl'))) {
      const events = await readEvents(join(dir, name));
      this.#t.doesNotThrow(() => assertLegalLog(events, { open }), `${name} is a legal log`);
    }
    if (killed) return;
    this.#t.same(
      names.filter((name) => !name.endsWith('.jsonl') && !name.endsWith('.d')),
      [],
      'no lock and no draft is left',
    );
  }
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
