/** A figure over the run's wall time as an area, with its largest value and the times at the ends. */
import { durationText } from '../view/figures.ts';
import { type Html, html } from '../../transcript/html.ts';

export interface SeriesChart {
  readonly title: string;
  readonly spanMs: number;
  /** One for each slot, all of the same length. */
  readonly values: readonly number[];
  readonly unit: (value: number) => string;
}

const height = 100;

export function seriesChart({ title, spanMs, values, unit }: SeriesChart): Html {
  const most = Math.max(0, ...values);
  if (most === 0) return html`<p class="none">Nothing was measured.</p>`;
  return html`<div class="plot"><span class="ymax">${unit(most)}</span>
<svg viewBox="0 0 ${values.length} ${height}" preserveAspectRatio="none" role="img" aria-label="${title}"><path class="area" d="${areaPath(values, most)}"/></svg>
<div class="xaxis"><span style="left:0">0</span><span class="last">${durationText(spanMs)}</span></div></div>`;
}

/** Steps: a slot holds an average, not a point. */
function areaPath(values: readonly number[], most: number): string {
  const steps = values.map((value, index) => {
    const y = (height - (value / most) * height).toFixed(2);
    return `${index === 0 ? `L0 ${y}` : `V${y}`}H${index + 1}`;
  });
  return `M0 ${height}${steps.join('')}V${height}Z`;
}
