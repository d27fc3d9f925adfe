/**
 * Bounds how often the streamed text of one session makes a frame, for clients that draw slowly: what comes between two
 * frames waits and goes with the next one. Anything else of the session must wait behind it: see {@link ChunkPacer.flush}.
 */
import { type Chunk, continues } from './chunk-source.ts';

export interface ChunkPacerOptions {
  readonly intervalMs: number;
  readonly emit: (chunk: Chunk) => void;
  /** Monotonic, in milliseconds. */
  readonly now?: () => number;
  /** Runs `task` once after `delayMs`; returns what stops it. */
  readonly schedule?: (task: () => void, delayMs: number) => () => void;
}

export class ChunkPacer {
  readonly #options: ChunkPacerOptions;
  readonly #now: () => number;
  readonly #schedule: (task: () => void, delayMs: number) => () => void;
  #waiting: Chunk | undefined;
  #lastEmit = Number.NEGATIVE_INFINITY;
  #stopTimer: (() => void) | undefined;

  constructor(options: ChunkPacerOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#schedule = options.schedule ?? startTimer;
  }

  add(chunk: Chunk): void {
    const before = this.#waiting;
    if (before !== undefined && continues(before, chunk)) {
      this.#waiting = { ...before, text: before.text + chunk.text };
      return;
    }
    this.flush();
    this.#waiting = chunk;
    const wait = this.#lastEmit + this.#options.intervalMs - this.#now();
    if (wait <= 0) this.flush();
    else this.#stopTimer = this.#schedule(() => this.flush(), wait);
  }

  /** Sends what waits, now. To be called before anything else of the session is sent. */
  flush(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const chunk = this.#waiting;
    if (chunk === undefined) return;
    this.#waiting = undefined;
    this.#lastEmit = this.#now();
    this.#options.emit(chunk);
  }
}

function startTimer(task: () => void, delayMs: number): () => void {
  const timer = setTimeout(task, delayMs);
  return () => clearTimeout(timer);
}
