/**
 * What the server is doing, in numbers: the answer to `_status`, and what the metrics are read from.
 */
import type { Isolation } from '../../shared/config.ts';
import type { LimiterStatus } from '../../shared/model-slots.ts';
import type { SandboxState } from '../../shared/sandbox.ts';
import type { MemoryFigures } from '../memory/create-memory-guard.ts';
import type { LoopLagFigures } from '../telemetry/loop-lag.ts';
import type { Totals } from '../telemetry/server-counters.ts';
import type { SessionThreads } from '../threads/session-threads.ts';
import type { ThreadLane } from '../threads/thread-lane.ts';
import type { Admission } from './admission.ts';
import type { Session } from './session.ts';

export interface ServerStatus extends ServerFigures {
  readonly isolation: Isolation;
  readonly sessions: {
    /** Created or loaded on this connection and not closed. */
    readonly open: number;
    /** On a thread now. */
    readonly attached: number;
    /** On none. */
    readonly parked: number;
    /** On a thread that another session is on, too. */
    readonly sharing: number;
    /** Working for another one, on its thread; in none of the numbers above. */
    readonly delegated: number;
  };
  /** Session threads, idle ones included. */
  readonly threads: number;
  readonly turns: {
    readonly running: number;
    /** Admitted by their session, waiting for a slot. */
    readonly waiting: number;
  };
  readonly prompts: {
    /** Behind an earlier one of their session. */
    readonly queued: number;
  };
}

/** What is not about sessions. */
export interface ServerFigures {
  /** One per provider; none for a model that runs in this process. */
  readonly limiters: readonly (LimiterStatus & { /** Host and port of the base URL. */ readonly provider: string })[];
  readonly totals: Totals;
  readonly process: {
    readonly uptimeMs: number;
    /** Processes that served this connection before; present under a supervisor. */
    readonly restarts?: number;
    /** Of the whole process. */
    readonly rssBytes: number;
    /** Of the main thread. */
    readonly heapUsedBytes: number;
    /** Of the main thread, since the last look or in the last ten seconds; zeros at the first look. */
    readonly loopLagMs: LoopLagFigures;
  };
  /** Absent where nobody guards it. */
  readonly memory?: MemoryFigures;
  readonly output: {
    /** Bytes that the client has not yet taken. */
    readonly queuedBytes: number;
  };
  /** What commands are kept in; present once that has been tried, which begins with the first session. */
  readonly sandbox?: SandboxState;
  /** Present when traces are exported. */
  readonly spans?: { readonly exported: number; readonly failed: number };
  /** Present when metrics are served. */
  readonly metrics?: { readonly port: number };
}

export function serverStatus(
  isolation: Isolation,
  sessions: Iterable<Session>,
  parts: {
    readonly threads: SessionThreads;
    readonly admission: Admission;
    readonly delegated: () => number;
    readonly figures: () => ServerFigures;
  },
): ServerStatus {
  const perLane = new Map<ThreadLane, number>();
  let open = 0;
  let queued = 0;
  for (const { attached, unsettledPrompts } of sessions) {
    open += 1;
    queued += Math.max(0, unsettledPrompts - 1);
    if (attached !== undefined) perLane.set(attached.lane, (perLane.get(attached.lane) ?? 0) + 1);
  }
  const counts = [...perLane.values()];
  const attached = sum(counts);
  return {
    isolation,
    sessions: {
      open,
      attached,
      parked: open - attached,
      sharing: sum(counts.filter((count) => count > 1)),
      delegated: parts.delegated(),
    },
    threads: parts.threads.threadCount,
    turns: { running: parts.admission.running, waiting: parts.admission.waiting },
    prompts: { queued },
    ...parts.figures(),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
