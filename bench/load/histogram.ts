/** Percentiles of many times without keeping the times: an HDR histogram with three figures, whatever the number of values. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

/** Milliseconds; NaN where there was nothing. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** What a value is counted in: microseconds. */
const perMs = 1000;
/** An hour: what takes longer is counted as that. */
const highest = 3_600_000 * perMs;

export class LatencyHistogram {
  readonly #histogram: RecordableHistogram = createHistogram({ lowest: 1, highest, figures: 3 });
  #max = Number.NaN;

  get count(): number {
    return this.#histogram.count;
  }

  /** Less than a microsecond, and less than nothing, is counted as one. */
  record(ms: number): void {
    this.#histogram.record(Math.min(highest, Math.max(1, Math.round(ms * perMs))));
    // The histogram knows the greatest one to three figures only.
    if (!(ms <= this.#max)) this.#max = ms;
  }

  percentile(percent: number): number {
    if (this.count === 0) return Number.NaN;
    return Math.min(this.#max, this.#histogram.percentile(percent) / perMs);
  }

  percentiles(): Percentiles {
    return { p50: this.percentile(50), p95: this.percentile(95), p99: this.percentile(99), max: this.#max };
  }
}
