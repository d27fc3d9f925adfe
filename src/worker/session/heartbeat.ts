/**
 * The thread's sign of life for main's watchdog: a counter in shared memory, bumped by a timer while turns run. A thread
 * whose event loop stands still stops bumping; an idle thread has no timer at all.
 */
import { heartbeatMs } from '../../shared/thread-protocol.ts';

export class Heartbeat {
  readonly buffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  readonly #beat = new Int32Array(this.buffer);
  #turns = 0;
  #timer: NodeJS.Timeout | undefined;

  turnStarted(): void {
    this.#turns += 1;
    Atomics.add(this.#beat, 0, 1);
    this.#timer ??= setInterval(() => Atomics.add(this.#beat, 0, 1), heartbeatMs).unref();
  }

  turnEnded(): void {
    this.#turns -= 1;
    if (this.#turns > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
