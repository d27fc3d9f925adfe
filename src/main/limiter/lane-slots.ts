/**
 * What one thread may ask of the limiter, and the end of all it holds when the thread is gone.
 */
import { ServerError } from '../../shared/errors.ts';
import type { ModelSlotServices } from '../../shared/model-slots.ts';
import type { ModelLimiter } from './model-limiter.ts';

/** @param gone fulfils when the thread has ended and its last message has been taken */
export function laneSlots(limiter: ModelLimiter, gone: Promise<void>): ModelSlotServices {
  const owner = {};
  let ended = false;
  void gone.then(() => {
    ended = true;
    limiter.releaseOwner(owner);
  });
  return {
    acquireModelSlot: async (request) => {
      // Its ports close one after another: what one still brings would never be given back.
      if (ended) throw new ServerError('THREAD_LOST', 'The thread that asked for a place at the model is gone.');
      return await limiter.acquire(owner, request);
    },
    releaseModelSlot: async (leaseId, report) => limiter.release(owner, leaseId, report),
    withdrawModelSlot: async (sessionId, requestKey) => limiter.withdraw(owner, sessionId, requestKey),
  };
}
