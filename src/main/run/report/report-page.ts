/** The head of the report: what came of a run, in figures and charts. The rows follow it. */
import { costText, countText, durationText, percentText, shortCount } from '../view/figures.ts';
import { statusOrder } from '../view/statuses.ts';
import { stopWords } from '../view/summary.ts';
import { visibleLine } from '../view/visible-text.ts';
import { durationsChart } from './chart-durations.ts';
import { outcomesChart } from './chart-outcomes.ts';
import { seriesChart } from './chart-series.ts';
import { type Html, html } from '../../transcript/html.ts';
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
<section class="card"><h2>Outcomes</h2>${outcomesChart((status) => stats.of(status), outcome.notRun)}${errorNote(facts)}${stopNote(facts)}</section>
<div class="charts">
<section class="card"><h2>Durations</h2>${durationsChart(stats.durations)}</section>
${timeCharts(facts)}</div>`;
}

interface Tile {
  readonly name: string;
  readonly value: string;
  readonly note?: string;
}

function tiles({ stats, outcome }: RunFacts): Html[] {
  const { checked, passed } = stats;
  const { usage } = stats;
  const input = usage.inputTokens + usage.cacheReadTokens;
  const children = usage.subagents.inputTokens + usage.subagents.cacheReadTokens + usage.subagents.outputTokens;
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
            name: 'pass rate',
            value: percentText(passed / checked),
            note: `${countText(passed)} of ${countText(checked)} checked`,
          },
        ]),
    ...repeatTiles(stats.repeats()),
    { name: 'wall time', value: durationText(outcome.wallMs), note: `${durationText(stats.totalMs)} of work` },
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
    ...(usage.guessedTokens === 0
      ? []
      : [{ name: 'guessed tokens', value: `≈ ${shortCount(usage.guessedTokens)}`, note: 'beside what was reported' }]),
    ...(children === 0
      ? []
      : [{ name: 'subagents', value: shortCount(children), note: `tokens, ${shortCount(usage.subagents.outputTokens)} output` }]),
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
  const note = `${countText(jobs)} jobs: ${percentText(rounded(atLeastOnce))} at least once, ${percentText(rounded(always))} always`;
  return [{ name: 'pass rate by job', value: percentText(rounded(mean)), note }];
}

function rounded(share: number): number {
  return Math.round(share * 1000) / 1000;
}

function stopNote({ outcome }: RunFacts): Html | undefined {
  return outcome.stopped === undefined ? undefined : html`<p class="note">The run was ended early by ${stopWords[outcome.stopped]}.</p>`;
}

/** Of this run alone: what came before it has no events. */
function timeCharts({ timeLine }: RunFacts): Html | undefined {
  const slots = timeLine.slots();
  if (slots.length < 2) return undefined;
  const spanMs = timeLine.endedAt - (timeLine.startedAt ?? 0);
  const chart = (title: string, values: readonly number[], unit: string) => html`<section class="card"><h2>${title}</h2>
${seriesChart({ title, spanMs, values, unit: (value) => `${shortCount(value)} ${unit}` })}</section>
`;
  const output = slots.map((slot) => slot.outputTokens);
  const input = slots.map((slot) => slot.inputTokens);
  return html`${chart(
    'At work over time',
    slots.map((slot) => slot.atWork),
    'at work',
  )}${timeLine.hasUsage ? html`${chart('Output tokens over time', output, 'tok/s')}${chart('Input tokens over time', input, 'tok/s')}` : undefined}`;
}

function errorNote({ stats }: RunFacts): Html | undefined {
  if (stats.byErrorClass.size === 0) return undefined;
  const classes = [...stats.byErrorClass]
    .sort((a, b) => b[1] - a[1])
    .map(([name, count]) => `${visibleLine(name, 40)} ${countText(count)}`);
  return html`<p class="note">Errors by class: ${classes.join(' · ')}</p>`;
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
