/**
 * What a server has beyond its edge: sessions, threads and the broker. Loaded and started only after `initialize` has been
 * answered, since both the modules and the threads would compete with the answer for the cores.
 */
import { randomUUID } from 'node:crypto';
import type { ServerConfig } from '../shared/config.ts';
import type { Supervised } from '../shared/supervised.ts';
import { ServerError } from '../shared/errors.ts';
import type { PermissionMode } from '../shared/events.ts';
import type { MainServices } from '../shared/thread-protocol.ts';
import type { ClientChannel } from './acp/client-channel.ts';
import type { PermissionChannel } from './acp/permission-channel.ts';
import type { Diagnostics } from './diagnostics.ts';
import { type LaneSlots, laneSlots } from './limiter/lane-slots.ts';
import { ModelLimiter } from './limiter/model-limiter.ts';
import { createMemoryGuard, memoryFigures } from './memory/create-memory-guard.ts';
import type { MemoryGuard } from './memory/memory-guard.ts';
import { SessionSizes } from './memory/session-sizes.ts';
import { Admission } from './sessions/admission.ts';
import { SessionTable } from './sessions/session-table.ts';
import { TurnWatch } from './sessions/turn-watch.ts';
import { collectorVariables, Telemetry } from './telemetry/telemetry.ts';
import { BrokerThread } from './threads/broker-thread.ts';
import { McpHold } from './threads/mcp-hold.ts';
import { SelfProvider } from './subagents/self-provider.ts';
import { subagentServices } from './subagents/subagent-services.ts';
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
  /** Absent without a supervisor. */
  readonly supervised?: Supervised | undefined;
  readonly writer: FrameWriter;
  readonly diagnostics: Diagnostics;
  readonly permissions: PermissionChannel;
  readonly clientChannel: ClientChannel;
}

interface StartedParts {
  readonly threads: SessionThreads;
  readonly broker: BrokerThread;
  readonly limiter: ModelLimiter;
  readonly slots: WeakMap<ThreadLane, LaneSlots>;
  readonly telemetry: Telemetry;
  readonly serverNonce: string;
  readonly sizes: SessionSizes;
}

export class Runtime {
  readonly sessions: SessionTable;
  readonly #self: SelfProvider;
  readonly #parts: RuntimeParts;
  readonly #threads: SessionThreads;
  readonly #broker: BrokerThread;
  readonly #limiter: ModelLimiter;
  readonly #telemetry: Telemetry;
  readonly #watchdog: Watchdog;
  readonly #memory: MemoryGuard;

  static async start(parts: RuntimeParts): Promise<Runtime> {
    const { config, diagnostics, permissions, clientChannel } = parts;
    const serverNonce = randomUUID();
    const limiter = new ModelLimiter(config.limiter);
    const sizes = new SessionSizes();
    const slots = new WeakMap<ThreadLane, LaneSlots>();
    const telemetry = new Telemetry({
      config,
      diagnostics,
      instance: serverNonce,
      limiter: () => limiter.status(),
      queuedBytes: () => parts.writer.queuedBytes,
      restarts: parts.supervised?.restarts,
    });
    const broker = new BrokerThread({
      entryPath: parts.brokerPath,
      mark: parts.supervised?.mark,
      withheldVariables: [...parts.withheldVariables, ...collectorVariables],
      sandbox: config.sandbox,
      ownDirectories: [config.stateDir, ...parts.configDirectories],
      subagents: config.session.subagents,
      agentInfo: { name: config.agentName, version: config.agentVersion },
      onStderr: (text) => diagnostics.log('info', `broker: ${text}`),
      onDied: (reason) => endThreads(threads, reason, diagnostics),
    });
    const threads = await SessionThreads.start({
      config,
      entryPath: parts.sessionThreadPath,
      serverNonce,
      ownDirectories: [config.stateDir, ...parts.configDirectories],
      sandboxSlot: () => broker.openSandboxSlot(),
      writer: parts.writer,
      diagnostics,
      services: (lane) => {
        const ofLane = laneSlots(limiter, lane.drained);
        slots.set(lane, ofLane);
        return servicesFor(lane, {
          permissions,
          clientChannel,
          diagnostics,
          slots: ofLane.services,
          telemetry,
          sizes,
          self: () => runtime.#self,
          sessions: () => runtime.sessions,
        });
      },
      counters: telemetry.counters,
      connectBroker: (port) => broker.connect(port),
      onLeft: (sessionId) => {
        sizes.delete(sessionId);
        limiter.releaseSession(sessionId);
      },
      // A session that lost its thread leaves open requests and processes behind.
      onDeparted: async (sessionId) => {
        sizes.delete(sessionId);
        permissions.withdrawSession(sessionId);
        clientChannel.withdrawSession(sessionId);
        await Promise.all([broker.releaseOwner(sessionId), runtime.#self.releaseOwner(sessionId)]);
      },
    });
    const runtime = new Runtime(parts, { threads, broker, limiter, slots, telemetry, serverNonce, sizes });
    await telemetry.start(() => runtime.sessions.status());
    return runtime;
  }

  private constructor(parts: RuntimeParts, { threads, broker, limiter, slots, telemetry, serverNonce, sizes }: StartedParts) {
    const { config, diagnostics } = parts;
    this.#parts = parts;
    this.#threads = threads;
    this.#broker = broker;
    this.#limiter = limiter;
    this.#telemetry = telemetry;
    this.#watchdog = new Watchdog(config.stuckThreadMs, (lane) => {
      void threads.terminate(lane.threadId, 'since it shows no heartbeat');
    });
    const turns = new TurnWatch(this.#watchdog);
    this.#memory = createMemoryGuard({ config, diagnostics, sizes, threads, turns, find: (id) => this.sessions.find(id) });
    const maxRunning = config.isolation === 'strict' ? Math.min(config.maxRunningTurns, config.maxThreads) : config.maxRunningTurns;
    const shared = {
      config,
      threads,
      turns,
      // The built-in models have no provider that anybody could overload.
      ...(config.session.model.kind === 'openai-compatible'
        ? { slotAhead: (lane: ThreadLane, ...asked: Parameters<LaneSlots['ahead']>) => slots.get(lane)?.ahead(...asked) }
        : {}),
      counters: telemetry.counters,
      figures: () => ({
        ...telemetry.figures(),
        memory: memoryFigures(config, sizes, threads, this.#memory),
        ...(broker.sandbox === undefined ? {} : { sandbox: broker.sandbox }),
      }),
      modeChanged: (sessionId: string, mode: PermissionMode) => this.#self.followMode(sessionId, mode),
      worksForAnother: (sessionId: string) => this.#self.isRunning(sessionId),
      delegated: () => this.#self.sessionCount,
      mcp: new McpHold(broker, config.session.mcp),
      sessionMade: () => setImmediate(() => broker.openSandboxSlot()),
    };
    this.sessions = new SessionTable({ ...shared, serverNonce, admission: new Admission(maxRunning, maxWaitingTurns) });
    this.#self = new SelfProvider({
      ...shared,
      adopt: (sessionId, parentId) => broker.api.adopt(sessionId, parentId),
      findSession: (id) => this.sessions.find(id),
    });
  }

  /** Ends turns, joins threads, proves the children dead; in this order, each with a deadline. */
  async stop(afterFault: boolean): Promise<void> {
    const { shutdownGraceMs } = this.#parts.config;
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, shutdownGraceMs).unref());
    this.#watchdog.stop();
    this.#memory.stop();
    if (afterFault) this.sessions.failAll(new ServerError('INTERNAL', 'The server met an unexpected fault and is going down.'));
    await Promise.race([Promise.all([this.sessions.disposeAll(), this.#self.close()]), deadline]);
    this.#limiter.close();
    await this.#threads.close();
    await Promise.all([this.#broker.shutdown(shutdownGraceMs), this.#telemetry.stop()]);
  }

  /** Kills every child process at once, blocking for 0.4 s at most: the process itself is about to go. */
  killChildrenNow(): void {
    this.#broker.killAllNow();
  }
}

interface ServiceParts {
  readonly permissions: PermissionChannel;
  readonly clientChannel: ClientChannel;
  readonly diagnostics: Diagnostics;
  readonly slots: LaneSlots['services'];
  readonly telemetry: Telemetry;
  /** Threads start before it is made, and ask nothing before that. */
  readonly self: () => SelfProvider;
  readonly sizes: SessionSizes;
  readonly sessions: () => SessionTable;
}

function servicesFor(lane: ThreadLane, parts: ServiceParts): MainServices {
  const { permissions, clientChannel, diagnostics, slots, telemetry, self, sessions, sizes } = parts;
  return {
    ...slots,
    ...subagentServices(self),
    requestPermission: async (request) => {
      const decided = self().decide(request);
      if (decided !== undefined) return await decided;
      const answer = await permissions.ask(lane, request);
      telemetry.counters.permissionAnswered(answer);
      return answer;
    },
    withdrawPermission: async (sessionId, requestKey) => {
      self().withdraw(sessionId, requestKey);
      permissions.withdraw(sessionId, requestKey);
    },
    askClient: (request) => clientChannel.ask(lane, request),
    withdrawClientRequest: async (sessionId, requestKey) => clientChannel.withdraw(sessionId, requestKey),
    reportMemory: async (sessionId, bytes) => sizes.set(sessionId, bytes, lane),
    reportChosen: async (sessionId, chosen) => sessions().find(sessionId)?.tookChoice(chosen),
    reportTrace: async (trace) => telemetry.takeTrace(trace),
    log: async (level, message) => diagnostics.log(level, message),
  };
}

/** Threads hold ports to the broker that died: they end with it, and their sessions are revived with a new one. */
function endThreads(threads: SessionThreads, reason: string, diagnostics: Diagnostics): void {
  diagnostics.log('error', `the broker thread ended: ${reason}`);
  for (const threadId of threads.lanes.keys()) void threads.terminate(threadId, 'with the broker thread');
}

/** Turns that may wait for admission before new ones are refused with OVERLOADED. */
const maxWaitingTurns = 100_000;
