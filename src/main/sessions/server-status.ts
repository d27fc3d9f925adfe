/**
 * What the server is doing, in numbers: the answer to `_status`.
 */
import type { Isolation } from '../../shared/config.ts';
import type { SessionThreads } from '../threads/session-threads.ts';
import type { ThreadLane } from '../threads/thread-lane.ts';
import type { Admission } from './admission.ts';
import type { Session } from './session.ts';

export interface ServerStatus {
  readonly isolation: Isolation;
  readonly sessions: {
    /** Created or loaded on this connection and not closed. */
    readonly open: number;
    /** On a thread now; the others are parked. */
    readonly attached: number;
    /** On a thread that another session is on, too. */
    readonly sharing: number;
  };
  /** Session threads, idle ones included. */
  readonly threads: number;
  readonly turns: {
    readonly running: number;
    /** Admitted by their session, waiting for a slot. */
    readonly waiting: number;
  };
}

export function serverStatus(
  isolation: Isolation,
  sessions: Iterable<Session>,
  parts: { readonly threads: SessionThreads; readonly admission: Admission },
): ServerStatus {
  const perLane = new Map<ThreadLane, number>();
  let open = 0;
  for (const { attached } of sessions) {
    open += 1;
    if (attached !== undefined) perLane.set(attached.lane, (perLane.get(attached.lane) ?? 0) + 1);
  }
  const counts = [...perLane.values()];
  return {
    isolation,
    sessions: { open, attached: sum(counts), sharing: sum(counts.filter((count) => count > 1)) },
    threads: parts.threads.threadCount,
    turns: { running: parts.admission.running, waiting: parts.admission.waiting },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
