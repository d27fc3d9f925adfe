/** The outcomes of a run as one stacked bar with a legend that says the numbers. */
import type { JobStatus } from '../job-result.ts';
import { countText, percentText } from '../view/figures.ts';
import { statusOrder } from '../view/statuses.ts';
import { type Html, html } from '../../transcript/html.ts';

interface Part {
  readonly name: JobStatus | 'notrun';
  readonly label: string;
  readonly count: number;
}

export function outcomesChart(countOf: (status: JobStatus) => number, notRun: number): Html {
  const parts: Part[] = statusOrder.map((status) => ({ name: status, label: status, count: countOf(status) }));
  parts.push({ name: 'notrun', label: 'not run', count: notRun });
  const present = parts.filter(({ count }) => count > 0);
  const total = present.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return html`<p class="none">No attempt has a result.</p>`;
  let x = 0;
  const bars = present.map(({ name, label, count }) => {
    const width = (count / total) * 1000;
    const bar = html`<rect class="f-${name}" x="${x.toFixed(2)}" width="${width.toFixed(2)}" height="10"><title>${label}: ${countText(count)}</title></rect>`;
    x += width;
    return bar;
  });
  const legend = present.map(
    ({ name, label, count }) =>
      html`<li><i class="b-${name}"></i>${label} <b>${countText(count)}</b> <small>${percentText(count / total)}</small></li>`,
  );
  return html`<svg class="stack" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="Outcomes">${bars}</svg>
<ul class="legend">${legend}</ul>`;
}
