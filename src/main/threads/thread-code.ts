/**
 * The compiled code of session threads between two starts of the server: what the first thread published after a turn is kept on disk,
 * and is there for the first thread of the next process.
 */
import { type CodeCache, createCodeCache, publishStoredCode, readMadeCode } from '../../shared/code-cache.ts';
import { openCodeStore } from '../code-store.ts';
import { paceCompiler } from './compiler-pace.ts';

/** Put in by the build: the hash of the thread bundle. Absent where the sources run as they are compiled, one by one. */
declare const threadHash: string | undefined;

/** The turn is answered by then, and the thread has published. */
const keptAfterMs = 2_000;

export class ThreadCode {
  /** For all threads of this process. */
  readonly slots: CodeCache = createCodeCache();
  readonly #store = typeof threadHash === 'undefined' ? undefined : openCodeStore(process.env, threadHash);
  #waits = false;

  constructor() {
    // V8 takes only code that was compiled under the same flags.
    paceCompiler();
    const stored = this.#store?.read();
    if (stored !== undefined) publishStoredCode(this.slots.warm, stored);
  }

  /** `next`, called when a turn has ended; the first time, the code is kept a little later. */
  afterTurn<T>(next: (outcome: T) => void): (outcome: T) => void {
    return (outcome) => {
      if (this.#store !== undefined && !this.#waits) {
        this.#waits = true;
        setTimeout(() => this.#keep(), keptAfterMs).unref();
      }
      next(outcome);
    };
  }

  #keep(): void {
    const code = readMadeCode(this.slots.warm);
    if (code !== undefined) this.#store?.write(code);
  }
}
