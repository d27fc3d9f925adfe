/**
 * What is logged and said when a session was put on a thread.
 */
import type { EventInput } from '../../shared/events.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import type { ThreadContext } from './thread-context.ts';

/** The first event of a session on this thread. */
export function attachedEvent(task: SessionTask, thread: ThreadContext, epoch: number): EventInput {
  const { isolation, additionalDirectories = [], sandbox } = task;
  return {
    type: 'thread/attached',
    data: {
      epoch,
      threadId: thread.threadId,
      isolation,
      pid: process.pid,
      sharedWith: thread.sessionIds.size,
      ...(additionalDirectories.length === 0 ? {} : { additionalDirectories }),
      ...(sandbox === undefined ? {} : { sandbox }),
    },
  };
}

/** Tells the operator when a session that was to have a thread of its own has to share one. */
export function noteSharing({ isolation, audience, sessionId }: SessionTask, { main, sessionIds }: ThreadContext): void {
  // A session that works for another one shares its thread on purpose.
  if (isolation !== 'dedicated' || sessionIds.size === 0 || audience !== undefined) return;
  void main.log('info', `every thread is taken: session ${sessionId} shares one with ${sessionIds.size} others`);
}
