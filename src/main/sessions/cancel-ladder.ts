/**
 * Main's rungs of the cancel ladder, above the thread's own (signal the turn, abort model and tools, kill the groups):
 * a thread that does not react is ended, and its session is revived by the next prompt.
 *
 * A thread that has turns of other sessions as well is not ended for one cancel: on a busy machine its heart can miss the beats of a whole
 * grace, and all of them would lose their turns. The watchdog decides there, and a turn is given longer to come to its end.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ServerConfig } from '../../shared/config.ts';
import type { AttachedSession } from '../threads/attached-session.ts';
import type { SessionThreads } from '../threads/session-threads.ts';
import type { PendingPrompt } from './pending-prompt.ts';
import type { TurnWatch } from './turn-watch.ts';

/** How long a turn that has been answered `cancelled` may still take to unwind, by whether it is the only one of its thread. */
export interface Patience {
  readonly aloneMs: number;
  readonly sharedMs: number;
}

const usualPatience: Patience = { aloneMs: 5_000, sharedMs: 60_000 };
/** How long the end of a thread is waited for before the prompt is answered. */
const endMs = 1000;

export interface CancelParts {
  readonly config: ServerConfig;
  readonly threads: SessionThreads;
  readonly turns: TurnWatch;
}

/**
 * Asks the thread to end the turn; after `cancelGraceMs` answers `cancelled` whatever the thread does. A thread that runs this turn
 * alone, and whose heartbeat stands still since the request, is ended then; any other gets some time more.
 */
export async function cancelRunningTurn(
  prompt: PendingPrompt,
  attached: AttachedSession,
  parts: CancelParts,
  patience = usualPatience,
): Promise<void> {
  const { requestId } = prompt;
  const { lane } = attached;
  const beat = lane.heartbeat;
  // A rejection means that the turn is over or the thread is gone: both settle the prompt by their own way.
  attached.call((api) => api.cancel(requestId)).catch(() => undefined);
  if (await settlesWithin(prompt, parts.config.cancelGraceMs)) return;
  if (lane.heartbeat === beat && parts.turns.isAlone(lane)) {
    // Not for as long as that takes: a thread may be held by what the system does not let go.
    const end = parts.threads.terminate(lane.threadId, 'since it does not react to a cancel');
    await Promise.race([end, new Promise((resolve) => setTimeout(resolve, endMs).unref())]);
    prompt.settleCancelled();
    return;
  }
  prompt.settleCancelled();
  await endIfStillRunning(prompt, attached, parts, patience);
}

async function endIfStillRunning(prompt: PendingPrompt, attached: AttachedSession, parts: CancelParts, patience: Patience): Promise<void> {
  const isOver = (): boolean => prompt.unwound || attached.departed !== undefined;
  for (let waited = 0; waited < patience.sharedMs; waited += patience.aloneMs) {
    await delay(patience.aloneMs, undefined, { ref: false });
    if (isOver()) return;
    if (parts.turns.isAlone(attached.lane)) break;
  }
  await parts.threads.terminate(attached.lane.threadId, 'since a cancelled turn did not come to its end');
}

function settlesWithin(prompt: PendingPrompt, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    const settled = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    prompt.answer.then(settled, settled);
  });
}
