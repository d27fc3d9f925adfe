/** The statuses of jobs in the order in which they are always shown, with the colour that a terminal gives them. */
import type { styleText } from 'node:util';
import type { JobStatus } from '../job-result.ts';

type TerminalColor = Extract<Parameters<typeof styleText>[0], string>;

const colors: Record<JobStatus, TerminalColor> = {
  passed: 'green',
  completed: 'cyan',
  failed: 'red',
  budget: 'yellow',
  error: 'magenta',
  cancelled: 'gray',
};

/** Good ones first. */
export const statusOrder = Object.keys(colors) as readonly JobStatus[];

export function isStatus(word: unknown): word is JobStatus {
  return typeof word === 'string' && Object.hasOwn(colors, word);
}

export function colorOf(status: JobStatus): TerminalColor {
  return colors[status];
}

/** Whether the attempt did what it was to do, as far as anybody can tell. */
export function isGood(status: JobStatus): boolean {
  return status === 'passed' || status === 'completed';
}
