/**
 * Admission: how many turns run at once over all sessions. A turn waits here after its session's own queue and before its
 * thread; a waiting turn that is cancelled meanwhile passes as a no-op.
 */
import PQueue from 'p-queue';
import { ServerError } from '../../shared/errors.ts';

/** Higher runs first. A turn of a session that has waited in line already is never overtaken by its own later ones. */
export type TurnPriority = number;

export class Admission {
  readonly #queue: PQueue;
  readonly #maxWaiting: number;

  /** @param maxWaiting turns that may wait; more are refused with OVERLOADED */
  constructor(maxRunning: number, maxWaiting: number) {
    this.#queue = new PQueue({ concurrency: maxRunning });
    this.#maxWaiting = maxWaiting;
  }

  get running(): number {
    return this.#queue.pending;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /**
   * Runs a turn, or a load, when there is a slot; first come first served within a priority.
   *
   * @throws ServerError OVERLOADED when too many wait already
   */
  async admit<T>(turn: () => Promise<T>, priority: TurnPriority = 0): Promise<T> {
    if (this.#queue.size >= this.#maxWaiting) {
      throw new ServerError('OVERLOADED', `${this.#queue.size} turns wait for a slot already.`, { data: { waiting: this.#queue.size } });
    }
    return await this.#queue.add(turn, { priority });
  }
}
