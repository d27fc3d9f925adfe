/** The memory of one session on this thread: counted, bounded, and told to main. */
import { ServerError } from '../../shared/errors.ts';
import type { SessionApi, SessionTask } from '../../shared/thread-protocol.ts';
import type { ReactLoopAgent } from '../agent/react-loop-agent.ts';
import { MemoryReports } from '../memory/memory-reports.ts';
import { SessionMemory } from '../memory/session-memory.ts';
import type { ThreadContext } from './thread-context.ts';

export interface WatchedMemory {
  readonly memory: SessionMemory;
  readonly end: SessionApi['endForMemory'];
}

/** Watches until the session has left. `agent` is asked only once a turn runs. */
export function watchMemory(
  task: SessionTask,
  thread: ThreadContext,
  { left, agent }: { readonly left: Promise<void>; readonly agent: () => ReactLoopAgent },
): WatchedMemory {
  const memory = new SessionMemory(task.settings.maxSessionBytes);
  const reports = new MemoryReports({
    memory,
    isBusy: () => agent().status === 'running',
    onExcess: () => agent().endForMemory(memory.excess()),
    report: (bytes) => void thread.main.reportMemory(task.sessionId, bytes).catch(() => undefined),
  });
  void left.then(thread.heartbeat.listen(() => reports.beat()));
  return { memory, end: async (message) => agent().endForMemory(new ServerError('SESSION_MEMORY', message)) };
}
