/**
 * Main's rungs of the cancel ladder, above the thread's own (signal the turn, abort model and tools, kill the groups):
 * a thread that does not react is ended, and its session is revived by the next prompt.
 */
import type { ServerConfig } from '../../shared/config.ts';
import type { AttachedSession } from '../threads/attached-session.ts';
import type { SessionThreads } from '../threads/session-threads.ts';
import type { PendingPrompt } from './pending-prompt.ts';

/** How long a turn that has been answered `cancelled` may still take to unwind on a thread that is alive. */
const unwindMs = 5000;
/** How long the end of a thread is waited for before the prompt is answered. */
const endMs = 1000;

/**
 * Asks the thread to end the turn; after `cancelGraceMs` answers `cancelled` whatever the thread does. A thread whose
 * heartbeat stands still since the request is ended then; one that is alive but slow gets {@link unwindMs} more.
 */
export async function cancelRunningTurn(
  prompt: PendingPrompt,
  attached: AttachedSession,
  parts: { readonly config: ServerConfig; readonly threads: SessionThreads },
): Promise<void> {
  const { requestId } = prompt;
  const beat = attached.lane.heartbeat;
  // A rejection means that the turn is over or the thread is gone: both settle the prompt by their own way.
  attached.call((api) => api.cancel(requestId)).catch(() => undefined);
  if (await settlesWithin(prompt, parts.config.cancelGraceMs)) return;
  const alive = attached.lane.heartbeat !== beat;
  // Not for as long as that takes: a thread may be held by what the system does not let go.
  if (!alive)
    await Promise.race([parts.threads.terminate(attached.lane.threadId), new Promise((resolve) => setTimeout(resolve, endMs).unref())]);
  prompt.settleCancelled();
  if (alive) await endIfStillRunning(prompt, attached, parts.threads);
}

async function endIfStillRunning(prompt: PendingPrompt, attached: AttachedSession, threads: SessionThreads): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, unwindMs).unref());
  if (!prompt.unwound && attached.departed === undefined) await threads.terminate(attached.lane.threadId);
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
