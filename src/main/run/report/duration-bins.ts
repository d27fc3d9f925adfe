/**
 * Bins for a histogram of durations: equal ones where durations are alike, else a ladder of round times. Pure.
 */

export interface DurationBin {
  /** Milliseconds; a duration `d` belongs where `from <= d < to`. */
  readonly from: number;
  readonly to: number;
}

const mostBins = 24;
/** Beyond this ratio of longest to shortest, equal bins would put nearly everything into the first. */
const alikeRatio = 30;

const ladder = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 20e3, 30e3, 60e3, 120e3, 300e3, 600e3, 1200e3, 1800e3];
const hours = [1, 2, 4, 8, 12, 24, 48, 96, 168].map((hour) => hour * 3600e3);
const edges = [...ladder, ...hours];

/** Covers every duration of a list that is not empty. */
export function durationBins(durations: readonly number[]): DurationBin[] {
  let low = Infinity;
  let high = 0;
  for (const ms of durations) {
    low = Math.min(low, ms);
    high = Math.max(high, ms);
  }
  return high / Math.max(low, 1) <= alikeRatio ? equalBins(low, high) : ladderBins(low, high);
}

function equalBins(low: number, high: number): DurationBin[] {
  const step = roundStep(Math.max(high - low, 1) / (mostBins - 4));
  const first = Math.floor(low / step);
  const last = Math.floor(high / step);
  return Array.from({ length: last - first + 1 }, (_, index) => ({ from: (first + index) * step, to: (first + index + 1) * step }));
}

/** The next of 1, 2, 5, 10 … that is not smaller. */
function roundStep(least: number): number {
  const size = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * size).find((step) => step >= least) ?? size * 10;
}

function ladderBins(low: number, high: number): DurationBin[] {
  const first = edges.findLastIndex((edge) => edge <= low);
  const bins: DurationBin[] = [];
  for (let at = Math.max(0, first); at < edges.length; at += 1) {
    const from = edges[at] ?? 0;
    if (from > high) break;
    bins.push({ from, to: edges[at + 1] ?? Infinity });
  }
  return bins;
}
