/** The table at the end of a run. */
import { styleText } from 'node:util';
import type { RunOutcome } from '../run-event.ts';
import { besideText, costText, countText, durationText, percentText, quantile, shortCount } from './figures.ts';
import { alwaysStyled } from './live-frame.ts';
import type { RunRecord } from './run-record.ts';
import { colorOf, isStatus, statusOrder } from './statuses.ts';
import { visibleLine } from './visible-text.ts';

export interface WrittenFile {
  readonly name: string;
  readonly path: string;
  /** Why it is not there. */
  readonly problem?: string;
}

type Row = readonly [name: string, text: string];

const longestKey = 60;

/** Why a run ended early, behind `ended early by`. */
export const stopWords: Record<NonNullable<RunOutcome['stopped']>, string> = {
  signal: 'a signal',
  'max-cost': 'the cost limit',
  'max-time': 'the time limit',
  'fail-fast': 'the first failure',
  agent: 'an agent that cannot work',
  results: 'results that cannot be written',
};

/** Lines with a line feed at the end. Durations and errors are those of this run; the outcome counts earlier results too. */
export function summaryText(outcome: RunOutcome, record: RunRecord, files: readonly WrittenFile[], color: boolean): string {
  const rows: Row[] = [
    ['attempts', attemptsText(outcome)],
    ['outcome', outcomeText(outcome, record, color)],
    ...durationRows(record),
    ...tokensRow(outcome),
    ...(outcome.costUsd === undefined ? [] : [['cost', costText(outcome.costUsd)] as const]),
    ...(record.retries === 0 ? [] : [['retries', countText(record.retries)] as const]),
    ...listRows(
      'slowest',
      record.slowest.map((job) => `${durationText(job.totalMs).padStart(8)}  ${job.status.padEnd(9)}  ${visibleLine(job.key, longestKey)}`),
    ),
    ...errorRows(record),
    ...files.map(({ name, path, problem }): Row => [name, problem === undefined ? path : `not written: ${problem}`]),
    ...logRow(record),
  ];
  return `\n${rows.map(([name, text]) => `${name.padEnd(13)}${text}\n`).join('')}`;
}

function attemptsText({ total, notRun, invalid, wallMs, stopped }: RunOutcome): string {
  const left = notRun === 0 ? '' : `, ${countText(notRun)} not run`;
  const wrong = invalid === undefined || invalid === 0 ? '' : `, ${countText(invalid)} wrong lines left out`;
  const why = stopped === undefined ? '' : `; ended early by ${stopWords[stopped]}`;
  return `${countText(total)} in ${durationText(wallMs)}${left}${wrong}${why}`;
}

function outcomeText({ byStatus }: RunOutcome, { checked, passed }: RunRecord, color: boolean): string {
  const known = statusOrder.flatMap((status) => {
    const count = byStatus[status] ?? 0;
    const text = `${status} ${countText(count)}`;
    return count === 0 ? [] : [color ? styleText(colorOf(status), text, alwaysStyled) : text];
  });
  const others = Object.entries(byStatus).filter(([status]) => !isStatus(status));
  const rate = checked === 0 ? [] : [`(${percentText(passed / checked)} of ${countText(checked)} checks in this run passed)`];
  const parts = [...known, ...others.map(([status, count]) => `${status} ${countText(count)}`)];
  return parts.length === 0 ? 'nothing has ended' : [...parts, ...rate].join('  ');
}

function durationRows({ durations }: RunRecord): Row[] {
  const sorted = durations.toSorted((a, b) => a - b);
  const at = (share: number) => durationText(quantile(sorted, share) ?? 0);
  return sorted.length === 0 ? [] : [['duration', `p50 ${at(0.5)}  p95 ${at(0.95)}  max ${at(1)}`]];
}

/** Nothing of an agent that does not say what it used. */
function tokensRow({ usage }: RunOutcome): Row[] {
  const input = usage.inputTokens + usage.cacheReadTokens;
  const beside = besideText(usage);
  if (input + usage.outputTokens + usage.steps + beside.length === 0) return [];
  const cached = usage.cacheReadTokens === 0 ? '' : ` (${shortCount(usage.cacheReadTokens)} cached)`;
  const reasoning = usage.reasoningTokens === 0 ? '' : ` (${shortCount(usage.reasoningTokens)} reasoning)`;
  const work = `${countText(usage.steps)} steps, ${countText(usage.toolCalls)} tool calls`;
  return [
    [
      'tokens',
      `in ${shortCount(input)}${cached}  out ${shortCount(usage.outputTokens)}${reasoning}${beside.map((text) => `  ${text}`).join('')}  ${work}`,
    ],
  ];
}

function errorRows(record: RunRecord): Row[] {
  if (record.errors.size === 0) return [];
  const classes = [...record.errors].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} ${countText(count)}`);
  const first = record.firstErrors.map(({ key, reason }) => `${visibleLine(key, longestKey)}  ${reason}`);
  return listRows('errors', [classes.join('  '), ...first]);
}

function listRows(name: string, texts: readonly string[]): Row[] {
  return texts.map((text, index) => [index === 0 ? name : '', text]);
}

function logRow({ logDirs }: RunRecord): Row[] {
  const [first] = logDirs;
  return first === undefined ? [] : [['logs', logDirs.size === 1 ? first : `${first} and others; see log paths in the results`]];
}
