/**
 * Ends processes that have left their group (`setsid`, double fork) once their owner is done.
 *
 * Every child carries a mark in its environment, which its descendants inherit and the system shows in `/proc`. So a
 * daemon is found unless it wiped its environment or this system has no `/proc`; those two stay out of reach. One look
 * at the process table serves all owners that are released at the same time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { markedProcesses, signalProcess } from '../../shared/process-table.ts';

export const markVariable = 'AGENT_COMMAND_OWNER';

const termGraceMs = 300;
const killWaitMs = 1000;
const pollMs = 25;

export class EscapeeSweep {
  readonly #prefix: string;
  #batch: { readonly owners: Set<string>; readonly done: Promise<void> } | undefined;

  /** `mark` is unique to this server process. */
  constructor(mark: string) {
    this.#prefix = `${mark}/`;
  }

  /** The variable's value for a child of `owner`. Keeps the marks of a server that runs this one as its own child. */
  markFor(owner: string, inherited: string | undefined): string {
    return `${inherited === undefined ? '' : `${inherited} `}${this.#prefix}${encodeURIComponent(owner)};`;
  }

  /** Fulfils when no marked process of the owner is left: TERM, a grace, KILL. */
  async sweep(owner: string): Promise<void> {
    if (this.#batch === undefined) {
      const owners = new Set<string>();
      this.#batch = { owners, done: this.#endSoon(owners) };
    }
    this.#batch.owners.add(owner);
    await this.#batch.done;
  }

  /** The marked processes of the owner that live now. */
  marked(owner: string): number[] {
    return this.#find([this.markFor(owner, undefined)]);
  }

  async #endSoon(owners: ReadonlySet<string>): Promise<void> {
    // All who come in this turn of the event loop share one look.
    await new Promise((resolve) => setImmediate(resolve));
    this.#batch = undefined;
    await this.#endAll(owners);
  }

  async #endAll(owners: ReadonlySet<string>): Promise<void> {
    const marks = [...owners].map((owner) => this.markFor(owner, undefined));
    const start = performance.now();
    const told = new Set<number>();
    for (;;) {
      const pids = this.#find(marks);
      const elapsed = performance.now() - start;
      if (pids.length === 0 || elapsed > termGraceMs + killWaitMs) return;
      for (const pid of pids) {
        if (elapsed >= termGraceMs) signalProcess(pid, 'SIGKILL');
        else if (!told.has(pid)) signalProcess(pid, 'SIGTERM');
        told.add(pid);
      }
      await delay(pollMs);
    }
  }

  #find(marks: readonly string[]): number[] {
    const wanted = new Set(marks);
    return markedProcesses(this.#prefix)
      .filter(({ environment }) => this.#marksIn(environment).some((mark) => wanted.has(mark)))
      .map(({ pid }) => pid);
  }

  #marksIn(environment: string): string[] {
    const marks: string[] = [];
    for (let at = environment.indexOf(this.#prefix); at >= 0; at = environment.indexOf(this.#prefix, at + 1)) {
      marks.push(environment.slice(at, environment.indexOf(';', at) + 1));
    }
    return marks;
  }
}
