/**
 * The results of a run: one line an attempt, written once and for good. What an append has promised is on the disk; killed at any moment, the
 * file holds whole lines of different attempts and perhaps the beginning of one more, which the next start cuts off.
 */
import { rm } from 'node:fs/promises';
import type { JobResult } from '../job-result.ts';
import { GroupCommit } from './group-commit.ts';
import { RunLock } from './run-lock.ts';
import { openStored, type Stored, type StoredOptions } from './stored-results.ts';

export type LedgerOptions = StoredOptions;

interface Line {
  readonly index: number;
  readonly text: string;
}

export class Ledger {
  readonly path: string;
  readonly #lock: RunLock;
  readonly #stored: Stored;
  readonly #commits: GroupCommit<Line>;
  /** In an ordered run: the attempt whose line comes next. */
  #next: number;

  private constructor(lock: RunLock, stored: Stored) {
    this.path = stored.main.path;
    this.#lock = lock;
    this.#stored = stored;
    this.#next = stored.prefix;
    this.#commits = new GroupCommit((lines) => this.#commit(lines));
  }

  /**
   * Opens the file for this process alone, and makes ready what an earlier run left.
   *
   * @throws ServerError CONFIG_INVALID while another runner has it, and for what is no file of results of these jobs; LOG_WRITE_FAILED
   */
  static async open(options: LedgerOptions): Promise<Ledger> {
    const lock = await RunLock.take(options.path);
    try {
      return new Ledger(lock, await openStored(options));
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** Results of jobs that the jobs file no longer has; they are left in the file and not counted. */
  get strangers(): number {
    return this.#stored.strangers;
  }

  isDone(index: number): boolean {
    return this.#stored.done[index] === 1;
  }

  /** Fulfils once the result will survive whatever comes. Once an attempt. @throws ServerError LOG_WRITE_FAILED */
  async append(index: number, result: JobResult): Promise<void> {
    await this.#commits.add({ index, text: `${JSON.stringify(result)}\n` });
    this.#stored.done[index] = 1;
  }

  /**
   * Puts what still waits behind the rest, in order, and lets the file go. Never rejects: what cannot be moved is found by
   * the next run.
   */
  async close(): Promise<void> {
    await this.#commits.idle();
    const { main, waiting } = this.#stored;
    try {
      if (waiting !== undefined) {
        for (const index of [...waiting.places.keys()].sort((a, b) => a - b)) await this.#move(index);
        await waiting.file.close();
        await rm(waiting.file.path, { force: true });
      }
      await main.close();
    } catch {
      // The disk refuses: the waiting results stay where they are.
    }
    this.#lock.release();
  }

  async #commit(lines: readonly Line[]): Promise<void> {
    const { main, waiting } = this.#stored;
    if (waiting === undefined) {
      await main.append(lines.map(({ text }) => text).join(''));
      return;
    }
    const sorted = [...lines].sort((a, b) => a.index - b.index);
    const turn: Line[] = [];
    for (const line of sorted) if (line.index === this.#next + turn.length) turn.push(line);
    const early = sorted.slice(turn.length);
    if (turn.length > 0) {
      await main.append(turn.map(({ text }) => text).join(''));
      this.#next += turn.length;
    }
    if (early.length > 0) {
      let offset = await waiting.file.append(early.map(({ text }) => text).join(''));
      for (const { index, text } of early) {
        const length = Buffer.byteLength(text) - 1;
        waiting.places.set(index, { index, file: waiting.file, offset, length });
        offset += length + 1;
      }
    }
    while (waiting.places.has(this.#next)) await this.#move(this.#next);
    if (waiting.places.size === 0 && waiting.file.size > 0) await waiting.file.truncate(0);
  }

  async #move(index: number): Promise<void> {
    const { main, waiting } = this.#stored;
    const place = waiting?.places.get(index);
    if (place === undefined) return;
    await main.append(`${await place.file.read(place.offset, place.length)}\n`);
    waiting?.places.delete(index);
    this.#next = index + 1;
  }
}
