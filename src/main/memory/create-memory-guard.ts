/** The memory guard of a running server, and what it tells in numbers. */
import type { ServerConfig } from '../../shared/config.ts';
import type { Diagnostics } from '../diagnostics.ts';
import type { Session } from '../sessions/session.ts';
import type { TurnWatch } from '../sessions/turn-watch.ts';
import type { SessionThreads } from '../threads/session-threads.ts';
import { MemoryGuard } from './memory-guard.ts';
import type { SessionSizes } from './session-sizes.ts';

/** How long a turn may take to end once it was told to; its thread is ended then. */
const unwindMs = 1_500;
const mostNamed = 20;

export interface MemoryFigures {
  /** Of all sessions, as far as they told; each tells its size once it has changed by a megabyte. */
  readonly sessionBytes: number;
  /** The largest, at most 20. */
  readonly sessions: readonly { readonly sessionId: string; readonly bytes: number }[];
  /** Heap and buffers of the session threads at their last heartbeat. */
  readonly threadBytes: number;
  /** `max_rss_mb` in bytes. */
  readonly limitBytes: number;
  /** For what they held. */
  readonly endedTurns: number;
  readonly endedThreads: number;
}

interface GuardParts {
  readonly config: ServerConfig;
  readonly diagnostics: Diagnostics;
  readonly sizes: SessionSizes;
  readonly threads: SessionThreads;
  readonly turns: TurnWatch;
  readonly find: (sessionId: string) => Session | undefined;
}

/** Runs until it is stopped. */
export function createMemoryGuard({ config, diagnostics, sizes, threads, turns, find }: GuardParts): MemoryGuard {
  const guard = new MemoryGuard({
    config,
    diagnostics,
    sizes,
    lanes: () => threads.lanes.values(),
    isWorking: (lane) => turns.isRunning(lane),
    endTurn: (sessionId, message) => void endTurn(find(sessionId), message, threads),
    endThread: (threadId) => void threads.terminate(threadId, 'for the memory that it holds'),
  });
  guard.start();
  return guard;
}

/** A thread that does not get to hear of it is ended: what it holds is in the way of all others. */
async function endTurn(session: Session | undefined, message: string, threads: SessionThreads): Promise<void> {
  const attached = session?.attached;
  if (attached === undefined) return;
  const { lane } = attached;
  const beat = lane.heartbeat;
  // A rejection means that the thread is gone, which is what was wanted.
  attached.call((api) => api.endForMemory(message)).catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, unwindMs).unref());
  if (attached.departed !== undefined || session?.unsettledPrompts === 0 || lane.heartbeat !== beat) return;
  lane.endedForMemory = true;
  await threads.terminate(lane.threadId, 'since a turn that holds too much memory does not end');
}

export function memoryFigures(
  { maxRssBytes }: ServerConfig,
  sizes: SessionSizes,
  threads: SessionThreads,
  guard: MemoryGuard,
): MemoryFigures {
  let threadBytes = 0;
  for (const lane of threads.lanes.values()) threadBytes += lane.memoryBytes;
  return {
    sessionBytes: sizes.totalBytes,
    sessions: sizes.largest(mostNamed).map(({ sessionId, bytes }) => ({ sessionId, bytes })),
    threadBytes,
    limitBytes: maxRssBytes,
    endedTurns: guard.ended.turns,
    endedThreads: guard.ended.threads,
  };
}
