/**
 * How late main's event loop is, by Node's own histogram. Runs from the first look on: nobody who never looks pays for it.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

export interface LoopLagFigures {
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

const resolutionMs = 10;
/** Figures are about the time since this long ago, or since the look before. */
const windowMs = 10_000;

export class LoopLag {
  #histogram: IntervalHistogram | undefined;
  #since = 0;

  /** Zeros at the first look. */
  read(): LoopLagFigures {
    if (this.#histogram === undefined) {
      this.start();
      return { p50: 0, p99: 0 };
    }
    const figures = { p50: this.#lagAt(this.#histogram, 50), p99: this.#lagAt(this.#histogram, 99) };
    const now = performance.now();
    if (now - this.#since >= windowMs) {
      this.#histogram.reset();
      this.#since = now;
    }
    return figures;
  }

  start(): void {
    if (this.#histogram !== undefined) return;
    this.#histogram = monitorEventLoopDelay({ resolution: resolutionMs });
    this.#histogram.enable();
    this.#since = performance.now();
  }

  stop(): void {
    this.#histogram?.disable();
  }

  /** What is recorded is the time between two ticks of a timer, its own interval included. */
  #lagAt(histogram: IntervalHistogram, percent: number): number {
    if (histogram.count === 0) return 0;
    return Math.max(0, Math.round((histogram.percentile(percent) / 1e6 - resolutionMs) * 10) / 10);
  }
}
