/**
 * Main's hold on the broker thread: starts it when first needed, connects callers to it, and ends it only after its
 * children are proven dead.
 *
 * Should the thread die by itself, main kills every process group it was told of: nobody else is left to do so. The next
 * caller gets a new broker.
 */
import { randomUUID } from 'node:crypto';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { BrokerApi, BrokerNotice, BrokerThreadData } from '../../shared/broker-protocol.ts';
import { portEndpoint, type Remote, wrap } from '../../shared/comlink.ts';
import { ServerError } from '../../shared/errors.ts';
import { noSandbox, type SandboxSettings, type SandboxState } from '../../shared/sandbox.ts';
import { makeSandboxSlot } from '../../shared/sandbox-slot.ts';
import { makeSpawnGateMemory, SpawnGate } from '../../shared/spawn-gate.ts';
import type { SubagentProvider } from '../../shared/subagent-protocol.ts';
import { markedProcesses, signalGroup, signalProcess, waitGroupGone } from '../../shared/process-table.ts';

export interface BrokerThreadOptions {
  /** The broker's entry module, compiled or bundled. */
  readonly entryPath: string | URL;
  /** What {@link BrokerThread.mark} shall be, where somebody else is to know it; unique to this process. */
  readonly mark?: string | undefined;
  /** Environment variables that children never get, whatever they are called. */
  readonly withheldVariables?: readonly string[];
  /** What commands are kept in; nothing by default. */
  readonly sandbox?: SandboxSettings;
  /** Absolute directories of this program's own state and settings: hidden from contained commands. */
  readonly ownDirectories?: readonly string[];
  readonly subagents?: readonly SubagentProvider[];
  /** How this server calls itself towards its subagents. */
  readonly agentInfo?: { readonly name: string; readonly version: string };
  /** What the thread wrote to its stdout or stderr. */
  readonly onStderr: (text: string) => void;
  /** The thread ended unasked; its groups have been killed. */
  readonly onDied?: (reason: string) => void;
}

/** How long killed groups may take to vanish before main goes on without the proof. */
const killedWaitMs = 1000;
/** How long children that are just being started, and those that start others, are waited for before the process goes. */
const startingWaitMs = 200;
const sweepMs = 200;

export class BrokerThread {
  readonly #options: BrokerThreadOptions;
  readonly #mark: string;
  readonly #groups = new Map<number, string>();
  /** What {@link sandbox} is, for session threads: they have no way to the broker when they need it. */
  readonly #sandboxSlot = makeSandboxSlot();
  #wasStarted = false;
  #sandbox: SandboxState | undefined;
  #running: RunningBroker | undefined;
  #down: Promise<void> | undefined;

  constructor(options: BrokerThreadOptions) {
    this.#options = options;
    this.#mark = options.mark ?? randomUUID();
  }

  /** Every child of this server carries it in its environment. */
  get mark(): string {
    return this.#mark;
  }

  /** Process groups that live, with their owners. */
  get liveGroups(): ReadonlyMap<number, string> {
    return this.#groups;
  }

  /** What commands are kept in; `undefined` until the broker has tried it. */
  get sandbox(): SandboxState | undefined {
    return this.#sandbox;
  }

  /** Where {@link sandbox} will be read; starts the thread that tries it, unless there is nothing to try or the server is going down. */
  openSandboxSlot(): SharedArrayBuffer {
    if (this.#down === undefined && this.#options.sandbox?.use !== 'off') this.start();
    return this.#sandboxSlot;
  }

  /** Starts the thread, unless it runs. Throws SHUTTING_DOWN after {@link shutdown}. */
  start(): void {
    this.#broker();
  }

  /**
   * Hands the broker's end of a caller's channel over; the caller wraps the other end. After {@link shutdown} the port
   * is closed instead, which the caller sees as THREAD_LOST.
   */
  connect(port: MessagePort): void {
    if (this.#down !== undefined) port.close();
    else this.#broker().connect(port);
  }

  /** The broker for main's own calls. Rejects with THREAD_LOST when the thread dies under a call. */
  get api(): Remote<BrokerApi> {
    return this.#broker().api;
  }

  /** Ends every process of the owner. Starts no thread for it, and never rejects: a broker that died has left nothing. */
  async releaseOwner(owner: string): Promise<void> {
    await this.#running?.api.releaseOwner(owner).catch(() => undefined);
  }

  /**
   * Kills every child at once: for the moment before the process itself must go. Blocks for what is just being started and until none is
   * found, some milliseconds, 0.4 s at most; the broker starts nothing more.
   */
  killAllNow(): void {
    if (!this.#wasStarted) return;
    this.#running?.spawnGate.close(startingWaitMs);
    for (const pgid of this.#groups.keys()) signalGroup(pgid, 'SIGKILL');
    // Also those that left their group, and those spawned in the moment of the thread's death, of which nobody could tell. Again and
    // again, since one that starts others can be killed behind their start.
    const end = performance.now() + sweepMs;
    for (let found = this.#killMarked(); found > 0 && performance.now() < end; ) found = this.#killMarked();
  }

  #killMarked(): number {
    const found = markedProcesses(`${this.#mark}/`);
    for (const { pid } of found) signalProcess(pid, 'SIGKILL');
    return found.length;
  }

  /**
   * Ends all children, then the thread. What the broker has not proven dead after `graceMs` is killed from here. One
   * promise, however often it is called; never rejects.
   */
  shutdown(graceMs: number): Promise<void> {
    this.#down ??= this.#shutDown(graceMs);
    return this.#down;
  }

  async #shutDown(graceMs: number): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    const proven = await provenWithin(running.api.shutdown(), graceMs);
    if (!proven) {
      this.killAllNow();
      await this.#groupsGone();
    }
    await running.end();
  }

  async #groupsGone(): Promise<void> {
    const pgids = [...this.#groups.keys()];
    const gone = await Promise.all(pgids.map((pgid) => waitGroupGone(pgid, killedWaitMs)));
    pgids.forEach((pgid, index) => {
      if (gone[index]) this.#groups.delete(pgid);
    });
  }

  #broker(): RunningBroker {
    if (this.#running !== undefined) return this.#running;
    if (this.#down !== undefined) throw new ServerError('SHUTTING_DOWN', 'The server is going down and starts no more commands.');
    const running = new RunningBroker(this.#options, { mark: this.#mark, sandboxSlot: this.#sandboxSlot }, (notice) =>
      this.#take(notice, running),
    );
    this.#running = running;
    this.#wasStarted = true;
    void running.ended.then((reason) => this.#ended(reason));
    return running;
  }

  #take(notice: BrokerNotice, from: RunningBroker): void {
    if (notice.kind === 'sandbox-found') {
      this.#sandbox = notice.state;
      return;
    }
    if (notice.kind === 'group-ended') {
      this.#groups.delete(notice.pgid);
      return;
    }
    this.#groups.set(notice.pgid, notice.owner);
    // Posted before its end, delivered after it.
    if (from !== this.#running) signalGroup(notice.pgid, 'SIGKILL');
  }

  #ended(reason: string): void {
    this.#running = undefined;
    if (this.#down !== undefined) return;
    this.killAllNow();
    void this.#groupsGone().then(() => this.#options.onDied?.(reason));
  }
}

/** What is the same in each life of the thread. */
type OfAllLives = Pick<BrokerThreadData, 'mark' | 'sandboxSlot'>;

/** One life of the thread. */
class RunningBroker {
  readonly api: Remote<BrokerApi>;
  /** Fulfils with the reason once the thread is joined. Never rejects. */
  readonly ended: Promise<string>;
  /** What starts this life's children; closed, it starts none. */
  readonly spawnGate: SpawnGate;
  readonly #worker: Worker;

  constructor(options: BrokerThreadOptions, { mark, sandboxSlot }: OfAllLives, onNotice: (notice: BrokerNotice) => void) {
    const { withheldVariables = [], subagents = [], ownDirectories = [], agentInfo = { name: 'dsh-acp', version: '0' } } = options;
    const { sandbox = noSandbox } = options;
    const spawnGate = makeSpawnGateMemory();
    this.spawnGate = new SpawnGate(spawnGate);
    const workerData: BrokerThreadData = { mark, withheldVariables, sandbox, sandboxSlot, spawnGate, ownDirectories, subagents, agentInfo };
    // Own streams: nothing the thread writes can get near the protocol.
    this.#worker = new Worker(options.entryPath, { name: 'broker', workerData, stdout: true, stderr: true });
    for (const stream of [this.#worker.stdout, this.#worker.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => options.onStderr(text));
    }
    this.#worker.on('message', onNotice);
    let failure: string | undefined;
    this.#worker.on('error', (error) => {
      failure = error instanceof Error ? error.message : String(error);
    });
    this.ended = new Promise((resolve) => this.#worker.once('exit', (code) => resolve(failure ?? `it exited with code ${code}`)));
    const { port1, port2 } = new MessageChannel();
    this.connect(port2);
    this.api = wrap<BrokerApi>(portEndpoint(port1));
  }

  connect(port: MessagePort): void {
    this.#worker.postMessage({ kind: 'connect', port }, [port]);
  }

  /** Terminates and joins. Only for a thread whose children are gone. */
  async end(): Promise<void> {
    await this.#worker.terminate();
    await this.ended;
  }
}

async function provenWithin(shutdown: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([
      shutdown.then(
        () => true,
        () => false,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
