/**
 * CPU of a process by kind of thread, in nanosecond steps, from `/proc/<pid>/task/<tid>/schedstat`.
 *
 * Node 20 gives its threads no names, so a thread is known by what an idle one waits for: an event loop waits in epoll,
 * helpers wait on a futex. V8 starts its four helpers before anything else can start a thread, so they come first.
 * Linux only; where the kernel hides `wchan` all but the main thread count as `other`.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** Milliseconds of CPU. `total` also holds children that were waited for (steps of 10 ms) and threads that have ended. */
export interface CpuSplit {
  readonly total: number;
  readonly main: number;
  /** Every other event loop: session threads, and the broker. */
  readonly threads: number;
  /** libuv's pool: file syncs, mostly. */
  readonly pool: number;
  /** V8's helpers: compiling and collecting garbage beside the thread that runs. */
  readonly v8: number;
  readonly other: number;
}

type Kind = Exclude<keyof CpuSplit, 'total'>;

const v8Helpers = 4;

export class ThreadCpu {
  readonly #pid: number;
  readonly #kinds = new Map<number, Kind>();
  /** The last reading of every thread ever seen: one that ends takes nothing back. */
  readonly #ms = new Map<number, number>();

  constructor(pid: number) {
    this.#pid = pid;
  }

  /** Call it while the process is idle: a thread that runs cannot be told by what it waits for, and is `other` until then. */
  read(): CpuSplit {
    const ids = readdirSync(`/proc/${this.#pid}/task`).map(Number);
    const waiting = new Map<number, string>();
    for (const id of ids) {
      const path = `/proc/${this.#pid}/task/${id}`;
      try {
        this.#ms.set(id, Number(readFileSync(`${path}/schedstat`, 'utf8').split(' ')[0]) / 1e6);
        if (!this.#kinds.has(id)) waiting.set(id, readFileSync(`${path}/wchan`, 'utf8'));
      } catch {
        // The thread ended between the listing and the reading.
      }
    }
    this.#classify(waiting);
    return this.#sum();
  }

  #classify(waiting: ReadonlyMap<number, string>): void {
    let helpers = 0;
    // In the order of their start. One that runs just now takes its place in the order, too.
    for (const id of [...this.#ms.keys()].toSorted((a, b) => a - b)) {
      const place = waiting.get(id) ?? '';
      if (id === this.#pid) this.#kinds.set(id, 'main');
      else if (place.includes('ep_poll') || place.includes('epoll')) this.#kinds.set(id, 'threads');
      else if (place.includes('futex')) this.#kinds.set(id, helpers < v8Helpers ? 'v8' : 'pool');
      const kind = this.#kinds.get(id);
      if (kind !== 'main' && kind !== 'threads') helpers += 1;
    }
  }

  #sum(): CpuSplit {
    const sums: Record<Kind, number> = { main: 0, threads: 0, pool: 0, v8: 0, other: 0 };
    for (const [id, ms] of this.#ms) sums[this.#kinds.get(id) ?? 'other'] += ms;
    const fields = readFileSync(`/proc/${this.#pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    const children = (Number(fields[13]) + Number(fields[14])) * 10;
    return { ...sums, total: sums.main + sums.threads + sums.pool + sums.v8 + sums.other + children };
  }
}

/** What was used between two readings, `after - before`, times `factor`. */
export function cpuBetween(before: CpuSplit, after: CpuSplit, factor = 1): CpuSplit {
  const used = (key: keyof CpuSplit): number => (after[key] - before[key]) * factor;
  return { total: used('total'), main: used('main'), threads: used('threads'), pool: used('pool'), v8: used('v8'), other: used('other') };
}
