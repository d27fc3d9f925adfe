/**
 * The load over real stdio: N sessions × 200 tokens, ours beside the floor agent in the same run.
 *
 * `targets` runs the three loads that the design names; `floor` all sizes of them.
 */
import { compare, type LoadRow, printLoadHeader } from '../load/compare.ts';
import { median, withSpread } from '../load/statistics.ts';
import type { BenchRun, Part } from '../run.ts';

const tokens = 200;

export const targetsPart: Part = {
  name: 'targets',
  run: async (bench) => {
    printLoadHeader();
    const paced = { tokens, delayMs: 5 };
    const fast = { tokens, delayMs: 0 };
    const short = { tokens: 1, delayMs: 0 };
    const shared = await compare(bench, { targets: ['floor', 'shared'], sessions: 200, loads: [paced, fast, short] });
    const dedicated = await compare(bench, { targets: ['floor', 'dedicated:64'], sessions: 50, loads: [paced, fast] });
    // Behind each row of the floor stands ours.
    sharedFigures(bench, { paced: shared[1]!, fast: shared[3]!, short: shared[5]! });
    dedicatedFigures(bench, { paced: dedicated[1]!, fast: dedicated[3]! });
  },
};

export const floorPart: Part = {
  name: 'floor',
  onlyFull: true,
  run: async (bench) => {
    printLoadHeader();
    const targets = ['floor', 'shared', 'dedicated'];
    const loads = [0, 5].map((delayMs) => ({ tokens, delayMs }));
    for (const sessions of [1, 10, 50, 200]) await compare(bench, { targets, sessions, loads });
    const many = [0, 20].map((delayMs) => ({ tokens, delayMs }));
    await compare(bench, { targets: ['floor', 'shared'], sessions: 1000, loads: many });
  },
};

/** V8 has compiled what a turn runs after some ten thousand of them a thread; what a process of some minutes costs is in `targets`. */
const shortRounds = 80;

export const steadyPart: Part = {
  name: 'steady',
  onlyFull: true,
  run: async (bench) => {
    printLoadHeader();
    const targets = ['floor', 'shared'];
    const loads = [
      { tokens, delayMs: 5 },
      { tokens, delayMs: 0 },
      { tokens: 1, delayMs: 0 },
    ];
    const rows = await compare(bench, { targets, sessions: 200, loads, shortRounds });
    const long = await compare(bench, { targets, sessions: 20, loads: [{ tokens: 2_000, delayMs: 0 }], shortRounds });
    steadyFigure(bench, rows[1]!, 'total ms');
    for (const row of [rows[3]!, rows[5]!, long[1]!]) steadyFigure(bench, row, 'CPU µs per token');
  },
};

function steadyFigure(bench: BenchRun, row: LoadRow, unit: 'total ms' | 'CPU µs per token'): void {
  const isTime = unit === 'total ms';
  const values = isTime ? row.totalMs : row.cpuUsPerToken;
  const pace = row.delayMs === 0 ? 'as fast as it comes' : `${row.delayMs} ms`;
  bench.figure({
    what: `at work for long: ${row.sessions} sessions × ${row.tokens}, shared, ${pace}: ${unit}`,
    target: '–',
    measured: withSpread(values, isTime ? 0 : 1),
    toFloor: isTime ? row.totalToFloor! : row.cpuToFloor!,
    toFloorRange: isTime ? row.totalToFloorRange! : row.cpuToFloorRange!,
    values: { value: median(values), toFloor: isTime ? row.totalToFloor! : row.cpuToFloor! },
  });
}

function sharedFigures(bench: BenchRun, rows: { readonly paced: LoadRow; readonly fast: LoadRow; readonly short: LoadRow }): void {
  totalToFloor(bench, rows.paced, 1.05);
  totalToFloor(bench, rows.fast, 0.8);
  cpuToFloor(bench, rows.fast, 1.2);
  const turnUs = median(rows.short.cpuUsPerToken);
  bench.figure({
    what: 'a turn of one token, 200 at once, shared: CPU µs',
    target: '–',
    measured: withSpread(rows.short.cpuUsPerToken, 0),
    toFloor: rows.short.cpuToFloor!,
    toFloorRange: rows.short.cpuToFloorRange!,
    values: { cpuUs: turnUs, toFloor: rows.short.cpuToFloor! },
  });
  mainShare(bench, rows.paced);
}

function dedicatedFigures(bench: BenchRun, { paced, fast }: { readonly paced: LoadRow; readonly fast: LoadRow }): void {
  const total = median(paced.totalMs);
  bench.figure({
    what: '50 sessions dedicated, 5 ms: total ms',
    target: '≤ 1100',
    measured: withSpread(paced.totalMs, 0),
    toFloor: paced.totalToFloor!,
    toFloorRange: paced.totalToFloorRange!,
    holds: total <= 1100,
    values: { totalMs: total, toFloor: paced.totalToFloor! },
  });
  const cpu = median(fast.cpuUsPerToken);
  bench.figure({
    what: '50 sessions dedicated, as fast as it comes: CPU µs per token',
    target: '≤ 30',
    measured: withSpread(fast.cpuUsPerToken),
    toFloor: fast.cpuToFloor!,
    toFloorRange: fast.cpuToFloorRange!,
    holds: cpu <= 30,
    values: { cpuUsPerToken: cpu, toFloor: fast.cpuToFloor! },
  });
}

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
    toFloorRange: row.totalToFloorRange!,
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
    toFloorRange: row.cpuToFloorRange!,
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
