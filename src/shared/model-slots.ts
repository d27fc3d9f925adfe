/**
 * Places at a model provider. Limits are per account and threads cannot see each other, so main keeps one limiter per
 * provider key for the whole process, and a thread asks it before every model call. Where there is room, the place for a turn's
 * first call comes with the prompt and costs no question.
 */

export interface ModelSlotRequest {
  readonly sessionId: string;
  /** Unique per session; names the request in `withdrawModelSlot`. */
  readonly requestKey: string;
  /** Higher goes first. Within a priority the session that has had least goes first. */
  readonly priority: number;
}

export interface ModelSlot {
  readonly leaseId: number;
  readonly waitedMs: number;
  /** Its place in the queue when it came, from 1; `0` when it did not wait. */
  readonly position: number;
}

/** What the provider said: the limiter slows down and speeds up by it. */
export type ModelSlotReport =
  | { readonly outcome: 'ok' }
  /** 429, 503 and the like. `retryAfterMs` holds back every call of this provider, not just the one that heard it. */
  | { readonly outcome: 'overloaded'; readonly retryAfterMs?: number }
  /** Any other end; says nothing about load. */
  | { readonly outcome: 'other' }
  /** There was no call. */
  | { readonly outcome: 'unused' };

/** A place given back. */
export interface SlotRelease {
  readonly leaseId: number;
  readonly report: ModelSlotReport;
}

/** Part of what a thread calls on main. */
export interface ModelSlotServices {
  /** Fulfils when the call may be made. A withdrawn request rejects with REQUEST_CANCELLED. */
  acquireModelSlot(request: ModelSlotRequest): Promise<ModelSlot>;
  /** Gives the place back. Idempotent. Main calls it for what comes with a batch (`DataBatch.released`), which costs no call. */
  releaseModelSlot(leaseId: number, report: ModelSlotReport): Promise<void>;
  withdrawModelSlot(sessionId: string, requestKey: string): Promise<void>;
}

/** The limiter in numbers, for `_status` and metrics. */
export interface LimiterStatus {
  /** Calls that may run at once now; moves between 1 and `max`. */
  readonly limit: number;
  readonly max: number;
  readonly running: number;
  readonly waiting: number;
  /** Milliseconds until the provider may be asked again; `0` when it may be now. */
  readonly pausedMs: number;
  /** Calls that were made with a place since the start, those that run included. */
  readonly calls: number;
  /** Of these, the ones that the provider refused as too many. */
  readonly overloads: number;
  /** Those that wait, the next one first; the first hundred. */
  readonly queue: readonly QueuedCall[];
}

export interface QueuedCall {
  readonly sessionId: string;
  /** From 1, as it stands now: a higher priority that comes goes before, and who waits long rises. */
  readonly position: number;
  readonly waitedMs: number;
}
