/** A plot with logarithmic axes: the frame, the ticks, and where a value lies. */
import { type ScaleLogarithmic, scaleLog } from 'd3-scale';
import { escaped, line, short, text } from './svg.ts';

export interface LogAxes {
  readonly x: ScaleLogarithmic<number, number>;
  readonly y: ScaleLogarithmic<number, number>;
  readonly body: string;
}

export interface AxesPlan {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly xs: readonly number[];
  readonly ys: readonly number[];
  /** Left free at the right, for labels of lines. */
  readonly right?: number;
}

const left = 52;
const top = 52;
const bottom = 44;

/** All values must be above nothing. */
export function logAxes({ width, height, title, xLabel, yLabel, xs, ys, right = 20 }: AxesPlan): LogAxes {
  const x = scaleLog(widened(xs, 4), [left, width - right]);
  // At least a decade: what is flat must look flat.
  const y = scaleLog(widened(ys, 10), [height - bottom, top]);
  const [x0, x1] = x.range() as [number, number];
  const [y0, y1] = y.range() as [number, number];
  const body = [
    text(title, 16, 20, { kind: 'name', within: width - 32 }),
    text(yLabel, 16, 40, { kind: 'small' }),
    ...ticksOf(y).map(
      (tick) => line('grid', x0, y(tick), x1, y(tick)) + text(short(tick), x0 - 6, y(tick) + 4, { kind: 'small', anchor: 'end' }),
    ),
    ...ticksOf(x).map(
      (tick) => line('grid', x(tick), y0, x(tick), y1) + text(short(tick), x(tick), y0 + 16, { kind: 'small', anchor: 'middle' }),
    ),
    line('axis', x0, y0, x1, y0),
    text(xLabel, (x0 + x1) / 2, height - 10, { kind: 'small', anchor: 'middle' }),
  ].join('');
  return { x, y, body };
}

export function tip(content: string): string {
  return `<title>${escaped(content)}</title>`;
}

/** From the least to the greatest with some room, and no less than `least` times apart. */
function widened(values: readonly number[], least: number): [number, number] {
  const [low, high] = [Math.min(...values) / 1.15, Math.max(...values) * 1.15];
  const room = Math.max(1, Math.sqrt((least * low) / high));
  return [low / room, high * room];
}

/** Powers of ten; with 2 and 5 between them where there are few. */
export function ticksOf(scale: ScaleLogarithmic<number, number>): number[] {
  const [low, high] = scale.domain() as [number, number];
  const decades = Math.log10(high / low);
  const wanted = decades > 2.2 ? [1] : [1, 2, 5];
  const ticks = scale.ticks(20).filter((tick) => wanted.some((leading) => isPowerOfTen(tick / leading)));
  return decades > 6 ? ticks.filter((tick) => Math.round(Math.log10(tick)) % 2 === 0) : ticks;
}

function isPowerOfTen(value: number): boolean {
  return Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
}
