/**
 * What a server has beyond its edge: sessions, threads and the broker. Loaded and started only after `initialize` has been
 * answered, since both the modules and the threads would compete with the answer for the cores.
 */
import { randomUUID } from 'node:crypto';
import type { ServerConfig } from '../shared/config.ts';
import { ServerError } from '../shared/errors.ts';
import type { MainServices } from '../shared/thread-protocol.ts';
import type { PermissionChannel } from './acp/permission-channel.ts';
import type { Diagnostics } from './diagnostics.ts';
import { laneSlots } from './limiter/lane-slots.ts';
import { ModelLimiter } from './limiter/model-limiter.ts';
import { Admission } from './sessions/admission.ts';
import { SessionTable } from './sessions/session-table.ts';
import { TurnWatch } from './sessions/turn-watch.ts';
import { BrokerThread } from './threads/broker-thread.ts';
import { SessionThreads } from './threads/session-threads.ts';
import type { ThreadLane } from './threads/thread-lane.ts';
import { Watchdog } from './threads/watchdog.ts';
import type { FrameWriter } from './transport/frame-writer.ts';

export interface RuntimeParts {
  readonly config: ServerConfig;
  /** The thread bundles, as absolute paths. */
  readonly sessionThreadPath: string;
  readonly brokerPath: string;
  /** Environment variables that no child process may see, whatever their names look like. */
  readonly withheldVariables: readonly string[];
  /** Where this program's settings are. */
  readonly configDirectories: readonly string[];
  readonly writer: FrameWriter;
  readonly diagnostics: Diagnostics;
  readonly permissions: PermissionChannel;
}

export class Runtime {
  readonly sessions: SessionTable;
  readonly #parts: RuntimeParts;
  readonly #threads: SessionThreads;
  readonly #broker: BrokerThread;
  readonly #watchdog: Watchdog;

  static async start(parts: RuntimeParts): Promise<Runtime> {
    const { config, diagnostics, permissions } = parts;
    const limiter = new ModelLimiter(config.limiter);
    const broker = new BrokerThread({
      entryPath: parts.brokerPath,
      withheldVariables: parts.withheldVariables,
      onStderr: (text) => diagnostics.log('info', `broker: ${text}`),
      onDied: (reason) => endThreads(threads, reason, diagnostics),
    });
    const threads = await SessionThreads.start({
      config,
      entryPath: parts.sessionThreadPath,
      serverNonce: randomUUID(),
      ownDirectories: [config.stateDir, ...parts.configDirectories],
      writer: parts.writer,
      diagnostics,
      services: (lane) => servicesFor(lane, { permissions, diagnostics, limiter }),
      connectBroker: (port) => broker.connect(port),
      // A session that lost its thread leaves open requests and processes behind.
      onDeparted: async (sessionId) => {
        permissions.withdrawSession(sessionId);
        await broker.releaseOwner(sessionId);
      },
    });
    return new Runtime(parts, threads, broker);
  }

  private constructor(parts: RuntimeParts, threads: SessionThreads, broker: BrokerThread) {
    const { config, diagnostics } = parts;
    this.#parts = parts;
    this.#threads = threads;
    this.#broker = broker;
    this.#watchdog = new Watchdog(config.stuckThreadMs, (lane) => {
      diagnostics.log('warn', `thread ${lane.threadId} shows no heartbeat and is ended`);
      void threads.terminate(lane.threadId);
    });
    const maxRunning = config.isolation === 'strict' ? Math.min(config.maxRunningTurns, config.maxThreads) : config.maxRunningTurns;
    this.sessions = new SessionTable({
      config,
      threads,
      admission: new Admission(maxRunning, maxWaitingTurns),
      turns: new TurnWatch(this.#watchdog),
    });
  }

  /** Ends turns, joins threads, proves the children dead; in this order, each with a deadline. */
  async stop(afterFault: boolean): Promise<void> {
    const { shutdownGraceMs } = this.#parts.config;
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, shutdownGraceMs).unref());
    this.#watchdog.stop();
    if (afterFault) this.sessions.failAll(new ServerError('INTERNAL', 'The server met an unexpected fault and is going down.'));
    await Promise.race([this.sessions.disposeAll(), deadline]);
    await this.#threads.close();
    await this.#broker.shutdown(shutdownGraceMs);
  }

  /** Kills every child process at once, without waiting: the process itself is about to go. */
  killChildrenNow(): void {
    this.#broker.killAllNow();
  }
}

interface ServiceParts {
  readonly permissions: PermissionChannel;
  readonly diagnostics: Diagnostics;
  readonly limiter: ModelLimiter;
}

function servicesFor(lane: ThreadLane, { permissions, diagnostics, limiter }: ServiceParts): MainServices {
  return {
    ...laneSlots(limiter, lane.drained),
    requestPermission: (request) => permissions.ask(lane, request),
    withdrawPermission: async (sessionId, requestKey) => permissions.withdraw(sessionId, requestKey),
    reportTrace: async () => undefined,
    log: async (level, message) => diagnostics.log(level, message),
  };
}

/** Threads hold ports to the broker that died: they end with it, and their sessions are revived with a new one. */
function endThreads(threads: SessionThreads, reason: string, diagnostics: Diagnostics): void {
  diagnostics.log('error', `the broker thread ended: ${reason}`);
  for (const threadId of threads.lanes.keys()) void threads.terminate(threadId);
}

/** Turns that may wait for admission before new ones are refused with OVERLOADED. */
const maxWaitingTurns = 100_000;
