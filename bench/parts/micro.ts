/**
 * The micro benches, each in a process of its own. What an operation costs is kept with its spread; what the design states a target
 * for becomes a figure.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { median } from '../load/statistics.ts';
import { built } from '../load/targets.ts';
import type { BenchRun, MicroRow, Part } from '../run.ts';

const logMegabytes = 150;

export const microPart: Part = {
  name: 'micro',
  run: async (bench) => {
    const log = await runMicro(bench, 'log', ['--expose-gc'], [String(logMegabytes)]);
    logFigure(bench, log);
    if (!bench.full) return;
    for (const name of ['framing', 'router', 'queue', 'comlink', 'projection', 'attach']) await runMicro(bench, name);
  },
};

/** Runs one and shows what it prints. */
async function runMicro(bench: BenchRun, name: string, nodeArgs: readonly string[] = [], args: readonly string[] = []): Promise<string> {
  const script = join(built, 'bench', 'micro', `${name}.js`);
  const child = spawn(process.execPath, [...nodeArgs, script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  for (const line of printed.split('\n').filter((one) => one !== '')) show(bench, line);
  if (code !== 0) bench.fault(`bench/micro/${name} ended with ${code ?? 'a signal'}`);
  return printed;
}

/** A line of JSON is a row; others are for people. */
function show(bench: BenchRun, line: string): void {
  if (!line.startsWith('{')) {
    process.stdout.write(`  ${line}\n`);
    return;
  }
  const row = JSON.parse(line) as MicroRow;
  bench.micros.push(row);
  const { group, what, unit, nanoseconds, bytes } = row;
  const speed = bytes === undefined ? '' : `, ${Math.round((bytes * 1000) / median(nanoseconds)).toLocaleString('en')} MB/s`;
  const [low, high] = [Math.min(...nanoseconds), Math.max(...nanoseconds)].map(time);
  process.stdout.write(
    `  ${`${group}: ${what}`.padEnd(76)} ${time(median(nanoseconds)).padStart(8)} (${low}–${high}) per ${unit}${speed}\n`,
  );
}

function time(nanoseconds: number): string {
  if (nanoseconds < 1000) return `${nanoseconds.toFixed(0)} ns`;
  return nanoseconds < 1e6 ? `${(nanoseconds / 1000).toFixed(1)} µs` : `${(nanoseconds / 1e6).toFixed(1)} ms`;
}

function logFigure(bench: BenchRun, printed: string): void {
  const speed = /^read .*? (\d+) MB\/s, (\d+) MB per CPU second/m.exec(printed);
  const rss = /^RSS before and at most while reading +(\d+), (\d+) MB/m.exec(printed);
  if (speed === null || rss === null) {
    bench.fault('bench/micro/log prints no figures of reading');
    return;
  }
  const [mbPerSecond, perCpuSecond] = [Number(speed[1]), Number(speed[2])];
  const growth = Number(rss[2]) - Number(rss[1]);
  bench.figure({
    what: `load of a log of ${logMegabytes} MB: MB/s (${perCpuSecond} per CPU second), and growth of RSS in MB`,
    target: '≥ 100, flat',
    measured: `${mbPerSecond}, +${growth}`,
    // A reader that kept what it reads would grow by the size of the log or more.
    holds: mbPerSecond >= 100 && growth <= logMegabytes / 3,
    values: { mbPerSecond, perCpuSecond, rssGrowthMb: growth },
  });
}
