/**
 * How long a model may be silent: one limit until its first delta, another between deltas.
 *
 * Keep-alive comments prove that a request still waits in the server's queue, so they extend the first limit, though not for ever. Once the
 * model speaks only deltas count: a server that keeps the line warm around a stalled model must not hold a turn.
 */
import { ModelFailure } from './model-adapter.ts';

/** How often over the first limit may be extended by comments alone. */
const maxQueueFactor = 4;

export class SilenceTimer {
  readonly #firstMs: number;
  readonly #idleMs: number;
  readonly #onTimeout: (failure: ModelFailure) => void;
  #timer: NodeJS.Timeout | undefined;
  #queueTimer: NodeJS.Timeout | undefined;
  #speaking = false;

  /** Starts at once. A limit of `0` never ends anything. */
  constructor(firstMs: number, idleMs: number, onTimeout: (failure: ModelFailure) => void) {
    this.#firstMs = firstMs;
    this.#idleMs = idleMs;
    this.#onTimeout = onTimeout;
    this.restart();
    if (firstMs > 0) {
      const ceiling = firstMs * maxQueueFactor;
      this.#queueTimer = setTimeout(() => this.#end(`did not begin its answer within ${ceiling} ms`), ceiling);
    }
  }

  /** Something came that was no delta: headers, a comment, an empty chunk. */
  heard(): void {
    if (!this.#speaking) this.#timer?.refresh();
  }

  /** A delta came. */
  progressed(): void {
    if (this.#speaking) {
      this.#timer?.refresh();
      return;
    }
    this.#speaking = true;
    clearTimeout(this.#queueTimer);
    this.restart();
  }

  /** Ends the waiting, for good or until {@link restart}. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    clearTimeout(this.#queueTimer);
  }

  restart(): void {
    clearTimeout(this.#timer);
    const limit = this.#speaking ? this.#idleMs : this.#firstMs;
    this.#timer = limit > 0 ? setTimeout(() => this.#expired(limit), limit) : undefined;
  }

  #expired(limit: number): void {
    this.#end(this.#speaking ? `was silent for ${limit} ms in the middle of its answer` : `sent nothing for ${limit} ms`);
  }

  #end(what: string): void {
    this.stop();
    this.#onTimeout(new ModelFailure('TIMEOUT', `The model server ${what}.`));
  }
}
