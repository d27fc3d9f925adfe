/**
 * The waiting of a long poll: until there is news, or for as long as the caller has time.
 */
export class NewsWait {
  readonly #waiting = new Set<() => void>();

  /** Fulfils at the next {@link wake}, or after `waitMs`. */
  wait(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, waitMs);
      this.#waiting.add(wake);
    });
  }

  /** Ends all waits of now. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }
}
