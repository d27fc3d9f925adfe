/**
 * One picture of a run for a terminal: lines that fit its width and height. Pure; what runs longest is shown first.
 */
import { styleText } from 'node:util';
import cliTruncate from 'cli-truncate';
import { countText, costText, elapsedText, shortCount } from './figures.ts';
import type { RunningJob, RunTally } from './run-tally.ts';
import { endText } from './end-text.ts';
import { colorOf, statusOrder } from './statuses.ts';
import { visibleLine } from './visible-text.ts';

export interface FrameSpace {
  readonly columns: number;
  readonly rows: number;
  readonly color: boolean;
}

type Style = Parameters<typeof styleText>[0];
type Paint = (style: Style, text: string) => string;

/** Whether to colour was decided before; Node would ask stdout and the environment once more. */
export const alwaysStyled = { validateStream: false };

const widestBar = 60;
const mostSlow = 8;
const longestKey = 40;

/** Lines without line feeds, none wider than the terminal less one column, since a full line may wrap. */
export function drawFrame(tally: RunTally, now: number, space: FrameSpace): string[] {
  const paint: Paint = space.color ? (style, text) => styleText(style, text, alwaysStyled) : (_style, text) => text;
  const width = Math.max(1, space.columns - 1);
  const head = [titleLine(tally, now, paint), barLine(tally, width, paint), outcomeLine(tally, paint), stateLine(tally)];
  const tail = [spentText(tally, now), ...lastLine(tally), ...drainingLine(tally, paint)];
  // One line stays free for the cursor. A terminal that does not know its height says 0.
  const room = (space.rows > 0 ? space.rows : 24) - 1 - head.length - tail.length;
  const lines = [...head, ...tail, ...slowLines(tally, now, { paint, most: Math.min(mostSlow, room - 1) })];
  return lines.map((line) => cliTruncate(line, width)).slice(0, Math.max(1, (space.rows > 0 ? space.rows : 24) - 1));
}

function titleLine(tally: RunTally, now: number, paint: Paint): string {
  const left = tally.remainingMs(now);
  const rest = left === undefined || tally.ended >= tally.total ? '' : `  ETA ≈ ${elapsedText(left)}`;
  const before = tally.doneBefore === 0 ? '' : ` (+${countText(tally.doneBefore)} before)`;
  const done = `${countText(tally.ended)} of ${countText(tally.total)}${before}`;
  return `${paint('bold', done)}  ${elapsedText(now - tally.startedAt)}${rest}  ${visibleLine(tally.agent, longestKey)}`;
}

function barLine(tally: RunTally, width: number, paint: Paint): string {
  const cells = Math.max(4, Math.min(widestBar, width - 7));
  const total = Math.max(1, tally.total);
  let bar = '';
  let drawn = 0;
  let counted = 0;
  for (const status of statusOrder) {
    counted += tally.count(status);
    // Ends are rounded, not widths: the bar never gets longer than it may.
    const end = Math.min(cells, Math.round((counted / total) * cells));
    if (end > drawn) bar += paint(colorOf(status), '█'.repeat(end - drawn));
    drawn = Math.max(drawn, end);
  }
  const share = `${Math.floor((tally.ended / total) * 100)}%`;
  return `${bar}${paint('gray', '░'.repeat(cells - drawn))} ${share.padStart(4)}`;
}

function outcomeLine(tally: RunTally, paint: Paint): string {
  const shown = statusOrder.filter((status) => tally.count(status) > 0);
  if (shown.length === 0) return 'nothing has ended yet';
  return shown.map((status) => paint(colorOf(status), `${status} ${countText(tally.count(status))}`)).join('  ');
}

function stateLine(tally: RunTally): string {
  const { waiting, preparing, running, checking } = tally.states();
  const retries = tally.retries === 0 ? '' : `  retries ${countText(tally.retries)}`;
  return `waiting ${countText(waiting)}  preparing ${preparing}  running ${running}  checking ${checking}${retries}`;
}

/** What was used so far, in one line. */
export function spentText(tally: RunTally, now: number): string {
  const { usage, costUsd } = tally;
  const { perSecond, exact } = tally.tokenRate(now);
  const rate = `${exact ? '' : '≈ '}${shortCount(perSecond)} tok/s`;
  const tokens = `in ${shortCount(usage.inputTokens + usage.cacheReadTokens)}  out ${shortCount(usage.outputTokens)}`;
  return `${rate}  ${tokens}${costUsd === undefined ? '' : `  ${costText(costUsd)}`}`;
}

function lastLine({ last }: RunTally): string[] {
  return last === undefined ? [] : [`last: ${endText(last)}`];
}

function drainingLine({ draining }: RunTally, paint: Paint): string[] {
  return draining === undefined ? [] : [paint('yellow', `no new attempts are started: ${visibleLine(draining, 200)}`)];
}

function slowLines(tally: RunTally, now: number, { paint, most }: { paint: Paint; most: number }): string[] {
  if (tally.running.size === 0 || most < 1) return [];
  const jobs: RunningJob[] = [];
  for (const job of tally.running.values()) {
    if (jobs.length === most) break;
    jobs.push(job);
  }
  const rest = tally.running.size - jobs.length;
  // The key last: nothing has to be aligned behind it, and it may be wide.
  const lines = jobs.map((job) => {
    const tries = job.tries > 1 ? `  (try ${job.tries})` : '';
    return `  ${elapsedText(now - job.since).padStart(7)}  ${job.state.padEnd(9)}  ${visibleLine(job.key, longestKey)}${tries}`;
  });
  return [paint('gray', `running longest${rest === 0 ? '' : ` (${countText(rest)} more)`}`), ...lines];
}
