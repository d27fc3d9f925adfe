/**
 * What a background command has made that other programs trust: looked for now and then while somebody reads its output, and at its end. Each
 * find is given once.
 */
import type { ControlNews } from '../../shared/broker-protocol.ts';
import type { LaunchFacts } from './process-group.ts';
import { within } from './within.ts';

/** Between two looks while it runs: each costs some milliseconds. */
const pauseMs = 2_000;
const nothing: ControlNews = {};
/** Finds that nobody has taken yet. */
const mostKept = 32;

export class BackgroundLook {
  readonly #guard: NonNullable<LaunchFacts['guard']>;
  readonly #limitMs: number;
  #found: { controlFiles: string[]; movedFiles: NonNullable<ControlNews['movedFiles']>[number][] } = { controlFiles: [], movedFiles: [] };
  #lastAt = performance.now();
  #looking: Promise<void> | undefined;
  #isOver = false;

  /** @param limitMs how long one look may take, on a file system that may hang */
  constructor(guard: NonNullable<LaunchFacts['guard']>, limitMs: number) {
    this.#guard = guard;
    this.#limitMs = limitMs;
  }

  /** What was found since the last call. Never rejects. */
  async take(): Promise<ControlNews> {
    if (!this.#isOver && performance.now() - this.#lastAt >= pauseMs) await this.#look();
    const { controlFiles, movedFiles } = this.#found;
    this.#found = { controlFiles: [], movedFiles: [] };
    return { ...(controlFiles.length === 0 ? {} : { controlFiles }), ...(movedFiles.length === 0 ? {} : { movedFiles }) };
  }

  /** The command is over: the last look. */
  async finish(): Promise<void> {
    await this.#looking;
    this.#isOver = true;
    await this.#look();
  }

  async #look(): Promise<void> {
    this.#looking ??= this.#once().finally(() => {
      this.#looking = undefined;
    });
    await this.#looking;
  }

  async #once(): Promise<void> {
    const { controlFiles = [], movedFiles = [] } = await within(this.#guard.news(), this.#limitMs, nothing);
    this.#lastAt = performance.now();
    this.#found.controlFiles = [...this.#found.controlFiles, ...controlFiles].slice(0, mostKept);
    this.#found.movedFiles = [...this.#found.movedFiles, ...movedFiles].slice(0, mostKept);
  }
}
