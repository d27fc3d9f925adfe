/** What a soak measures: samples of processes over time, whether they stay flat, percentiles, and how busy the machine was without it. */
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

export interface Sample {
  /** Seconds since the start. */
  readonly at: number;
  readonly rssMb: number;
  readonly fds: number;
  readonly threads: number;
  readonly children: number;
}

export type Measure = Exclude<keyof Sample, 'at'>;
export const measures: readonly Measure[] = ['rssMb', 'fds', 'threads', 'children'];

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

export interface Growth {
  /** Per minute: the median of the slopes between any two samples, so a few that stand out mean nothing. */
  readonly perMinute: number;
  /** What that comes to from the first sample to the last. */
  readonly grown: number;
  readonly median: number;
  readonly first: number;
  readonly last: number;
}

/** Of the samples from `from` seconds on. Those that it takes are at most 400, evenly spread. */
export function growthOf(samples: readonly Sample[], measure: Measure, from = 0): Growth {
  const all = samples.filter(({ at }) => at >= from);
  const step = Math.max(1, Math.ceil(all.length / 400));
  const taken = all.filter((_, index) => index % step === 0);
  const slopes: number[] = [];
  for (const [index, one] of taken.entries()) {
    for (const other of taken.slice(index + 1)) if (other.at > one.at) slopes.push((other[measure] - one[measure]) / (other.at - one.at));
  }
  const perSecond = percentile(slopes, 0.5);
  const seconds = (taken.at(-1)?.at ?? 0) - (taken[0]?.at ?? 0);
  const values = taken.map((one) => one[measure]);
  return {
    perMinute: perSecond * 60,
    grown: perSecond * seconds,
    median: percentile(values, 0.5),
    first: values[0] ?? 0,
    last: values.at(-1) ?? 0,
  };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Processor time in ticks: of the whole machine that was not idle, of all there was, and by process, with the children that it waited for. */
export interface CpuTicks {
  readonly busy: number;
  readonly all: number;
  readonly of: ReadonlyMap<number, number>;
}

export function cpuTicks(pids: readonly number[]): CpuTicks {
  const total = (/^cpu +(.*)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? '').split(' ').map(Number);
  const all = total.slice(0, 8).reduce((sum, ticks) => sum + ticks, 0);
  const of = new Map<number, number>();
  for (const pid of pids) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      of.set(
        pid,
        fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0),
      );
    } catch {
      // It has ended.
    }
  }
  return { busy: all - (total[3] ?? 0) - (total[4] ?? 0), all, of };
}

/** Shares of the whole machine, from 0 to 1, between two looks. What a process used that ended between them counts as others'. */
export function cpuShares(from: CpuTicks, to: CpuTicks): { readonly ours: number; readonly others: number } {
  const all = Math.max(1, to.all - from.all);
  const used = [...to.of].reduce((sum, [pid, ticks]) => sum + ticks - (from.of.get(pid) ?? 0), 0);
  const ours = Math.max(0, used) / all;
  return { ours, others: Math.max(0, (to.busy - from.busy) / all - ours) };
}

export const cores = cpus().length;
