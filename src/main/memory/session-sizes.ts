/** What sessions said last of the memory they hold, and on which thread they are. Those below a megabyte say nothing. */
import type { ThreadLane } from '../threads/thread-lane.ts';

export interface SessionSize {
  readonly sessionId: string;
  readonly bytes: number;
  readonly lane: ThreadLane;
}

export class SessionSizes {
  readonly #sizes = new Map<string, SessionSize>();

  set(sessionId: string, bytes: number, lane: ThreadLane): void {
    this.#sizes.set(sessionId, { sessionId, bytes, lane });
  }

  /** The session is on no thread any more. */
  delete(sessionId: string): void {
    this.#sizes.delete(sessionId);
  }

  get totalBytes(): number {
    let total = 0;
    for (const { bytes } of this.#sizes.values()) total += bytes;
    return total;
  }

  /** The largest first. */
  largest(most: number): SessionSize[] {
    return [...this.#sizes.values()].sort((a, b) => b.bytes - a.bytes).slice(0, most);
  }
}
