/**
 * A place at the model that came with a prompt: the turn's first call takes it and need not ask main for one. Whatever takes it not
 * gives it back.
 */
import type { ModelSlot, ModelSlotReport } from '../../shared/model-slots.ts';

export class SlotAhead {
  readonly #release: (leaseId: number, report: ModelSlotReport) => void;
  #slot: ModelSlot | undefined;

  constructor(release: (leaseId: number, report: ModelSlotReport) => void) {
    this.#release = release;
  }

  /** One that is still there from before is given back. */
  offer(slot: ModelSlot | undefined): void {
    this.giveBack();
    this.#slot = slot;
  }

  /** Who takes it gives it back. */
  take(): ModelSlot | undefined {
    const slot = this.#slot;
    this.#slot = undefined;
    return slot;
  }

  /** Nobody takes it any more: the turn is over, or was none. */
  giveBack(): void {
    const slot = this.take();
    if (slot !== undefined) this.#release(slot.leaseId, { outcome: 'unused' });
  }
}
