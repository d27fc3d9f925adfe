/**
 * Places at the model's provider, as the loop sees them: one is taken before every model call and given back behind it.
 * Who hands them out, and over what, is not the agent's business.
 */
import type { ModelSlotReport } from '../../shared/model-slots.ts';

export interface ModelSlotLease {
  /** How many stood before this request when it came; `0` when it did not wait. */
  readonly position: number;
  readonly waitedMs: number;
  /** Gives the place back and says how the call ended. Called once, as soon as the call has. Never throws. */
  release(report: ModelSlotReport): void;
}

export interface ModelSlots {
  /**
   * Fulfils when a call may be made; with `undefined`, at once, when `signal` aborts first: then there is nothing to give
   * back.
   *
   * @param priority higher goes first
   * @throws ServerError when no place can ever be had; the turn ends with it
   */
  acquire(priority: number, signal: AbortSignal): Promise<ModelSlotLease | undefined>;
}

const openLease: ModelSlotLease = { position: 0, waitedMs: 0, release: () => undefined };

/** For a model without a provider that anybody could overload: there is always a place. */
export const openSlots: ModelSlots = {
  acquire: (_priority, signal) => Promise.resolve(signal.aborted ? undefined : openLease),
};
