/** The head of the report: what came of a run, in figures and charts. The rows follow it. */
import { costText, countText, durationText, percentText, shortCount } from '../view/figures.ts';
import { statusOrder } from '../view/statuses.ts';
import { visibleLine } from '../view/visible-text.ts';
import { durationsChart } from './chart-durations.ts';
import { outcomesChart } from './chart-outcomes.ts';
import { seriesChart } from './chart-series.ts';
import { type Html, html } from './html.ts';
import { columns } from './job-row.ts';
import type { RunFacts } from './run-exporter.ts';

export function reportTitle({ now }: RunFacts): string {
  return `Run of ${new Date(now).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

export function reportHead(facts: RunFacts): Html {
  const { stats, outcome, agent } = facts;
  return html`<h1>${reportTitle(facts)}</h1>
<p class="muted">${agent === '' ? undefined : html`agent ${visibleLine(agent, 200)} · `}results in ${visibleLine(facts.resultsPath, 300)}</p>
<div class="tiles">${tiles(facts)}</div>
<section class="card"><h2>Outcomes</h2>${outcomesChart((status) => stats.of(status), outcome.notRun)}${stopNote(facts)}</section>
<div class="charts">
<section class="card"><h2>Durations</h2>${durationsChart(stats.durations)}</section>
${timeCharts(facts)}</div>
${errorTable(facts)}`;
}

interface Tile {
  readonly name: string;
  readonly value: string;
  readonly note?: string;
}

function tiles({ stats, outcome }: RunFacts): Html[] {
  const checked = stats.of('passed') + stats.of('failed');
  const { usage } = stats;
  const input = usage.inputTokens + usage.cacheReadTokens;
  const list: Tile[] = [
    {
      name: 'attempts',
      value: countText(outcome.total),
      ...(outcome.notRun === 0 ? {} : { note: `${countText(outcome.notRun)} not run` }),
    },
    ...(checked === 0
      ? []
      : [
          {
            name: 'passed, of the checked',
            value: percentText(stats.of('passed') / checked),
            note: `${countText(stats.of('passed'))} of ${countText(checked)}`,
          },
        ]),
    ...repeatTiles(stats.repeats()),
    { name: 'wall time of this run', value: durationText(outcome.wallMs), note: `${durationText(stats.totalMs)} of work in all` },
    {
      name: 'input tokens',
      value: shortCount(input),
      ...(usage.cacheReadTokens === 0 ? {} : { note: `${percentText(Math.round((usage.cacheReadTokens / input) * 100) / 100)} cached` }),
    },
    {
      name: 'output tokens',
      value: shortCount(usage.outputTokens),
      ...(usage.reasoningTokens === 0 ? {} : { note: `${shortCount(usage.reasoningTokens)} reasoning` }),
    },
    { name: 'tool calls', value: countText(usage.toolCalls), note: `${countText(usage.steps)} steps` },
    ...(stats.costUsd === undefined
      ? []
      : [{ name: 'cost', value: costText(stats.costUsd), note: `${costText(stats.costUsd / Math.max(1, stats.count))} an attempt` }]),
  ];
  return list.map(({ name, value, note }) => {
    return html`<div class="tile"><span>${name}</span><b>${value}</b>${note === undefined ? undefined : html`<small>${note}</small>`}</div>`;
  });
}

function repeatTiles(repeats: ReturnType<RunFacts['stats']['repeats']>): Tile[] {
  if (repeats === undefined) return [];
  const { mean, atLeastOnce, always, jobs } = repeats;
  const note = `${percentText(rounded(atLeastOnce))} at least once, ${percentText(rounded(always))} always`;
  return [{ name: `pass rate of ${countText(jobs)} jobs`, value: percentText(rounded(mean)), note }];
}

function rounded(share: number): number {
  return Math.round(share * 1000) / 1000;
}

function stopNote({ outcome }: RunFacts): Html | undefined {
  return outcome.stopped === undefined ? undefined : html`<p class="note">The run ended early: ${outcome.stopped}.</p>`;
}

/** Of this run alone: what came before it has no events. */
function timeCharts({ timeLine }: RunFacts): Html | undefined {
  const slots = timeLine.slots();
  if (slots.length < 2) return undefined;
  const spanMs = timeLine.endedAt - (timeLine.startedAt ?? 0);
  const atWork = seriesChart({
    title: 'Attempts at work',
    spanMs,
    series: [{ label: 'at work', values: slots.map((slot) => slot.atWork), className: 't-work' }],
    unit: (value) => `${countText(value)} at work`,
  });
  const tokens = seriesChart({
    title: 'Tokens a second',
    spanMs,
    series: [
      { label: 'input', values: slots.map((slot) => slot.inputTokens), className: 't-in' },
      { label: 'output', values: slots.map((slot) => slot.outputTokens), className: 't-out' },
    ],
    unit: (value) => `${shortCount(value)} tok/s`,
  });
  return html`<section class="card"><h2>At work over time</h2>${atWork}</section>
${timeLine.hasUsage ? html`<section class="card"><h2>Tokens over time</h2>${tokens}</section>` : undefined}`;
}

function errorTable({ stats }: RunFacts): Html | undefined {
  if (stats.byErrorClass.size === 0) return undefined;
  const rows = [...stats.byErrorClass].sort((a, b) => b[1] - a[1]);
  return html`<section class="card"><h2>Errors by class</h2><dl>${rows.map(([name, count]) => html`<dt>${name}</dt><dd>${countText(count)}</dd>`)}</dl></section>`;
}

/** Opens the table; rows follow. */
export function tableHead(facts: RunFacts, omitted: number): Html {
  const buttons = statusOrder
    .filter((status) => facts.stats.of(status) > 0)
    .map((status) => html`<button type="button" value="${status}" aria-pressed="true">${status}</button>`);
  const note = html`<p class="note">${countText(omitted)} attempts are left out here, good ones first; the results file has them all.</p>`;
  return html`<section class="card" id="jobs"><h2>Attempts</h2>
<div class="tools" hidden><input type="search" aria-label="Filter" placeholder="filter by words">${buttons}<output class="muted"></output></div>
${omitted === 0 ? undefined : note}
<table><thead><tr>${columns.map(({ name, numeric }) => html`<th scope="col"${numeric === true ? html` class="n"` : undefined}>${name}</th>`)}</tr></thead>
<tbody>
`;
}

export function tableFoot(): Html {
  return html`</tbody></table></section>
`;
}
