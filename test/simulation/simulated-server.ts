/**
 * A server as the simulation has it: the program's sessions, queues, lanes and channels on simulated threads and a simulated broker.
 * What stands for the runtime and the edge here is no more than wiring.
 */
import { EventEmitter } from 'node:events';
import { PermissionChannel } from '../../src/main/acp/permission-channel.ts';
import { Diagnostics } from '../../src/main/diagnostics.ts';
import { Admission } from '../../src/main/sessions/admission.ts';
import { SessionTable } from '../../src/main/sessions/session-table.ts';
import { TurnWatch } from '../../src/main/sessions/turn-watch.ts';
import { ServerCounters } from '../../src/main/telemetry/server-counters.ts';
import { SessionThreads } from '../../src/main/threads/session-threads.ts';
import type { ThreadCode } from '../../src/main/threads/thread-code.ts';
import type { ThreadLane } from '../../src/main/threads/thread-lane.ts';
import { Watchdog } from '../../src/main/threads/watchdog.ts';
import { FrameWriter } from '../../src/main/transport/frame-writer.ts';
import { expose, portEndpoint } from '../../src/shared/comlink.ts';
import type { Disk } from './disk.ts';
import type { Plan } from './plan.ts';
import type { SimulatedPort } from './ports.ts';
import { SimulatedBroker } from './simulated-broker.ts';
import { SimulatedPool } from './simulated-pool.ts';
import { Realm, type World } from './world.ts';

export interface ServerParts {
  readonly world: World;
  readonly disk: Disk;
  readonly ports: Set<SimulatedPort>;
  readonly plan: Plan;
  readonly begun: Set<string>;
  readonly number: number;
  /** Takes what was written, whole lines. */
  readonly take: (text: string) => void;
  /** What the client answers to a request, and what takes it back. */
  readonly ask: (params: any, answer: (response: unknown) => void) => number;
  readonly note: (what: string) => void;
  readonly complain: (what: string) => void;
}

export class SimulatedServer {
  readonly realm: Realm;
  readonly table: SessionTable;
  readonly pool: SimulatedPool;
  readonly writer: FrameWriter;
  readonly broker: SimulatedBroker;
  stopped = false;
  readonly #threads: SessionThreads;
  readonly #watchdog: Watchdog;
  readonly #parts: ServerParts;
  openQuestions = 0;

  /** To be called in the realm of the server. */
  constructor(parts: ServerParts, realm: Realm) {
    this.#parts = parts;
    this.realm = realm;
    const { world, ports, plan } = parts;
    const config = configOf(plan);
    const diagnostics = new Diagnostics('silent', () => undefined);
    this.writer = new FrameWriter(this.#output(), { stalledReaderMs: 60_000, onBroken: () => undefined });
    this.broker = new SimulatedBroker(parts);
    this.pool = new SimulatedPool(world, realm, ports, plan.settings);
    const permissions = new PermissionChannel(
      () =>
        ({
          request: (_method: string, params: unknown, options: { cancellationSignal: AbortSignal }) =>
            this.#request(params, options.cancellationSignal),
        }) as any,
      (sessionId) => this.table.find(sessionId)?.identity,
    );
    const counters = new ServerCounters();
    const serverNonce = `server-${parts.number}`;
    const services = (_lane: ThreadLane): any => ({
      requestPermission: (request: any) => permissions.ask(_lane, request),
      withdrawPermission: async (sessionId: string, key: string) => permissions.withdraw(sessionId, key),
      askClient: async () => ({ kind: 'unavailable' }),
      withdrawClientRequest: async () => undefined,
      reportMemory: async () => undefined,
      reportChosen: async (sessionId: string, chosen: any) => this.table.find(sessionId)?.tookChoice(chosen),
      reportTrace: async () => undefined,
      log: async () => undefined,
    });
    const threadParts = {
      config,
      entryPath: '',
      serverNonce,
      ownDirectories: ['/sim/state'],
      writer: this.writer,
      diagnostics,
      services,
      counters,
      connectBroker: (port: any) => expose(this.broker.api, portEndpoint(port)),
      onLeft: () => undefined,
      onDeparted: async (sessionId: string) => {
        permissions.withdrawSession(sessionId);
        this.broker.release(sessionId);
      },
    };
    // Its `start` differs in where the pool comes from, and in nothing else that matters here.
    const code: Pick<ThreadCode, 'afterTurn'> = { afterTurn: (next) => next };
    this.#threads = new (SessionThreads as any)(threadParts, this.pool, code);
    this.#watchdog = new Watchdog(config.stuckThreadMs, (lane) => {
      parts.complain(`the watchdog ended thread ${lane.threadId}`);
      void this.#threads.terminate(lane.threadId, 'by the watchdog');
    });
    const { settings } = plan;
    const running = settings.isolation === 'strict' ? Math.min(settings.maxRunningTurns, settings.maxThreads) : settings.maxRunningTurns;
    this.table = new SessionTable({
      config,
      serverNonce,
      threads: this.#threads,
      admission: new Admission(running, 1000),
      turns: new TurnWatch(this.#watchdog),
      counters,
      figures: () => ({}) as any,
      modeChanged: async () => undefined,
      worksForAnother: () => false,
      delegated: () => 0,
    });
  }

  /** As the runtime and the edge stop: turns, threads, output. */
  async stop(): Promise<void> {
    const { world } = this.#parts;
    this.#watchdog.stop();
    let late = false;
    const deadline = new Promise<void>((resolve) => {
      setTimeout(() => {
        late = true;
        resolve();
      }, 10_000).unref();
    });
    await Promise.race([this.table.disposeAll(), deadline]);
    if (late) this.#parts.complain('sessions did not leave within the grace of a shutdown');
    else this.#lookAtThreads();
    await this.#threads.close();
    await this.writer.idle();
    world.realm = this.realm;
    this.stopped = true;
  }

  /** Sessions have left: what still waits in a thread belongs to nobody. */
  #lookAtThreads(): void {
    const { world } = this.#parts;
    const threads = new Set(this.pool.threads.map(({ realm }) => realm));
    const left = world
      .pending()
      .filter((one) => threads.has(one.realm) && (one.kind === 'timeout' || one.kind === 'interval') && !one.unref);
    if (left.length > 0) this.#parts.complain(`${left.length} timers are left on threads without sessions`);
  }

  #request(params: unknown, signal: AbortSignal): Promise<unknown> {
    const { world } = this.#parts;
    return new Promise((resolve, reject) => {
      this.openQuestions += 1;
      const settle = (act: () => void): void => {
        if (signal.aborted && act !== withdrawn) return;
        this.openQuestions -= 1;
        signal.removeEventListener('abort', onAbort);
        act();
      };
      const withdrawn = (): void => reject(new Error('withdrawn'));
      const id = this.#parts.ask(params, (response) => world.after(0, () => settle(() => resolve(response)), { realm: this.realm }));
      const onAbort = (): void => {
        this.writer.write(`${JSON.stringify({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: `q${id}` } })}\n`);
        settle(withdrawn);
      };
      this.writer.write(`${JSON.stringify({ jsonrpc: '2.0', id: `q${id}`, method: 'session/request_permission', params })}\n`);
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  #output(): any {
    const { world, take } = this.#parts;
    const output = new EventEmitter() as any;
    output.write = (text: string, _encoding: string, done: () => void): boolean => {
      if (!world.touch()) return true;
      take(text);
      world.after(world.latency(), () => done(), { kind: 'written' });
      return true;
    };
    return output;
  }
}

function configOf({ settings }: Plan): any {
  return {
    profile: settings.profile,
    isolation: settings.isolation,
    maxThreads: settings.maxThreads,
    spareThreads: 0,
    overlap: settings.overlap,
    maxQueuedPrompts: settings.maxQueuedPrompts,
    parkAfterMs: settings.parkAfterMs,
    attachTimeoutMs: 15_000,
    stuckThreadMs: 15_000,
    cancelGraceMs: 5000,
    shutdownGraceMs: 10_000,
    stateDir: '/sim/state',
    sandbox: { use: 'off', network: 'on', writable: [], memoryMb: 0 },
    agentName: 'dsh-acp',
    agentVersion: '0',
    session: {
      profile: settings.profile,
      model: { kind: 'scripted', paceMs: settings.paceMs },
      systemPrompt: undefined,
      titles: 'off',
      instructions: 'off',
      userInstructions: undefined,
      clientFiles: 'off',
      mode: settings.mode,
      permissionTimeoutMs: settings.permissionTimeoutMs,
      budget: { maxSteps: 50, maxToolCalls: 50, maxTokens: 0, maxWallMs: 0, maxCostUsd: 0 },
      maxParallelToolCalls: settings.maxParallelToolCalls,
      maxUpdatesPerSecond: 0,
      commandTimeoutMs: 60_000,
      mcp: { connectMs: 10_000, firstWaitMs: 5000, callMs: 10_000, idleMs: 0 },
      ripgrepPath: undefined,
      policy: undefined,
      prices: undefined,
      subagents: [],
      undo: 'off',
      trace: false,
    },
  };
}
