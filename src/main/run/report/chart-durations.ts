/** Durations as a histogram, each bar stacked by outcome. Labels are HTML, so that they keep their size on a small screen. */
import type { JobStatus } from '../job-result.ts';
import { countText, durationText, quantile } from '../view/figures.ts';
import { statusOrder } from '../view/statuses.ts';
import { type DurationBin, durationBins } from './duration-bins.ts';
import { type Html, html } from '../../transcript/html.ts';
import type { DurationOf } from './result-stats.ts';

const height = 100;
const mostLabels = 6;

export function durationsChart(durations: readonly DurationOf[]): Html {
  if (durations.length === 0) return html`<p class="none">Nothing has ended.</p>`;
  const sorted = durations.map(({ ms }) => ms).sort((a, b) => a - b);
  const bins = durationBins(sorted);
  const counts = countByBin(bins, durations);
  const most = Math.max(...counts.map(totalOf));
  const bars = counts.map((count, index) => barOf(count, { index, bin: bins[index] ?? { from: 0, to: 0 }, most }));
  const at = (share: number) => durationText(quantile(sorted, share) ?? 0);
  return html`<div class="plot"><span class="ymax">${countText(most)}</span>
<svg viewBox="0 0 ${bins.length * 10} ${height}" preserveAspectRatio="none" role="img" aria-label="Histogram of durations">${bars}</svg>
${axis(bins)}</div>
<p class="note">p50 ${at(0.5)} · p95 ${at(0.95)} · max ${at(1)}</p>`;
}

type Counts = Map<JobStatus, number>;

function countByBin(bins: readonly DurationBin[], durations: readonly DurationOf[]): Counts[] {
  const counts = bins.map((): Counts => new Map());
  for (const { ms, status } of durations) {
    const count = counts[binOf(bins, ms)];
    count?.set(status, (count.get(status) ?? 0) + 1);
  }
  return counts;
}

/** By halving: there may be a million durations. */
function binOf(bins: readonly DurationBin[], ms: number): number {
  let low = 0;
  let high = bins.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((bins[middle]?.from ?? 0) <= ms) low = middle;
    else high = middle - 1;
  }
  return low;
}

function totalOf(counts: Counts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

interface Place {
  readonly index: number;
  readonly bin: DurationBin;
  readonly most: number;
}

function barOf(counts: Counts, { index, bin, most }: Place): Html {
  const total = totalOf(counts);
  if (total === 0) return html``;
  let y = height;
  const parts = statusOrder.flatMap((status) => {
    const part = ((counts.get(status) ?? 0) / most) * height;
    if (part === 0) return [];
    y -= part;
    return [html`<rect class="f-${status}" x="${index * 10 + 0.6}" y="${y.toFixed(2)}" width="8.8" height="${part.toFixed(2)}"/>`];
  });
  return html`<g><title>${edgeText(bin.from)} to ${edgeText(bin.to)}: ${countText(total)}</title>${parts}</g>`;
}

/** Few labels, each at its edge. */
function axis(bins: readonly DurationBin[]): Html {
  const every = Math.ceil(bins.length / mostLabels);
  const labels = bins.flatMap((bin, index) => {
    if (index % every !== 0) return [];
    return [html`<span style="left:${((index / bins.length) * 100).toFixed(2)}%">${edgeText(bin.from)}</span>`];
  });
  return html`<div class="xaxis">${labels}</div>`;
}

function edgeText(ms: number): string {
  if (ms === Infinity) return 'more';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${Number((ms / 1000).toFixed(2))} s` : durationText(ms).replace(/ 00[sm]$/, '');
}
