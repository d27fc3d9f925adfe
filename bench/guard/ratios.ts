/**
 * Quotients to the floor by name, out of everything that the parts of the bench leave: what two runs are compared by.
 */
import type { LoadReport } from '../load/load-report.ts';
import type { LoadRow } from '../load/compare.ts';
import { shapeText } from '../load/load-shape.ts';
import { median, medianInterval, medianRatio, ratioRange } from '../load/statistics.ts';
import type { Figure, PeerRow } from '../run.ts';
import type { RecordedPart } from './record.ts';

export interface FloorRatio {
  /** The same in every run. */
  readonly name: string;
  readonly ratio: number;
  /** Between which the median of the quotients lies; absent where only one quotient is known. */
  readonly low?: number;
  readonly high?: number;
}

/** Of pairs that were measured in turns. `undefined` where there are no pairs. */
export function pairedRatio(ours: readonly number[], floors: readonly number[]): Omit<FloorRatio, 'name'> | undefined {
  if (ours.length === 0 || ours.length !== floors.length) return undefined;
  const [low, high] = ratioRange(ours, floors);
  return { ratio: medianRatio(ours, floors), low, high };
}

/** The name of a figure without the numbers that are told in brackets. */
export function figureName({ what }: Pick<Figure, 'what'>): string {
  return what.replaceAll(/\s*\([^)]*\d[^)]*\)/g, '');
}

/** All of a part. Rows of load are left out where figures say the same of them. */
export function floorRatios({ results: { figures, rows, loads, latencies, peers } }: Pick<RecordedPart, 'results'>): FloorRatio[] {
  const fromFigures = figures.flatMap(figureRatio);
  return [
    ...fromFigures,
    ...(fromFigures.length > 0 ? [] : rows.flatMap((row) => rowRatios(row, rows))),
    ...loads.flatMap((load) => loadRatios(load, loads)),
    ...latencies.flatMap((row) => {
      const floor = latencies.find(
        (one) => one.agent === 'floor' && one.loop === row.loop && one.rate === row.rate && one.sessions === row.sessions,
      );
      if (floor === undefined || floor === row) return [];
      const name = `added latency, ${row.agent}, ${row.sessions} sessions, ${row.rate} deltas/s, ${row.loop}`;
      return [{ name: `${name}: p50`, ratio: row.p50 / floor.p50 }];
    }),
    ...peers.flatMap(peerRatios),
  ];
}

function figureRatio(figure: Figure): FloorRatio[] {
  const { toFloor, toFloorRange: range, measured } = figure;
  if (toFloor === undefined) return [];
  const named = { name: figureName(figure), ratio: toFloor };
  if (range !== undefined) return [{ ...named, low: range[0], high: range[1] }];
  // `12.3 (11.8–14.0)`: the spread of ours alone, put around the quotient.
  const [, middle, least, most] = /^([\d.]+) \(([\d.]+)–([\d.]+)\)$/.exec(measured) ?? [];
  if (middle === undefined || Number(middle) === 0) return [named];
  const scale = toFloor / Number(middle);
  return [{ ...named, low: Number(least) * scale, high: Number(most) * scale }];
}

/** To the floor's row of the same load. */
export function rowRatios(row: LoadRow, rows: readonly LoadRow[]): FloorRatio[] {
  if (row.target === 'floor') return [];
  const floor = rows.findLast(
    (one) =>
      one.target === 'floor' &&
      one.sessions === row.sessions &&
      one.tokens === row.tokens &&
      one.delayMs === row.delayMs &&
      rows.indexOf(one) < rows.indexOf(row),
  );
  const name = `${row.target}, ${loadText(row)}`;
  return [
    ...named(`${name}: total`, floor && pairedRatio(row.totalMs, floor.totalMs), row.totalToFloor),
    ...named(`${name}: CPU per token`, floor && pairedRatio(row.cpuUsPerToken, floor.cpuUsPerToken), row.cpuToFloor),
  ];
}

/** `200 sessions × 200, 5 ms`, and how many turns stood before it, where there were some. */
export function loadText({
  sessions,
  tokens,
  delayMs,
  turnsBefore,
}: Pick<LoadRow, 'sessions' | 'tokens' | 'delayMs' | 'turnsBefore'>): string {
  const pace = delayMs === 0 ? 'as fast as it comes' : `${delayMs} ms`;
  return `${sessions} sessions × ${tokens}, ${pace}${turnsBefore === undefined ? '' : `, after ${turnsBefore} turns`}`;
}

function loadRatios(load: LoadReport, loads: readonly LoadReport[]): FloorRatio[] {
  const name = shapeText(load.shape);
  const floor = loads.find((one) => one.agent === 'floor' && shapeText(one.shape) === name);
  if (floor === undefined || load.agent === 'floor') return [];
  return [
    ...named(`${name}: CPU per token`, pairedRatio(load.cpuUsPerToken.tree, floor.cpuUsPerToken.tree)),
    ...named(`${name}: turn p50`, pairedRatio(load.turnMs.p50, floor.turnMs.p50)),
  ];
}

/** The floor among the peers: what it needs of ours, turned round. The range is that of the floor's rounds. */
function peerRatios(row: PeerRow): FloorRatio[] {
  if (row.agent !== 'floor') return [];
  const name = `beside peers, ${loadText(row)}`;
  const around = (ratio: number, rounds: readonly number[]): Omit<FloorRatio, 'name'> => {
    const [low, high] = medianInterval(rounds);
    return { ratio, low: (ratio * median(rounds)) / high, high: (ratio * median(rounds)) / low };
  };
  return [
    { name: `${name}: total`, ...around(1 / row.toOurs.total, row.totalMs) },
    { name: `${name}: CPU per token`, ...around(1 / row.toOurs.cpu, row.cpuUsPerToken) },
  ];
}

function named(name: string, paired: Omit<FloorRatio, 'name'> | undefined, single?: number): FloorRatio[] {
  if (paired !== undefined) return [{ name, ...paired }];
  return single === undefined ? [] : [{ name, ratio: single }];
}
