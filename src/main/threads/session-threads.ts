/**
 * The session threads: a piscina pool in which one attached session is one long-running task.
 *
 * Piscina starts, places and watches the threads; admission, parking and joining are ours, for reasons that ARCHITECTURE.md
 * lists: its queue keeps refused tasks, its `close()` ends tasks of other threads, and a thread that dies while it loads
 * leaves `run()` pending for ever.
 */
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { fromWireError, ServerError } from '../../shared/errors.ts';
import { releaseLostLock } from '../../shared/log/release-lost-lock.ts';
import type { MainServices, SessionStarted, SessionTask, ThreadPorts } from '../../shared/thread-protocol.ts';
import type { Diagnostics } from '../diagnostics.ts';
import type { ServerCounters } from '../telemetry/server-counters.ts';
import type { FrameWriter } from '../transport/frame-writer.ts';
import { AttachedSession, type Departure } from './attached-session.ts';
import { Completions } from './completions.ts';
import { endThreadChildren } from './end-thread-children.ts';
import { hostBeside } from './host-beside.ts';
import { LostCalls } from './lost-calls.ts';
import { poolOptions } from './pool-options.ts';
import { type ServerPlace, type SessionPlace, sessionTask } from './session-task.ts';
import { SpareThreads } from './spare-threads.ts';
import { ThreadCode } from './thread-code.ts';
import { ThreadLane } from './thread-lane.ts';

export interface SessionThreadsParts extends ServerPlace {
  /** The thread bundle. */
  readonly entryPath: string;
  readonly writer: FrameWriter;
  readonly diagnostics: Diagnostics;
  readonly services: (lane: ThreadLane) => MainServices;
  readonly counters: ServerCounters;
  /** Hands a thread's port to the broker. */
  readonly connectBroker: (port: MessagePort) => void;
  /** A session has left its thread in order. */
  readonly onLeft: (sessionId: string) => void;
  /** A session's thread ended under it: clears what it left behind, and never rejects. */
  readonly onDeparted: (sessionId: string) => Promise<void>;
}

export class SessionThreads {
  readonly completions: Completions;
  readonly lanes = new Map<number, ThreadLane>();
  readonly #parts: SessionThreadsParts;
  readonly #pool: Piscina;
  readonly #workers = new Set<Worker>();
  readonly #exits = new Map<Worker, Promise<void>>();
  readonly #spares: SpareThreads;
  readonly #lostCalls = new LostCalls();
  /** Sessions that lost their thread and whose processes are still being ended. */
  readonly #clearing = new Map<string, Promise<void>>();
  readonly #laneWaiters = new Map<number, ((lane: ThreadLane) => void)[]>();
  #attachedCount = 0;
  #closing = false;

  /** Starts the pool; piscina is loaded here and not earlier, to keep `initialize` quick. */
  static async start(parts: SessionThreadsParts): Promise<SessionThreads> {
    const { Piscina } = await import('piscina');
    const code = new ThreadCode();
    return new SessionThreads(parts, new Piscina(poolOptions({ ...parts, codeCache: code.slots })), code);
  }

  private constructor(parts: SessionThreadsParts, pool: Piscina, code: ThreadCode) {
    this.#parts = parts;
    this.#pool = pool;
    this.#spares = new SpareThreads({ ...parts, pool, attachedCount: () => this.#attachedCount });
    this.completions = new Completions(code.afterTurn((outcome) => parts.counters.turnEnded(outcome)));
    // A task that ends while the pool is being destroyed surfaces here; without a listener it would end the process.
    pool.on('error', (error: unknown) => parts.diagnostics.log('debug', `thread pool: ${String(error)}`));
    pool.on('workerCreate', () => this.#trackWorkers());
    this.#trackWorkers();
  }

  /** Sessions on threads now. */
  get attachedCount(): number {
    return this.#attachedCount;
  }

  get threadCount(): number {
    return this.#pool.threads.length;
  }

  /** True when one more session would have to share a thread, or wait for one. */
  get isFull(): boolean {
    return this.#attachedCount >= this.#parts.config.maxThreads;
  }

  /**
   * Puts a session on a thread: fulfils when its log has been replayed there.
   *
   * @throws ServerError ATTACH_FAILED after `attachTimeoutMs` or when the thread dies first; whatever the session's log
   * refuses with (LOG_CORRUPT, LOG_VERSION, SESSION_LOCKED)
   */
  async attach(place: SessionPlace): Promise<AttachedSession> {
    this.#refuseWhenClosing();
    const { port1, port2 } = new MessageChannel();
    const task = { ...sessionTask(place, this.#parts, port2), ...this.#lostCalls.of(place.sessionId) };
    const ended = place.beside === undefined ? this.#runCounted(task) : hostBeside(place.beside, task);
    try {
      const started = await this.#firstMessage(port1, ended);
      const lane =
        started.ports === undefined ? await this.#knownLane(started.threadId, ended) : this.#openLane(started.threadId, started.ports);
      const departure = ended.then(async (how) => {
        if (how.kind === 'left') {
          if (place.readOnly !== true) this.#parts.onLeft(place.sessionId);
          return how;
        }
        await lane.drained;
        this.#lostCalls.add(place.sessionId, lane.failOpenCards(place.sessionId));
        if (place.readOnly === true) return how;
        releaseLostLock(place.paths.lock, this.#parts.serverNonce);
        this.#clearAfter(place.sessionId);
        return lane.endedForMemory ? { ...how, forMemory: true as const } : how;
      });
      this.#spares.refillSoon();
      return new AttachedSession({ sessionId: place.sessionId, chosen: started.chosen }, lane, port1, departure);
    } catch (error) {
      // Closing the port also ends the task, should piscina start it after all.
      port1.close();
      if (error instanceof ServerError && error.data?.['threadEnded'] === true) releaseLostLock(place.paths.lock, this.#parts.serverNonce);
      else this.#holdBack(task, ended);
      throw error;
    }
  }

  /** Ends the thread under its sessions; each of them departs as lost. `why` goes on from "is ended". */
  async terminate(threadId: number, why: string): Promise<void> {
    const worker = [...this.#workers].find((one) => one.threadId === threadId);
    if (worker !== undefined) this.#parts.diagnostics.log('warn', `thread ${threadId} is ended ${why}`);
    const freed = this.#freeSoon([this.lanes.get(threadId)]);
    await worker?.terminate();
    freed();
  }

  /** A thread that waits for a child in one piece of work ends only when the child has. */
  #freeSoon(lanes: Iterable<ThreadLane | undefined>): () => void {
    const timer = setInterval(() => {
      for (const lane of lanes) if (lane !== undefined) endThreadChildren(lane.osThreadId);
    }, freeAfterMs);
    return () => clearInterval(timer);
  }

  /** Ends all threads and fulfils when every one of them has exited. Sessions should have left before. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#spares.stop();
    this.#trackWorkers();
    const freed = this.#freeSoon([...this.lanes.values()]);
    await this.#pool.destroy();
    await Promise.all(this.#exits.values());
    freed();
    // What a thread posted last is still on its way then, and closing the port would drop it.
    await Promise.all([...this.lanes.values()].map((lane) => lane.drained));
    for (const lane of this.lanes.values()) lane.close();
  }

  /** Counted as one that has a place in the pool. Never rejects. */
  async #runCounted(task: SessionTask): Promise<Departure> {
    this.#attachedCount += 1;
    try {
      return await this.#run(task);
    } finally {
      this.#attachedCount -= 1;
    }
  }

  /** Runs the task to its end. Never rejects. */
  async #run(task: SessionTask): Promise<Departure> {
    try {
      // Old and new commands of a session carry the same mark: what ends the old ones would end the new ones, too.
      const clearing = this.#clearing.get(task.sessionId);
      if (clearing !== undefined) await clearing;
      this.#refuseWhenClosing();
      await this.#pool.run(task, { transferList: [task.port] });
      return { kind: 'left' };
    } catch (error) {
      return { kind: 'lost', reason: error instanceof Error ? error.message : String(error) };
    }
  }

  #refuseWhenClosing(): void {
    if (this.#closing) throw new ServerError('SHUTTING_DOWN', 'The server is shutting down and takes no new work.');
  }

  /**
   * An attach that was given up may still be at work, and the session's lock tells servers apart, not threads of one: so the
   * other is told to write no more, and the next one waits until that has left, or has had the time to see it.
   */
  #holdBack({ sessionId, givenUp }: SessionTask, ended: Promise<unknown>): void {
    if (givenUp !== undefined) Atomics.store(new Int32Array(givenUp), 0, 1);
    const before = this.#clearing.get(sessionId);
    const seen = new Promise<void>((resolve) => setTimeout(resolve, seenAfterMs).unref());
    const left = Promise.all([before, Promise.race([ended, seen])]).then(() => {
      if (this.#clearing.get(sessionId) === left) this.#clearing.delete(sessionId);
    });
    this.#clearing.set(sessionId, left);
  }

  #clearAfter(sessionId: string): void {
    const cleared = this.#parts.onDeparted(sessionId).finally(() => {
      if (this.#clearing.get(sessionId) === cleared) this.#clearing.delete(sessionId);
    });
    this.#clearing.set(sessionId, cleared);
  }

  #firstMessage(port: MessagePort, ended: Promise<Departure>): Promise<SessionStarted & { kind: 'started' }> {
    const timeoutMs = this.#parts.config.attachTimeoutMs;
    return new Promise((resolve, reject) => {
      const fail = (error: ServerError): void => {
        clearTimeout(timer);
        reject(error);
      };
      const tooLate = (): void => fail(new ServerError('ATTACH_FAILED', `No thread took the session within ${timeoutMs} ms.`));
      const timer = setTimeout(tooLate, timeoutMs);
      const spoken = new Promise<void>((heard) => port.once('close', heard));
      void ended.then(async (how) => {
        // A task that ended by itself has refused the session. The end comes by another port than the refusal, which is
        // here when the thread's end of this one is closed.
        if (how.kind === 'left') await spoken;
        fail(endedWhileAttaching(how));
      });
      port.once('message', (message: SessionStarted) => {
        clearTimeout(timer);
        if (message.kind === 'started') resolve(message);
        else reject(fromWireError(message.error));
      });
    });
  }

  #openLane(threadId: number, ports: ThreadPorts): ThreadLane {
    const lane = new ThreadLane(threadId, ports, {
      writer: this.#parts.writer,
      completions: this.completions,
      services: this.#parts.services,
      counters: this.#parts.counters,
    });
    this.lanes.set(threadId, lane);
    void lane.drained.then(() => this.lanes.delete(threadId));
    this.#parts.connectBroker(ports.broker);
    for (const resolve of this.#laneWaiters.get(threadId) ?? []) resolve(lane);
    this.#laneWaiters.delete(threadId);
    return lane;
  }

  /**
   * The lane of a thread that another session brought. Two session ports have no mutual order: the message that carries the
   * thread's ports may come after this session's own.
   */
  async #knownLane(threadId: number, ended: Promise<Departure>): Promise<ThreadLane> {
    const known = this.lanes.get(threadId);
    if (known !== undefined) return known;
    const opened = new Promise<ThreadLane>((resolve) => {
      const waiters = this.#laneWaiters.get(threadId) ?? [];
      waiters.push(resolve);
      this.#laneWaiters.set(threadId, waiters);
    });
    const lane = await Promise.race([opened, ended]);
    if (lane instanceof ThreadLane) return lane;
    throw endedWhileAttaching(lane);
  }

  #trackWorkers(): void {
    for (const worker of this.#pool.threads) {
      if (this.#workers.has(worker)) continue;
      this.#workers.add(worker);
      const exit = new Promise<void>((resolve) =>
        worker.once('exit', () => {
          this.#workers.delete(worker);
          this.#exits.delete(worker);
          if (!this.#closing) this.#parts.counters.threadLost();
          resolve();
        }),
      );
      this.#exits.set(worker, exit);
    }
  }
}

/** A thread that is ended and does not end by itself. */
const freeAfterMs = 250;

/** `threadEnded` tells a session that broke its thread from one that found none in time. */
function endedWhileAttaching(how: Departure): ServerError {
  return new ServerError('ATTACH_FAILED', 'The thread ended while the session was being attached.', {
    data: { threadEnded: how.kind === 'lost' },
    cause: how.kind === 'lost' ? how.reason : undefined,
  });
}

/** From the word to a thread that it must not write to its next write at the latest; the thread may be one of many on a busy core. */
const seenAfterMs = 1000;
