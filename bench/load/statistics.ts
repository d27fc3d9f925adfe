/** Medians and their kin, and how they are printed. */

/** The value below which `percent` of the values lie; NaN without values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Median of the quotients of pairs: what was measured one after the other had the same noise. */
export function medianRatio(ours: readonly number[], floors: readonly number[]): number {
  return median(ours.map((one, index) => one / (floors[index] ?? Number.NaN)));
}

/** `12.3 (11.8–14.0)`: the median, then the least and the greatest. */
export function withSpread(values: readonly number[], digits = 1): string {
  return `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)})`;
}
