/**
 * What has become slower since the last recorded results: by quotients to the floor of the same run, so that a slow machine is none.
 *
 * A change counts where it is more than a tenth and the ranges of the two medians do not overlap; where a range is not known, where
 * it is more than three tenths.
 */
import type { GrowthCurve } from '../run.ts';
import type { RecordedPart } from './record.ts';
import { figureName, type FloorRatio, floorRatios } from './ratios.ts';

const leastChange = 0.1;
const leastWithoutRange = 0.3;
/** Of what is told without a verdict. */
const leastNoted = 0.25;
const leastExponent = 0.15;

export interface Change {
  readonly name: string;
  readonly before: number;
  readonly now: number;
}

export interface Comparison {
  /** The greatest change first. */
  readonly slower: readonly Change[];
  readonly faster: readonly Change[];
  readonly alike: number;
  /** Names that no record has. */
  readonly unknown: number;
  /** Lines about what has no floor beside it. */
  readonly notes: readonly string[];
}

type Part = Pick<RecordedPart, 'results'>;

/** Of what was recorded twice the later part counts: `recorded` is oldest first. */
export function compareRuns(run: readonly Part[], recorded: readonly Part[]): Comparison {
  // Rows of load, too, where figures tell the same: the part may have been recorded with others.
  const before = new Map(recorded.flatMap(floorRatios).map((ratio) => [ratio.name, ratio]));
  const slower: Change[] = [];
  const faster: Change[] = [];
  let alike = 0;
  let unknown = 0;
  for (const now of run.flatMap(floorRatios)) {
    const then = before.get(now.name);
    if (then === undefined) unknown += 1;
    else if (!isChange(then, now)) alike += 1;
    else (now.ratio > then.ratio ? slower : faster).push({ name: now.name, before: then.ratio, now: now.ratio });
  }
  const bySize = (a: Change, b: Change): number => Math.abs(Math.log(b.now / b.before)) - Math.abs(Math.log(a.now / a.before));
  return { slower: slower.toSorted(bySize), faster: faster.toSorted(bySize), alike, unknown, notes: notesOf(run, recorded) };
}

function isChange(before: FloorRatio, now: FloorRatio): boolean {
  const change = Math.abs(now.ratio / before.ratio - 1);
  const ranges = [before, now].map(({ low, high }) => (low === undefined || high === undefined ? undefined : ([low, high] as const)));
  const [then, current] = ranges;
  if (then === undefined || current === undefined) return change > leastWithoutRange;
  return change > leastChange && (then[1] < current[0] || current[1] < then[0]);
}

function notesOf(run: readonly Part[], recorded: readonly Part[]): string[] {
  const figures = new Map(recorded.flatMap(({ results }) => results.figures).map((figure) => [figureName(figure), figure]));
  const curves = new Map(recorded.flatMap(({ results }) => results.growth).map((curve) => [curveName(curve), curve]));
  return run.flatMap(({ results }) => [
    ...results.figures.flatMap((figure) => {
      const before = figures.get(figureName(figure));
      if (before === undefined || figure.toFloor !== undefined) return [];
      return isNoted(before.values, figure.values) ? [`${figureName(figure)}: ${before.measured} -> ${figure.measured}`] : [];
    }),
    ...results.growth.flatMap((curve) => {
      const before = curves.get(curveName(curve));
      if (before === undefined || !(Math.abs(curve.exponent - before.exponent) > leastExponent)) return [];
      const verdict = curve.exponent > curve.most ? `, more than ${curve.most}` : '';
      return [`growth of ${curveName(curve)}: exponent ${before.exponent.toFixed(2)} -> ${curve.exponent.toFixed(2)}${verdict}`];
    }),
  ]);
}

function curveName({ what, over }: GrowthCurve): string {
  return `${what} over ${over}`;
}

/** The first value is the one that the figure is about. */
function isNoted(before: Readonly<Record<string, number>>, now: Readonly<Record<string, number>>): boolean {
  const [name] = Object.keys(now);
  const [then, current] = [before[name ?? ''], now[name ?? '']];
  if (then === undefined || current === undefined || then === 0) return false;
  return Math.abs(current / then - 1) > leastNoted;
}

/** Lines to print; notes only where they are asked for. */
export function comparisonText({ slower, faster, alike, unknown, notes }: Comparison, withNotes: boolean): string[] {
  const line = (word: string, { name, before, now }: Change): string => {
    const percent = Math.round((now / before - 1) * 100);
    return `  ${word}: ${name} ${before.toFixed(2)} -> ${now.toFixed(2)} × floor (${percent > 0 ? '+' : ''}${percent} %)`;
  };
  return [
    ...slower.map((change) => line('slower', change)),
    ...faster.map((change) => line('faster', change)),
    `  ${slower.length} slower, ${faster.length} faster, ${alike} as before, ${unknown} without a record`,
    ...(withNotes ? notes.map((note) => `  note, not against a floor: ${note}`) : []),
  ];
}
