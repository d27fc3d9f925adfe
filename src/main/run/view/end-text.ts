/** One attempt's end in one line of plain text, for screens. */
import type { JobResult } from '../job-result.ts';
import { costText, durationText, tokensText } from './figures.ts';
import { tailOf, visibleLine } from './visible-text.ts';

const longestKey = 80;
const longestReason = 160;

/** `task-7  failed  12.3 s  4.5k tokens  $0.01  check: exit 1: 2 tests failed`. */
export function endText(result: JobResult): string {
  const { usage, costUsd } = result;
  const parts = [visibleLine(result.key, longestKey), result.status, durationText(result.times.totalMs)];
  if (usage !== undefined) parts.push(`${tokensText(usage)} tokens`);
  if (costUsd !== undefined) parts.push(costText(costUsd));
  if (result.tries > 1) parts.push(`${result.tries} tries`);
  const reason = reasonText(result);
  return [...parts, ...(reason === '' ? [] : [reason])].join('  ');
}

/** Why it did not pass, as far as one line can say; `''` for a good end. */
export function reasonText(result: JobResult): string {
  if (result.error !== undefined) return visibleLine(`${result.errorClass ?? 'error'}: ${result.error}`, longestReason);
  if (result.status === 'failed' && result.check !== undefined) {
    return visibleLine(`check: ${exitText(result.check)}${lastLineOf(result.check.output)}`, longestReason);
  }
  if (result.status === 'budget') return visibleLine(`stopped: ${result.stopReason ?? 'a budget is spent'}`, longestReason);
  return '';
}

/** How a command ended: `exit 1`, `signal SIGKILL`, `timed out`. */
export function exitText(run: NonNullable<JobResult['check']>): string {
  if (run.timedOut) return 'timed out';
  return run.signal === null ? `exit ${run.exitCode ?? 'unknown'}` : `signal ${run.signal}`;
}

function lastLineOf(output: string): string {
  const line = tailOf(output, 2000).trimEnd().split('\n').at(-1)?.trim() ?? '';
  return line === '' ? '' : `: ${line}`;
}
