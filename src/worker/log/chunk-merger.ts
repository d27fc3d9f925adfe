/**
 * Merges streamed deltas into fewer log records: one record per message and kind every 100 ms, instead of one per token.
 *
 * Stands between the journal and the log. Keeps the order: whoever appends anything else calls {@link ChunkMerger.flush}
 * first. Never drops text: what could not be logged stays and is tried again.
 */
import type { EventData } from '../../shared/events.ts';

type Chunk = EventData['assistant/chunk'];

/** Text beyond this length does not wait for the timer. */
const textLimit = 64 * 1024;

export interface ChunkMergerOptions {
  /** Logs one merged record. May throw LOG_WRITE_FAILED. */
  readonly emit: (chunk: Chunk) => void;
  readonly windowMs?: number;
  /** Runs `task` once after `delayMs`; returns what stops it. */
  readonly schedule?: (task: () => void, delayMs: number) => () => void;
}

export class ChunkMerger {
  readonly #emit: (chunk: Chunk) => void;
  readonly #windowMs: number;
  readonly #schedule: (task: () => void, delayMs: number) => () => void;
  #pending: Chunk | undefined;
  #text = '';
  #stopTimer: (() => void) | undefined;

  constructor(options: ChunkMergerOptions) {
    this.#emit = options.emit;
    this.#windowMs = options.windowMs ?? 100;
    this.#schedule = options.schedule ?? startTimer;
  }

  /**
   * Adds one delta; it is logged at the latest `windowMs` later.
   *
   * @throws what `emit` throws, when this delta pushes an earlier one out, or when the timer met a fault before it: a
   *   stream must not run on for long in front of a log that takes nothing
   */
  add(chunk: Chunk): void {
    const pending = this.#pending;
    if (pending !== undefined && (pending.messageId !== chunk.messageId || pending.kind !== chunk.kind)) {
      this.flush();
    }
    if (this.#pending === undefined) {
      this.#pending = chunk;
      this.#stopTimer ??= this.#schedule(this.#onTimer, this.#windowMs);
    }
    this.#text += chunk.text;
    const timerFailed = this.#stopTimer === undefined;
    if (timerFailed || this.#text.length >= textLimit) {
      this.flush();
    }
  }

  /**
   * Logs what waits, now. Costs nothing when nothing waits.
   *
   * @throws what `emit` throws; the text is kept then
   */
  flush(): void {
    const { waiting } = this;
    if (waiting === undefined) return;
    this.#emit(waiting);
    this.discard();
  }

  /** What waits, for whoever logs it together with what comes behind it, and then calls {@link ChunkMerger.discard}. */
  get waiting(): Chunk | undefined {
    return this.#pending === undefined ? undefined : { ...this.#pending, text: this.#text };
  }

  /** Forgets what waits and stops the timer: it is in the log, or the log is given up. */
  discard(): void {
    this.#pending = undefined;
    this.#text = '';
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  readonly #onTimer = (): void => {
    this.#stopTimer = undefined;
    try {
      this.flush();
    } catch {
      // Nobody could catch it here. The text still waits, so the next delta or append meets the same fault and reports it.
    }
  };
}

function startTimer(task: () => void, delayMs: number): () => void {
  const timer = setTimeout(task, delayMs);
  return () => clearTimeout(timer);
}
