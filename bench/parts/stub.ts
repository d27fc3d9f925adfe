/**
 * The way out alone: frames of stub threads through lane and writer into a real pipe (a child's `stdio: 'pipe'` is a socket), read by a
 * process that only counts lines.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { median, withSpread } from '../load/statistics.ts';
import { built } from '../load/targets.ts';
import type { BenchRun, Part } from '../run.ts';
import type { PipeReading } from './pipe-reader-main.ts';
import type { StubSummary } from './stub-main.ts';

const threadCounts = [1, 2, 4, 8];
const durationMs = 500;
const pacedPerSecond = 50_000;

interface StubResult extends StubSummary {
  readonly framesPerSecond: number;
}

export const stubPart: Part = {
  name: 'stub',
  run: async (bench) => {
    const results = new Map<number, StubResult[]>(threadCounts.map((threads) => [threads, []]));
    for (let round = 0; round < (bench.full ? 5 : 3); round += 1) {
      for (const threads of threadCounts) results.get(threads)?.push(await runStub(bench, threads, 0));
    }
    for (const [threads, rounds] of results) fastFigure(bench, threads, rounds);
    const rounds: StubResult[] = [];
    for (let round = 0; round < 3; round += 1) rounds.push(await runStub(bench, 2, pacedPerSecond));
    const percents = rounds.map((one) => (one.mainCpuMs / one.elapsedMs) * 100);
    bench.figure({
      what: 'main thread at 50 k frames/s of two stub threads: % of a core, start of the threads included',
      target: '≤ 20',
      measured: withSpread(percents),
      holds: median(percents) <= 20,
      values: { percent: median(percents), framesPerSecond: median(rounds.map((one) => one.frames / (one.elapsedMs / 1000))) },
    });
  },
};

function fastFigure(bench: BenchRun, threads: number, rounds: readonly StubResult[]): void {
  const speeds = rounds.map((one) => one.framesPerSecond / 1000);
  const mainUs = median(rounds.map((one) => (one.mainCpuMs * 1000) / one.frames));
  bench.figure({
    what: `stub source, ${threads} thread${threads === 1 ? '' : 's'}: k frames/s through a pipe (main ${mainUs.toFixed(2)} µs CPU per frame)`,
    target: '≥ 400',
    measured: withSpread(speeds, 0),
    holds: median(speeds) >= 400,
    values: { kFramesPerSecond: median(speeds), mainUsPerFrame: mainUs },
  });
}

async function runStub(bench: BenchRun, threads: number, perSecond: number): Promise<StubResult> {
  const parts = join(built, 'bench', 'parts');
  const script = '"$0" "$1" "$3" "$4" "$5" | "$0" "$2"';
  const args = [process.execPath, join(parts, 'stub-main.js'), join(parts, 'pipe-reader-main.js')];
  const duration = perSecond === 0 ? durationMs : durationMs * 2;
  const { stdout } = await promisify(execFile)('sh', ['-c', script, ...args, String(threads), String(duration), String(perSecond)]);
  const reading = JSON.parse(stdout) as PipeReading;
  const summary = JSON.parse(reading.lastLine) as StubSummary;
  if (reading.lines !== summary.frames + 1) {
    bench.fault(`stub source: ${summary.frames} frames were sent and ${reading.lines - 1} came`);
  }
  return { ...summary, framesPerSecond: (summary.frames / reading.ms) * 1000 };
}
