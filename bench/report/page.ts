/** The report: one page of HTML that needs nothing else, with a table behind each chart. */
import { machineClassText } from '../guard/machine-class.ts';
import type { RecordedPart } from '../guard/record.ts';
import { loadText } from '../guard/ratios.ts';
import { shapeText } from '../load/load-shape.ts';
import { median } from '../load/statistics.ts';
import type { PeerRow } from '../run.ts';
import { byLoad, type ReportData } from './gather.ts';
import { pointsText, verdictText } from './growth-curves.ts';
import { latencyPictures } from './latency-curves.ts';
import { floorPicture, growthPictures, peerPictures } from './pictures.ts';
import type { RatioBar } from './ratio-bars.ts';
import { chartStyle, escaped, inlineSvg, type Picture, short, times } from './svg.ts';

/** More than this was in use by others: no single figure is to be trusted. */
const busyPercent = 20;

export function reportPage(data: ReportData): string {
  const sections = [
    sizes(data),
    floorSection(data),
    latencies(data),
    growth(data),
    peers(data),
    loads(data),
    micros(data),
    provenance(data),
  ];
  const title = `dsh-acp: bench on ${machineClassText(data.machine)}`;
  return [
    '<!doctype html>',
    '<html lang="en">',
    `<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">`,
    `<title>${escaped(title)}</title><style>${chartStyle()}${pageStyle()}</style></head>`,
    `<body><main><h1>${escaped(title)}</h1>${introduction(data)}${sections.join('\n')}</main></body>`,
    '</html>\n',
  ].join('\n');
}

function introduction({ machine, parts, figures }: ReportData): string {
  const judged = figures.filter(({ holds }) => holds !== undefined);
  const held = judged.filter(({ holds }) => holds === true);
  const busy = parts.filter(({ busyBefore, busyAfter }) => Math.max(busyBefore, busyAfter) > busyPercent).map(({ name }) => name);
  const warning =
    busy.length === 0
      ? ''
      : `<p class="bad">Others used more than ${busyPercent} % of all cores around: ${escaped(busy.join(', '))}. Quotients say something there, single figures do not.</p>`;
  return [
    `<p>${escaped(machineClassText(machine))}, ${machine.memoryGb} GB, ${escaped(machine.system)}. Agent, model server and client share these cores.`,
    ` ${held.length} of ${judged.length} sizes that have a target hold. bench/README.md says what each line means.</p>${warning}`,
  ].join('');
}

function sizes({ figures }: ReportData): string {
  const rows = figures.map((figure) => {
    const { target, measured, toFloor, holds } = figure;
    const verdict = holds === undefined ? '' : holds ? '<span class="good">yes</span>' : '<span class="bad">no</span>';
    return [escaped(figure.what), escaped(target), escaped(measured), toFloor === undefined ? '' : times(toFloor), verdict];
  });
  return section(
    'Sizes that must hold',
    'sizes',
    figures.length === 0,
    'targets',
    table(['what', 'target', 'measured', 'to the floor', 'holds'], rows),
  );
}

function floorSection({ figureBars, timeBars, cpuBars, rows }: ReportData): string {
  const note =
    '<p>The floor is the least that an agent can do: one thread, no tools, no log. Both ran in turns; whiskers are between which the median lies in nine of ten cases, dashes what is asked for.</p>';
  const charts = [
    floorPicture('Figures', figureBars),
    floorPicture('Time until all have answered, by load', timeBars),
    floorPicture('CPU per token, by load', cpuBars),
  ].filter((one) => one !== undefined);
  const loadRows = rows.map((row) => [
    escaped(row.target),
    escaped(loadText(row)),
    short(median(row.totalMs)),
    short(median(row.cpuUsPerToken)),
    `${short(row.firstTokenMs.p50)} / ${short(row.firstTokenMs.p99)}`,
    `${short(row.pssMb.idle)} / ${short(row.pssMb.after)}`,
  ]);
  const heads = ['agent', 'load', 'total, ms', 'CPU, µs a token', 'first word p50 / p99, ms', 'MB idle / after'];
  const tables = [
    behind(
      'Quotients',
      barTable([
        ...figureBars,
        ...timeBars.map((bar) => ({ ...bar, label: `${bar.label}: total` })),
        ...cpuBars.map((bar) => ({ ...bar, label: `${bar.label}: CPU per token` })),
      ]),
    ),
    rows.length === 0 ? '' : behind('Rows of load', table(heads, loadRows)),
  ];
  return section(
    'Beside the floor',
    'floor',
    charts.length === 0,
    'startup targets latency floor',
    note + pictures(charts) + tables.join(''),
  );
}

function latencies({ latencies: rows }: ReportData): string {
  const note =
    '<p>From the sending of a delta in the model server to the arrival of its update at the client. Closed: each session is prompted when it has answered. Open: at times that no answer changes.</p>';
  const cells = rows.map((row) => [
    escaped(row.agent),
    row.loop,
    String(row.sessions),
    short(row.rate),
    ...[row.p50, row.p95, row.p99, row.max].map(short),
  ]);
  const heads = ['agent', 'loop', 'sessions', 'deltas/s', 'p50, ms', 'p95, ms', 'p99, ms', 'max, ms'];
  return section(
    'Latency by load',
    'latency',
    rows.length === 0,
    'rates',
    note + pictures(latencyPictures(rows)) + behind('Latencies', table(heads, cells)),
  );
}

function growth(data: ReportData): string {
  const note = '<p>Both axes are logarithmic. The line is fitted to the points; the dashed one is what grows as its size does.</p>';
  const cells = data.growth.map((curve) => [
    escaped(curve.what),
    escaped(curve.over),
    escaped(curve.unit),
    escaped(pointsText(curve)),
    escaped(verdictText(curve)),
  ]);
  const body = note + pictures(growthPictures(data)) + behind('Points', table(['cost', 'over', 'unit', 'size: cost', 'verdict'], cells));
  return section('Growth', 'growth', data.growth.length === 0, 'growth', body);
}

function peers({ peers: rows, skipped }: ReportData): string {
  const note =
    '<p>Theirs divided by ours, in turns in the same run, on a logarithmic scale: right of 1 they need more. The dashed line is three times as much.</p>';
  const charts = byLoad(rows).map(({ load, rows: atLoad }) => `<h3>${escaped(load)}</h3>${pictures(peerPictures(atLoad))}`);
  const missing =
    skipped.length === 0 ? '' : `<p>Not run: ${skipped.map(({ agent, why }) => `${escaped(agent)} (${escaped(why)})`).join('; ')}.</p>`;
  return section(
    'Beside agents of others',
    'peers',
    rows.length === 0,
    'peers',
    note + charts.join('') + behind('Rows', peerTable(rows)) + missing,
  );
}

function peerTable(rows: readonly PeerRow[]): string {
  const heads = [
    'agent',
    'version',
    'runtime',
    'load',
    'total, ms',
    'CPU, µs a token',
    'MB idle / open / after',
    'processes',
    'first word p50 / p99, ms',
    'initialize, ms',
    'session/new p50, ms',
    'exit, ms',
    'wrong',
  ];
  const cells = rows.map((row) => [
    ...[row.agent, row.version, row.runtime, loadText(row)].map(escaped),
    ...[median(row.totalMs), median(row.cpuUsPerToken)].map(short),
    [row.pssMb.idle, row.pssMb.open, row.pssMb.after].map(short).join(' / '),
    String(row.processes),
    `${short(row.firstTokenMs.p50)} / ${short(row.firstTokenMs.p99)}`,
    ...[median(row.initializeMs), row.newSessionMs.p50, row.exitMs].map(short),
    String(row.wrong),
  ]);
  return table(heads, cells);
}

function loads({ loads: reports }: ReportData): string {
  const heads = [
    'agent',
    'load',
    'tokens/s',
    'turn p50 / p99, ms',
    'first word p50 / p99, ms',
    'CPU, µs a token (main)',
    'MB open / after',
  ];
  const cells = reports.map(({ agent, shape, tokensPerSecond, turnMs, firstTokenMs, cpuUsPerToken, memoryMb }) => [
    agent,
    escaped(shapeText(shape)),
    short(median(tokensPerSecond)),
    `${short(median(turnMs.p50))} / ${short(median(turnMs.p99))}`,
    `${short(median(firstTokenMs.p50))} / ${short(median(firstTokenMs.p99))}`,
    `${short(median(cpuUsPerToken.tree))} (${short(median(cpuUsPerToken.main))})`,
    `${short(memoryMb.pss.open)} / ${short(memoryMb.pss.after)}`,
  ]);
  return section('Loads of all kinds', 'loads', reports.length === 0, 'load', table(heads, cells));
}

function micros({ micros: rows }: ReportData): string {
  const cells = rows.map(({ group, what, unit, nanoseconds, bytes }) => [
    escaped(group),
    escaped(what),
    `${short(median(nanoseconds))} ns`,
    escaped(unit),
    bytes === undefined ? '' : short(bytes),
  ]);
  return section('Single steps', 'micro', rows.length === 0, 'micro', table(['group', 'what', 'median', 'each', 'bytes'], cells));
}

function provenance({ parts }: ReportData): string {
  const percent = (value: number): string => (Number.isNaN(value) ? '–' : `${value.toFixed(0)} %`);
  const cells = parts.map((part: RecordedPart) => [
    escaped(part.name),
    escaped(part.at.replace('T', ' ').replace(/\..*$/, '')),
    escaped(part.commit),
    part.full ? 'full' : 'short',
    `${percent(part.busyBefore)} / ${percent(part.busyAfter)}`,
    String(part.seed),
  ]);
  return section(
    'What was run',
    'runs',
    parts.length === 0,
    '',
    table(['part', 'at (UTC)', 'commit', 'matrix', 'others used before / after', 'seed'], cells),
  );
}

function section(title: string, id: string, isEmpty: boolean, part: string, body: string): string {
  const nothing = `<p class="none">Nothing is recorded for this section. <code>npm run bench -- --full --record ${part}</code> measures it.</p>`;
  return `<section id="${id}"><h2>${escaped(title)}</h2>${isEmpty ? nothing : body}</section>`;
}

function pictures(all: readonly Picture[]): string {
  return `<div class="pictures">${all.map((picture) => `<figure style="max-width:${picture.width}px">${inlineSvg(picture)}</figure>`).join('')}</div>`;
}

function behind(summary: string, content: string): string {
  return `<details><summary>${escaped(summary)}</summary>${content}</details>`;
}

function barTable(bars: readonly RatioBar[]): string {
  const cells = bars.map(({ label, ratio, low, high, most }) => [
    escaped(label),
    times(ratio),
    low === undefined || high === undefined ? '' : `${short(low)}–${short(high)}`,
    most === undefined ? '' : String(most),
  ]);
  return table(['what', 'median', 'between', 'at most'], cells);
}

/** Cells are HTML already. */
function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = heads.map((cell) => `<th scope="col">${escaped(cell)}</th>`).join('');
  const body = rows
    .map((row) => `<tr>${row.map((cell, index) => (index === 0 ? `<th scope="row">${cell}</th>` : `<td>${cell}</td>`)).join('')}</tr>`)
    .join('\n');
  return `<div class="wide"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}

function pageStyle(): string {
  return [
    'body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}',
    'main{max-width:1180px;margin:0 auto;padding:16px}h1{font-size:22px;line-height:1.3}h2{font-size:18px;margin:36px 0 8px;border-top:1px solid var(--grid);padding-top:16px}h3{font-size:15px;margin:20px 0 4px}',
    '.pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,380px),1fr));gap:8px 20px;align-items:start}',
    '',
    'figure{margin:0}.chart{width:100%;height:auto;display:block}',
    '.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}',
    'th,td{padding:4px 12px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}tbody th{font-weight:400;min-width:180px}thead th{color:var(--dim);font-weight:600;white-space:nowrap}',
    'td{white-space:nowrap}summary{cursor:pointer;color:var(--dim);margin:8px 0}.none{color:var(--dim)}p .bad,.bad{color:var(--more)}.good{color:var(--less)}td .bad{font-weight:600}code{font-size:13px}',
    '#growth td{white-space:normal}',
  ].join('');
}
