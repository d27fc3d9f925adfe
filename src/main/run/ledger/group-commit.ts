/**
 * Many who want something written, one write at a time: whatever came while a write was under way goes into the next one together.
 */

interface Waiting<Item> {
  readonly item: Item;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class GroupCommit<Item> {
  readonly #commit: (items: readonly Item[]) => Promise<void>;
  #waiting: Waiting<Item>[] = [];
  #running: Promise<void> | undefined;

  /** @param commit makes the items durable, in their order; never called again before it has settled */
  constructor(commit: (items: readonly Item[]) => Promise<void>) {
    this.#commit = commit;
  }

  /** Fulfils once the item is durable; rejects with what the commit rejected with. */
  async add(item: Item): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Fulfils when nothing is under way. Never rejects. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // One turn of the loop of events, so that what is added together is committed together.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#commit(batch.map(({ item }) => item));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#running = undefined;
  }
}
