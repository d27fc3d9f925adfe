/** What a session on a thread asks of that thread. */
import type { SessionTask } from '../../shared/thread-protocol.ts';

export interface AttachedHooks {
  /** Called when a turn has ended. */
  readonly afterTurn?: () => void;
  /** Puts one more session on this thread; fulfils when it has left. */
  readonly host?: (task: SessionTask) => Promise<void>;
}
