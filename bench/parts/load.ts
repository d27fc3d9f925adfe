/**
 * The load over real stdio: N sessions × 200 tokens, ours beside the floor agent in the same run.
 *
 * `targets` runs the three loads that the design names; `load` the whole matrix.
 */
import { compare, type LoadRow, printLoadHeader } from '../load/compare.ts';
import { median, withSpread } from '../load/statistics.ts';
import type { BenchRun, Part } from '../run.ts';

const tokens = 200;

export const targetsPart: Part = {
  name: 'targets',
  run: async (bench) => {
    printLoadHeader();
    const targets = ['floor', 'shared'];
    const [, paced] = await compare(bench, { targets, sessions: 200, tokens, delayMs: 5 });
    const [, fast] = await compare(bench, { targets, sessions: 200, tokens, delayMs: 0 });
    const [, pacedOwn] = await compare(bench, { targets: ['floor', 'dedicated:64'], sessions: 50, tokens, delayMs: 5 });
    const [, fastOwn] = await compare(bench, { targets: ['floor', 'dedicated:64'], sessions: 50, tokens, delayMs: 0 });
    totalToFloor(bench, paced!, 1.05);
    totalToFloor(bench, fast!, 0.8);
    cpuToFloor(bench, fast!, 1.2);
    const total = median(pacedOwn!.totalMs);
    bench.figure({
      what: '50 sessions dedicated, 5 ms: total ms',
      target: '≤ 1100',
      measured: withSpread(pacedOwn!.totalMs, 0),
      toFloor: pacedOwn!.totalToFloor!,
      holds: total <= 1100,
      values: { totalMs: total, toFloor: pacedOwn!.totalToFloor! },
    });
    const cpu = median(fastOwn!.cpuUsPerToken);
    bench.figure({
      what: '50 sessions dedicated, as fast as it comes: CPU µs per token',
      target: '≤ 30',
      measured: withSpread(fastOwn!.cpuUsPerToken),
      toFloor: fastOwn!.cpuToFloor!,
      holds: cpu <= 30,
      values: { cpuUsPerToken: cpu, toFloor: fastOwn!.cpuToFloor! },
    });
    mainShare(bench, paced!);
  },
};

export const loadPart: Part = {
  name: 'load',
  onlyFull: true,
  run: async (bench) => {
    printLoadHeader();
    for (const delayMs of [0, 5]) {
      for (const sessions of [1, 10, 50, 200]) {
        await compare(bench, { targets: ['floor', 'shared', 'dedicated'], sessions, tokens, delayMs });
      }
    }
    for (const delayMs of [0, 20]) {
      await compare(bench, { targets: ['floor', 'shared'], sessions: 1000, tokens, delayMs, warmUps: 2 });
    }
  },
};

function named(row: LoadRow): string {
  return `${row.sessions} sessions × ${tokens}, shared, ${row.delayMs === 0 ? 'as fast as it comes' : `${row.delayMs} ms`}`;
}

function totalToFloor(bench: BenchRun, row: LoadRow, most: number): void {
  const ratio = row.totalToFloor!;
  bench.figure({
    what: `${named(row)}: total ms`,
    target: `≤ ${most} × floor`,
    measured: withSpread(row.totalMs, 0),
    toFloor: ratio,
    holds: ratio <= most,
    values: { totalMs: median(row.totalMs), toFloor: ratio },
  });
}

function cpuToFloor(bench: BenchRun, row: LoadRow, most: number): void {
  const ratio = row.cpuToFloor!;
  bench.figure({
    what: `${named(row)}: CPU µs per token`,
    target: `≤ ${most} × floor`,
    measured: withSpread(row.cpuUsPerToken),
    toFloor: ratio,
    holds: ratio <= most,
    values: { cpuUsPerToken: median(row.cpuUsPerToken), toFloor: ratio },
  });
}

/** 200 sessions at 5 ms are 40,000 deltas a second, prompts included: near enough to take it to 50,000. */
function mainShare(bench: BenchRun, row: LoadRow): void {
  const percent = (row.splitUs.main * 50_000) / 10_000;
  bench.figure({
    what: 'main thread at 50 k deltas/s: % of a core, from its µs per token at 40 k/s',
    target: '≤ 20',
    measured: percent.toFixed(1),
    holds: percent <= 20,
    values: { percent, mainUsPerToken: row.splitUs.main },
  });
}
