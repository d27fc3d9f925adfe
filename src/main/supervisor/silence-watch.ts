/**
 * Says when a process that lives has given no sign of life for too long: its main thread spins, or something has stopped it.
 *
 * Time is the watcher's own. It looks a few times within the limit, and each look must find that nothing came since the one before.
 * A look that comes late says nothing: then the watcher itself was stopped, or the whole machine slept, and the watched one with it.
 */

/** All of them in a row must have found nothing. */
const looks = 4;
/** A process that has not begun to beat is still starting, and a busy machine takes its time over that. */
const leastStartMs = 30_000;

export interface SilenceParts {
  /** Milliseconds without a sign of life after which the process is taken as stuck. */
  readonly limitMs: number;
  /** Called once at most. */
  readonly onSilent: () => void;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
}

export class SilenceWatch {
  readonly #parts: Required<SilenceParts>;
  #timer: NodeJS.Timeout | undefined;
  #everyMs: number;
  #lastLook: number;
  #missed = 0;
  #hasBeaten = false;
  #sawBeat = false;

  constructor(parts: SilenceParts) {
    this.#parts = { now: () => performance.now(), ...parts };
    this.#everyMs = Math.max(parts.limitMs, leastStartMs) / looks;
    this.#lastLook = this.#parts.now();
    this.#timer = setInterval(() => this.look(), this.#everyMs).unref();
  }

  /** How often the watched process should give a sign, for each look to find some. */
  static beatEveryMs(limitMs: number): number {
    return Math.max(10, Math.round(limitMs / (3 * looks)));
  }

  /** A sign of life. */
  beat(): void {
    this.#sawBeat = true;
    // The last bytes of a process may come behind its end.
    if (this.#hasBeaten || this.#timer === undefined) return;
    this.#hasBeaten = true;
    clearInterval(this.#timer);
    this.#everyMs = this.#parts.limitMs / looks;
    this.#lastLook = this.#parts.now();
    this.#timer = setInterval(() => this.look(), this.#everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** One look; public for tests that hold the clock. */
  look(): void {
    const now = this.#parts.now();
    const wasAway = now - this.#lastLook > 2 * this.#everyMs;
    this.#lastLook = now;
    this.#missed = this.#sawBeat || wasAway ? 0 : this.#missed + 1;
    this.#sawBeat = false;
    if (this.#missed < looks) return;
    this.stop();
    this.#parts.onSilent();
  }
}
