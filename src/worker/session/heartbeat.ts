/**
 * The thread's sign of life for main's watchdog, and how much memory it holds: a counter and a size in shared memory, bumped by a timer while turns run. A thread
 * whose event loop stands still stops bumping; an idle thread has no timer at all.
 */
import { readlinkSync } from 'node:fs';
import { heartbeatMs } from '../../shared/thread-protocol.ts';
import { threadMemoryKb } from '../memory/thread-memory.ts';

export class Heartbeat {
  readonly buffer = new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT);
  readonly #beat = new Int32Array(this.buffer);
  readonly #listeners = new Set<() => void>();
  #turns = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    Atomics.store(this.#beat, 2, osThreadId());
  }

  turnStarted(): void {
    this.#turns += 1;
    Atomics.add(this.#beat, 0, 1);
    this.#timer ??= setInterval(() => this.#tick(), heartbeatMs).unref();
  }

  /** Behind the last turn that runs comes one more beat. */
  turnEnded(): void {
    this.#turns -= 1;
    // While others run the next beat comes anyway: a look at all of them for each turn that ends would grow with their number.
    if (this.#turns > 0) return;
    for (const onBeat of this.#listeners) onBeat();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Calls `onBeat` at each beat. @returns what ends that */
  listen(onBeat: () => void): () => void {
    this.#listeners.add(onBeat);
    return () => void this.#listeners.delete(onBeat);
  }

  #tick(): void {
    Atomics.add(this.#beat, 0, 1);
    Atomics.store(this.#beat, 1, threadMemoryKb());
    for (const onBeat of this.#listeners) onBeat();
  }
}

/** How the system numbers the thread that calls; `0` where it does not say. */
function osThreadId(): number {
  try {
    return Number(/task\/(\d+)$/.exec(readlinkSync('/proc/thread-self'))?.[1] ?? 0);
  } catch {
    return 0; // Only Linux says it.
  }
}
