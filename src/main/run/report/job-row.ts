/** One attempt as a row of the report's table. Sort keys stand in `data-v`; labels for small screens in `data-l`. */
import type { JobResult } from '../job-result.ts';
import { exitText, reasonText } from '../view/end-text.ts';
import { besideText, costText, countText, durationText, tokensOf, tokensText } from '../view/figures.ts';
import { tailOf, visibleLine } from '../view/visible-text.ts';
import { type Html, html } from '../../transcript/html.ts';
import { statusChip } from './status-chips.ts';

const longestKey = 120;
const longestLabel = 60;
const mostLabels = 6;
const longestCheck = 140;
const longestReason = 240;

export interface Column {
  readonly name: string;
  /** Sorts by number. */
  readonly numeric?: true;
}

export const columns: readonly Column[] = [
  { name: 'job' },
  { name: 'status' },
  { name: 'stop reason' },
  { name: 'duration', numeric: true },
  { name: 'tokens', numeric: true },
  { name: 'cost', numeric: true },
  { name: 'check or error' },
  { name: 'labels' },
];

/** @param link to the job's page, from the report */
export function jobRow(result: JobResult, link: string): Html {
  const { usage, costUsd, times, status } = result;
  const tries = result.tries > 1 ? html` <small>${result.tries} tries</small>` : undefined;
  return html`<tr data-s="${status}"><td class="job"><a href="${link}">${visibleLine(result.key, longestKey)}</a></td>
<td data-l="status">${statusChip(status)}${tries}</td>
<td data-l="stop reason">${visibleLine(result.stopReason ?? '', 40)}</td>
<td data-l="duration" class="n" data-v="${Math.round(times.totalMs)}">${durationText(times.totalMs)}</td>
<td data-l="tokens" class="n" data-v="${usage === undefined ? -1 : tokensOf(usage)}"${tokensTitle(result)}>${usage === undefined ? '' : tokensText(usage)}</td>
<td data-l="cost" class="n" data-v="${costUsd ?? -1}">${costUsd === undefined ? '' : costText(costUsd)}</td>
<td data-l="" class="x">${whyText(result)}</td>
<td data-l="labels">${labelsOf(result)}</td></tr>
`;
}

function tokensTitle({ usage }: JobResult): Html | undefined {
  if (usage === undefined) return undefined;
  const parts = [
    `input ${countText(usage.inputTokens)}`,
    `cached ${countText(usage.cacheReadTokens)}`,
    `output ${countText(usage.outputTokens)}`,
    `${countText(usage.steps)} steps`,
    `${countText(usage.toolCalls)} tool calls`,
    ...besideText(usage),
  ];
  return html` title="${parts.join(', ')}"`;
}

/** How the check ended and what it said last; the error where there is one. */
function whyText(result: JobResult): Html {
  const reason = result.status === 'failed' ? '' : reasonText(result);
  const check = checkText(result);
  const both = check !== '' && reason !== '';
  return html`${check}${both ? html`<br>` : undefined}${reason.slice(0, longestReason)}`;
}

function checkText({ check }: JobResult): string {
  if (check === undefined) return '';
  const last = visibleLine(tailOf(check.output, 2000).trimEnd().split('\n').at(-1) ?? '', longestCheck);
  return last === '' ? exitText(check) : `${exitText(check)}: ${last}`;
}

function labelsOf({ labels }: JobResult): Html[] {
  const entries = Object.entries(labels);
  const shown = entries.slice(0, mostLabels).map(([name, value]) => {
    return html`<span class="label">${visibleLine(name, longestLabel)}=${visibleLine(value, longestLabel)}</span> `;
  });
  return entries.length > mostLabels ? [...shown, html`<small>+${entries.length - mostLabels}</small>`] : shown;
}
