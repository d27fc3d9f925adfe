/** What the report is drawn from: of all that was recorded for a class of machines, the last of each. */
import { figureName, type FloorRatio, floorRatios, loadText, rowRatios } from '../guard/ratios.ts';
import type { ClassRecord, RecordedPart } from '../guard/record.ts';
import type { LoadReport } from '../load/load-report.ts';
import { shapeText } from '../load/load-shape.ts';
import { median, medianInterval } from '../load/statistics.ts';
import type { LoadRow } from '../load/compare.ts';
import type { Figure, GrowthCurve, LatencyRow, MicroRow, PeerRow, Skipped } from '../run.ts';
import type { RatioBar } from './ratio-bars.ts';

export interface ReportData {
  readonly machine: ClassRecord['machine'];
  /** Of which nothing was replaced by something later. */
  readonly parts: readonly RecordedPart[];
  readonly figures: readonly Figure[];
  readonly figureBars: readonly RatioBar[];
  readonly rows: readonly LoadRow[];
  /** By load; the time until all have answered, and the CPU of a token. */
  readonly timeBars: readonly RatioBar[];
  readonly cpuBars: readonly RatioBar[];
  readonly loads: readonly LoadReport[];
  readonly latencies: readonly LatencyRow[];
  readonly growth: readonly GrowthCurve[];
  readonly peers: readonly PeerRow[];
  readonly micros: readonly MicroRow[];
  readonly skipped: readonly Skipped[];
}

/** The part that varies nothing but the load: where there is one, its latencies alone make the curves. */
const latencyPart = 'rates';

export function gather({ machine, parts }: ClassRecord): ReportData {
  const last = <T>(take: (part: RecordedPart) => readonly T[], key: (entry: T) => string): T[] =>
    // A later one takes the place of an earlier one, so that the order stays.
    [...new Map(parts.flatMap(take).map((entry) => [key(entry), entry])).values()];
  const figures = last(({ results }) => results.figures, figureName);
  const ratios = new Map(parts.flatMap(floorRatios).map((ratio) => [ratio.name, ratio]));
  const rowRatioList = parts.flatMap(({ results: { rows } }) => rows.flatMap((row) => rowRatios(row, rows)));
  const paced = parts.filter(({ name }) => name === latencyPart);
  return {
    machine,
    parts,
    figures,
    figureBars: figures.flatMap((figure) => figureBar(figure, ratios.get(figureName(figure)))),
    rows: last(
      ({ results }) => results.rows,
      (row) => `${row.target} ${loadText(row)}`,
    ),
    timeBars: barsOf(rowRatioList, ': total'),
    cpuBars: barsOf(rowRatioList, ': CPU per token'),
    loads: last(
      ({ results }) => results.loads,
      ({ agent, shape }) => `${agent} ${shapeText(shape)}`,
    ),
    latencies: (paced.length > 0 ? paced : parts).flatMap(({ results }) => results.latencies),
    growth: last(
      ({ results }) => results.growth,
      ({ what, over }) => `${what} ${over}`,
    ),
    peers: last(
      ({ results }) => results.peers,
      (row) => `${row.agent} ${loadText(row)}`,
    ),
    micros: last(
      ({ results }) => results.micros,
      ({ group, what, bytes }) => `${group} ${what} ${bytes ?? ''}`,
    ),
    skipped: last(
      ({ results }) => results.skipped,
      ({ agent, why }) => `${agent} ${why}`,
    ),
  };
}

/** Those whose names end so, without that end. */
function barsOf(ratios: readonly FloorRatio[], end: string): RatioBar[] {
  const named = ratios
    .filter(({ name }) => name.endsWith(end))
    .map((ratio) => ({ ...bar(ratio), label: ratio.name.slice(0, -end.length) }));
  return [...new Map(named.map((one) => [one.label, one])).values()];
}

function bar({ name, ratio, low, high }: FloorRatio): RatioBar {
  return { label: name, ratio, ...(low === undefined || high === undefined ? {} : { low, high }) };
}

function figureBar({ target }: Figure, ratio: FloorRatio | undefined): RatioBar[] {
  if (ratio === undefined || !(ratio.ratio > 0)) return [];
  const [, most] = /^≤ ([\d.]+) × floor$/.exec(target) ?? [];
  return [{ ...bar(ratio), ...(most === undefined ? {} : { most: Number(most) }) }];
}

export const peerMetrics = [
  { key: 'total', what: 'time until all have answered' },
  { key: 'cpu', what: 'CPU per token' },
  { key: 'memory', what: 'memory after the work' },
  { key: 'firstToken', what: 'time to the first word' },
  { key: 'initialize', what: 'start until initialize is answered' },
] as const;

export type PeerMetric = (typeof peerMetrics)[number]['key'];

/** Bars of all agents but ours; the spread is that of their rounds, around the quotient. */
export function peerBars(rows: readonly PeerRow[], metric: PeerMetric): RatioBar[] {
  return rows.flatMap((row) => {
    const ratio = row.toOurs[metric];
    if (row.agent === 'ours' || !(ratio > 0)) return [];
    const rounds = roundsOf(row, metric);
    const single = { label: `${row.agent} ${row.version}`.replace(/ –$/, ''), ratio };
    if (rounds === undefined || rounds.length < 2) return [single];
    const [low, high] = medianInterval(rounds);
    return [{ ...single, low: (ratio * low) / median(rounds), high: (ratio * high) / median(rounds) }];
  });
}

function roundsOf(row: PeerRow, metric: PeerMetric): readonly number[] | undefined {
  switch (metric) {
    case 'total':
      return row.totalMs;
    case 'cpu':
      return row.cpuUsPerToken;
    case 'initialize':
      return row.initializeMs;
    case 'memory':
    case 'firstToken':
    default:
      return undefined;
  }
}

/** Rows by load, in the order in which they were measured. */
export function byLoad(peers: readonly PeerRow[]): { readonly load: string; readonly rows: readonly PeerRow[] }[] {
  const loads = [...new Set(peers.map(loadText))];
  return loads.map((load) => ({ load, rows: peers.filter((row) => loadText(row) === load) }));
}

/** The load that says most: with the most agents, then the most sessions, then the pace of a model. */
export function mainLoad(peers: readonly PeerRow[]): { readonly load: string; readonly rows: readonly PeerRow[] } | undefined {
  const weight = (rows: readonly PeerRow[]): readonly number[] => [rows.length, rows[0]?.sessions ?? 0, rows[0]?.delayMs ?? 0];
  return byLoad(peers).toSorted((a, b) => {
    const [left, right] = [weight(a.rows), weight(b.rows)];
    const differing = left.findIndex((value, index) => value !== right[index]);
    return differing === -1 ? 0 : right[differing]! - left[differing]!;
  })[0];
}
