/**
 * What one thread may ask of the limiter, and the end of all it holds when the thread is gone.
 */
import { ServerError } from '../../shared/errors.ts';
import type { ModelSlot, ModelSlotServices } from '../../shared/model-slots.ts';
import type { ModelLimiter } from './model-limiter.ts';

export interface LaneSlots {
  readonly services: ModelSlotServices;
  /** A place that is sent along with a prompt; `undefined` where one would have to wait for it. */
  readonly ahead: (sessionId: string, priority: number) => SentSlot | undefined;
}

export interface SentSlot {
  readonly slot: ModelSlot;
  /** For while the thread has not taken the prompt. */
  readonly giveBack: () => void;
}

/** Distinct from the keys of requests, which are numbers. */
const aheadKey = 'ahead';

/** @param gone fulfils when the thread has ended and its last message has been taken */
export function laneSlots(limiter: ModelLimiter, gone: Promise<void>): LaneSlots {
  const owner = {};
  let ended = false;
  void gone.then(() => {
    ended = true;
    limiter.releaseOwner(owner);
  });
  return {
    services: {
      acquireModelSlot: async (request) => {
        // Its ports close one after another: what one still brings would never be given back.
        if (ended) throw new ServerError('THREAD_LOST', 'The thread that asked for a place at the model is gone.');
        return await limiter.acquire(owner, request);
      },
      releaseModelSlot: async (leaseId, report) => limiter.release(owner, leaseId, report),
      withdrawModelSlot: async (sessionId, requestKey) => limiter.withdraw(owner, sessionId, requestKey),
    },
    ahead: (sessionId, priority) => {
      const slot = ended ? undefined : limiter.acquireNow(owner, { sessionId, requestKey: aheadKey, priority });
      return slot && { slot, giveBack: () => limiter.release(owner, slot.leaseId, { outcome: 'unused' }) };
    },
  };
}
