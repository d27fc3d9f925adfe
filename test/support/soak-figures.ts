/** What a soak measures: samples of processes over time, whether they stay flat, and percentiles of latencies. */
import { readdirSync, readFileSync } from 'node:fs';

export interface Sample {
  /** Seconds since the start. */
  readonly at: number;
  readonly rssMb: number;
  readonly fds: number;
  readonly threads: number;
  readonly children: number;
}

export type Measure = Exclude<keyof Sample, 'at'>;

export function sampleOf(pid: number, at: number): Sample {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const read = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  return {
    at,
    rssMb: read('VmRSS') / 1024,
    threads: read('Threads'),
    fds: readdirSync(`/proc/${pid}/fd`).length,
    children: childrenOf(pid).length,
  };
}

export function childrenOf(pid: number): number[] {
  const found: number[] = [];
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      const text = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8');
      found.push(...text.split(' ').filter(Boolean).map(Number));
    } catch {
      // The thread has ended while we looked.
    }
  }
  return found;
}

/** By how much the measure grows over the second half, by least squares, and its mean there. */
export function rise(samples: readonly Sample[], measure: Measure): { readonly rise: number; readonly mean: number } {
  const half = samples.slice(Math.floor(samples.length / 2));
  const mean = (read: (sample: Sample) => number): number => half.reduce((sum, one) => sum + read(one), 0) / Math.max(1, half.length);
  const [x, y] = [mean((one) => one.at), mean((one) => one[measure])];
  const over = half.reduce((sum, one) => sum + (one.at - x) * (one[measure] - y), 0);
  const under = half.reduce((sum, one) => sum + (one.at - x) ** 2, 0);
  const seconds = (half.at(-1)?.at ?? 0) - (half[0]?.at ?? 0);
  return { rise: under === 0 ? 0 : (over / under) * seconds, mean: y };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
