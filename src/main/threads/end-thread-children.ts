/**
 * Ends the processes that a thread of this process has started and waits for. Session threads are to start none; one that does, by a
 * call that blocks it, cannot be ended before its child has. Linux alone tells which thread started a process; elsewhere nothing is done.
 */
import { readFileSync } from 'node:fs';

/** @param osThreadId as the system numbers it; `0` when it is not known */
export function endThreadChildren(osThreadId: number): void {
  // Those of main itself, the fallback of a thread that could not say who it is, are none of ours.
  if (osThreadId <= 0 || osThreadId === process.pid) return;
  for (const pid of childrenOf(osThreadId)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
}

function childrenOf(osThreadId: number): number[] {
  try {
    const text = readFileSync(`/proc/self/task/${osThreadId}/children`, 'utf8');
    return text
      .split(' ')
      .map(Number)
      .filter((pid) => Number.isInteger(pid) && pid > 1);
  } catch {
    return []; // The thread has ended, or the system does not tell.
  }
}
