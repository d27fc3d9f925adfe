/**
 * The entry of a session thread's bundle: one call per attached session, which fulfils when the session leaves.
 */
import type { SessionTask } from '../shared/thread-protocol.ts';
import { identifySelf } from '../shared/process-identity.ts';
import { parseEndpoint } from './model/model-endpoint.ts';
import { hostSession } from './session/host-session.ts';
import { threadContext } from './session/thread-context.ts';

// The thread's own parts, and what is slow only the first time, are made while it loads, not under its first session's attach.
threadContext();
identifySelf();
parseEndpoint('http://localhost/v1?first=1');

/** @param afterTurn called when a turn has ended on this thread, once per turn */
export default (task: SessionTask, afterTurn?: () => void): Promise<void> => hostSession(task, threadContext(), afterTurn);

export const spare = (): void => undefined;
