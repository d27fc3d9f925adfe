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

/**
 * The narrowest pair of values between which the median of what they were drawn from lies in nine cases of ten, whatever its
 * distribution: order statistics. Of up to seven values, the least and the greatest.
 */
export function medianInterval(values: readonly number[]): readonly [low: number, high: number] {
  const sorted = values.toSorted((a, b) => a - b);
  const count = sorted.length;
  let cut = 0;
  // One tail of a binomial distribution with p = 1/2, and its last step.
  let tail = 2 ** -count;
  let step = tail;
  for (let left = 1; left < count / 2; left += 1) {
    step = (step * (count - left + 1)) / left;
    tail += step;
    if (2 * tail > 0.1) break;
    cut = left;
  }
  return [sorted[cut] ?? Number.NaN, sorted[count - 1 - cut] ?? Number.NaN];
}

/** {@link medianInterval} of the quotients of pairs. */
export function ratioRange(ours: readonly number[], floors: readonly number[]): readonly [low: number, high: number] {
  return medianInterval(ours.map((one, index) => one / (floors[index] ?? Number.NaN)));
}

/** `12.3 (11.8–14.0)`: the median, then the least and the greatest. */
export function withSpread(values: readonly number[], digits = 1): string {
  return `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)})`;
}
