/**
 * The micro benches, each in a process of its own; what the design states a target for becomes a figure.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { built } from '../load/targets.ts';
import type { BenchRun, Part } from '../run.ts';

const logMegabytes = 150;

export const microPart: Part = {
  name: 'micro',
  run: async (bench) => {
    const log = await runMicro(bench, 'log', ['--expose-gc'], [String(logMegabytes)]);
    logFigure(bench, log);
    if (!bench.full) return;
    await runMicro(bench, 'framing');
    await runMicro(bench, 'projection');
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
  process.stdout.write(printed.replaceAll(/^(?=.)/gm, '  '));
  if (code !== 0) bench.fault(`bench/micro/${name} ended with ${code ?? 'a signal'}`);
  return printed;
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
