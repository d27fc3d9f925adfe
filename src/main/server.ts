/**
 * The composition root: builds the parts of a server in order, connects them to stdio, and takes them down in order.
 *
 * Threads are started only after `initialize` has been answered: they would compete with the answer for the cores.
 */
import { randomUUID } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import type { AgentConnection } from '@agentclientprotocol/sdk';
import type { ServerConfig } from '../shared/config.ts';
import { ServerError } from '../shared/errors.ts';
import type { MainServices } from '../shared/thread-protocol.ts';
import { createAgentApp } from './acp/agent-app.ts';
import { PermissionChannel } from './acp/permission-channel.ts';
import { Diagnostics } from './diagnostics.ts';
import { Admission } from './sessions/admission.ts';
import { SessionTable } from './sessions/session-table.ts';
import { TurnWatch } from './sessions/turn-watch.ts';
import { onceStopped, type StopCause } from './stop-cause.ts';
import { BrokerThread } from './threads/broker-thread.ts';
import { SessionThreads } from './threads/session-threads.ts';
import type { ThreadLane } from './threads/thread-lane.ts';
import { Watchdog } from './threads/watchdog.ts';
import { type AgentStream, createAgentStream } from './transport/agent-stream.ts';
import { FrameWriter } from './transport/frame-writer.ts';
import { takeStdout } from './transport/stdout-guard.ts';

export interface ServeOptions {
  readonly input: Readable;
  /** The thread bundles, as absolute paths. */
  readonly sessionThreadPath: string;
  readonly brokerPath: string;
  /** Environment variables that no child process may see, whatever their names look like. */
  readonly withheldVariables: readonly string[];
  /** Where this program's settings are. */
  readonly configDirectories: readonly string[];
}

/** What exists only after `initialize`. */
interface Runtime {
  readonly threads: SessionThreads;
  readonly sessions: SessionTable;
  readonly watchdog: Watchdog;
}

/**
 * Serves one ACP client until end of input, a broken or stalled output, or a signal; then takes everything down.
 *
 * @returns the exit code: 0 for every orderly end, 1 after an unexpected fault
 */
export async function serve(config: ServerConfig, options: ServeOptions): Promise<number> {
  // First of all: from here on nothing but the frame writer reaches stdout.
  const output = takeStdout();
  const server = new Server(config, options);
  const cause = await server.run(output);
  return await server.stop(cause);
}

class Server {
  readonly #config: ServerConfig;
  readonly #options: ServeOptions;
  readonly #diagnostics: Diagnostics;
  readonly #permissions: PermissionChannel;
  readonly #broker: BrokerThread;
  #writer: FrameWriter | undefined;
  #stream: AgentStream | undefined;
  #connection: AgentConnection | undefined;
  #starting: Promise<Runtime> | undefined;
  #runtime: Runtime | undefined;

  constructor(config: ServerConfig, options: ServeOptions) {
    this.#config = config;
    this.#options = options;
    this.#diagnostics = new Diagnostics(config.logLevel);
    this.#diagnostics.adoptConsole();
    this.#permissions = new PermissionChannel(() => this.#connection?.client);
    this.#broker = new BrokerThread({
      entryPath: options.brokerPath,
      withheldVariables: options.withheldVariables,
      onStderr: (text) => this.#diagnostics.log('info', `broker: ${text}`),
      onDied: (reason) => this.#brokerDied(reason),
    });
  }

  /** Fulfils with the reason to stop. */
  async run(output: Writable): Promise<StopCause> {
    const stopped = onceStopped(this.#diagnostics, () => this.#broker.killAllNow());
    const writer = new FrameWriter(output, {
      stalledReaderMs: this.#config.stalledReaderMs,
      onBroken: (reason) => stopped.because({ kind: 'output-broken', reason }),
    });
    this.#writer = writer;
    this.#stream = createAgentStream({
      input: this.#options.input,
      writer,
      maxFrameBytes: this.#config.maxFrameBytes,
      onEnd: () => stopped.because({ kind: 'input-ended' }),
      onNote: (level, text) => this.#diagnostics.log(level, text),
    });
    const app = createAgentApp({
      config: this.#config,
      diagnostics: this.#diagnostics,
      sessions: async () => (await this.#start(writer)).sessions,
      sessionsIfStarted: () => this.#runtime?.sessions,
      // In the next turn of the loop, so that the answer is written first.
      onInitialize: () => setImmediate(() => void this.#start(writer).catch((error: unknown) => stopped.because({ kind: 'fault', error }))),
    });
    this.#connection = app.connect(this.#stream);
    return await stopped.cause;
  }

  /** Refuses new work, ends turns, joins threads, proves the children dead, writes the last frame. */
  async stop(cause: StopCause): Promise<number> {
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, this.#config.shutdownGraceMs).unref());
    const runtime = await this.#starting?.catch(() => undefined);
    if (runtime !== undefined) {
      runtime.watchdog.stop();
      if (cause.kind === 'fault') {
        runtime.sessions.failAll(new ServerError('INTERNAL', 'The server met an unexpected fault and is going down.'));
      }
      await Promise.race([runtime.sessions.disposeAll(), deadline]);
      await runtime.threads.close();
    }
    await this.#broker.shutdown(this.#config.shutdownGraceMs);
    await this.#lastWrite(cause);
    this.#stream?.stop();
    this.#connection?.close();
    return cause.kind === 'fault' ? 1 : 0;
  }

  /** Responses leave through promises of the SDK, and some handlers still find out that the server is going down. */
  async #lastWrite(cause: StopCause): Promise<void> {
    if (cause.kind === 'output-broken' || this.#writer === undefined) return;
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, lastWriteMs).unref());
    await Promise.race([this.#stream?.allAnswered(), deadline]);
    await Promise.race([this.#writer.idle(), deadline]);
  }

  #start(writer: FrameWriter): Promise<Runtime> {
    this.#starting ??= this.#startNow(writer);
    return this.#starting;
  }

  async #startNow(writer: FrameWriter): Promise<Runtime> {
    const config = this.#config;
    const threads = await SessionThreads.start({
      config,
      entryPath: this.#options.sessionThreadPath,
      serverNonce: randomUUID(),
      ownDirectories: [config.stateDir, ...this.#options.configDirectories],
      writer,
      diagnostics: this.#diagnostics,
      services: (lane) => this.#servicesFor(lane),
      connectBroker: (port) => this.#broker.connect(port),
      onDeparted: (sessionId) => this.#departed(sessionId),
    });
    const watchdog = new Watchdog(config.stuckThreadMs, (lane) => {
      this.#diagnostics.log('warn', `thread ${lane.threadId} shows no heartbeat and is ended`);
      void threads.terminate(lane.threadId);
    });
    const maxRunning = config.isolation === 'strict' ? Math.min(config.maxRunningTurns, config.maxThreads) : config.maxRunningTurns;
    const sessions = new SessionTable({
      config,
      threads,
      admission: new Admission(maxRunning, maxWaitingTurns),
      turns: new TurnWatch(watchdog),
    });
    this.#runtime = { threads, sessions, watchdog };
    return this.#runtime;
  }

  #servicesFor(lane: ThreadLane): MainServices {
    return {
      requestPermission: (request) => this.#permissions.ask(lane, request),
      withdrawPermission: async (sessionId, requestKey) => this.#permissions.withdraw(sessionId, requestKey),
      log: async (level, message) => this.#diagnostics.log(level, message),
    };
  }

  /** Threads hold ports to the broker that died: they end with it, and their sessions are revived with a new one. */
  #brokerDied(reason: string): void {
    this.#diagnostics.log('error', `the broker thread ended: ${reason}`);
    const threads = this.#runtime?.threads;
    for (const threadId of threads?.lanes.keys() ?? []) void threads?.terminate(threadId);
  }

  /** A session that lost its thread leaves open requests and processes behind. */
  async #departed(sessionId: string): Promise<void> {
    this.#permissions.withdrawSession(sessionId);
    await this.#broker.releaseOwner(sessionId);
  }
}

/** How long a client that does not read may hold up the end. */
const lastWriteMs = 1000;
/** Turns that may wait for admission before new ones are refused with OVERLOADED. */
const maxWaitingTurns = 100_000;
