/**
 * A session's places at its provider, asked of main: limits are per account, and this thread is one of many.
 *
 * Asking is a call to main and back. Giving back needs no answer, so it travels with the thread's next batch.
 */
import type { ModelSlot, ModelSlotReport, ModelSlotServices } from '../../shared/model-slots.ts';
import type { ModelConfig } from '../../shared/config.ts';
import { type ModelSlotLease, type ModelSlots, openSlots } from '../agent/model-slots.ts';
import type { SlotAhead } from './slot-ahead.ts';

export interface SessionSlotsParts {
  readonly sessionId: string;
  readonly main: Pick<ModelSlotServices, 'acquireModelSlot' | 'withdrawModelSlot'>;
  /** What came with the prompt. */
  readonly ahead?: SlotAhead;
  /** Gives a lease back, soon. */
  readonly release: (leaseId: number, report: ModelSlotReport) => void;
}

/** The built-in models have no provider that anybody could overload: they cost no call to main. */
export function slotsFor(model: ModelConfig, parts: SessionSlotsParts): ModelSlots {
  return model.kind === 'openai-compatible' ? new SessionSlots(parts) : openSlots;
}

export class SessionSlots implements ModelSlots {
  readonly #parts: SessionSlotsParts;
  #requests = 0;

  constructor(parts: SessionSlotsParts) {
    this.#parts = parts;
  }

  /** @throws ServerError SHUTTING_DOWN; THREAD_LOST when main is gone */
  acquire(priority: number, signal: AbortSignal): Promise<ModelSlotLease | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    const given = this.#parts.ahead?.take();
    if (given !== undefined) return Promise.resolve(this.#leaseOf(given));
    const { sessionId, main } = this.#parts;
    this.#requests += 1;
    const requestKey = String(this.#requests);
    const asked = main.acquireModelSlot({ sessionId, requestKey, priority });
    return new Promise((resolve, reject) => {
      const withdraw = (): void => {
        // A dead main withdraws everything by itself.
        main.withdrawModelSlot(sessionId, requestKey).catch(() => undefined);
        resolve(undefined);
      };
      signal.addEventListener('abort', withdraw, { once: true });
      asked.then(
        (slot) => {
          signal.removeEventListener('abort', withdraw);
          const lease = this.#leaseOf(slot);
          // It was on its way when the turn ended.
          if (signal.aborted) lease.release({ outcome: 'other' });
          else resolve(lease);
        },
        (error: unknown) => {
          signal.removeEventListener('abort', withdraw);
          reject(error instanceof Error ? error : new Error('a place at the model was refused', { cause: error }));
        },
      );
    });
  }

  #leaseOf({ leaseId, position, waitedMs }: ModelSlot): ModelSlotLease {
    let held = true;
    return {
      position,
      waitedMs,
      release: (report) => {
        if (held) this.#parts.release(leaseId, report);
        held = false;
      },
    };
  }
}
