/** What is added to each delta, over how many deltas come a second: a plot for each agent and loop, with the floor beside it. */
import type { LatencyRow } from '../run.ts';
import { logAxes, tip } from './log-axes.ts';
import { at, type Picture, short, text } from './svg.ts';

const percentiles = ['p50', 'p95', 'p99'] as const;
type Percentile = (typeof percentiles)[number];

const width = 380;
const height = 280;

export function latencyPictures(rows: readonly LatencyRow[]): Picture[] {
  const drawable = rows.filter((row) => [row.rate, row.p50, row.p95, row.p99].every((value) => value > 0));
  const pictures: Picture[] = [];
  for (const loop of ['closed', 'open'] as const) {
    const inLoop = drawable.filter((row) => row.loop === loop);
    const floor = inLoop.filter(({ agent }) => agent === 'floor');
    const agents = [...new Set(inLoop.map(({ agent }) => agent))].filter((agent) => agent !== 'floor');
    for (const agent of agents) pictures.push(latencyPicture(agent, loop, { rows: inLoop.filter((row) => row.agent === agent), floor }));
  }
  return pictures;
}

function latencyPicture(
  agent: string,
  loop: 'open' | 'closed',
  data: { readonly rows: readonly LatencyRow[]; readonly floor: readonly LatencyRow[] },
): Picture {
  const all = [...data.rows, ...data.floor];
  // Where only the number of sessions differs, that is the load.
  const over = new Set(all.map(({ rate }) => rate)).size > 1 ? 'rate' : 'sessions';
  const title = `${agent}, ${loop} loop`;
  const axes = logAxes({
    width,
    height,
    title,
    xLabel: over === 'rate' ? 'deltas a second, all sessions together' : 'sessions',
    yLabel: 'added to a delta, ms',
    xs: all.map((row) => row[over]),
    ys: all.flatMap((row) => percentiles.map((percentile) => row[percentile])),
    right: 76,
  });
  const lines = [
    ...percentiles.map((percentile) => ({ percentile, rows: data.floor, isFloor: true })),
    ...percentiles.map((percentile) => ({ percentile, rows: data.rows, isFloor: false })),
  ].filter((one) => one.rows.length > 0);
  const drawn = lines.map(({ percentile, rows, isFloor }) =>
    curve(
      rows.toSorted((a, b) => a[over] - b[over]),
      percentile,
      { axes, over, isFloor },
    ),
  );
  const labels = spreadOut(drawn.map(({ end, label }) => ({ y: end, label }))).map(({ y, label }) =>
    text(label, width - 72, y + 4, { kind: label.startsWith('floor') ? 'small' : '' }),
  );
  const desc = `${title}: ${data.rows.map((row) => `${short(row[over])}: p50 ${short(row.p50)}, p95 ${short(row.p95)}, p99 ${short(row.p99)} ms`).join('; ')}.`;
  return { width, height, title, desc, body: axes.body + drawn.map(({ body }) => body).join('') + labels.join('') };
}

function curve(
  rows: readonly LatencyRow[],
  percentile: Percentile,
  { axes, over, isFloor }: { readonly axes: ReturnType<typeof logAxes>; readonly over: 'rate' | 'sessions'; readonly isFloor: boolean },
): { readonly body: string; readonly end: number; readonly label: string } {
  const points = rows.map((row) => ({ row, x: axes.x(row[over]), y: axes.y(row[percentile]) }));
  const path = points.map(({ x, y }, index) => `${index === 0 ? 'M' : 'L'}${at(x)} ${at(y)}`).join('');
  const dots = points.map(({ row, x, y }) => {
    const said = `${row.agent}, ${row.sessions} sessions, ${short(row.rate)} deltas/s: ${percentile} ${short(row[percentile])} ms`;
    return `<circle class="${isFloor ? 'dot-beside' : 'dot'}" cx="${at(x)}" cy="${at(y)}" r="${isFloor ? 2 : 3}">${tip(said)}</circle>`;
  });
  const body = `<path class="${isFloor ? 'beside' : 'ours'} ${percentile}" d="${path}"/>${dots.join('')}`;
  return { body, end: points.at(-1)!.y, label: isFloor ? `floor ${percentile}` : percentile };
}

/** No two labels nearer than a line of text; they keep their order. */
function spreadOut(labels: readonly { readonly y: number; readonly label: string }[]): { readonly y: number; readonly label: string }[] {
  const lineHeight = 13;
  const sorted = labels.toSorted((a, b) => b.y - a.y);
  const placed: { y: number; label: string }[] = [];
  for (const { y, label } of sorted) placed.push({ y: Math.min(y, (placed.at(-1)?.y ?? Number.POSITIVE_INFINITY) - lineHeight), label });
  return placed;
}
