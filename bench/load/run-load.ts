/** Runs one load as the command line or the matrix gives it, with the floor agent in turns where that is asked for. */
import type { BenchRun } from '../run.ts';
import { LoadRig } from './load-rig.ts';
import { type LoadReport, printLoad } from './load-report.ts';
import type { LoadShape } from './load-shape.ts';
import { median } from './statistics.ts';

const warmUps = 2;

/** Keeps and prints a report for each agent, ours first. */
export async function runLoad(bench: BenchRun, shape: LoadShape): Promise<LoadReport[]> {
  const rigs = [await LoadRig.enter('ours', shape, bench.model)];
  if (shape.floor) rigs.push(await LoadRig.enter('floor', shape, bench.model));
  for (let round = 0; round < warmUps; round += 1) for (const rig of rigs) await rig.warmUp();
  for (let round = 0; round < shape.repeats; round += 1) {
    // Each goes first as often as the other.
    for (const rig of round % 2 === 0 ? rigs : rigs.toReversed()) await rig.repeat();
  }
  const reports: LoadReport[] = [];
  for (const rig of rigs) reports.push(await rig.finish());
  for (const report of reports) keep(bench, report);
  return reports;
}

function keep(bench: BenchRun, report: LoadReport): void {
  const { agent, shape, addedMs, wrong } = report;
  bench.loads.push(report);
  printLoad(report);
  bench.check(wrong, `load of ${agent}: words, turns, calls and files`);
  if (addedMs === undefined) return;
  const { p50, p95, p99, max } = addedMs;
  bench.latencies.push({
    agent: agent === 'ours' ? `ours, ${shape.isolation}` : agent,
    sessions: shape.connections * shape.sessions,
    rate: askedRate(shape) ?? Math.round(median(report.tokensPerSecond)),
    loop: shape.loop,
    p50: median(p50),
    p95: median(p95),
    p99: median(p99),
    max: Math.max(...max),
  });
}

/** Deltas a second of all sessions together; `undefined` where nobody asks for a pace. */
function askedRate({ loop, rate, tokens, delayMs, connections, sessions }: LoadShape): number | undefined {
  if (loop === 'open') return rate * tokens;
  return delayMs === 0 ? undefined : (connections * sessions * 1000) / delayMs;
}
