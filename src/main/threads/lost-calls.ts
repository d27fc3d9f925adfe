/**
 * Ids of tool calls that a client was shown by threads which died: no log may hold them, so the next thread of the session
 * is told not to give them to other calls. Kept for as long as the server runs; most sessions never lose a thread.
 */
import type { SessionTask } from '../../shared/thread-protocol.ts';

/** Of one session; the oldest go first. */
const mostKept = 1024;

export class LostCalls {
  readonly #bySession = new Map<string, readonly string[]>();

  add(sessionId: string, callIds: readonly string[]): void {
    if (callIds.length === 0) return;
    this.#bySession.set(sessionId, [...(this.#bySession.get(sessionId) ?? []), ...callIds].slice(-mostKept));
  }

  /** The part of a task that names them. */
  of(sessionId: string): Pick<SessionTask, 'lostCallIds'> {
    const lostCallIds = this.#bySession.get(sessionId);
    return lostCallIds === undefined ? {} : { lostCallIds };
  }
}
