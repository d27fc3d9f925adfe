/** The table that the bench is for. */
import type { Figure } from './run.ts';

const heads = ['what', 'target', 'measured', '× floor', 'holds'] as const;

/** One line a figure, columns as wide as their widest cells. */
export function sizesTable(figures: readonly Figure[]): string {
  const rows = figures.map(cells);
  const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(' | ')
      .trimEnd();
  return [line(heads), widths.map((width) => '-'.repeat(width)).join('-|-'), ...rows.map(line)].join('\n');
}

function cells({ what, target, measured, toFloor, holds }: Figure): string[] {
  const verdict = holds === undefined ? '' : holds ? 'yes' : 'NO';
  return [what, target, measured, toFloor === undefined ? '' : toFloor.toFixed(2), verdict];
}
