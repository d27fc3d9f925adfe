/**
 * Session threads without threads: the part of piscina that `SessionThreads` uses, with one realm a thread. The program's own placement
 * chooses; each thread runs the program's own host. A thread can die at any of its calls to the outside.
 */
import { EventEmitter } from 'node:events';
import { placementFor } from '../../src/main/threads/placement.ts';
import type { Isolation } from '../../src/shared/config.ts';
import type { SessionTask } from '../../src/shared/thread-protocol.ts';
import { hostSession } from '../../src/worker/session/host-session.ts';
import { createThreadContext, type ThreadContext } from '../../src/worker/session/thread-context.ts';
import { cloned, type SimulatedPort } from './ports.ts';
import { Realm, type World } from './world.ts';

interface Job {
  readonly task: SessionTask;
  readonly name: string;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class SimulatedThread extends EventEmitter {
  readonly threadId: number;
  readonly realm: Realm;
  readonly jobs = new Set<Job>();
  context: ThreadContext | undefined;
  exited = false;
  readonly #world: World;

  constructor(world: World, threadId: number) {
    super();
    this.#world = world;
    this.threadId = threadId;
    this.realm = new Realm(`thread ${threadId}`);
  }

  get currentUsage(): number {
    return this.jobs.size;
  }

  async terminate(): Promise<void> {
    if (this.exited) return;
    const exit = new Promise<void>((resolve) => this.once('exit', () => resolve()));
    this.#world.kill(this.realm);
    await exit;
  }
}

export class SimulatedPool extends EventEmitter {
  threads: SimulatedThread[] = [];
  readonly #world: World;
  readonly #server: Realm;
  readonly #ports: Set<SimulatedPort>;
  readonly #place: ReturnType<typeof placementFor>;
  readonly #maxThreads: number;
  readonly #queue: Job[] = [];
  #lastId = 0;
  #closing = false;

  constructor(world: World, server: Realm, ports: Set<SimulatedPort>, options: { isolation: Isolation; maxThreads: number }) {
    super();
    this.#world = world;
    this.#server = server;
    this.#ports = ports;
    this.#maxThreads = options.maxThreads;
    this.#place = placementFor(options.isolation, options.maxThreads);
  }

  run(task: SessionTask, { name = '', transferList = [] }: { name?: string; transferList?: SimulatedPort[] } = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#closing) return reject(new Error('Terminating worker thread'));
      this.#queue.push({ task: cloned(task, transferList) as SessionTask, name, resolve, reject });
      this.#placeAll();
    });
  }

  threadOf(sessionId: string): SimulatedThread | undefined {
    return this.threads.find((thread) => [...thread.jobs].some(({ task }) => task.sessionId === sessionId));
  }

  async destroy(): Promise<void> {
    this.#closing = true;
    for (const job of this.#queue.splice(0)) job.reject(new Error('Terminating worker thread'));
    await Promise.all(this.threads.map((thread) => thread.terminate()));
  }

  #placeAll(): void {
    while (this.#queue.length > 0 && !this.#closing) {
      const job = this.#queue[0]!;
      // A thread that is ending is one still: who is put there is lost with it.
      let thread = this.#place({ name: job.name }, this.threads);
      if (thread === null && this.threads.length < this.#maxThreads) thread = this.#start();
      if (thread === null) return;
      this.#queue.shift();
      this.#host(thread, job);
    }
  }

  #start(): SimulatedThread {
    const thread = new SimulatedThread(this.#world, ++this.#lastId);
    this.threads.push(thread);
    thread.realm.onDeath = () => this.#died(thread);
    this.emit('workerCreate', thread);
    return thread;
  }

  #host(thread: SimulatedThread, job: Job): void {
    const world = this.#world;
    const { realm } = thread;
    thread.jobs.add(job);
    const port = job.task.port as unknown as SimulatedPort;
    port.realm = realm;
    const end = (how: () => void): void => {
      if (!world.touch()) return;
      world.after(
        world.latency(),
        () => {
          if (thread.exited) return;
          thread.jobs.delete(job);
          how();
          this.#placeAll();
        },
        { realm: this.#server, kind: 'task' },
      );
    };
    world.after(
      world.random.next() * 20,
      () => {
        thread.context ??= createThreadContext(thread.threadId);
        hostSession(job.task, thread.context).then(
          () => end(job.resolve),
          (error: Error) => end(() => job.reject(error)),
        );
      },
      { realm, kind: 'task' },
    );
  }

  /** Its ports close behind what it had posted; its exit is heard of before or after that. */
  #died(thread: SimulatedThread): void {
    const world = this.#world;
    for (const port of Array.from(this.#ports)) if (port.realm === thread.realm) port.closeNow();
    world.after(
      world.random.next() * 8,
      () => {
        thread.exited = true;
        this.threads = this.threads.filter((one) => one !== thread);
        thread.emit('exit', 1);
        for (const job of thread.jobs) job.reject(new Error('worker exited'));
        thread.jobs.clear();
        this.#placeAll();
      },
      { realm: this.#server, kind: 'exit' },
    );
  }
}
