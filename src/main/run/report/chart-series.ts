/** A figure over the run's wall time as an area, with its largest value and the times at the ends. */
import { durationText } from '../view/figures.ts';
import { type Html, html, trusted } from './html.ts';

export interface Series {
  readonly label: string;
  readonly values: readonly number[];
  /** A class of the style sheet that gives the colour. */
  readonly className: string;
}

export interface SeriesChart {
  readonly title: string;
  readonly spanMs: number;
  /** Drawn over each other, the first at the back. */
  readonly series: readonly Series[];
  readonly unit: (value: number) => string;
}

const height = 100;

export function seriesChart({ title, spanMs, series, unit }: SeriesChart): Html {
  const length = series[0]?.values.length ?? 0;
  const most = Math.max(0, ...series.flatMap(({ values }) => values));
  if (length === 0 || most === 0) return html`<p class="none">Nothing was measured.</p>`;
  const areas = series.map(({ className, values, label }) => {
    return html`<path class="area ${className}" d="${trusted(areaPath(values, most))}"><title>${label}</title></path>`;
  });
  const legend = series.length < 2 ? undefined : series.map(({ label, className }) => html`<li><i class="${className}"></i>${label}</li>`);
  return html`<div class="plot"><span class="ymax">${unit(most)}</span>
<svg viewBox="0 0 ${length} ${height}" preserveAspectRatio="none" role="img" aria-label="${title}">${areas}</svg>
<div class="xaxis"><span style="left:0">0</span><span class="last">${durationText(spanMs)}</span></div></div>
${legend === undefined ? undefined : html`<ul class="legend">${legend}</ul>`}`;
}

/** Steps: a slot holds an average, not a point. */
function areaPath(values: readonly number[], most: number): string {
  const steps = values.map((value, index) => {
    const y = (height - (value / most) * height).toFixed(2);
    return `${index === 0 ? `L0 ${y}` : `V${y}`}H${index + 1}`;
  });
  return `M0 ${height}${steps.join('')}V${height}Z`;
}
