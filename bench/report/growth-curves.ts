/** How a cost grows with a size, on logarithmic axes: the points, the line that was fitted, and for comparison what is linear. */
import { fitPower } from '../growth/fit.ts';
import type { GrowthCurve } from '../run.ts';
import { logAxes, tip } from './log-axes.ts';
import { at, line, type Picture, short, text } from './svg.ts';

const width = 380;
const height = 280;

/** `undefined` where no point can be drawn: costs of nothing have no logarithm. */
export function growthPicture(curve: GrowthCurve): Picture | undefined {
  const { what, unit, over, points, exponent, most, from = 0 } = curve;
  const drawable = points.filter(({ size, cost }) => size > 0 && cost > 0);
  if (drawable.length === 0) return undefined;
  const axes = logAxes({
    width,
    height,
    title: what,
    xLabel: over,
    yLabel: unit,
    xs: drawable.map(({ size }) => size),
    ys: drawable.flatMap(({ cost, low = cost, high = cost }) => [cost, low, high].filter((value) => value > 0)),
  });
  const fitted = drawable.filter(({ size }) => size >= from);
  const dots = drawable.map(({ size, cost, low, high }) => {
    const spread =
      low === undefined || high === undefined || low <= 0 ? '' : line('spread', axes.x(size), axes.y(low), axes.x(size), axes.y(high));
    return `${spread}<circle class="dot" cx="${at(axes.x(size))}" cy="${at(axes.y(cost))}" r="3.5">${tip(`${short(size)} ${over}: ${short(cost)} ${unit}`)}</circle>`;
  });
  const body = [axes.body, ...lines(fitted, axes), ...dots, verdict(exponent, most)].join('');
  return { width, height, title: what, desc: `${what}, ${unit}, over ${over}: ${pointsText(curve)}. ${verdictText(curve)}.`, body };
}

function lines(fitted: GrowthCurve['points'], { x, y }: ReturnType<typeof logAxes>): string[] {
  const { exponent, factor } = fitPower(fitted);
  const [first, last] = [fitted[0], fitted.at(-1)];
  if (first === undefined || last === undefined || Number.isNaN(exponent)) return [];
  const fit = (size: number): number => factor * size ** exponent;
  const [, top] = y.domain() as [number, number];
  // What is linear leaves the plot at its top, where the cost is flat.
  const end = Math.min(last.size, (first.size * top) / fit(first.size));
  return [
    line('guide', x(first.size), y(fit(first.size)), x(end), y((fit(first.size) * end) / first.size)),
    line('fit', x(first.size), y(fit(first.size)), x(last.size), y(fit(last.size))),
  ];
}

function verdict(exponent: number, most: number): string {
  if (Number.isNaN(exponent)) return text('too few sizes', width - 20, 40, { kind: 'small', anchor: 'end' });
  const kind = exponent > most ? 'bad' : 'good';
  return text(`size^${exponent.toFixed(2)}, at most ${most}`, width - 20, 40, { kind, anchor: 'end' });
}

export function verdictText({ exponent, most, from }: GrowthCurve): string {
  if (Number.isNaN(exponent)) return 'Too few sizes for an exponent';
  const range = from === undefined ? '' : ` from ${short(from)} on`;
  return `Grows as size^${exponent.toFixed(2)}${range}; ${exponent > most ? 'more than' : 'at most'} ${most} is asked for`;
}

export function pointsText({ points }: GrowthCurve): string {
  return points.map(({ size, cost }) => `${short(size)}: ${short(cost)}`).join(', ');
}
