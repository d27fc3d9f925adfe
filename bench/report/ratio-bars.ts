/**
 * Quotients as bars from 1 on a logarithmic scale, so that twice and half are as long; with the spread of the measurement as a
 * whisker and what is asked for as a mark.
 */
import { scaleLog } from 'd3-scale';
import { ticksOf, tip } from './log-axes.ts';
import { at, line, type Picture, short, text, times } from './svg.ts';

export interface RatioBar {
  readonly label: string;
  readonly ratio: number;
  readonly low?: number;
  readonly high?: number;
  /** What it may be at most. */
  readonly most?: number;
}

export interface RatioPlan {
  readonly title: string;
  readonly desc: string;
  readonly bars: readonly RatioBar[];
  /** Says what the line at 1 is: `floor`, `ours`. */
  readonly one: string;
  /** A second line, and what it is. */
  readonly lineAt?: { readonly value: number; readonly label: string };
  /** Whether a bar above 1 stands for a cost of ours (`ours`) or of theirs. */
  readonly above: 'ours' | 'theirs';
  readonly width?: number;
  /** Values that the scale must hold, so that several charts have the same one. */
  readonly scaleTo?: readonly number[];
}

const left = 16;
const right = 66;
const headHeight = 62;
const lineHeight = 15;
/** Of a bar with the room below it. */
const barHeight = 21;
const footHeight = 30;
/** Of a letter, on average. */
const letterWidth = 6.3;

interface Scene {
  readonly x: (value: number) => number;
  readonly above: 'ours' | 'theirs';
}

export function ratioBars({ title, desc, bars, one, lineAt, above, width = 420, scaleTo = [] }: RatioPlan): Picture {
  const values = bars.flatMap(({ ratio, low = ratio, high = ratio, most = ratio }) => [ratio, low, high, most]);
  const all = [1, ...values, ...scaleTo, ...(lineAt === undefined ? [] : [lineAt.value])];
  const x = scaleLog([Math.min(...all) / 1.1, Math.max(2, ...all) * 1.1], [left, width - right]);
  let bottom = headHeight;
  const rows: string[] = [];
  for (const bar of bars) {
    const lines = wrapped(bar.label, Math.floor((width - 2 * left) / letterWidth));
    // Letters stand before the lines of the scale, which are drawn first.
    rows.push(...lines.map((content, index) => text(content, left, bottom + 12 + index * lineHeight, { kind: 'label' })));
    bottom += lines.length * lineHeight + 2;
    rows.push(barAt(bar, bottom, { x, above }));
    bottom += barHeight;
  }
  const vertical = (kind: string, value: number): string => line(kind, x(value), headHeight - 6, x(value), bottom);
  const named = (content: string, value: number): string =>
    text(content, x(value), headHeight - 12, { kind: 'small', anchor: x(value) < 60 ? 'start' : 'middle' });
  const ticks = ticksOf(x).map(
    (tick) => vertical('grid', tick) + text(short(tick), x(tick), bottom + 16, { kind: 'small', anchor: 'middle' }),
  );
  const second = lineAt === undefined ? '' : vertical('mark', lineAt.value) + named(lineAt.label, lineAt.value);
  const body = [text(title, left, 24, { kind: 'name' }), ...ticks, vertical('one', 1), named(`${one} = 1`, 1), second, ...rows].join('');
  return { width, height: bottom + footHeight, title, desc, body };
}

function barAt(bar: RatioBar, top: number, { x, above }: Scene): string {
  const { ratio, low, high, most } = bar;
  const [from, to] = [Math.min(x(1), x(ratio)), Math.max(x(1), x(ratio))];
  const rect = `<rect class="${kindOf(ratio, above)}" x="${at(from)}" y="${top}" width="${at(Math.max(1, to - from))}" height="12" rx="2">${tip(told(bar))}</rect>`;
  const middle = top + 6;
  const cap = (value: number): string => line('spread', x(value), middle - 4, x(value), middle + 4);
  const spread = low === undefined || high === undefined ? '' : line('spread', x(low), middle, x(high), middle) + cap(low) + cap(high);
  const mark = most === undefined ? '' : line('mark', x(most), top - 3, x(most), top + 15);
  const isMissed = most !== undefined && ratio > most;
  const valueAt = x(Math.max(1, ratio, high ?? ratio, most ?? ratio)) + 7;
  return rect + spread + mark + text(times(ratio), valueAt, middle + 4, { kind: isMissed ? 'bad' : 'name' });
}

function kindOf(ratio: number, above: 'ours' | 'theirs'): string {
  if (ratio >= 1) return 'bar-ours';
  return above === 'ours' ? 'bar-less' : 'bar-more';
}

function wrapped(label: string, letters: number): string[] {
  const lines: string[] = [];
  for (const word of label.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > letters) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** `label: 1.31 × (1.20–1.44), at most 1.2` */
export function told({ label, ratio, low, high, most }: RatioBar): string {
  const spread = low === undefined || high === undefined ? '' : ` (${short(low)}–${short(high)})`;
  return `${label}: ${times(ratio)}${spread}${most === undefined ? '' : `, at most ${most}`}`;
}
