/**
 * How a run ends early. First it drains: nothing new starts, what runs is finished. Then, or at once, everything is cancelled. The first cause
 * stays the one that is told.
 */
import { setMaxListeners } from 'node:events';
import type { StopCause } from './run-event.ts';

export class RunStop {
  readonly #drain = new AbortController();
  readonly #cancel = new AbortController();
  readonly #onDrain: (why: string) => void;
  #cause: StopCause | undefined;

  /** @param onDrain called once, with words for people */
  constructor(onDrain: (why: string) => void) {
    this.#onDrain = onDrain;
    // One listener per running job is no leak.
    setMaxListeners(0, this.#drain.signal, this.#cancel.signal);
  }

  get cause(): StopCause | undefined {
    return this.#cause;
  }

  get isDraining(): boolean {
    return this.#drain.signal.aborted;
  }

  get isCancelled(): boolean {
    return this.#cancel.signal.aborted;
  }

  get drainSignal(): AbortSignal {
    return this.#drain.signal;
  }

  get cancelSignal(): AbortSignal {
    return this.#cancel.signal;
  }

  drain(cause: StopCause, why: string): void {
    if (this.isDraining) return;
    this.#cause = cause;
    this.#drain.abort();
    this.#onDrain(why);
  }

  cancel(cause: StopCause, why: string): void {
    this.drain(cause, why);
    this.#cancel.abort();
  }
}
