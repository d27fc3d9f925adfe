/**
 * What is logged and said when a session was put on a thread.
 */
import type { EventInput } from '../../shared/events.ts';
import { type SandboxReport, turnedOff, uncontainedState } from '../../shared/sandbox.ts';
import { awaitSandboxState, readSandboxState } from '../../shared/sandbox-slot.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import type { ThreadContext } from './thread-context.ts';

/** The broker tries the sandbox in some milliseconds; where it does not say in this time, the event is written without. */
const sandboxWaitMs = 1_500;

/** What the session's commands are kept in, as the first event says it. Never rejects. */
export async function sandboxReport({ sandbox }: SessionTask): Promise<SandboxReport | undefined> {
  if (sandbox === undefined) return undefined;
  const { use, network, slot } = sandbox;
  // There is nothing to be tried then.
  const certain = use === 'off' ? uncontainedState(network, turnedOff) : undefined;
  const state = readSandboxState(slot) ?? certain ?? (await awaitSandboxState(slot, sandboxWaitMs));
  return { use, ...(state ?? { network, why: 'not tried yet' }) };
}

export interface AttachedFacts {
  /** Of the log. */
  readonly epoch: number;
  readonly sandbox: SandboxReport | undefined;
}

/** The first event of a session on this thread. */
export function attachedEvent(task: SessionTask, thread: ThreadContext, { epoch, sandbox }: AttachedFacts): EventInput {
  const { isolation, additionalDirectories = [] } = task;
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
