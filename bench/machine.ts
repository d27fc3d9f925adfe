/** What was measured on what: figures of two machines, or of a busy one and a quiet one, say nothing about each other. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';

export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGb: number;
  readonly system: string;
  readonly node: string;
  /** Short hash, with `+` when files differ from it; `unknown` outside a checkout. */
  readonly commit: string;
}

export function machineFacts(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    system: `${type()} ${release()}`,
    node: process.version,
    commit: commit(),
  };
}

function commit(): string {
  try {
    const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', '--', 'src', 'bench') === '' ? '' : '+'}`;
  } catch {
    return 'unknown';
  }
}

/** Share of all cores that others and we ourselves used in the last moments, from two readings of `/proc/stat`. */
export class CoreUse {
  #last = readTicks();

  /** Percent of all cores since the last call, or since the start. */
  percent(): number {
    const now = readTicks();
    const total = now.total - this.#last.total;
    const idle = now.idle - this.#last.idle;
    this.#last = now;
    return total === 0 ? 0 : (1 - idle / total) * 100;
  }
}

function readTicks(): { readonly total: number; readonly idle: number } {
  try {
    const ticks = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.trim().split(/\s+/).slice(1, 9).map(Number);
    return { total: ticks.reduce((sum, one) => sum + one, 0), idle: (ticks[3] ?? 0) + (ticks[4] ?? 0) };
  } catch {
    return { total: 0, idle: 0 }; // Not Linux: nothing is known, and nothing is warned of.
  }
}
