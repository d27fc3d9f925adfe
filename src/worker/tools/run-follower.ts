/**
 * Shows what a command writes while it runs: asks the broker for it piece by piece, no faster than the client's card takes
 * it, and shows what is left when the command has ended.
 *
 * A command that ends before the first look costs nothing, and nothing is shown of it here. Holds one piece at most: while
 * the client is behind, the broker keeps a bounded part.
 */
import type { BrokerApi } from '../../shared/broker-protocol.ts';
import type { LiveOutput } from './tool.ts';

/** Characters shown while the command runs. After that only its end is shown. */
const mostShown = 1024 * 1024;
/** How long one question waits for an answer; then it is asked again. */
const waitMs = 30_000;

export interface FollowedRun {
  readonly broker: Pick<BrokerApi, 'readRun'>;
  readonly owner: string;
  readonly runId: string;
}

export class RunFollower {
  readonly #live: LiveOutput;
  readonly #run: FollowedRun;
  #shown = 0;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;
  #asking: Promise<void> | undefined;

  /** To be made once the run has been asked for. */
  constructor(live: LiveOutput, run: FollowedRun) {
    this.#live = live;
    this.#run = run;
    this.#lookLater();
  }

  /** The command has ended: shows what was not shown yet, if anything was. Nothing is shown afterwards. */
  async finish(unread: string | undefined): Promise<void> {
    this.stop();
    // It was answered before the run ended, so it comes now at the latest.
    await this.#asking;
    if (unread !== undefined && unread !== '') this.#live.show(unread);
  }

  /** Looks no more. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #lookLater(): void {
    if (this.#stopped || this.#shown >= mostShown) return;
    this.#timer = setTimeout(() => void this.#look(), this.#live.paceMs);
  }

  async #look(): Promise<void> {
    await this.#live.whenWritable();
    if (this.#stopped) return;
    this.#asking = this.#ask();
    await this.#asking;
    this.#lookLater();
  }

  async #ask(): Promise<void> {
    const { broker, owner, runId } = this.#run;
    try {
      const piece = await broker.readRun(owner, runId, waitMs);
      if (piece === undefined || piece.over) this.#stopped = true;
      if (piece === undefined || piece.text === '') return;
      this.#shown += piece.text.length;
      this.#live.show(piece.text);
    } catch {
      // The broker is lost: the run itself will say so.
      this.#stopped = true;
    }
  }
}
