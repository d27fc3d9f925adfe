/**
 * What piscina runs on a session thread: one call per attached session, which fulfils when the session leaves.
 */
import type { SessionTask } from '../shared/thread-protocol.ts';
import { hostSession } from './session/host-session.ts';
import { threadContext } from './session/thread-context.ts';

// The thread's own parts are made while it loads, not under its first session's attach.
threadContext();

export default (task: SessionTask): Promise<void> => hostSession(task, threadContext());

/** A task that ends at once: running it makes piscina hold one more idle thread. */
export const spare = (): void => undefined;
