/** A curve of growth: made of what was measured at each size, and printed with a verdict. */
import { median } from '../load/statistics.ts';
import type { GrowthCurve } from '../run.ts';
import { fitPower } from './fit.ts';

/** What may grow as its size does, and what must not grow at all; with room for noise. */
export const linear = 1.1;
export const flat = 0.1;

export interface CurvePlan extends Pick<GrowthCurve, 'what' | 'unit' | 'over' | 'most'> {
  /** The size from which on it is the size that costs, and not what is there without it. */
  readonly from?: number;
}

/** All repeats of one cost, by size. */
export class Samples {
  readonly #bySize = new Map<number, number[]>();

  add(size: number, ...costs: readonly number[]): void {
    const known = this.#bySize.get(size);
    if (known === undefined) this.#bySize.set(size, [...costs]);
    else known.push(...costs);
  }

  /** Points are medians. */
  curve(plan: CurvePlan): GrowthCurve {
    const points = [...this.#bySize]
      .map(([size, costs]) => ({ size, cost: median(costs), low: Math.min(...costs), high: Math.max(...costs) }))
      .toSorted((a, b) => a.size - b.size);
    const fitted = points.filter(({ size }) => size >= (plan.from ?? 0));
    // A line through two points fits any noise.
    return { ...plan, points, exponent: fitted.length < 3 ? Number.NaN : fitPower(fitted).exponent };
  }
}

export function printCurve({ what, unit, over, points, exponent, most, from }: GrowthCurve): void {
  const shown = points.map(({ size, cost, low, high }) => {
    const spread = low === undefined || high === undefined ? '' : ` (${short(low)}–${short(high)})`;
    return `${short(size)}: ${short(cost)}${spread}`;
  });
  process.stdout.write(`  ${what}, ${unit}, over ${over}: ${shown.join(', ')}\n`);
  const range = from === undefined ? '' : ` from ${short(from)} on`;
  const steepness = Number.isNaN(exponent) ? 'too few sizes for an exponent' : `exponent${range} ${exponent.toFixed(2)}, at most ${most}`;
  process.stdout.write(`    ${steepness}${verdict(exponent, most)}\n`);
}

function verdict(exponent: number, most: number): string {
  if (Number.isNaN(exponent) || exponent <= most) return '';
  return exponent > linear ? ': WORSE THAN LINEAR' : ': NOT FLAT';
}

/** Three digits, and thousands as they are spoken. */
function short(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}
