/**
 * An agent with everything it has started: what all of it costs together, and its end. Linux only (`/proc`).
 *
 * A process belongs to the tree once it was seen below the root or carries the tree's mark in its environment, and then for as long as it
 * lives: one whose parent ends is not lost. An agent leads a process group of its own, so a signal meant for the bench does not reach it.
 */
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { markedProcesses, signalGroup, signalProcess } from '../../src/shared/process-table.ts';

/** The variable that holds the mark. Without the prefix of our server's settings, which refuses one that it does not know. */
export const markVariable = 'BENCH_AGENT_MARK';

interface Row {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  /** Tells a process from a later one of the same number. */
  readonly startedAt: string;
  /** Milliseconds, in steps of 10. */
  readonly ownMs: number;
  /** Of children that it has waited for. */
  readonly reapedMs: number;
}

const msPerTick = 10;
/** Trees that were not ended yet: what the bench must not leave behind. */
const living = new Set<ProcessTree>();

/** In the mark of every tree of this process, so that another one can end them should this one be killed. */
export const runMark = `dsh-acp-bench-${randomUUID()}`;

export class ProcessTree {
  readonly mark = `${runMark}/${randomUUID()}`;
  readonly #roots: number[] = [];
  /** Start times by number. */
  readonly #members = new Map<number, string>();
  #mostProcesses = 0;

  constructor() {
    living.add(this);
  }

  /** A process group that is led by `pid`. */
  add(pid: number): void {
    this.#roots.push(pid);
  }

  /** The greatest number of processes at a reading. */
  get mostProcesses(): number {
    return this.#mostProcesses;
  }

  /**
   * Milliseconds of CPU, user and system, of all members and of those that they have waited for. Threads that live are read in
   * nanoseconds; what has ended comes in steps of 10 ms.
   */
  cpuMs(): number {
    return this.#read().reduce((sum, row) => sum + Math.max(row.ownMs, threadsMs(row.pid)) + row.reapedMs, 0);
  }

  /** Proportional memory of all members, in MB. */
  pssMb(): number {
    this.#takeMarked();
    return this.#read().reduce((sum, { pid }) => sum + pssMb(pid), 0);
  }

  /** Numbers of the members that live; those that wait to be reaped are none. */
  pids(): number[] {
    this.#takeMarked();
    return this.#read()
      .filter(({ state }) => state !== 'Z')
      .map(({ pid }) => pid);
  }

  /** Kills all that is left, and waits until nothing is. Gives the numbers of what is still there after 5 s. */
  async end(): Promise<number[]> {
    const deadline = performance.now() + 5000;
    for (;;) {
      const left = this.killNow();
      if (left.length === 0 || performance.now() > deadline) {
        living.delete(this);
        return left;
      }
      await sleep(20);
    }
  }

  /** Kills all that is left without waiting; gives what was. */
  killNow(): number[] {
    const left = this.pids();
    if (left.length === 0) return left;
    for (const pid of this.#roots) if (left.includes(pid)) signalGroup(pid, 'SIGKILL');
    for (const pid of left) signalProcess(pid, 'SIGKILL');
    return left;
  }

  #takeMarked(): void {
    for (const { pid } of markedProcesses(this.mark)) {
      const row = readRow(pid);
      if (row !== undefined) this.#members.set(pid, row.startedAt);
    }
  }

  #read(): Row[] {
    const table = new Map(processRows().map((row) => [row.pid, row]));
    for (const [pid, startedAt] of this.#members) if (table.get(pid)?.startedAt !== startedAt) this.#members.delete(pid);
    for (const pid of this.#roots) {
      const row = table.get(pid);
      // Children of the bench only: the number may have gone to a stranger.
      if (row?.parent === process.pid) this.#members.set(pid, row.startedAt);
    }
    for (let size = -1; size !== this.#members.size; ) {
      size = this.#members.size;
      for (const row of table.values()) if (this.#members.has(row.parent)) this.#members.set(row.pid, row.startedAt);
    }
    this.#mostProcesses = Math.max(this.#mostProcesses, this.#members.size);
    return [...this.#members.keys()].map((pid) => table.get(pid)!);
  }
}

/** At once, for the moment before the bench itself must go. */
export function killAllTreesNow(): void {
  for (const tree of living) tree.killNow();
}

/** Kills what carries the mark of a bench that is gone. */
export function killMarked(mark: string): void {
  for (const { pid } of markedProcesses(mark)) signalProcess(pid, 'SIGKILL');
}

function processRows(): Row[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readRow(Number(name)) ?? []);
}

function readRow(pid: number): Row | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  if (stat === '') return undefined;
  // Behind the name, which may itself hold blanks and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = (index: number): number => Number(fields[index] ?? 0) * msPerTick;
  return {
    pid,
    state: fields[0] ?? '',
    parent: Number(fields[1]),
    ownMs: ticks(11) + ticks(12),
    reapedMs: ticks(13) + ticks(14),
    startedAt: fields[19] ?? '',
  };
}

function threadsMs(pid: number): number {
  let sum = 0;
  try {
    for (const id of readdirSync(`/proc/${pid}/task`)) sum += Number(readProc(`/proc/${pid}/task/${id}/schedstat`).split(' ')[0]) / 1e6;
  } catch {
    // It has ended meanwhile.
  }
  return sum;
}

function pssMb(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readProc(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) / 1024;
}

function readProc(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // Ended meanwhile, or hidden.
  }
}
