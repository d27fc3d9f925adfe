/**
 * Targets under the same load, round by round in turns, so that what disturbs the machine disturbs all of them alike.
 */
import type { BenchRun } from '../run.ts';
import { type RoundLoad, type RoundResult, runRound } from './round.ts';
import { median, medianRatio, percentile, ratioRange } from './statistics.ts';
import { startTarget, type Target, type TargetName } from './targets.ts';
import type { CpuSplit } from './thread-cpu.ts';

export interface LoadPlan {
  readonly targets: readonly TargetName[];
  readonly sessions: number;
  /** One after the other, in the same processes. */
  readonly loads: readonly RoundLoad[];
  /** Rounds before the measured ones of the first load; the later loads have one. All but the very first go without pauses between tokens. */
  readonly warmUps?: number;
  /** Rounds of one token before all others: what a server that has been at work has behind it. */
  readonly shortRounds?: number;
  readonly rounds?: number;
}

export interface LoadRow {
  readonly target: TargetName;
  readonly sessions: number;
  readonly tokens: number;
  readonly delayMs: number;
  /** The very first round of the process; absent in later loads of the same one. */
  readonly coldMs?: number;
  /** Short turns that the process had behind it; absent where it had none. */
  readonly turnsBefore?: number;
  /** The measured rounds, in order. */
  readonly totalMs: readonly number[];
  readonly cpuUsPerToken: readonly number[];
  /** Medians over the measured rounds. */
  readonly splitUs: CpuSplit;
  readonly firstTokenMs: { readonly p50: number; readonly p99: number };
  readonly newSessionMs: { readonly p50: number; readonly p99: number };
  /** Median over pairs of rounds; absent without a floor, and on the floor itself. */
  readonly totalToFloor?: number;
  readonly cpuToFloor?: number;
  readonly totalToFloorRange?: readonly [low: number, high: number];
  readonly cpuToFloorRange?: readonly [low: number, high: number];
  readonly pssMb: { readonly idle: number; readonly open: number; readonly after: number };
  /** With the last load only. */
  readonly exitMs?: number;
  readonly wrong: number;
}

interface Contestant {
  readonly target: Target;
  readonly ids: readonly string[];
  readonly newMs: readonly number[];
  readonly idleMb: number;
  readonly openMb: number;
  afterMb: number;
  readonly rounds: RoundResult[];
}

/** Runs the plan, keeps and prints a row for each load and target, and gives them back in the plan's order, load by load. */
export async function compare(bench: BenchRun, plan: LoadPlan): Promise<LoadRow[]> {
  const contestants: Contestant[] = [];
  for (const name of plan.targets) contestants.push(await enter(bench, name, plan.sessions));
  for (let round = 0; round < (plan.shortRounds ?? 0); round += 1) {
    for (const { target, ids } of contestants) await runRound(target.agent, ids, { tokens: 1, delayMs: 0 });
  }
  const turnsBefore = (plan.shortRounds ?? 0) * plan.sessions;
  const all: LoadRow[] = [];
  for (const [index, load] of plan.loads.entries()) {
    const warmUps = index === 0 ? (plan.warmUps ?? 4) : 1;
    const isFirst = index === 0 && turnsBefore === 0;
    await runRounds(contestants, load, { warmUps, rounds: plan.rounds ?? 5, isFirst });
    const floor = contestants.find(({ target }) => target.name === 'floor')?.rounds.slice(warmUps);
    for (const contestant of contestants) {
      const exitMs = index === plan.loads.length - 1 ? await contestant.target.close() : undefined;
      const row = rowOf(contestant, { load, warmUps, floor, isFirst, exitMs, turnsBefore });
      bench.check(row.wrong, `${row.target}, ${row.sessions} sessions, ${row.delayMs} ms: texts`);
      all.push(row);
      printRow(row);
    }
  }
  bench.rows.push(...all);
  return all;
}

async function runRounds(
  contestants: readonly Contestant[],
  load: RoundLoad,
  count: { readonly warmUps: number; readonly rounds: number; readonly isFirst: boolean },
): Promise<void> {
  for (const contestant of contestants) contestant.rounds.length = 0;
  for (let round = 0; round < count.warmUps + count.rounds; round += 1) {
    const isCold = count.isFirst && round === 0;
    const delayMs = round < count.warmUps && !isCold ? 0 : load.delayMs;
    // Each goes first as often as the others.
    const turns = contestants.map((_, index) => contestants[(index + round) % contestants.length]!);
    for (const { target, ids, rounds } of turns) rounds.push(await runRound(target.agent, ids, { tokens: load.tokens, delayMs }));
  }
  for (const contestant of contestants) contestant.afterMb = contestant.target.agent.pssMb();
}

async function enter(bench: BenchRun, name: TargetName, sessions: number): Promise<Contestant> {
  const target = await startTarget(name, bench.model);
  const idleMb = target.agent.pssMb();
  const ids: string[] = [];
  const newMs: number[] = [];
  for (let i = 0; i < sessions; i += 1) {
    const start = performance.now();
    ids.push(await target.agent.newSession());
    newMs.push(performance.now() - start);
  }
  return { target, ids, newMs, idleMb, openMb: target.agent.pssMb(), afterMb: Number.NaN, rounds: [] };
}

function rowOf(
  { target, newMs, idleMb, openMb, afterMb, rounds, ids }: Contestant,
  context: {
    readonly load: RoundLoad;
    readonly warmUps: number;
    readonly floor: readonly RoundResult[] | undefined;
    readonly isFirst: boolean;
    readonly exitMs: number | undefined;
    readonly turnsBefore: number;
  },
): LoadRow {
  const measured = rounds.slice(context.warmUps);
  const totalMs = measured.map((round) => round.totalMs);
  const cpuUs = measured.map((round) => round.cpuUs.total);
  const firstOf = (key: 'p50' | 'p99'): number => median(measured.map((round) => round.firstTokenMs[key]));
  const floor = target.name === 'floor' ? undefined : context.floor;
  return {
    target: target.name,
    sessions: ids.length,
    tokens: context.load.tokens,
    delayMs: context.load.delayMs,
    ...(context.isFirst ? { coldMs: rounds[0]!.totalMs } : {}),
    ...(context.turnsBefore === 0 ? {} : { turnsBefore: context.turnsBefore }),
    totalMs,
    cpuUsPerToken: cpuUs,
    splitUs: medianSplit(measured.map((round) => round.cpuUs)),
    firstTokenMs: { p50: firstOf('p50'), p99: firstOf('p99') },
    newSessionMs: { p50: percentile(newMs, 50), p99: percentile(newMs, 99) },
    ...(floor === undefined
      ? {}
      : {
          totalToFloor: medianRatio(
            totalMs,
            floor.map((round) => round.totalMs),
          ),
          cpuToFloor: medianRatio(
            cpuUs,
            floor.map((round) => round.cpuUs.total),
          ),
          totalToFloorRange: ratioRange(
            totalMs,
            floor.map((round) => round.totalMs),
          ),
          cpuToFloorRange: ratioRange(
            cpuUs,
            floor.map((round) => round.cpuUs.total),
          ),
        }),
    pssMb: { idle: idleMb, open: openMb, after: afterMb },
    ...(context.exitMs === undefined ? {} : { exitMs: context.exitMs }),
    wrong: rounds.reduce((sum, round) => sum + round.wrong, 0),
  };
}

function medianSplit(splits: readonly CpuSplit[]): CpuSplit {
  const of = (key: keyof CpuSplit): number => median(splits.map((split) => split[key]));
  return { total: of('total'), main: of('main'), threads: of('threads'), pool: of('pool'), v8: of('v8'), other: of('other') };
}

const columns = [12, 5, 4, 3, 7, 17, 17, 31, 11, 12, 13, 6] as const;

function line(cells: readonly string[]): void {
  const [first, ...others] = cells;
  const padded = others.map((cell, index) => cell.padStart(columns[index + 1] ?? 0));
  process.stdout.write(`  ${(first ?? '').padEnd(columns[0])} ${padded.join(' ')}\n`);
}

export function printLoadHeader(): void {
  line([
    '',
    'N',
    'tok',
    'D',
    'cold',
    'warm ms (best)',
    'CPU us/token',
    'main+threads+pool+v8+other',
    '1st p50/99',
    'new p50/99',
    'PSS MB',
    'exit',
  ]);
}

function printRow(row: LoadRow): void {
  const { splitUs: split, pssMb, firstTokenMs, newSessionMs } = row;
  const ratio = (value: number | undefined): string => (value === undefined ? '' : ` ×${value.toFixed(2)}`);
  line([
    row.target,
    String(row.sessions),
    String(row.tokens),
    String(row.delayMs),
    row.coldMs?.toFixed(0) ?? '',
    `${median(row.totalMs).toFixed(0)} (${Math.min(...row.totalMs).toFixed(0)})${ratio(row.totalToFloor)}`,
    `${median(row.cpuUsPerToken).toFixed(1)}${ratio(row.cpuToFloor)}`,
    [split.main, split.threads, split.pool, split.v8, split.other].map((us) => us.toFixed(1)).join(' + '),
    `${firstTokenMs.p50.toFixed(0)}/${firstTokenMs.p99.toFixed(0)}`,
    `${newSessionMs.p50.toFixed(1)}/${newSessionMs.p99.toFixed(1)}`,
    [pssMb.idle, pssMb.open, pssMb.after].map((mb) => mb.toFixed(0)).join('>'),
    row.exitMs?.toFixed(0) ?? '',
  ]);
}
