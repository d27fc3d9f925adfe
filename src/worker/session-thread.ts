/**
 * The entry of a session thread's bundle: one call per attached session, which fulfils when the session leaves.
 */
import type { SessionTask } from '../shared/thread-protocol.ts';
import { hostSession } from './session/host-session.ts';
import { threadContext } from './session/thread-context.ts';

// The thread's own parts are made while it loads, not under its first session's attach.
threadContext();

/** @param afterTurn called when a turn has ended on this thread, once per turn */
export default (task: SessionTask, afterTurn?: () => void): Promise<void> => hostSession(task, threadContext(), afterTurn);

export const spare = (): void => undefined;
