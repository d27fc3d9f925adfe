/**
 * Sessions that wait for credit, released in the order in which they came.
 *
 * Releasing all of them at the first returned byte would overdraw the credit once per session. So only as many are let go
 * as the credit can bear; the next ones follow when these had their turn of the event loop and left something over.
 */

/** What a released writer is expected to send before it asks again; most send one small frame. */
const bytesPerWriter = 2048;

interface Waiter {
  readonly go: () => void;
}

export class WriterQueue {
  readonly #creditLeft: () => number;
  readonly #schedule: (run: () => void) => void;
  #waiters: Waiter[] = [];
  #releaseIsScheduled = false;

  constructor(creditLeft: () => number, schedule: (run: () => void) => void) {
    this.#creditLeft = creditLeft;
    this.#schedule = schedule;
  }

  get isEmpty(): boolean {
    return this.#waiters.length === 0;
  }

  /** Fulfils at this writer's turn, or at once when `signal` aborts. Never rejects. */
  wait(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        resolve();
      };
      const waiter: Waiter = {
        go: () => {
          signal?.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal?.addEventListener('abort', leave, { once: true });
      this.#waiters.push(waiter);
      // Credit may be left already, with others waiting for their turn: then this one has its turn coming, too.
      this.#releaseSoon();
    });
  }

  /** Lets go as many writers as the credit bears. To be called when credit came back. */
  release(): void {
    const credit = this.#creditLeft();
    if (credit <= 0) return;
    for (const waiter of this.#waiters.splice(0, Math.max(1, Math.floor(credit / bytesPerWriter)))) waiter.go();
    this.#releaseSoon();
  }

  #releaseSoon(): void {
    if (this.#releaseIsScheduled || this.isEmpty || this.#creditLeft() <= 0) return;
    this.#releaseIsScheduled = true;
    this.#schedule(() => {
      this.#releaseIsScheduled = false;
      this.release();
    });
  }
}
