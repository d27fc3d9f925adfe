/**
 * The end of a child: end of input, a grace, TERM, a grace, KILL, and the proof that its whole group is gone; then whatever
 * has left the group.
 */
import type { ProcessGroup } from '../process-group.ts';

/** Milliseconds. */
export interface Graces {
  /** From the closing of stdin to TERM. */
  readonly eofMs: number;
  /** From TERM to KILL. */
  readonly termMs: number;
}

/** Where somebody waits: the session is closed, the server goes down, the child never got to work. */
export const hurriedGraces: Graces = { eofMs: 300, termMs: 300 };

export class ChildEnding {
  /** Nothing of the child is left, or what is left is stuck in the kernel. Never rejects. */
  readonly done: Promise<void>;
  readonly #group: ProcessGroup;
  #graces: Graces;
  #termAt = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #term: () => void = () => undefined;

  /** `sweep` ends processes of the child that have left its group. */
  constructor(group: ProcessGroup, graces: Graces, sweep: () => Promise<void>) {
    this.#group = group;
    this.#graces = graces;
    this.done = this.#run(sweep);
  }

  /** Can only bring the next steps forward. */
  hurry(graces: Graces): void {
    this.#graces = { eofMs: Math.min(this.#graces.eofMs, graces.eofMs), termMs: Math.min(this.#graces.termMs, graces.termMs) };
    if (this.#group.ending) void this.#group.end(this.#graces.termMs);
    else this.#arm(this.#graces.eofMs);
  }

  async #run(sweep: () => Promise<void>): Promise<void> {
    this.#group.stdin?.end();
    const termTime = new Promise<void>((resolve) => {
      this.#term = resolve;
    });
    this.#arm(this.#graces.eofMs);
    await Promise.race([this.#group.gone, termTime]);
    clearTimeout(this.#timer);
    this.#termAt = Number.NEGATIVE_INFINITY;
    await this.#group.end(this.#graces.termMs);
    this.#group.stdin?.destroy();
    await sweep();
  }

  #arm(ms: number): void {
    const at = performance.now() + ms;
    if (at >= this.#termAt) return;
    this.#termAt = at;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#term, ms);
  }
}
