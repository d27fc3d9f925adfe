/**
 * How many runs of one provider there are at once, over all sessions. A start that finds no slot waits in line.
 */
import PQueue from 'p-queue';

/** Gives the slot back; more than one call does nothing. */
export type ReleaseSlot = () => void;

export class ProviderSlots {
  readonly #queue: PQueue;

  constructor(maxRunning: number) {
    this.#queue = new PQueue({ concurrency: maxRunning });
  }

  get running(): number {
    return this.#queue.pending;
  }

  /** First come, first served. `undefined` when the signal aborted, or `waitMs` passed, before there was one. */
  async take(signal: AbortSignal, waitMs: number): Promise<ReleaseSlot | undefined> {
    const waiting = new AbortController();
    const giveUp = (): void => waiting.abort();
    const timer = setTimeout(giveUp, waitMs);
    const stopWaiting = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    if (signal.aborted) giveUp();
    return await new Promise((resolve) => {
      const hold = async (): Promise<void> => {
        // At once: an abort from here on must not free a slot that is in use.
        stopWaiting();
        await new Promise<void>((release) => resolve(release));
      };
      // Rejects for the abort alone.
      this.#queue.add(hold, { signal: waiting.signal }).catch(() => {
        stopWaiting();
        resolve(undefined);
      });
    });
  }
}
