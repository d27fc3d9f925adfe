/**
 * A server as far as one session sees it: a thread of this very process, with main's side of it over real ports. The whole way of
 * a prompt but the pool, the broker and the wire.
 */
import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { Admission } from '../../src/main/sessions/admission.ts';
import type { SessionParts } from '../../src/main/sessions/session-parts.ts';
import { AttachedSession, type Departure } from '../../src/main/threads/attached-session.ts';
import { Completions } from '../../src/main/threads/completions.ts';
import type { SessionPlace } from '../../src/main/threads/session-task.ts';
import { ThreadLane } from '../../src/main/threads/thread-lane.ts';
import type { BrokerApi } from '../../src/shared/broker-protocol.ts';
import { expose, portEndpoint } from '../../src/shared/comlink.ts';
import { ServerError } from '../../src/shared/errors.ts';
import type { MainServices, SessionStarted, SessionTask } from '../../src/shared/thread-protocol.ts';
import { hostSession } from '../../src/worker/session/host-session.ts';
import { createThreadContext } from '../../src/worker/session/thread-context.ts';

const settings = {
  profile: 'automation',
  model: { kind: 'scripted', paceMs: 0 },
  systemPrompt: undefined,
  titles: 'off',
  instructions: 'off',
  userInstructions: undefined,
  clientFiles: 'off',
  mode: 'full-access',
  permissionTimeoutMs: 0,
  budget: { maxSteps: 0, maxToolCalls: 0, maxTokens: 0, maxWallMs: 0, maxCostUsd: 0 },
  maxParallelToolCalls: 4,
  maxUpdatesPerSecond: 0,
  commandTimeoutMs: 5000,
  mcp: { connectMs: 10_000, firstWaitMs: 5000, callMs: 10_000, idleMs: 60_000 },
  ripgrepPath: undefined,
  policy: undefined,
  prices: undefined,
  subagents: [],
  undo: 'files',
  trace: false,
} as const;

/** One process. */
export class LocalServer {
  readonly completions = new Completions();
  readonly isFull = false;
  readonly parts: SessionParts;
  readonly #thread = createThreadContext(1);
  readonly #dir: string;
  #lane: ThreadLane | undefined;
  #ports: { close(): void }[] = [];

  constructor(dir: string) {
    this.#dir = dir;
    const nothing = (): void => undefined;
    this.parts = {
      config: { session: settings, overlap: 'queue', maxQueuedPrompts: 16, cancelGraceMs: 2000 },
      threads: this,
      admission: new Admission(4, 100),
      turns: { started: nothing, ended: nothing },
      counters: new Proxy({}, { get: () => nothing }),
      figures: () => ({}),
      makeRoom: () => undefined,
    } as unknown as SessionParts;
  }

  async attach(place: SessionPlace): Promise<AttachedSession> {
    const { port1, port2 } = new MessageChannel();
    const task: SessionTask = {
      sessionId: place.sessionId,
      cwd: place.cwd,
      logPath: place.paths.log,
      lockPath: place.paths.lock,
      spillDir: place.paths.spillDir,
      ownDirectories: [this.#dir],
      isolation: 'dedicated',
      serverNonce: 'server',
      settings: { ...settings, profile: place.profile },
      options: place.options,
      client: place.client,
      port: port2,
    };
    const departure = hostSession(task, this.#thread).then((): Departure => ({ kind: 'left' }));
    const [started] = (await once(port1, 'message')) as [SessionStarted];
    if (started.kind === 'refused') throw new ServerError(started.error.code, started.error.message);
    if (started.ports !== undefined) this.#open(started.ports);
    return new AttachedSession({ sessionId: place.sessionId, chosen: started.chosen }, this.#lane as ThreadLane, port1, departure);
  }

  async terminate(): Promise<void> {}

  close(): void {
    this.#lane?.close();
    // Of a thread that no session was put on.
    for (const port of this.#thread.takePorts()?.transfer ?? []) port.close();
    for (const port of this.#ports) port.close();
  }

  #open(ports: NonNullable<Extract<SessionStarted, { kind: 'started' }>['ports']>): void {
    const services: Partial<MainServices> = {
      log: async () => undefined,
      acquireModelSlot: async () => ({ leaseId: 1, waitedMs: 0, position: 0 }),
      releaseModelSlot: async () => undefined,
    };
    const writer = { write: (_text: string, written?: () => void) => written?.() };
    this.#lane = new ThreadLane(1, ports, {
      writer: writer as never,
      completions: this.completions,
      services: () => services as MainServices,
    });
    const broker: Partial<BrokerApi> = { countBackground: async () => 0, releaseOwner: async () => undefined };
    expose(broker, portEndpoint(ports.broker));
    this.#ports.push(ports.broker);
  }
}
