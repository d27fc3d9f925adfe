/**
 * Ends what holds most before the process is in danger: a heap that is full, or a machine without memory, would end all sessions.
 *
 * Two bounds. A thread over `maxThreadBytes` loses its largest session's turn; where no session of it is large, what grows is counted
 * by nobody, and the thread is ended. A process over `maxRssBytes` loses the turn of the largest session, then, while that does not
 * help, of the next. What no thread can be blamed for is said on stderr and never paid for by sessions that hold little.
 */
import type { ServerConfig } from '../../shared/config.ts';
import type { Diagnostics } from '../diagnostics.ts';
import type { ThreadLane } from '../threads/thread-lane.ts';
import type { SessionSizes } from './session-sizes.ts';

export interface MemoryGuardParts {
  readonly config: Pick<ServerConfig, 'isolation' | 'maxRssBytes' | 'maxThreadBytes'>;
  readonly diagnostics: Diagnostics;
  readonly sizes: SessionSizes;
  readonly lanes: () => Iterable<ThreadLane>;
  /** Whether turns run on it. */
  readonly isWorking: (lane: ThreadLane) => boolean;
  /** Ends the running turn of a session; what it does with one that does not listen is its own affair. */
  readonly endTurn: (sessionId: string, message: string) => void;
  readonly endThread: (threadId: number) => void;
  /** Replaceable for tests. */
  readonly residentBytes?: () => number;
  readonly now?: () => number;
}

const mebibyte = 1024 * 1024;
export const checkEveryMs = 250;
/** Nobody who holds less is ended: it would not help. */
const worthEndingBytes = 16 * mebibyte;
/** Between two victims, so that what the first has let go can be collected. */
const pauseMs = 2_000;
/** Between two lines that say the same. */
const sayEveryMs = 60_000;

export class MemoryGuard {
  readonly #parts: MemoryGuardParts;
  readonly #resident: () => number;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;
  #quietUntil = Number.NEGATIVE_INFINITY;
  #saidAt = Number.NEGATIVE_INFINITY;
  readonly #beats = new Map<ThreadLane, number>();
  #endedTurns = 0;
  #endedThreads = 0;

  constructor(parts: MemoryGuardParts) {
    this.#parts = parts;
    this.#resident = parts.residentBytes ?? residentOrNothing;
    this.#now = parts.now ?? (() => performance.now());
  }

  /** Turns and threads that were ended since the start. */
  get ended(): { readonly turns: number; readonly threads: number } {
    return { turns: this.#endedTurns, threads: this.#endedThreads };
  }

  start(): void {
    this.#timer ??= setInterval(() => this.check(), checkEveryMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** One round; public for tests that hold the clock. */
  check(): void {
    const lanes = [...this.#parts.lanes()];
    const stuck = this.#stuckSince(lanes);
    const now = this.#now();
    if (now < this.#quietUntil) return;
    const { maxThreadBytes, maxRssBytes } = this.#parts.config;
    const large = lanes.find((lane) => lane.memoryBytes > maxThreadBytes);
    if (large !== undefined) this.#relieveThread(large, `a thread came to hold ${inMb(large.memoryBytes)} (max_thread_mb)`);
    else if (this.#resident() > maxRssBytes) this.#relieveProcess(lanes, stuck);
  }

  #relieveProcess(lanes: readonly ThreadLane[], stuck: readonly ThreadLane[]): void {
    const why = `the process came to hold ${inMb(this.#resident())} (max_rss_mb)`;
    const [first] = this.#parts.sizes.largest(1);
    const largest = lanes.reduce<ThreadLane | undefined>(
      (most, lane) => (lane.memoryBytes > (most?.memoryBytes ?? 0) ? lane : most),
      undefined,
    );
    const inThread = largest?.memoryBytes ?? 0;
    if (first !== undefined && first.bytes >= worthEndingBytes && first.bytes >= inThread / 4) this.#endTurn(first.sessionId, why);
    else if (largest !== undefined && inThread >= 8 * worthEndingBytes) this.#relieveThread(largest, why);
    // Its size is that of the moment it stopped to say anything: if something grows, it is there.
    else if (stuck.length === 1 && stuck[0] !== undefined) this.#endThread(stuck[0], `${why} while a thread stood still`);
    else this.#say(`${why}, and no session holds enough to be ended for it`);
  }

  #relieveThread(lane: ThreadLane, why: string): void {
    const first = this.#parts.sizes.largest(Number.POSITIVE_INFINITY).find((size) => size.lane === lane);
    if (first !== undefined && first.bytes >= Math.max(worthEndingBytes, lane.memoryBytes / 4)) this.#endTurn(first.sessionId, why);
    else this.#endThread(lane, why);
  }

  #endTurn(sessionId: string, why: string): void {
    this.#quietUntil = this.#now() + pauseMs;
    this.#endedTurns += 1;
    this.#parts.diagnostics.log('warn', `memory: ${why}; the turn of session ${sessionId} is ended`);
    this.#parts.endTurn(sessionId, `The turn was ended because ${why}, and its session was the largest.`);
  }

  #endThread(lane: ThreadLane, why: string): void {
    this.#quietUntil = this.#now() + pauseMs;
    this.#endedThreads += 1;
    // Where threads are shared nobody can say which of its sessions it was.
    lane.endedForMemory = this.#parts.config.isolation !== 'shared';
    this.#parts.diagnostics.log('warn', `memory: ${why}; thread ${lane.threadId} is ended`);
    this.#parts.endThread(lane.threadId);
  }

  #say(what: string): void {
    if (this.#now() < this.#saidAt + sayEveryMs) return;
    this.#saidAt = this.#now();
    this.#parts.diagnostics.log('warn', `memory: ${what}`);
  }

  /** Threads whose heart has not beaten since the last round: they do work in one piece, or none at all. */
  #stuckSince(lanes: readonly ThreadLane[]): ThreadLane[] {
    const stuck = lanes.filter((lane) => this.#parts.isWorking(lane) && this.#beats.get(lane) === lane.heartbeat);
    this.#beats.clear();
    for (const lane of lanes) this.#beats.set(lane, lane.heartbeat);
    return stuck;
  }
}

function inMb(bytes: number): string {
  return `${Math.round(bytes / mebibyte)} MB`;
}

/** Reading it opens a file: without a free descriptor it is unknown for a while, which is no reason to end the process. */
function residentOrNothing(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return 0;
  }
}
