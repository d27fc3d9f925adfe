/**
 * Puts a session that works for another one on that one's thread, without the pool: no queue, no thread to wait for, and no
 * stranger on the thread. It lives and dies with the thread as the other does.
 */
import { transfer } from '../../shared/comlink.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import type { AttachedSession, Departure } from './attached-session.ts';

/** Fulfils when the session has left, or when its thread is lost. Never rejects. */
export async function hostBeside(parent: AttachedSession, task: SessionTask): Promise<Departure> {
  try {
    await parent.call((api) => api.host(transfer(task, [task.port])));
    return parent.departed ?? { kind: 'left' };
  } catch (error) {
    return { kind: 'lost', reason: error instanceof Error ? error.message : String(error) };
  }
}
